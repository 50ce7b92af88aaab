#pragma once

// From the words of the command line to a command and its arguments.
//
// An option may stand before or behind the positional values. "--to=a" and "--to a" are the same; a
// negative number ("-1.5", "-0x1p-3", "-inf") is a value, not an option; behind "--" every word is
// a positional value. An option that takes several values takes a list ("a,b"), may be repeated,
// and takes the words up to the next option or "--". Where that leaves none for the positional
// value it keeps only the first: "round --to float16 1.5 2.5" rounds two numbers.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "fourpiles/result.h"
#include "units/print.h"

namespace fourpiles::cli {

// The options that every command has: --json, --unit, --help, --version.
std::span<const Option> GlobalOptions();

// True for positional arguments, whose name has no dashes.
bool IsPositional(const Option& option);

// The items of a list. Commas behind a colon are its item's own: "fp16,int4:group=32,asymmetric".
std::vector<std::string> ItemsOf(const std::string& list);

// The unit of --unit: GiB when it was not given.
ByteUnit UnitOf(const Arguments& arguments);

struct CommandLine {
  enum class Wish { kAnswer, kHelp, kVersion };

  const Command* command = nullptr;  // one of those given; nullptr when none was recognised
  Wish wish = Wish::kAnswer;
  bool json = false;  // known even where the rest is wrong
  // The values by option name, all required ones there; or what is wrong with the words.
  Result<Arguments> arguments = Arguments({});
};

// Takes apart the words behind the program's name.
CommandLine ParseCommandLine(std::span<const Command> commands,
                             std::span<const std::string_view> words);

}  // namespace fourpiles::cli
