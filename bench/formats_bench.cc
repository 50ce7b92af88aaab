// How fast one value after another is rounded to a format and read back, in bytes of float32 input
// a second, beside a memcpy of the same bytes. The scalar code defines the meaning and is not meant
// to be fast; these rows are what faster code is compared with.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

constexpr std::size_t kValues = std::size_t{1} << 16;

// Weights of a network look about like this: normal, with a deviation of 0.02.
std::vector<float> Weights() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> values(kValues);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * std::int64_t{kValues * sizeof(float)});
}

void CopyBytes(benchmark::State& state) {
  const std::vector<float> values = Weights();
  std::vector<float> copy(kValues);
  for (auto _ : state) {
    std::memcpy(copy.data(), values.data(), kValues * sizeof(float));
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void EncodeValues(benchmark::State& state, const NumberFormat& format) {
  const std::vector<float> values = Weights();
  for (auto _ : state) {
    for (const float value : values) {
      benchmark::DoNotOptimize(Encode(value, format).code);
    }
  }
  SetBytes(state);
}

void DecodeCodes(benchmark::State& state, const NumberFormat& format) {
  std::vector<std::uint64_t> codes;
  for (const float value : Weights()) {
    codes.push_back(Encode(value, format).code);
  }
  for (auto _ : state) {
    for (const std::uint64_t code : codes) {
      benchmark::DoNotOptimize(Decode(code, format));
    }
  }
  SetBytes(state);
}

}  // namespace
}  // namespace fourpiles

int main(int count, char** arguments) {
  benchmark::RegisterBenchmark("memcpy", fourpiles::CopyBytes);
  for (const fourpiles::NumberFormat& format : fourpiles::Formats()) {
    const std::string name(format.name);
    benchmark::RegisterBenchmark(("encode/" + name).c_str(), fourpiles::EncodeValues, format);
    benchmark::RegisterBenchmark(("decode/" + name).c_str(), fourpiles::DecodeCodes, format);
  }
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
