#pragma once

// Runs the program as its users do: from a shell.

#include <string>

namespace fourpiles {

struct ShellRun {
  std::string out;
  std::string err;
  int exit_status = 0;
};

// Runs a bash script in tests/golden, where `fourpiles` is the program under test. Its input is
// empty; it has an empty folder of its own, $scratch.
ShellRun RunShell(const std::string& script);

}  // namespace fourpiles
