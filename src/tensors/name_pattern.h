#pragma once

// Names of tensors that are alike but for their numbers: "model.layers.{0..31}.mlp.up_proj.weight".

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fourpiles {

// A name with its numbers taken out. A number is a whole part between dots or slashes.
struct NamePattern {
  std::string text = {};                   // "model.layers.{}.mlp.up_proj.weight"
  std::vector<std::int64_t> numbers = {};  // one for each "{}" that was put in
};

NamePattern PatternOf(std::string_view name);

// The pattern with all values of each number written out: "{0..31}", "{0,2,…,30}", "7". `values`
// has those of each "{}", sorted, each once.
std::string WithValues(std::string_view pattern,
                       const std::vector<std::vector<std::int64_t>>& values);

// Numbers for texts, in the order in which they come.
class Numbering {
 public:
  std::size_t NumberOf(const std::string& text) {
    return numbers_.try_emplace(text, numbers_.size()).first->second;
  }

 private:
  std::map<std::string, std::size_t> numbers_;  // a hash table could be made slow by chosen texts
};

// Names sorted into groups that are alike but for their numbers.
class NameGroups {
 public:
  // The group of the name, among those of the same kind; groups count from 0 as they come.
  std::size_t GroupOf(std::string_view name, std::string_view kind = {});
  // "model.layers.{0..31}.mlp.up_proj.weight"
  std::string NameOf(std::size_t group) const;

 private:
  struct Group {
    std::string pattern;
    std::vector<std::vector<std::int64_t>> values;  // of each number, as they came
  };
  Numbering keys_;
  std::vector<Group> groups_;
};

// The part of a network that a tensor belongs to: its name up to the part behind the number of its
// layer, "model.layers.3.mlp", or without its last part, "model.norm".
std::string_view ModuleOf(std::string_view name);

// Whether the name holds `pattern`, in which "*" stands for any letters and "?" for one: anywhere
// when it has neither. In time proportional to the product of both lengths at most.
bool Matches(std::string_view name, std::string_view pattern);
// Whether the filters let a name in: there are none, or it matches one of them.
bool MatchesAny(std::string_view name, const std::vector<std::string>& filters);

}  // namespace fourpiles
