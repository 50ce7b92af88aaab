#pragma once

// The texts of --help and --version, made from the commands' records.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace fourpiles::cli {

// What the program is for, in one line.
inline constexpr std::string_view kPurpose =
    "will the tensors fit the device, and the values the number format?";

// "0.1.0"
std::string_view Version();

struct ExitStatus {
  std::string_view number;
  std::string_view meaning;
};
std::span<const ExitStatus> ExitStatuses();

// An option as it is typed: "--to FORMAT...", "-h, --help", "VALUE...".
std::string Spelling(const Option& option);

// "fourpiles round VALUE... --to FORMAT... [options]": what must be given, then the rest.
std::string Usage(const Command& command);

// The lines of a text, without their ends and without empty ones.
std::vector<std::string_view> Lines(std::string_view text);

// The help of the program: an example of each command, then the list of them.
std::string OverviewHelp(std::span<const Command> commands);

// The help of one command: examples, then its options by group.
std::string CommandHelp(const Command& command);

}  // namespace fourpiles::cli
