#pragma once

// Result<T> is what every function returns that bad input can make fail: the value, or one Error.
// An Error is written for the person who reads it: where it happened, what was found there, what
// was expected, and one thing to do.

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace fourpiles {

// What kind of mistake it is; the programs turn it into their exit status.
enum class ErrorKind {
  kUsage,  // the request is wrong: exit status 2
  kInput,  // a file or record is unreadable, malformed or hostile: exit status 3
};

// The four parts of a message. They print as
//   error: WHERE: FOUND, EXPECTED
//   hint: HINT
struct ErrorText {
  std::string where = {};     // a file and a place in it, or an option: "a.gguf: byte 24", "--to"
  std::string found = {};     // "unknown format \"float17\""
  std::string expected = {};  // "did you mean \"float16\"?"; may be empty
  std::string hint = {};      // one thing to do; may be empty
};

struct Error {
  ErrorKind kind = ErrorKind::kInput;
  ErrorText text = {};
};

template <class T>
using Result = tl::expected<T, Error>;

// The named makers: `return WrongUsage({.where = "--to", .found = …});`.
inline tl::unexpected<Error> WrongUsage(ErrorText text) {
  return tl::make_unexpected(Error{ErrorKind::kUsage, std::move(text)});
}
inline tl::unexpected<Error> BadInput(ErrorText text) {
  return tl::make_unexpected(Error{ErrorKind::kInput, std::move(text)});
}

}  // namespace fourpiles
