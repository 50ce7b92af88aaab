#pragma once

// What a conversion is measured against: the floor of loading and storing as many bytes, and the
// ways to convert that a user has on this machine without fourpiles.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace fourpiles::bench {

// Whether this processor can run what stands below.
bool HasInstructions();

// Reads all of `from` and writes all of `to`, by AVX2 vectors, past the caches where `streams`.
void LoadAndStore(std::span<const std::byte> from, std::span<std::byte> to, bool streams);

// By the F16C instructions, eight at a time, in a plain loop.
void FloatToHalfF16c(std::span<const float> from, std::span<std::uint16_t> to);
void HalfToFloatF16c(std::span<const std::uint16_t> from, std::span<float> to);

// Eigen's array casts.
void FloatToHalfEigen(std::span<const float> from, std::span<std::uint16_t> to);
void HalfToFloatEigen(std::span<const std::uint16_t> from, std::span<float> to);
void FloatToBfloatEigen(std::span<const float> from, std::span<std::uint16_t> to);
void BfloatToFloatEigen(std::span<const std::uint16_t> from, std::span<float> to);

// A Python process with conversion_peers.py, which measures one named operation when asked.
class PythonPeers {
 public:
  explicit PythonPeers(const std::string& script);
  ~PythonPeers();
  PythonPeers(const PythonPeers&) = delete;
  PythonPeers& operator=(const PythonPeers&) = delete;

  // Whether it has the operation: "numpy float32 float16 65536 1", elements and threads.
  bool Has(const std::string& operation);
  // The seconds of one run.
  double Seconds(const std::string& operation, int repeats);

 private:
  std::string Ask(const std::string& line);
  int to_ = -1;
  int from_ = -1;
  int process_ = -1;
};

}  // namespace fourpiles::bench
