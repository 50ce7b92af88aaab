#pragma once

// What the engines' functions have in common: ranks with their weights, and what a record says.

#include "plan/serving.h"
#include "plan/serving_weights.h"

namespace fourpiles {

// One rank for each stage, with its network, weights, adapters, and the weights of the draft model;
// tensor and data parallel ranks are alike.
Result<std::vector<ServingRank>> RanksOf(const Job& job);

// The device is a record: its overheads and bands are known. One that is only a size has neither.
bool KnowsOverheads(const Job& job);

// An amount in words, counted with the rest where the device's overheads are known.
void AddBand(Resident& resident, Pile pile, const Band& band, StorageText text);
// The record's term of that id, if it has one.
void AddTerm(Resident& resident, const Job& job, std::string_view id);
// The record's ratio of that id; 1 where it has none.
double ExpectedRatio(const Job& job, std::string_view id);
// `bytes` times the record's ratio of that id; exactly the expected one on a device that is a size.
Band Times(Checked bytes, const Job& job, std::string_view id);
// Bytes that are not the engine's to take.
void AddLeftFree(Resident& resident, Bytes bytes, std::string_view formula);

// Sums on the device.
Bytes ExpectedOf(const Resident& resident);
Bytes ExpectedOf(const Resident& resident, Pile pile);

// What MXFP4 experts take more than in the file, where the kernels lay them out again.
void AddRepacking(Resident& resident, const Job& job);

}  // namespace fourpiles
