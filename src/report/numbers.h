#pragma once

// What the commands about numbers print: formats, round, accumulate, scale. Each as text and as the
// members of its JSON (docs/json.md).

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/accumulate.h"
#include "formats/rounding.h"
#include "formats/scaling.h"

namespace fourpiles {

// A value as short as it reads back: "65504", "5.960464477539063e-08", "inf".
std::string NumberText(double value);

// All formats in one table, a line each.
std::string FormatListText(std::span<const NumberFormat> formats);
// The facts of a few formats side by side, then the bit layout of each.
std::string FormatFactsText(std::span<const NumberFormat> formats);
Json::Object FormatsJson(std::span<const NumberFormat> formats);

// `how` is what all of them were rounded with.
std::string RoundText(std::span<const Rounding> roundings, const TypedConversion& how);
Json::Object RoundJson(std::span<const Rounding> roundings, const TypedConversion& how);

// A sum in one format; `master` names the format of the master copy, if there was one.
struct AccumulateResult {
  NumberFormat format;
  std::optional<NumberFormat> master;
  Accumulation sum;
};
std::string AccumulateText(const AccumulationJob& job, std::span<const AccumulateResult> results);
Json::Object AccumulateJson(const AccumulationJob& job, std::span<const AccumulateResult> results);

struct ScaleResult {
  TypedNumber input;
  TypedNumber scale;
  NumberFormat format;
  Scaling scaling;
};
std::string ScaleText(std::span<const ScaleResult> results, Overflow overflow);
Json::Object ScaleJson(std::span<const ScaleResult> results, Overflow overflow);

}  // namespace fourpiles
