#pragma once

// Lines of a log, recognised by a table: a row is the line as the engine prints it, with names in
// braces where the line changes.
//
//   {device} KV buffer size = {figure kv_device_bytes}
//
//   {figure ID}       an amount; of bytes it carries its unit, or {figure ID GiB} says it
//   {setting NAME}    a word; in quotes, up to a comma or a bracket
//   {count NAME}      a setting that is a whole number
//   {anew NAME}       a setting that replaces an earlier one
//   {model NAME}      a word about the model; {rest NAME}: all that follows
//   {path}            where the model lies: up to the row's next words
//   {version}         of the engine
//   {device}          the word before the row's first words, or the word at that place
//   {is}              what stands between a name and its value: = or ': or ":
//   {any}             anything up to the row's next words
//
// A blank stands for any number of blanks, none too. A row is tried where its first word stands in
// the line, and at one place only, so a line takes time in proportion to its length.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/validate_fields.h"

namespace fourpiles {

// What a row tells besides what it holds.
enum class LineRole {
  kPlain,
  kStart,        // the engine's program starts
  kModel,        // a model is loaded; programs that load one only start with it
  kFullCache,    // the lines of kCache that follow are about the layers without a window
  kWindowCache,  // … about those with a window: their ids and names begin with "swa_"
  kCache,
  kPart,    // a buffer of several that add up; a model that is loaded begins anew
  kPool,    // a pool of its own, even where another has the same size
  kLatest,  // replaces what an earlier line of the kind said
};

struct LinePattern {
  std::string_view text = {};
  std::span<const std::string_view> after = {};   // one of them stands before it, with a colon
  std::span<const std::string_view> within = {};  // one of them stands somewhere before it
  LineRole role = LineRole::kPlain;
  std::string_view says = {};  // a setting that the line means: "swa-full=true"
};

// What a pair of braces stands for; kWords are the words between them.
enum class PartKind {
  kWords,
  kFigure,
  kSetting,
  kCount,
  kAnew,
  kModel,
  kRest,
  kPath,
  kVersion,
  kDevice,
  kIs,
  kAny,
};

struct PatternPart {
  PartKind kind = PartKind::kWords;
  std::string_view name = {};  // the words themselves, or the name in the braces
  std::string_view unit = {};
};

struct CompiledPattern {
  std::vector<PatternPart> parts = {};
  std::string_view first_word = {};  // letters, digits and _
};

CompiledPattern CompiledFrom(std::string_view pattern);

struct LineFinding {
  PartKind kind = PartKind::kWords;
  std::string_view name = {};
  std::string_view text = {};  // of the line
  Printed amount = {};         // of a figure
  bool at_end = false;         // it may go on behind the end of the line
};

struct LineMatch {
  bool is_tried = false;  // the first words stood there
  bool is_found = false;
  std::string_view impossible = {};  // a number that cannot be
  std::vector<LineFinding> findings = {};
};

constexpr bool IsWordCharacter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_';
}

// The row at the place of the line where its first word was found.
LineMatch MatchAt(const LinePattern& row, const CompiledPattern& pattern, std::string_view line,
                  std::size_t place);

}  // namespace fourpiles
