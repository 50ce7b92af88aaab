#pragma once

// What a rank holds before the first action of a training step and after the last: its share of
// weights, gradients and optimizer states, the batch, and buffers that are there to the end.

#include "plan/job.h"
#include "step/play.h"

namespace fourpiles {

// One gradient buffer that is always there: where the recipe has one, and where ZeRO divides it.
bool GradientsAreResident(const TrainingJob& training);

// The number formats of a step. Autocast where the weights are kept wider than what is computed in,
// and are not gathered so.
Numbers NumbersOf(const Recipe& recipe);

// Parameters come from the ranks that have their shares, or from the host, layer by layer.
bool GathersWeights(const TrainingJob& training);

// Of what is resident, on the device.
Bytes DeviceBytes(const Resident& resident);

// `network` is the rank's own; `batch` what it is given. Error: bytes past 2^53.
Result<Resident> RankState(const TrainingJob& training, const Network& network, const Batch& batch);

// Bytes of the state on one rank at full size: a recipe whose gradients are born in backward has
// them too.
Result<Bytes> StateBytes(const TrainingJob& training, const Network& network);

// What comes and goes of each block, where weights are gathered.
Result<GatheredBlocks> GatheredOf(const TrainingJob& training, const Network& network);

}  // namespace fourpiles
