#pragma once

// Passing an Error on, in one line:
//
//   TRY(const Json config, ReadJson(text, limits));   declares config, or returns the error
//   TRY_VOID(CheckHeader(source));                    for Result<void>
//
// Both may stand in any function that returns a Result. TRY declares two names, so it cannot be
// the body of an if without braces.

#include <utility>

#include "fourpiles/result.h"

#define FOURPILES_JOIN_(a, b) a##b
#define FOURPILES_JOIN(a, b) FOURPILES_JOIN_(a, b)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration stands in no parentheses
#define TRY(declaration, expression) \
  FOURPILES_TRY_(FOURPILES_JOIN(try_result_, __LINE__), declaration, expression)
#define FOURPILES_TRY_(result, declaration, expression)    \
  auto result = (expression);                              \
  if (!result) {                                           \
    return tl::make_unexpected(std::move(result).error()); \
  }                                                        \
  declaration = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

#define TRY_VOID(expression)                                        \
  if (auto try_void_result = (expression); !try_void_result) {      \
    return tl::make_unexpected(std::move(try_void_result).error()); \
  }                                                                 \
  static_assert(true, "ends the macro with a semicolon")
