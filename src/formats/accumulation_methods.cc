#include "formats/accumulation_methods.h"

#include <bit>
#include <cmath>
#include <map>

#include "formats/adder.h"

namespace fourpiles {
namespace {

// What a step reads and writes.
struct Operands {
  double sum = 0;
  double addend = 0;
};

Operands RoundedOperands(const AccumulationJob& job, const NumberFormat& format) {
  return {Round(job.start, format), AddendIn(format, job)};
}

// The tree of halves over equal leaves. A subtree's sum depends on its number of leaves alone, and
// halving n again and again, up or down, meets only ⌊n ÷ 2^k⌋ and the next number at level k: if
// a level has m and m + 1, their halves are ⌊m ÷ 2⌋ and ⌊m ÷ 2⌋ + 1 at most. So log2(n) levels of
// two sums are all there is, each computed once.
class EqualTree {
 public:
  EqualTree(double leaf, const NumberFormat& format) : adder_(format) { sums_[1] = leaf; }

  double Sum(std::int64_t leaves) {
    const auto known = sums_.find(leaves);
    if (known != sums_.end()) {
      return known->second;
    }
    const double sum = adder_.Add(Sum(leaves / 2), Sum(leaves - leaves / 2));
    sums_[leaves] = sum;
    return sum;
  }

  // The same with another value at the leftmost leaf: only the subtrees it stands in differ.
  double SumWithFirst(double first, std::int64_t leaves) {
    if (leaves == 1) {
      return first;
    }
    return adder_.Add(SumWithFirst(first, leaves / 2), Sum(leaves - leaves / 2));
  }

 private:
  Adder adder_;
  std::map<std::int64_t, double> sums_;
};

Accumulation Pairwise(const AccumulationJob& job, const NumberFormat& format) {
  const auto [start, addend] = RoundedOperands(job, format);
  return {.value = EqualTree(addend, format).SumWithFirst(start, job.times + 1)};
}

// Played out, or at rest: from there on the state stays as it is, however many steps are left.
std::optional<Accumulation> Kahan(const AccumulationJob& job, const NumberFormat& format) {
  const auto [start, addend] = RoundedOperands(job, format);
  Adder adder(format);
  CompensatedSum state = {.sum = start};
  for (std::int64_t step = 1; step <= job.times && !std::isnan(state.sum); ++step) {
    if (step > kMostPlayedSteps) {
      return std::nullopt;
    }
    const CompensatedSum next = KahanStep(state, addend, adder);
    if (next.sum == state.sum && next.correction == state.correction) {
      return Accumulation{.value = next.sum, .first_stalled_step = step};
    }
    state = next;
  }
  return Accumulation{.value = state.sum};
}

// Whether chance can move the sum: one of the two values around the exact next one is another.
bool CanMove(const Operands& operands, const NumberFormat& format) {
  for (const RoundingMode rounding : {RoundingMode::kUp, RoundingMode::kDown}) {
    if (Adder(format, {.rounding = rounding}).Add(operands.sum, operands.addend) != operands.sum) {
      return true;
    }
  }
  return false;
}

std::optional<Accumulation> Stochastic(const AccumulationJob& job, const NumberFormat& format,
                                       std::uint64_t seed) {
  const auto [start, addend] = RoundedOperands(job, format);
  Adder adder(format, {.rounding = RoundingMode::kStochastic, .seed = seed});
  double sum = start;
  std::optional<double> movable;  // the sum that was last found to be
  for (std::int64_t step = 1; step <= job.times && !std::isnan(sum); ++step) {
    if (step > kMostPlayedSteps) {
      return std::nullopt;
    }
    const double next = adder.Add(sum, addend);
    if (next == sum && movable != sum) {
      if (!CanMove({sum, addend}, format)) {
        return Accumulation{.value = next, .first_stalled_step = step};
      }
      movable = sum;
    }
    sum = next;
  }
  return Accumulation{.value = sum};
}

}  // namespace

std::string_view Name(SumMethod method) {
  switch (method) {
    case SumMethod::kSequential:
      return "sequential";
    case SumMethod::kPairwise:
      return "pairwise";
    case SumMethod::kKahan:
      return "kahan";
    case SumMethod::kStochastic:
      break;
  }
  return "stochastic";
}

std::vector<SumPlan> AllPlans(const NumberFormat& format, const NumberFormat& master,
                              std::uint64_t seed) {
  return {{.method = SumMethod::kSequential, .format = format},
          {.method = SumMethod::kSequential, .format = format, .master = master},
          {.method = SumMethod::kPairwise, .format = format},
          {.method = SumMethod::kKahan, .format = format},
          {.method = SumMethod::kStochastic, .format = format, .seed = seed}};
}

std::optional<Accumulation> AccumulateBy(const SumPlan& plan, const AccumulationJob& job) {
  switch (plan.method) {
    case SumMethod::kSequential:
      return plan.master ? AccumulateWithMaster(job, plan.format, *plan.master)
                         : Accumulate(job, plan.format);
    case SumMethod::kPairwise:
      return Pairwise(job, plan.format);
    case SumMethod::kKahan:
      return Kahan(job, plan.format);
    case SumMethod::kStochastic:
      break;
  }
  return Stochastic(job, plan.format, plan.seed);
}

int TreeDepth(std::int64_t times) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(times)));
}

}  // namespace fourpiles
