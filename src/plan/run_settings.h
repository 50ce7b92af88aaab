#pragma once

// Words of a measured run put together as settings that are typed: "tensor-parallel" is "4". Those
// of validate itself begin with "@".

#include <map>
#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "fourpiles/result.h"
#include "plan/run_words.h"

namespace fourpiles {

using RunSettings = std::map<std::string, std::string>;

// "recipe=bf16 base-format=nf4", one after the other; "{}" stands for the count.
void AddSettings(RunSettings& typed, std::string_view means, std::string_view count = {});

// Takes a setting out.
std::string TakeOr(RunSettings& typed, const std::string& key, std::string otherwise);

// What the word of the field means. Error: it is not in the vocabulary, or not expressible.
Result<void> AddWord(RunSettings& typed, std::string_view field, std::string_view text);
// What the first phrase of the field means that the text has in it, if it has one.
void AddPhrase(RunSettings& typed, std::string_view field, std::string_view text);

// What an object's members mean, one by one: a number is the count of the word that its key is; a
// word or true is looked up as "key=word", "key=true"; false is the opposite of a word that is
// known. Error: a member that is not understood.
Result<void> AddMembers(RunSettings& typed, std::string_view field, const Fields& members);

// "devices" and the members of `parallel`; one device needs none. Error: no device count, no
// `parallel` beside several devices, a member that is not understood.
Result<void> AddLayout(RunSettings& typed, const Fields& row);

}  // namespace fourpiles
