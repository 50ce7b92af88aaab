// What must hold for the record of every command.

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/program.h"

namespace fourpiles::cli {
namespace {

TEST(Commands, HaveExamplesThatAreAnswered) {
  for (const Command& command : Commands()) {
    EXPECT_FALSE(command.examples.empty()) << command.name;
    for (const std::string_view line : Lines(command.examples)) {
      if (line.find_first_of("<>|") != std::string_view::npos ||
          line.find("./") != std::string_view::npos) {
        continue;  // for a shell, or about a file of the user's
      }
      std::vector<std::string> words;
      std::istringstream stream{std::string(line)};
      for (std::string word; stream >> word;) {
        words.push_back(word);
      }
      ASSERT_EQ(words.front(), "fourpiles") << line;
      std::vector<const char*> typed;
      std::transform(words.begin() + 1, words.end(), std::back_inserter(typed),
                     [](const std::string& word) { return word.c_str(); });
      EXPECT_LE(RunProgram(Commands(), typed, false).exit_status, 1) << line;
    }
  }
}

TEST(Commands, HaveOptionsThatAreToldApart) {
  for (const Command& command : Commands()) {
    std::set<std::string_view> names;
    for (const std::span<const Option> options : {command.options, GlobalOptions()}) {
      for (const Option& option : options) {
        EXPECT_TRUE(names.insert(option.name).second) << command.name << ' ' << option.name;
        EXPECT_TRUE(option.short_name.empty() || names.insert(option.short_name).second)
            << command.name << ' ' << option.short_name;
      }
    }
  }
}

TEST(Commands, SayWhatEachOptionIs) {
  for (const Command& command : Commands()) {
    EXPECT_FALSE(command.summary.empty()) << command.name;
    for (const Option& option : command.options) {
      EXPECT_FALSE(option.help.empty()) << command.name << ' ' << option.name;
      EXPECT_EQ(option.count == Count::kFlag, option.value.empty())
          << command.name << ' ' << option.name;
    }
  }
}

}  // namespace
}  // namespace fourpiles::cli
