#pragma once

// Finds the largest concurrency or context that a serving job fits, the fewest devices, and the
// largest context at each concurrency. What is loaded is counted once; the search asks for the
// requests alone.

#include "plan/budget.h"

namespace fourpiles {

// Whether every rank has room for the load. A load past 2^53 bytes fits nothing.
bool HasRoom(const ServingPlan& plan, Bytes memory, const RequestLoad& load);

// Of the plan of a job with a device: the largest concurrency or context length that fits, up to
// `most`; nothing: not even one.
std::optional<std::int64_t> MostThatFit(const Job& job, const ServingPlan& plan, Unknown unknown,
                                        std::int64_t most);

// Of the plan of a job with a device: the largest concurrency or context length that fits; nothing:
// none. vLLM's concurrency is at most --max-num-seqs. Error (kUsage): the memory does not limit it.
Result<std::optional<std::int64_t>> SolveServing(const Job& job, const ServingPlan& plan,
                                                 Unknown unknown);

// Concurrency 1, 2, 4, … as far as a context of one token fits; contexts are at most the model's
// longest.
std::vector<ContextRow> ContextTable(const Job& job, const ServingPlan& plan);

// The job with so many devices, laid out: layers over devices for llama.cpp, else as was typed;
// what was not is tensor parallel up to 8, and pipeline stages of 8 beyond, or replicas where
// stages or experts were typed. Nothing where they cannot be laid out so.
std::optional<Job> WithDevices(const Job& job, std::int64_t devices);

// The answer to a serving job, solved where asked.
Result<Budget> BudgetOfServing(const Job& job);

}  // namespace fourpiles
