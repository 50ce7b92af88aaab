#pragma once

// The ways to keep many small updates from being lost, side by side: the same updates summed up in
// the same format by each. A weight that is updated by equal amounts is such a sum.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/accumulate.h"

namespace fourpiles {

enum class SumMethod {
  kSequential,  // ((start + add) + add) + …, to nearest-even
  kPairwise,    // start and the addends as the leaves of a tree of halves (SumPairwise)
  kKahan,       // sequential, with what each rounding lost put into the next step (KahanStep)
  kStochastic,  // sequential, rounded by chance: step i by random element i, from 0
};

std::string_view Name(SumMethod method);  // "sequential", …

// A method in a format.
struct SumPlan {
  SumMethod method = SumMethod::kSequential;
  NumberFormat format;
  // The format that the sum is kept in, sequential only; it is read in the other one.
  std::optional<NumberFormat> master = {};
  std::uint64_t seed = 0;  // of kStochastic
};

// The methods in a format, in the order of the enumeration, sequential with a master copy second.
std::vector<SumPlan> AllPlans(const NumberFormat& format, const NumberFormat& master,
                              std::uint64_t seed);

// Kahan's and stochastic sums are played step by step, up to so many; the others take steps that
// are alike together.
inline constexpr std::int64_t kMostPlayedSteps = 10'000'000;

// The sum by that method; start and addend are rounded to nearest-even first. Nothing where steps
// are played and there are more than kMostPlayedSteps of them, unless the sum comes to rest before.
// `first_stalled_step` of Kahan's: the first that moved neither the sum nor its correction; of
// stochastic: the first where the sum has no other value to go to. A tree has no steps.
std::optional<Accumulation> AccumulateBy(const SumPlan& plan, const AccumulationJob& job);

// How many roundings a value passes through in the tree of a start and so many addends.
int TreeDepth(std::int64_t times);

}  // namespace fourpiles
