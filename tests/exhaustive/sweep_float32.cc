// sweep_float32 [--target NAME|all] [--threads N] FORMAT|all MODE|all STRIDE [POLICY|all]: checks
// EncodeArray by search, on the instruction set that it chooses or on those named ("AVX2",
// "Scalar": value by value). A format is named as the vectors are ("e4m3fn", "bf16"); the policy,
// of finite values and infinities, is "all" when it is left out. Exit status 1: some code is wrong.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "formats/choices.h"
#include "formats/test_vectors.h"
#include "kernels/each_target.h"
#include "tests/exhaustive/nearest_search.h"

namespace fourpiles::exhaustive {
namespace {

struct Request {
  std::string_view target = "best";
  std::string_view format = {};
  std::string_view mode = {};
  std::string_view policy = "all";
  int stride = 0;
  int threads = 1;
};

bool Wants(std::string_view typed, std::string_view name) {
  return typed == "all" || typed == name;
}

// Prints a line; whether all was right.
bool Check(const ValueTable& table, const Sweep& sweep, const char* target) {
  const auto start = std::chrono::steady_clock::now();
  const SweepResult result = SweepFloat32(table, sweep, EncodeArray);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf(
      "%s %s %s %s: %llu inputs, %llu wrong, %.2f s %s\n", target,
      std::string(sweep.format.name).c_str(), std::string(Name(sweep.conversion.rounding)).c_str(),
      std::string(Name(sweep.conversion.overflow)).c_str(),
      static_cast<unsigned long long>(result.checked),
      static_cast<unsigned long long>(result.wrong), seconds.count(), result.first_wrong.c_str());
  return result.wrong == 0;
}

std::vector<Conversion> Conversions(const Request& request) {
  std::vector<Conversion> conversions;
  for (const RoundingMode mode : kRoundingModes) {
    for (const Overflow policy : kOverflows) {
      if (Wants(request.mode, Name(mode)) && Wants(request.policy, Name(policy))) {
        conversions.push_back(
            {.rounding = mode, .overflow = policy, .infinities = policy, .seed = 0xF00D});
      }
    }
  }
  return conversions;
}

struct Outcome {
  int checks = 0;
  bool right = true;
};

void CheckFormat(const VectorFormat& named, const ValueTable& table, const Request& request,
                 const char* target, Outcome& outcome) {
  for (const Conversion& conversion : Conversions(request)) {
    const Sweep sweep = {.format = FindFormat(named.name).value(),
                         .conversion = conversion,
                         .stride = static_cast<std::uint32_t>(request.stride),
                         .threads = request.threads};
    const bool right = Check(table, sweep, target);
    outcome.right = outcome.right && right;
    ++outcome.checks;
  }
}

// Calls check(name) on each instruction set wanted.
template <class Check>
void ForTargets(std::string_view typed, const Check& check) {
  if (typed == "best") {
    return check("best");
  }
  ForEachTarget([&](const char* target) {
    if (Wants(typed, target)) {
      check(target);
    }
  });
}

Outcome Run(const Request& request) {
  Outcome outcome;
  for (const VectorFormat& format : kVectorFormats) {
    if (!Wants(request.format, format.file)) {
      continue;
    }
    const ValueTable table = ReadValueTable(format.file);
    if (table.finite.empty()) {
      std::fprintf(stderr, "no vectors of %s\n", format.file);
      outcome.right = false;
      continue;
    }
    ForTargets(request.target,
               [&](const char* target) { CheckFormat(format, table, request, target, outcome); });
  }
  return outcome;
}

// Of a number that is none: 0.
int Number(const char* text) {
  const long number = std::strtol(text, nullptr, 10);
  return number >= 1 && number <= 0x7fffffff ? static_cast<int>(number) : 0;
}

// Options first; `stride` is 0 where anything is missing.
Request RequestOf(std::span<char*> words) {
  Request request;
  while (words.size() >= 2 && std::string_view(words[0]).starts_with("--")) {
    if (std::string_view(words[0]) == "--target") {
      request.target = words[1];
    } else if (std::string_view(words[0]) == "--threads") {
      request.threads = Number(words[1]);
    } else {
      return {};
    }
    words = words.subspan(2);
  }
  if (words.size() != 3 && words.size() != 4) {
    return {};
  }
  request.format = words[0];
  request.mode = words[1];
  request.stride = Number(words[2]);
  request.policy = words.size() == 4 ? words[3] : "all";
  return request;
}

}  // namespace
}  // namespace fourpiles::exhaustive

int main(int argc, char** argv) {
  namespace exhaustive = fourpiles::exhaustive;
  const exhaustive::Request request =
      exhaustive::RequestOf(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  if (request.stride == 0 || request.threads == 0) {
    std::fputs(
        "usage: sweep_float32 [--target NAME|all] [--threads N] FORMAT|all MODE|all STRIDE "
        "[POLICY|all]\n",
        stderr);
    return 2;
  }
  const exhaustive::Outcome outcome = exhaustive::Run(request);
  if (outcome.checks == 0) {
    std::fputs("no such target, format, mode or policy, or no vectors of it\n", stderr);
    return 2;
  }
  return outcome.right ? 0 : 1;
}
