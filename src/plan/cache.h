#pragma once

// What serving keeps of its requests: the keys and values of every token, and states that do not
// grow with the context.

#include "base/checked.h"
#include "model/network.h"
#include "plan/job.h"
#include "step/play.h"

namespace fourpiles {

// The caches of all requests at full context, a storage for each run of alike layers and each kind.
// A layer with a sliding window keeps its last tokens only. Error: bytes past 2^53.
Result<Resident> CacheStorages(const Network& network, const ServingJob& serving);

// Bytes that one more token costs one request while no window is full: keys, values, and index keys
// of all layers. Llama-2-7B in float16: 2 × 32 layers × 4,096 × 2 bytes = 524,288.
Checked CacheBytesPerToken(const Network& network, const ServingJob& serving);

// Bytes of one request that do not grow: convolution inputs in the format that is computed in, as
// vLLM keeps them (llama.cpp: float32), recurrent memory in float32 (both).
Checked StateBytesPerRequest(const Network& network, const ServingJob& serving);

}  // namespace fourpiles
