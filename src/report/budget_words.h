#pragma once

// The sentences about a budget that its text and its Markdown share.

#include <string>
#include <vector>

#include "plan/budget.h"
#include "report/budget.h"

namespace fourpiles {

// The piles that the job has, in order: weights and KV cache when serving.
std::vector<Pile> PilesOf(const Budget& budget);

// "optimizer state".
std::string PileWords(Pile pile);

// Bytes of a pile at the peak, or "not known".
std::string PileAmount(const Budget& budget, Pile pile, const BudgetStyle& style);

// "bfloat16", "float32 and bfloat16"; empty for an empty pile.
std::string PileFormats(const Budget& budget, Pile pile);

// "llama-3.1-8b: a training step", with what was solved.
std::string Title(const Budget& budget);

// The settings in one line: "recipe mixed-bf16, adamw, micro-batch 1 × 2048 tokens".
std::string SettingsWords(const Budget& budget);
// "8,072,204,288 parameters", and how many are trained where an adapter is.
std::string ParameterWords(const Budget& budget);

// "does not fit"; empty without a device.
std::string FitWords(const Budget& budget);

// "does not fit: 40.51 GiB too much"; empty without a device.
std::string VerdictWords(const Budget& budget, const BudgetStyle& style);

// Whole sentences: times the file, what was solved, what is not known, the defaults.
std::vector<std::string> Remarks(const Budget& budget, const BudgetStyle& style);

}  // namespace fourpiles
