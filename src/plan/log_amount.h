#pragma once

// Numbers as programs print them for people: "1024.00 MiB", "79.22GiB", "216,496", "1,56x".

#include <cstddef>
#include <string_view>

#include "plan/validate_fields.h"

namespace fourpiles {

struct LoggedAmount {
  enum class State {
    kAbsent,      // there is no number, or no unit where one is needed
    kImpossible,  // below zero, above 2^53, or no number of this world
    kFound,
  };
  State state = State::kAbsent;
  Printed amount = {};  // in bytes, where a unit of bytes stands behind it
  std::size_t end = 0;  // behind the number and its unit
};

// The number at `at`, after blanks. Commas before three digits part thousands; one before two
// digits is the decimal comma of another locale. `unit` is "" for a count; for bytes the unit
// that holds where none is printed, or "?" for none: "MiB", "bytes", "?".
LoggedAmount ReadAmount(std::string_view text, std::size_t at, std::string_view unit);

}  // namespace fourpiles
