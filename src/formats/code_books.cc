#include "formats/code_books.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "formats/float32.h"

namespace fourpiles {
namespace {

// bitsandbytes 95f9af3, functional.py, create_normal_map (QLoRA, arXiv 2305.14314, appendix E).
constexpr std::array<float, 16> kNf4 = {-1.0F,        -0.6961928F,  -0.52507305F,  -0.3949175F,
                                        -0.28444138F, -0.18477343F, -0.091050036F, 0.0F,
                                        0.0795803F,   0.1609302F,   0.2461123F,    0.33791524F,
                                        0.44070983F,  0.562617F,    0.72295684F,   1.0F};
// As csrc/kernels.cu, dQuantizeNF4 writes them: the midpoints, some of which float32 does not hold.
constexpr std::array<float, 15> kNf4Thresholds = {
    -0.8480964004993439F,  -0.6106329262256622F,  -0.4599952697753906F,   -0.33967943489551544F,
    -0.23460740596055984F, -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F,
    0.1202552504837513F,   0.2035212516784668F,   0.2920137718319893F,    0.3893125355243683F,
    0.5016634166240692F,   0.6427869200706482F,   0.8614784181118011F};

// functional.py, get_4bit_type("af4") (arXiv 2306.06965, blocks of 64).
constexpr std::array<float, 16> kAf4 = {1.0F,        0.72424865F,  0.55496234F,  0.42563882F,
                                        0.31675667F, 0.21961275F,  0.12934484F,  0.04273164F,
                                        0.0F,        -0.04934812F, -0.14982478F, -0.25607553F,
                                        -0.3736951F, -0.5124374F,  -0.6944101F,  -1.0F};

// get_4bit_type("fp4"): no OCP format, and neither the order of its values.
constexpr std::array<float, 16> kFp4 = {
    0.0F, 0.0052083335F,  0.6666667F,  1.0F,  0.33333334F,  0.5F,  0.16666667F,  0.25F,
    0.0F, -0.0052083335F, -0.6666667F, -1.0F, -0.33333334F, -0.5F, -0.16666667F, -0.25F};
constexpr std::array<std::uint8_t, 8> kFp4Order = {0, 1, 6, 7, 4, 5, 2, 3};
// As dQuantizeFP4 of csrc/kernels.cu writes them: the midpoints, some cut after six digits.
constexpr std::array<float, 7> kFp4Thresholds = {0.00260417F, 0.0859375F, 0.20833333F, 0.29166667F,
                                                 0.4166667F,  0.583333F,  0.8333333F};

// functional.py, create_dynamic_map(signed=True): the positive values. The negative ones mirror
// them, but for 1.
constexpr std::array<float, 128> kDynamicPositive = {
    5.5000004e-7F,  3.2500002e-6F,  7.75e-6F,       2.1249998e-5F,
    4.375e-5F,      6.625e-5F,      8.875e-5F,      0.00015625001F,
    0.00026875004F, 0.00038125002F, 0.00049375003F, 0.0006062501F,
    0.00071875006F, 0.00083125F,    0.0009437501F,  0.0012812499F,
    0.00184375F,    0.00240625F,    0.00296875F,    0.0035312497F,
    0.00409375F,    0.0046562497F,  0.0052187503F,  0.00578125F,
    0.00634375F,    0.00690625F,    0.00746875F,    0.00803125F,
    0.00859375F,    0.009156249F,   0.00971875F,    0.01140625F,
    0.01421875F,    0.01703125F,    0.01984375F,    0.02265625F,
    0.02546875F,    0.028281247F,   0.03109375F,    0.033906247F,
    0.036718752F,   0.03953125F,    0.042343747F,   0.04515625F,
    0.04796875F,    0.05078125F,    0.05359375F,    0.05640625F,
    0.059218753F,   0.062031247F,   0.06484375F,    0.067656256F,
    0.070468746F,   0.07328125F,    0.07609375F,    0.07890625F,
    0.08171874F,    0.08453125F,    0.08734375F,    0.09015625F,
    0.092968754F,   0.095781244F,   0.09859375F,    0.107031256F,
    0.12109375F,    0.13515624F,    0.14921875F,    0.16328125F,
    0.17734374F,    0.19140625F,    0.20546874F,    0.21953125F,
    0.23359376F,    0.24765626F,    0.26171875F,    0.27578127F,
    0.28984374F,    0.30390626F,    0.31796873F,    0.33203125F,
    0.3460937F,     0.36015624F,    0.37421876F,    0.38828123F,
    0.40234375F,    0.4164062F,     0.43046874F,    0.44453126F,
    0.45859373F,    0.47265625F,    0.48671877F,    0.50078124F,
    0.51484376F,    0.5289062F,     0.54296875F,    0.5570313F,
    0.5710938F,     0.58515626F,    0.5992187F,     0.61328125F,
    0.6273438F,     0.64140624F,    0.65546876F,    0.6695313F,
    0.68359375F,    0.6976563F,     0.7117188F,     0.72578126F,
    0.7398438F,     0.75390625F,    0.7679688F,     0.78203124F,
    0.7960937F,     0.8101562F,     0.82421875F,    0.8382812F,
    0.85234374F,    0.8664062F,     0.8804687F,     0.89453125F,
    0.9085938F,     0.92265624F,    0.9367187F,     0.9507812F,
    0.96484375F,    0.9789062F,     0.99296874F,    1.0F};

constexpr std::array<float, 256> kDynamic = [] {
  constexpr std::size_t kZero = 127;
  std::array<float, 256> values = {};
  for (std::size_t i = 0; i < kDynamicPositive.size(); ++i) {
    values[kZero + 1 + i] = kDynamicPositive[i];
    if (i < kZero) {
      values[kZero - 1 - i] = -kDynamicPositive[i];
    }
  }
  return values;
}();

template <std::size_t N>
constexpr std::array<std::uint8_t, N> Ascending(const std::array<float, N>& values) {
  std::array<std::uint8_t, N> order = {};
  for (std::size_t i = 0; i < N; ++i) {
    order[i] = static_cast<std::uint8_t>(i);
  }
  std::ranges::sort(order, {}, [&](std::uint8_t code) { return values[code]; });
  return order;
}

// The midpoints between neighbours, in float32.
template <std::size_t N>
constexpr std::array<float, N - 1> Midpoints(const std::array<float, N>& values) {
  const std::array<std::uint8_t, N> order = Ascending(values);
  std::array<float, N - 1> midpoints = {};
  for (std::size_t i = 0; i + 1 < N; ++i) {
    midpoints[i] = static_cast<float>((double{values[order[i]]} + values[order[i + 1]]) / 2);
  }
  return midpoints;
}

constexpr auto kNf4Order = Ascending(kNf4);
constexpr auto kAf4Order = Ascending(kAf4);
constexpr auto kAf4Thresholds = Midpoints(kAf4);
constexpr auto kDynamicOrder = Ascending(kDynamic);
constexpr auto kDynamicThresholds = Midpoints(kDynamic);

constexpr CodeBook kBooks[] = {{"nf4", kNf4, kNf4Order, kNf4Thresholds},
                               {"fp4", kFp4, kFp4Order, kFp4Thresholds, 8},
                               {"af4", kAf4, kAf4Order, kAf4Thresholds},
                               {"dynamic8", kDynamic, kDynamicOrder, kDynamicThresholds}};

}  // namespace

std::span<const CodeBook> CodeBooks() {
  return kBooks;
}

const CodeBook& FindCodeBook(std::string_view name) {
  const auto* const found = std::ranges::find(kBooks, name, &CodeBook::name);
  CHECK(found != std::end(kBooks));
  return *found;
}

std::uint8_t NearestCode(float value, const CodeBook& book) {
  const bool signed_codes = book.sign_bit != 0;
  const float placed = signed_codes ? std::bit_cast<float>(MagnitudeOf(value)) : value;
  const auto above = std::ranges::lower_bound(book.thresholds, placed) - book.thresholds.begin();
  const bool negative = std::bit_cast<std::uint32_t>(value) > 0x8000'0000U;  // and not −0
  const auto sign = static_cast<std::uint8_t>(signed_codes && negative ? book.sign_bit : 0);
  return book.order[static_cast<std::size_t>(above)] | sign;
}

}  // namespace fourpiles
