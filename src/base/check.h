#pragma once

// CHECK states what our own code guarantees. It is on in every build, and no input may reach one:
// a failed CHECK is a fault of ours. It throws CheckFailure, which RunProgram (cli) catches to
// print the message and exit with status 4; nothing else catches it.

#include <stdexcept>
#include <string>

namespace fourpiles {

class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throws CheckFailure with "FILE:LINE: CONDITION".
[[noreturn]] void FailCheck(const char* file, int line, const char* condition);

}  // namespace fourpiles

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::fourpiles::FailCheck(__FILE__, __LINE__, #condition))
