#pragma once

// Where gradients lie, and what a narrow format would lose of them at each loss scale.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fourpiles/formats.h"

namespace fourpiles {

inline constexpr int kLowestBinade = -149;  // of float32
inline constexpr int kHighestBinade = 127;
inline constexpr int kBinades = kHighestBinade - kLowestBinade + 1;
inline constexpr int kLargestScaleExponent = 24;

// Of the gradients as they are stored.
struct GradientFacts {
  std::int64_t count = 0;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t zero = 0;
  std::int64_t nonzero = 0;  // finite
  double smallest = 0;       // magnitude other than zero; 0: there is none
  double largest = 0;        // magnitude
  // How many have a magnitude from 2^(kLowestBinade + i) to twice that; smaller and larger ones
  // are with the first and the last.
  std::array<std::int64_t, kBinades> binades = {};
};

// Of finite gradients other than zero, multiplied with 2^exponent and rounded to nearest-even.
struct ScaleLosses {
  int exponent = 0;
  std::int64_t vanished = 0;   // become zero
  std::int64_t subnormal = 0;  // become a number with fewer bits than a normal one
  std::int64_t overflow = 0;   // become infinite, or would if the format could
};

// In one format.
struct GradientLosses {
  std::vector<ScaleLosses> scales = {};  // 2^0 … 2^kLargestScaleExponent
  // The exponent of the largest power of two at which no gradient overflows, which may be below 0
  // or beyond the scales above; nothing where all gradients are zero.
  std::optional<int> largest_safe = {};
  // The largest safe one less kHeadroomBinades, at least 0 and at most kLargestScaleExponent;
  // nothing where even that many do not fit.
  std::optional<int> recommended = {};
};

// A scale is chosen so that the largest gradient times the scale fits (Micikevicius et al. 2018,
// "Mixed precision training", 3.2). The largest one differs from step to step; dynamic scaling
// (torch.cuda.amp.GradScaler, apex) doubles until a step overflows, halves the scale and skips the
// step. Three binades, a gradient eight times the largest here, keep a fixed scale from that.
inline constexpr int kHeadroomBinades = 3;

double VanishedShare(const ScaleLosses& losses, const GradientFacts& facts);   // of nonzero ones
double SubnormalShare(const ScaleLosses& losses, const GradientFacts& facts);  // of nonzero ones
double OverflowShare(const ScaleLosses& losses, const GradientFacts& facts);   // of nonzero ones

// Counts gradients so that every scale can be told afterwards; whole numbers, so that the order in
// which parts are added makes no difference.
class GradientCounts {
 public:
  explicit GradientCounts(std::span<const NumberFormat> formats);
  void Add(std::span<const double> gradients);
  void Add(const GradientCounts& other);
  const GradientFacts& Facts() const { return facts_; }
  GradientLosses LossesIn(std::size_t format) const;

 private:
  // Where results change from zero to subnormal to normal to overflow. Multiplying with a power of
  // two moves a value to another binade and leaves its significand, so it is enough to count, in
  // each binade, the significands on either side of the three places.
  struct Counted {
    double vanish = 0;                     // up to here, itself included, a value becomes zero
    double normal = 0;                     // from here on it is a normal number
    double overflow = 0;                   // from here on, or above it, beyond the largest
    bool tie_overflows = true;             // from here on
    std::array<double, 2> cuts = {};       // the significands of the last two, the smaller first
    std::vector<std::int64_t> cells = {};  // of each binade of float64, see CellOf
  };
  static std::size_t CellOf(const Counted& counted, double significand);
  static std::int64_t CountBelow(const Counted& counted, double bound, bool included);

  GradientFacts facts_ = {};
  std::vector<Counted> formats_ = {};
};

}  // namespace fourpiles
