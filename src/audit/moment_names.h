#pragma once

// Which tensor is a moment of which weight, by names alone.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

// What an optimizer of the Adam family keeps.
enum class StatePart { kFirst, kSecond, kStep };

// Names of both moments, with "{name}" in the place of the weight's.
struct MomentPatterns {
  std::string first = {};
  std::string second = {};
};

// "opt.m.{name},opt.v.{name}". Error (kUsage): another form.
Result<MomentPatterns> ParseMomentPatterns(std::string_view text,
                                           std::string_view where = "--moments");

// The part of `name` that stands for "{name}" in the pattern; nothing: it is another name.
std::optional<std::string_view> NameWithin(std::string_view pattern, std::string_view name);

// "exp_avg", "adam_m", "mu", "Adam" are first moments, "exp_avg_sq", "adam_v", "nu", "Adam_1"
// second ones; "m" and "v" are where the caller knows that the tensor is an optimizer's.
std::optional<StatePart> StatePartOf(std::string_view word, bool is_optimizers);

// A moment by one part of its name, between dots or slashes: what stands behind and before it.
struct MomentName {
  StatePart part = StatePart::kFirst;
  std::vector<std::string_view> behind = {};
  std::vector<std::string_view> before = {};
};
std::optional<MomentName> MomentNameOf(std::string_view name, bool is_optimizers);

// The parts of a name between dots or slashes.
std::vector<std::string_view> NameParts(std::string_view name);

// Names of weights, to be found with or without what holds them: "model.fc.weight" is "fc/weight"
// too.
class WeightNames {
 public:
  // The first one of a name stays.
  void Add(std::string_view name, std::int32_t weight);
  // By the whole name, else without up to eight parts at its beginning; -1: there is none.
  std::int32_t Find(const std::vector<std::string_view>& parts) const;
  std::int32_t Find(std::string_view name) const { return Find(NameParts(name)); }
  // The weight of a moment: by what stands behind its word, else before it.
  std::int32_t Find(const MomentName& moment) const;

 private:
  std::map<std::string, std::int32_t> by_name_ = {};
};

}  // namespace fourpiles
