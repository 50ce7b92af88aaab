#pragma once

// The settings that tell of the training data: --length-histogram, --padding, --packing,
// --excess-length; and what they make of its micro-batches.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/setting_reader.h"

namespace fourpiles {

// Reads the file; null where none was given. Errors: kInput for the file; kUsage for settings that
// mean nothing without it, or contradict, and for a model whose samples all have one length.
Result<std::shared_ptr<const TrainingData>> ReadTrainingData(SettingReader& reader, const Job& job);

// Sets the sequence length that the worst batch has: of the longest sample up to the limit that was
// typed; the limit itself, where samples are filled up to it or packed.
void TakeSequenceLength(Job& job, const TrainingData* data);

// The samples that are trained on where they end at `limit`: without those that are dropped, unless
// that is all of them.
SampleLengths KeptSamples(const TrainingData& data, std::int64_t limit);

// The longest sample, of those that are kept; the limit, where none is.
std::int64_t LongestKept(const TrainingData& data, std::int64_t limit);

// The lengths of the job's micro-batches, ascending, each as often as the others, the last the
// job's own: `count` of them where samples are random, else the one that all have.
std::vector<std::int64_t> MicroBatchLengths(const TrainingJob& training, std::size_t count);

}  // namespace fourpiles
