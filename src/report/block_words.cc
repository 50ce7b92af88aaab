#include "report/block_words.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/any_format.h"
#include "formats/block_facts.h"
#include "formats/block_integer.h"
#include "formats/block_layout.h"
#include "formats/block_microscaling.h"
#include "formats/codes.h"
#include "formats/ggml_blocks.h"

namespace fourpiles {
namespace {

// The bytes of a block of ggml and what a code q of it means (ggml d99724f2, ggml-common.h and
// ggml-quants.c). d and m are float16 unless told; lo and hi are the halves of a byte. Of 8 signs
// the last one may follow from the others.
struct GgmlWords {
  std::string_view type;
  std::string_view value;
  std::string_view layout;
};
constexpr GgmlWords kGgmlWords[] = {
    {"q1_0", "±d", "d, 128 bits"},
    {"q2_0", "(q − 1) × d", "d, 64 q of 2 bits, four in a byte, the first lowest"},
    {"q4_0", "(q − 8) × d", "d, 16 bytes: element j lo, j + 16 hi"},
    {"q4_1", "q × d + m", "d, m, 16 bytes as q4_0"},
    {"q5_0", "(q − 16) × d", "d, 32 high bits, 16 bytes as q4_0"},
    {"q5_1", "q × d + m", "d, m, 32 high bits, 16 bytes as q4_0"},
    {"q8_0", "q × d", "d, 32 int8"},
    {"q8_1", "q × d", "d, d × sum of q, 32 int8; of activations"},
    {"q2_k", "q × d × s − m × t", "16 scales s and minima t of 4 bits, 256 q of 2 bits, d, m"},
    {"q3_k", "(q − 4) × d × (s − 32)", "256 high bits, 256 q of 2 bits, 16 s of 6 bits, d"},
    {"q4_k", "q × d × s − m × t", "d, m, 8 s and t of 6 bits, 256 q of 4 bits"},
    {"q5_k", "q × d × s − m × t", "d, m, 8 s and t of 6 bits, 256 high bits, 256 q of 4 bits"},
    {"q6_k", "(q − 32) × d × s", "256 q of 4 bits, 256 of 2 bits above them, 16 s of int8, d"},
    {"q8_k", "q × d", "d of float32, 256 int8, 16 sums of int16; of activations"},
    {"iq1_s", "(point ± 1/8) × d × (2s + 1)", "d, 32 indices of 11 bits, 8 s of 3 bits, 8 signs"},
    {"iq1_m", "(point ± 1/8) × d × (2s + 1)", "32 indices of 11 bits, 32 signs, 16 s of 3 bits, d"},
    {"iq2_xxs", "point × sign × d × (s + 1/2) ÷ 4",
     "d, 32 indices of 8 bits, 224 signs, 8 s of 4 bits"},
    {"iq2_xs", "point × sign × d × (s + 1/2) ÷ 4",
     "d, 32 indices of 9 bits, 224 signs, 16 s of 4 bits"},
    {"iq2_s", "point × sign × d × (s + 1/2) ÷ 4",
     "d, 32 indices of 10 bits, 256 signs, 16 s of 4 bits"},
    {"iq3_xxs", "point × sign × d × (s + 1/2) ÷ 2",
     "d, 64 indices of 8 bits, 224 signs, 8 s of 4 bits"},
    {"iq3_s", "point × sign × d × (2s + 1)", "d, 64 indices of 9 bits, 256 signs, 8 s of 4 bits"},
    {"iq4_nl", "table[q] × d", "d, 16 bytes as q4_0; the table is not linear"},
    {"iq4_xs", "table[q] × d × (s − 32)", "d, 8 s of 6 bits, 256 q of 4 bits; as iq4_nl"},
    {"tq1_0", "(q − 1) × d", "256 q of three values, five in a byte, d"},
    {"tq2_0", "(q − 1) × d", "256 q of 2 bits, d"},
    {"mxfp4", "e2m1 × 2^(s − 127)", "s, 16 bytes as q4_0"},
    {"nvfp4", "e2m1 × s", "4 float8_e4m3fn s, 32 bytes: of 16 elements j lo, j + 8 hi"},
};

const GgmlWords& GgmlWordsOf(const BlockFormat& format) {
  static constexpr GgmlWords kNone = {};
  const auto* const found = std::ranges::find(kGgmlWords, GgmlTypeOf(format), &GgmlWords::type);
  return found == std::end(kGgmlWords) ? kNone : *found;
}

std::string MicroscalingRule(const BlockFormat& format) {
  const NumberFormat element = MicroscalingOf(format).element;
  const int highest = HighestExponent(element);
  const std::string less = highest == 0 ? "" : fmt::format(" − {}", highest);
  switch (format.scale_rule) {
    case ScaleRule::kFloor:
      return "2^k, k = floor(log2 largest)" + less;
    case ScaleRule::kEven:
      return fmt::format("2^k, k = floor(log2 of largest rounded to {} fraction bits, halves up){}",
                         element.fraction_bits, less);
    case ScaleRule::kCeil:
      return "2^k, k = ceil(log2 largest)" + less;
    case ScaleRule::kRceil:
      break;
  }
  return fmt::format("2^k, k = ceil(log2 (largest ÷ {}))", Largest(element));
}

std::string TwoLevelRule(const BlockFormat& format) {
  return format.tensor_scale == TensorScale::kMultiplier
             ? "largest of the block ÷ 6 ÷ t; t = largest of the tensor ÷ 2688, a float32 that "
               "multiplies"
             : "largest of the block ÷ 6 × g; g = 2688 ÷ largest of the tensor, a float32 that "
               "divides";
}

std::string IntegerRule(const BlockFormat& format) {
  const IntegerCodes codes = IntegerCodesOf(format);
  const int steps = (1 << codes.bits) - 1;
  return format.asymmetric ? fmt::format("(largest − smallest, zero among them) ÷ {}", steps)
                           : fmt::format("largest magnitude ÷ {}", steps / 2);
}

}  // namespace

std::string ElementText(const BlockFormat& format) {
  if (format.kind == BlockKind::kGgml) {
    return std::string(GgmlWordsOf(format).value);
  }
  return std::string(format.element) +
         (format.kind == BlockKind::kMicroscaling && format.element == "int8" ? " ÷ 64" : "");
}

std::string ValueText(const BlockFormat& format) {
  switch (format.kind) {
    case BlockKind::kMicroscaling:
    case BlockKind::kCodeBook:
      return "element × scale";
    case BlockKind::kTwoLevel:
      return format.tensor_scale == TensorScale::kMultiplier ? "element × scale × t"
                                                             : "element × scale ÷ g";
    case BlockKind::kInteger:
      return format.asymmetric ? "(element − zero point) × scale" : "element × scale";
    case BlockKind::kGgml:
      break;
  }
  return std::string(GgmlWordsOf(format).value);
}

std::string SharedText(const BlockFormat& format) {
  if (format.kind == BlockKind::kInteger && format.granularity != Granularity::kGroup) {
    return format.granularity == Granularity::kChannel ? "a row" : "the tensor";
  }
  return fmt::format("{} of {}", format.block_elements,
                     format.kind == BlockKind::kCodeBook ? "the tensor" : "a row");
}

std::string ScaleText(const BlockFormat& format) {
  if (format.kind == BlockKind::kGgml) {
    return "in the block";
  }
  if (format.double_quantized) {
    return "8 bits of dynamic8";
  }
  return std::string(ScaleFormatName(format)) + (format.asymmetric ? " and zero point" : "");
}

std::string RuleText(const BlockFormat& format) {
  switch (format.kind) {
    case BlockKind::kMicroscaling:
      return MicroscalingRule(format);
    case BlockKind::kTwoLevel:
      return TwoLevelRule(format);
    case BlockKind::kCodeBook:
      return format.double_quantized ? "largest magnitude less the mean of them, 256 by a float32"
                                     : "largest magnitude";
    case BlockKind::kInteger:
      return IntegerRule(format);
    case BlockKind::kGgml:
      break;
  }
  return CanEncode(format) ? "as ggml's quantize_row_…_ref" : "only decoded here";
}

std::string PackingText(const BlockFormat& format) {
  if (format.kind == BlockKind::kGgml) {
    return fmt::format("{} bytes a block: {}", format.block_bits / 8, GgmlWordsOf(format).layout);
  }
  const Packing packing = PackingOf(format);
  if (packing.bits == 8) {
    return "a byte each";
  }
  if (packing.bits == 6) {
    return "four in three bytes, the first in the lowest bits";
  }
  return packing.order == NibbleOrder::kLowFirst ? "two in a byte, the first in the low half"
                                                 : "two in a byte, the first in the high half";
}

std::string NanText(const BlockFormat& format) {
  switch (format.kind) {
    case BlockKind::kMicroscaling:
      return "scale 0xff: the whole block is NaN";
    case BlockKind::kTwoLevel:
      return "scale 0x7f: the whole block is NaN";
    case BlockKind::kCodeBook:
    case BlockKind::kInteger:
      return format.double_quantized ? "a NaN scale: its 256 blocks are NaN"
                                     : "a NaN scale: all that share it are NaN";
    case BlockKind::kGgml:
      break;
  }
  if (!CanEncode(format)) {
    return "decoded as ggml does";
  }
  return GgmlTypeOf(format) == "mxfp4"
             ? "scale 255: the whole block is infinite, for ggml has no NaN"
             : "scale 0x7e00: the whole block is NaN";
}

std::string ChoicesText(const BlockFormat& format) {
  const std::vector<std::string> choices = ChoicesOf(format);
  return choices.empty() ? "none" : fmt::format("{}", fmt::join(choices, "; "));
}

std::string BitsText(const BlockFormat& format) {
  return fmt::format("{:.6g}", BitsPerElement(format));
}

bool CanEncode(const BlockFormat& format) {
  return format.kind != BlockKind::kGgml || CanEncodeGgml(GgmlTypeOf(format));
}

}  // namespace fourpiles
