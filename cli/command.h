#pragma once

// A command of the program is one record: its name, help, arguments, and the function that answers.
// Parsing, help, spelling advice, completions and the man page are all made from these records.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/result.h"

namespace fourpiles::cli {

// How often a value may be given.
enum class Count { kFlag, kOne, kMany };

// An option is one row. Positional arguments have a name without dashes: {"VALUE", …, kMany}.
struct Option {
  std::string_view name = {};        // "--to"
  std::string_view short_name = {};  // "-b", or empty
  std::string_view value = {};       // "FORMAT"; empty for a flag
  std::string_view help = {};        // one line
  std::string_view group = {};       // heading in the help; empty: "Options"
  Count count = Count::kOne;
  bool required = false;
};

// What was typed, by option name ("--to", "VALUE").
class Arguments {
 public:
  explicit Arguments(std::map<std::string, std::vector<std::string>, std::less<>> values)
      : values_(std::move(values)) {}
  bool Has(std::string_view name) const;
  // All values, in the order typed; empty when the option is absent.
  std::span<const std::string> All(std::string_view name) const;
  // The value of an option that may be given once, or `otherwise` when it is absent.
  std::string_view One(std::string_view name, std::string_view otherwise = {}) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// What a command has to say. The program prints `text`, or with --json the members of `json`
// behind "schema" and "command".
struct Answer {
  std::string text = {};
  Json::Object json = {};
  std::vector<std::string> warnings = {};  // to stderr
  std::vector<std::string> notes = {};     // the same: of how the answer came about
  // Faults of what was looked at, which do not keep from answering: to stderr; with --json the
  // first one stands as "error", with the exit status.
  std::vector<ErrorText> errors = {};
  int exit_status = 0;  // 0 yes, 1 the answer is no, 3 what was looked at cannot be trusted
};

struct Command {
  std::string_view name;
  std::string_view summary = {};   // one line
  std::string_view examples = {};  // whole command lines, one a line; help opens with them
  std::span<const Option> options = {};
  Result<Answer> (*run)(const Arguments&) = nullptr;
};

// Every command, in the order of the help.
std::span<const Command> Commands();

}  // namespace fourpiles::cli
