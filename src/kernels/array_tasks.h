#pragma once

// Pieces of arrays that the kernels work through, and the kernels: each runs on the best
// instruction set that the processor has, all give the same bits. Internal to this folder.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fourpiles/arrays.h"
#include "kernels/conversion_plan.h"

namespace fourpiles {

// Sums are made and stochastic rounding's random words are laid out by blocks of so many elements.
inline constexpr std::size_t kSumBlock = 65536;
// An output this large is not read again from the caches: it is written past them, which saves
// reading its lines first.
inline constexpr std::size_t kStreamedBytes = std::size_t{4} << 20;

// Of consecutive blocks of kSumBlock values, merged in order.
RoundingStatistics Merged(std::span<const RoundingStatistics> blocks);

// Whether the processor has an instruction set that the kernels are made for; else none may be
// called.
bool HasVectors();

struct EncodeTask {
  const float* values = nullptr;
  std::size_t count = 0;
  const std::uint32_t* random = nullptr;  // one word an element, where the plan is stochastic
  std::byte* codes = nullptr;
  int code_bytes = 1;    // 1, 2 or 4
  bool streams = false;  // writes past the caches
};
void EncodeFloats(const EncodeTask& task, const EncodePlan& plan);

struct DecodeTask {
  const std::byte* codes = nullptr;
  int code_bytes = 1;
  std::size_t count = 0;
  float* values = nullptr;
  bool streams = false;
};
void DecodeFloats(const DecodeTask& task, const DecodePlan& plan);

struct RoundTask {
  const float* values = nullptr;
  std::size_t count = 0;
  const std::uint32_t* random = nullptr;
  float* rounded = nullptr;  // may be `values`; nullptr: only counted
  bool streams = false;
};
void RoundFloats(const RoundTask& task, const EncodePlan& encode, const DecodePlan& decode);
// At most kSumBlock values.
RoundingStatistics RoundAndCount(const RoundTask& task, const EncodePlan& encode,
                                 const DecodePlan& decode);
// The same of values that `rounded` holds already: nothing is known of what saturated or is
// subnormal in their format.
RoundingStatistics CompareAndCount(const RoundTask& task);

// Philox4x32-10's word i % 4 of the counter i / 4 for i = first …, keyed with the seed.
struct RandomWords {
  std::uint64_t seed = 0;
  std::uint64_t first = 0;
};
void FillRandom(const RandomWords& words, std::uint32_t* random, std::size_t count);

}  // namespace fourpiles
