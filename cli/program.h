#pragma once

// The program without its streams: words in, texts and an exit status out.

#include <span>
#include <string>

#include "cli/command.h"
#include "fourpiles/result.h"

namespace fourpiles::cli {

// Exit statuses beside those of an answer (0 yes, 1 no).
inline constexpr int kExitUsage = 2;  // wrong usage
inline constexpr int kExitInput = 3;  // unreadable or hostile input
inline constexpr int kExitFault = 4;  // our own fault

struct Outcome {
  std::string out;  // for the standard output
  std::string err;  // for the standard error
  int exit_status = 0;
};

// "error: WHERE: FOUND, EXPECTED" and, where there is one, "hint: HINT"; `colour` paints the first
// word of each line.
std::string MessageText(const ErrorText& error, bool colour);

// Answers the words behind the program's name. Every exception ends here as a fault of ours.
Outcome RunProgram(std::span<const Command> commands, std::span<const char* const> words,
                   bool colour);

}  // namespace fourpiles::cli
