// What must hold for the record of every command.

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/program.h"

namespace fourpiles::cli {
namespace {

// The exit status of a line of examples, whose first word is the program's name.
int StatusOf(std::string_view line) {
  std::istringstream stream{std::string(line)};
  const std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
  std::vector<const char*> typed;
  std::ranges::transform(words, std::back_inserter(typed), &std::string::c_str);
  return RunProgram(Commands(), std::span(typed).subspan(1), false).exit_status;
}

// For a shell, or about a file of the user's.
bool IsNotForUs(std::string_view line) {
  return line.find_first_of("<>|") != std::string_view::npos ||
         line.find("./") != std::string_view::npos;
}

TEST(Commands, HaveExamplesThatAreAnswered) {
  std::string faults;
  for (const Command& command : Commands()) {
    if (command.examples.empty()) {
      faults += fmt::format("{} has no example\n", command.name);
    }
    for (const std::string_view line : Lines(command.examples)) {
      if (!IsNotForUs(line) && StatusOf(line) > 1) {
        faults += fmt::format("{}\n", line);
      }
    }
  }
  EXPECT_EQ(faults, "");
}

// The names of a command's options that another has too.
std::string SharedNames(const Command& command) {
  std::multiset<std::string_view> names;
  for (const std::span<const Option> options : {command.options, GlobalOptions()}) {
    for (const Option& option : options) {
      names.insert({option.name, option.short_name});
    }
  }
  names.erase("");  // no short name
  std::string shared;
  for (const std::string_view name : names) {
    shared += names.count(name) > 1 ? fmt::format("{} {}\n", command.name, name) : "";
  }
  return shared;
}

TEST(Commands, HaveOptionsThatAreToldApart) {
  for (const Command& command : Commands()) {
    EXPECT_EQ(SharedNames(command), "");
  }
}

TEST(Commands, SayWhatTheyAndTheirOptionsAre) {
  std::string faults;
  for (const Command& command : Commands()) {
    if (command.summary.empty()) {
      faults += fmt::format("{}\n", command.name);
    }
    for (const Option& option : command.options) {
      if (option.help.empty() || (option.count == Count::kFlag) != option.value.empty()) {
        faults += fmt::format("{} {}\n", command.name, option.name);
      }
    }
  }
  EXPECT_EQ(faults, "");
}

}  // namespace
}  // namespace fourpiles::cli
