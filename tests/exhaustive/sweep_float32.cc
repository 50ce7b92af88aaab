// sweep_float32 FORMAT|all MODE|all STRIDE [POLICY|all]: checks Encode by search. A format is named
// as the vectors are ("e4m3fn", "bf16"); the policy, of finite values and infinities, is "all" when
// it is left out. Exit status 1: some code is wrong.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/choices.h"
#include "formats/test_vectors.h"
#include "tests/exhaustive/nearest_search.h"

namespace fourpiles::exhaustive {
namespace {

void EncodeOneByOne(std::span<const float> values, const NumberFormat& format,
                    const Conversion& conversion, std::uint64_t first_index,
                    std::span<std::uint32_t> codes) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    codes[i] =
        static_cast<std::uint32_t>(Encode(values[i], format, conversion, first_index + i).code);
  }
}

struct Request {
  std::string_view format;
  std::string_view mode;
  std::string_view policy;
  std::uint32_t stride = 1;
};

bool Wants(std::string_view typed, std::string_view name) {
  return typed == "all" || typed == name;
}

// Prints a line; whether all was right.
bool Check(const ValueTable& table, const Sweep& sweep) {
  const auto start = std::chrono::steady_clock::now();
  const SweepResult result = SweepFloat32(table, sweep, EncodeOneByOne);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf(
      "%s %s %s: %llu inputs, %llu wrong, %.2f s %s\n", std::string(sweep.format.name).c_str(),
      std::string(Name(sweep.conversion.rounding)).c_str(),
      std::string(Name(sweep.conversion.overflow)).c_str(),
      static_cast<unsigned long long>(result.checked),
      static_cast<unsigned long long>(result.wrong), seconds.count(), result.first_wrong.c_str());
  return result.wrong == 0;
}

struct Outcome {
  int checks = 0;
  bool right = true;
};

void CheckFormat(const VectorFormat& named, const Request& request, Outcome& outcome) {
  const ValueTable table = ReadValueTable(named.file);
  outcome.right = outcome.right && !table.finite.empty();
  for (const RoundingMode mode : kRoundingModes) {
    for (const Overflow policy : kOverflows) {
      if (!table.finite.empty() && Wants(request.mode, Name(mode)) &&
          Wants(request.policy, Name(policy))) {
        const Conversion conversion = {
            .rounding = mode, .overflow = policy, .infinities = policy, .seed = 0xF00D};
        const bool right =
            Check(table, {FindFormat(named.name).value(), conversion, request.stride});
        outcome.right = outcome.right && right;
        ++outcome.checks;
      }
    }
  }
}

Outcome Run(const Request& request) {
  Outcome outcome;
  for (const VectorFormat& format : kVectorFormats) {
    if (Wants(request.format, format.file)) {
      CheckFormat(format, request, outcome);
    }
  }
  return outcome;
}

}  // namespace
}  // namespace fourpiles::exhaustive

int main(int argc, char** argv) {
  const long stride = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 0;
  if (stride < 1 || stride > 0x7fffffff) {
    std::fputs("usage: sweep_float32 FORMAT|all MODE|all STRIDE [POLICY|all]\n", stderr);
    return 2;
  }
  const auto outcome = fourpiles::exhaustive::Run({.format = argv[1],
                                                   .mode = argv[2],
                                                   .policy = argc > 4 ? argv[4] : "all",
                                                   .stride = static_cast<std::uint32_t>(stride)});
  if (outcome.checks == 0) {
    std::fputs("no such format, mode or policy, or no vectors of it\n", stderr);
    return 2;
  }
  return outcome.right ? 0 : 1;
}
