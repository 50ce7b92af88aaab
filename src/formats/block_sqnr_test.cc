// How much noise a block format adds to normal data, against the figures of sqnr.csv: made by an
// emulation in Python of 262,144 samples of its own. The sample's largest value moves what depends
// on it, so its rows have more room.

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/block_codec.h"
#include "formats/test_vectors.h"

namespace fourpiles {
namespace {

constexpr TensorShape kShape = {256, 1024};

// Of standard deviation 0.02, as weights have it and the figures had: noise repeats with every
// factor of two, so it depends on it.
constexpr double kDeviation = 0.02;

// SplitMix64 (Steele, Lea, Flood, 2014), mapped to normal samples by Box and Muller (1958).
std::vector<float> NormalSamples() {
  std::uint64_t state = 1;
  const auto uniform = [&] {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  };
  std::vector<float> samples(static_cast<std::size_t>(kShape.rows * kShape.columns));
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    const double radius = kDeviation * std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    samples[i] = static_cast<float>(radius * std::cos(angle));
    samples[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return samples;
}

double SignalToNoiseOf(const std::string& name, const std::vector<float>& samples) {
  BlockTensor tensor = {.format = FindBlockFormat(name).value(), .shape = kShape};
  EXPECT_TRUE(EncodeTensor(samples, {}, tensor));
  std::vector<float> rounded(samples.size());
  DecodeTensor(tensor, rounded);
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double error = static_cast<double>(rounded[i]) - samples[i];
    signal += static_cast<double>(samples[i]) * samples[i];
    noise += error * error;
  }
  return 10 * std::log10(signal / noise);
}

TEST(BlockNoise, IsWhatOthersMeasured) {
  const std::map<std::string, std::string> schemes = {
      {"mxfp8_e4m3:scale=floor", "mx e4m3 block32 floor"},
      {"mxfp8_e4m3:scale=ceil", "mx e4m3 block32 ceil"},
      {"mxfp8_e4m3:scale=rceil", "mx e4m3 block32 rceil"},
      {"mxfp8_e4m3:scale=even", "mx e4m3 block32 even"},
      {"mxfp8_e5m2:scale=floor", "mx e5m2 block32 floor"},
      {"mxfp8_e5m2:scale=rceil", "mx e5m2 block32 rceil"},
      {"mxfp6_e2m3:scale=floor", "mx e2m3 block32 floor"},
      {"mxfp6_e2m3:scale=ceil", "mx e2m3 block32 ceil"},
      {"mxfp6_e3m2:scale=even", "mx e3m2 block32 even"},
      {"mxfp6_e3m2:scale=rceil", "mx e3m2 block32 rceil"},
      {"mxfp4:scale=floor", "mx e2m1 block32 floor"},
      {"mxfp4:scale=ceil", "mx e2m1 block32 ceil"},
      {"mxfp4:scale=rceil", "mx e2m1 block32 rceil"},
      {"mxfp4:scale=even", "mx e2m1 block32 even"},
      {"nvfp4", "nvfp4 block16 two-level"},
      {"nvfp4:tensor-scale=divisor", "nvfp4 block16 two-level"},
      {"nf4", "nf4 block 64"},
      {"nf4:double", "nf4 block 64 + double quant"},
      {"int8:group=32", "int8 sym group 32"},
      {"int4:group=32", "int4 sym group 32"},
      {"int4:group=128", "int4 sym group 128"},
      {"int4:group=128,asymmetric", "int4 asym group 128"},
      {"uint4:group=128", "int4 asym group 128"},
      {"int8:channel", "int8 sym per-channel(1024)"},
      {"int8:tensor", "int8 sym per-tensor"}};
  std::map<std::string, double> measured;
  for (const Row& row : ReadVectors("sqnr.csv")) {
    if (row[0] == "normal") {
      measured[row[1]] = std::stod(row[3]);
    }
  }
  const std::vector<float> samples = NormalSamples();
  for (const auto& [name, scheme] : schemes) {
    ASSERT_TRUE(measured.contains(scheme)) << scheme;
    const double room = name == "int8:tensor" ? 1.0 : 0.1;
    EXPECT_NEAR(SignalToNoiseOf(name, samples), measured[scheme], room) << name;
  }
}

}  // namespace
}  // namespace fourpiles
