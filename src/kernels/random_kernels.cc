// The random words of stochastic rounding.

#include <cstring>

#include "formats/philox.h"
#include "kernels/array_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

bool HasVectors() {
  return HWY_TARGET != HWY_SCALAR;
}

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void FillRandom(const RandomWords& /*words*/, std::uint32_t* /*random*/, std::size_t /*count*/) {}
#else

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint32_t>;
using WordVector = hn::Vec<Words>;
using Wide = hn::RepartitionToWide<Words>;

struct Product {
  WordVector high;
  WordVector low;
};

// The 64-bit products of every lane with one number.
HWY_INLINE Product Multiply(WordVector v, std::uint32_t by) {
  const Words d;
  const WordVector factor = hn::Set(d, by);
  const WordVector even = hn::BitCast(d, hn::MulEven(v, factor));
  const WordVector odd = hn::BitCast(
      d, hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(Wide(), v))), factor));
  return {hn::OddEven(odd, hn::DupOdd(even)), hn::OddEven(hn::DupEven(odd), even)};
}

// The constants and rounds of Philox4x32-10: Salmon et al. 2011, "Parallel random numbers: as easy
// as 1, 2, 3", table 2; formats/philox.h has it for one counter.
struct Counters {
  WordVector c0, c1, c2, c3;
};

HWY_INLINE Counters Philox(Counters c, std::uint64_t seed) {
  const Words d;
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Product p0 = Multiply(c.c0, 0xD2511F53U);
    const Product p1 = Multiply(c.c2, 0xCD9E8D57U);
    c = {hn::Xor(hn::Xor(p1.high, c.c1), hn::Set(d, k0)), p1.low,
         hn::Xor(hn::Xor(p0.high, c.c3), hn::Set(d, k1)), p0.low};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

// Words of the counters from `counter` on, 4 × lanes of them.
HWY_INLINE void FillGroup(std::uint64_t seed, std::uint64_t counter, std::uint32_t* to) {
  const Words d;
  const auto low = static_cast<std::uint32_t>(counter);
  const WordVector c0 = hn::Add(hn::Set(d, low), hn::Iota(d, 0));
  // Lanes whose low word has run over.
  const WordVector carry = hn::IfThenElseZero(hn::Lt(c0, hn::Set(d, low)), hn::Set(d, 1));
  const WordVector c1 = hn::Add(hn::Set(d, static_cast<std::uint32_t>(counter >> 32)), carry);
  const Counters words = Philox({c0, c1, hn::Zero(d), hn::Zero(d)}, seed);
  hn::StoreInterleaved4(words.c0, words.c1, words.c2, words.c3, d, to);
}

void FillRandom(const RandomWords& words, std::uint32_t* random, std::size_t count) {
  constexpr std::size_t kGroup = 4 * HWY_LANES(std::uint32_t);
  HWY_ALIGN std::uint32_t group[kGroup];
  std::uint64_t counter = words.first / 4;
  std::size_t skipped = words.first % 4;
  for (std::size_t done = 0; done < count;) {
    const std::size_t take = kGroup - skipped < count - done ? kGroup - skipped : count - done;
    if (take == kGroup) {
      FillGroup(words.seed, counter, random + done);
    } else {
      FillGroup(words.seed, counter, group);
      std::memcpy(random + done, group + skipped, take * sizeof(std::uint32_t));
    }
    done += take;
    counter += kGroup / 4;
    skipped = 0;
  }
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(FillRandom);
HWY_EXPORT(HasVectors);
void FillRandom(const RandomWords& words, std::uint32_t* random, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(FillRandom)(words, random, count);
}

bool HasVectors() {
  return HWY_DYNAMIC_DISPATCH(HasVectors)();
}
}  // namespace fourpiles
#endif
