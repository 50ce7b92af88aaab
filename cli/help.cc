#include "cli/help.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.h"

namespace fourpiles::cli {
namespace {

constexpr std::string_view kDefaultGroup = "Options";

constexpr ExitStatus kExitStatuses[] = {{"0", "yes"},
                                        {"1", "the answer is no"},
                                        {"2", "wrong usage"},
                                        {"3", "unreadable or hostile input"},
                                        {"4", "a fault of fourpiles itself"}};

struct Row {
  std::string left;
  std::string_view right;
};

// "HEADING:" and two columns under it.
std::string Section(std::string_view heading, const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) {
    width = std::max(width, row.left.size());
  }
  std::string text = fmt::format("\n{}:\n", heading);
  for (const Row& row : rows) {
    text += fmt::format("  {:<{}}  {}\n", row.left, width, row.right);
  }
  return text;
}

std::string_view GroupOf(const Option& option) {
  if (IsPositional(option)) {
    return "Arguments";
  }
  return option.group.empty() ? kDefaultGroup : option.group;
}

// The options of one group after the other, in the order in which the groups first appear.
std::string Options(std::span<const Option> options) {
  std::vector<std::string_view> groups;
  for (const Option& option : options) {
    if (std::ranges::find(groups, GroupOf(option)) == groups.end()) {
      groups.push_back(GroupOf(option));
    }
  }
  std::string text;
  for (const std::string_view group : groups) {
    std::vector<Row> rows;
    for (const Option& option : options) {
      if (GroupOf(option) == group) {
        rows.push_back({Spelling(option), option.help});
      }
    }
    text += Section(group, rows);
  }
  return text;
}

// How an option that takes several values ends; empty when the command has none.
std::string ManyRule(const Command& command) {
  const auto is_many = [](const Option& option) {
    return option.count == Count::kMany && !IsPositional(option);
  };
  if (std::ranges::none_of(command.options, is_many)) {
    return {};
  }
  std::string rule =
      "\nAn option with \"...\" takes a list (a,b), or the words up to the next option or \"--\"";
  for (const Option& option : command.options) {
    if (IsPositional(option) && option.required) {
      return rule + fmt::format(";\nin front of {} only the next word.\n", Spelling(option));
    }
  }
  return rule + ".\n";
}

}  // namespace

std::string_view Version() {
  return FOURPILES_VERSION;
}

std::span<const ExitStatus> ExitStatuses() {
  return kExitStatuses;
}

std::string Spelling(const Option& option) {
  std::string text(option.name);
  if (!option.short_name.empty()) {
    text = fmt::format("{}, {}", option.short_name, option.name);
  }
  if (!option.value.empty() && !IsPositional(option)) {
    text += fmt::format(" {}", option.value);
  }
  return text + (option.count == Count::kMany ? "..." : "");
}

std::string Usage(const Command& command) {
  std::string text = fmt::format("fourpiles {}", command.name);
  for (const bool positional : {true, false}) {
    for (const Option& option : command.options) {
      if (IsPositional(option) == positional && (positional || option.required)) {
        const std::string spelling = Spelling(option);
        text += option.required ? fmt::format(" {}", spelling) : fmt::format(" [{}]", spelling);
      }
    }
  }
  return text + " [options]";
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) {
      lines.push_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string OverviewHelp(std::span<const Command> commands) {
  std::string text = fmt::format("fourpiles: {}\n\nExamples:\n", kPurpose);
  std::vector<Row> rows;
  for (const Command& command : commands) {
    const std::vector<std::string_view> examples = Lines(command.examples);
    if (!examples.empty()) {
      text += fmt::format("  {}\n", examples.front());
    }
    rows.push_back({std::string(command.name), command.summary});
  }
  text += Section("Commands", rows);
  text += Options(GlobalOptions());
  rows.clear();
  for (const ExitStatus& status : kExitStatuses) {
    rows.push_back({std::string(status.number), status.meaning});
  }
  text += Section("Exit status", rows);
  return text + "\n\"fourpiles help COMMAND\" shows its examples and options.\n";
}

std::string CommandHelp(const Command& command) {
  std::string text = fmt::format("fourpiles {}: {}\n\nExamples:\n", command.name, command.summary);
  for (const std::string_view example : Lines(command.examples)) {
    text += fmt::format("  {}\n", example);
  }
  text += fmt::format("\nUsage: {}\n", Usage(command));
  std::vector<Option> options(command.options.begin(), command.options.end());
  options.insert(options.end(), GlobalOptions().begin(), GlobalOptions().end());
  return text + Options(options) + ManyRule(command);
}

}  // namespace fourpiles::cli
