#pragma once

// What the commands about numbers print: formats, round, accumulate, scale. Each as text and as the
// members of its JSON (docs/json.md).

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/accumulation_methods.h"
#include "formats/block_rounding.h"
#include "formats/rounding.h"
#include "formats/scaling.h"

namespace fourpiles {

// A value as short as it reads back: "65504", "5.960464477539063e-08", "inf".
std::string NumberText(double value);

// All formats in one table, a line each.
std::string FormatListText(std::span<const NumberFormat> formats);
// The facts of a few formats side by side, then the bit layout of each.
std::string FormatFactsText(std::span<const NumberFormat> formats);
Json FormatsJson(std::span<const NumberFormat> formats);

// The same of block formats: the table, the facts of each, and the values of elements of 4 bits.
std::string BlockFormatListText(std::span<const BlockFormat> formats);
std::string BlockFormatFactsText(std::span<const BlockFormat> formats);
Json BlockFormatsJson(std::span<const BlockFormat> formats);

// The whole catalogue as Markdown, all of it from the records: what docs/FORMATS.md has.
std::string FormatsMarkdown();

// What became of numbers in each format: one by one, or as a row of a tensor in a block format.
// `how` is what all of them were rounded with.
struct RoundResult {
  std::vector<Rounding> roundings = {};
  std::vector<BlockRounding> blocks = {};
  TypedConversion how = {};
};
std::string RoundText(const RoundResult& result);
Json::Object RoundJson(const RoundResult& result);

// The part of it that is in block formats.
std::string BlockRoundingText(const BlockRounding& rounding);
Json BlockRoundingsJson(std::span<const BlockRounding> roundings);

// A sum in one format, by one method; nothing where it was not run.
struct SumResult {
  SumPlan plan;
  std::optional<Accumulation> sum;
};
// Sequential sums, with or without a master copy.
std::string AccumulateText(const AccumulationJob& job, std::span<const SumResult> results);
Json::Object AccumulateJson(const AccumulationJob& job, std::span<const SumResult> results);
// Sums by several methods, with their errors; as AllPlans has them, so that the last one's seed is
// that of all.
std::string CompareText(const AccumulationJob& job, std::span<const SumResult> results);
Json::Object CompareJson(const AccumulationJob& job, std::span<const SumResult> results);

struct ScaleResult {
  TypedNumber input;
  TypedNumber scale;
  NumberFormat format;
  Scaling scaling;
};
std::string ScaleText(std::span<const ScaleResult> results, Overflow overflow);
Json::Object ScaleJson(std::span<const ScaleResult> results, Overflow overflow);

}  // namespace fourpiles
