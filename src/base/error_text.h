#pragma once

// An Error as the programs show it.

#include <string>

#include "base/json.h"
#include "fourpiles/result.h"

namespace fourpiles {

// For stderr, made safe to print:
//   error: WHERE: FOUND, EXPECTED
//   hint: HINT
// each line ended; empty parts are left out with what would join them.
std::string ErrorMessage(const Error& error);

// The first of these lines without its first word, for warnings: "WHERE: FOUND, EXPECTED".
std::string SentenceOf(const ErrorText& text);

// {"where", "found", "expected", "hint"}, for --json.
Json ErrorJson(const Error& error);

// 2 wrong usage, 3 unreadable or hostile input.
int ExitStatus(ErrorKind kind);

}  // namespace fourpiles
