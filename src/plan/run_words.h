#pragma once

// The vocabulary of measured training runs: what a word in a field of a row means, as settings are
// typed. A word that does not stand here makes a row not expressible.

#include <span>
#include <string>
#include <string_view>

namespace fourpiles {

struct RunWord {
  std::string_view field = {};  // "precision"
  std::string_view word = {};   // in lower case, without a remark in parentheses
  // Settings, "recipe=bf16 base-format=nf4"; those that begin with "@" are of validate itself.
  std::string_view means = {};
  std::string_view why_not = {};  // it cannot be expressed: the reason
};

// In the order of the fields in a row.
std::span<const RunWord> RunWords();

// The word of the field, in lower case and without remarks in parentheses: "bf16 AMP (HF Trainer)"
// is "bf16 amp". Nothing: nullptr.
const RunWord* FindRunWord(std::string_view field, std::string_view text);

// The first word of the field that the text has in it somewhere: sources, notes.
const RunWord* FindRunPhrase(std::string_view field, std::string_view text);

std::string PlainWord(std::string_view text);

}  // namespace fourpiles
