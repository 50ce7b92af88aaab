// Tensors in block formats: chunks of whole blocks for the kernels, threads, and the scalar way for
// the rest: rows that end in a short block, tables, integers, most types of ggml.

#include <array>
#include <cmath>
#include <vector>

#include "base/try.h"
#include "formats/block_codec.h"
#include "formats/block_layout.h"
#include "kernels/array_tasks.h"
#include "kernels/block_tasks.h"
#include "kernels/parallel.h"
#include "kernels/scalar_arrays.h"

namespace fourpiles {
namespace {

// Ranges of threads: whole chunks of any block and packing.
constexpr std::size_t kRange = std::size_t{1} << 16;

bool HasWholeBlocks(const BlockTensor& tensor) {
  return tensor.format.block_elements > 0 &&
         tensor.shape.columns % tensor.format.block_elements == 0;
}

// Codes of a chunk, a byte each, beside the tensor's own where those are bytes too.
class ChunkCodes {
 public:
  ChunkCodes(int bits, const std::vector<std::byte>& packed)
      : bits_(bits), packed_(packed.data()) {}

  std::size_t ByteOf(std::size_t element) const {
    return element * static_cast<std::size_t>(bits_) / 8;
  }
  // The codes of `count` elements, unpacked.
  const std::byte* Unpacked(std::size_t first, std::size_t count) {
    if (bits_ == 8) {
      return packed_ + first;
    }
    UnpackBytes(packed_ + ByteOf(first), count, bits_, bytes_.data());
    return bytes_.data();
  }

 private:
  int bits_;
  const std::byte* packed_;
  std::array<std::byte, kChunk> bytes_ = {};
};

// Calls encode(first, count, codes) for each chunk, and packs what it wrote.
template <class EncodeChunk>
void EncodeChunks(std::size_t begin, std::size_t end, BlockTensor& tensor,
                  const EncodeChunk& encode) {
  const int bits = tensor.format.element_bits;
  std::array<std::byte, kChunk> bytes;
  for (std::size_t first = begin; first < end; first += kChunk) {
    const std::size_t count = std::min(kChunk, end - first);
    std::byte* const packed = tensor.codes.data() + first * static_cast<std::size_t>(bits) / 8;
    std::byte* const codes = bits == 8 ? packed : bytes.data();
    encode(first, count, codes);
    if (bits != 8) {
      PackBytes(codes, count, bits, packed);
    }
  }
}

void EncodeMx(std::span<const float> values, const Conversion& conversion, BlockTensor& tensor,
              int threads) {
  const MxPlan plan = PlanMx(MicroscalingOf(tensor.format), conversion);
  const bool stochastic = plan.encode.stochastic;
  ForRanges(values.size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    std::array<std::uint32_t, kChunk> random = {};
    EncodeChunks(begin, end, tensor, [&](std::size_t first, std::size_t count, std::byte* codes) {
      if (stochastic) {
        FillRandom({.seed = conversion.seed, .first = conversion.first_index + first},
                   random.data(), count);
      }
      EncodeMxBlocks({.values = values.data() + first,
                      .blocks = count / kMxBlock,
                      .first = first,
                      .random = stochastic ? random.data() : nullptr,
                      .codes = codes,
                      .scales = tensor.scales.data() + first / kMxBlock},
                     plan);
    });
  });
}

void DecodeMx(const BlockTensor& tensor, std::span<float> values, int threads) {
  const MxPlan plan = PlanMx(MicroscalingOf(tensor.format), {});
  const bool streams = values.size_bytes() >= kStreamedBytes;
  ForRanges(values.size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    ChunkCodes codes(tensor.format.element_bits, tensor.codes);
    for (std::size_t first = begin; first < end; first += kChunk) {
      const std::size_t count = std::min(kChunk, end - first);
      DecodeMxBlocks({.codes = codes.Unpacked(first, count),
                      .scales = tensor.scales.data() + first / kMxBlock,
                      .blocks = count / kMxBlock,
                      .values = values.data() + first,
                      .streams = streams},
                     plan);
    }
  });
}

float LargestFiniteOf(std::span<const float> values, int threads) {
  std::vector<float> largest((values.size() + kRange - 1) / kRange);
  ForRanges(values.size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += kRange) {
      largest[i / kRange] = LargestFinite(values.data() + i, std::min(kRange, end - i));
    }
  });
  return largest.empty() ? 0 : *std::ranges::max_element(largest);
}

// False: the tensor's scale is none of the plain ones, and nothing was encoded.
bool EncodeNvFp4WithKernels(std::span<const float> values, BlockTensor& tensor, int threads) {
  const NvFp4Scale scale =
      NvFp4TensorScale(LargestFiniteOf(values, threads), tensor.format.tensor_scale);
  tensor.tensor_scale = scale.value;
  const NvFp4Plan plan = PlanNvFp4(scale);
  if (!plan.is_plain) {
    return false;
  }
  ForRanges(values.size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    EncodeChunks(begin, end, tensor, [&](std::size_t first, std::size_t count, std::byte* codes) {
      EncodeNvFp4Blocks({.values = values.data() + first,
                         .blocks = count / kNvFp4Block,
                         .codes = codes,
                         .scales = tensor.scales.data() + first / kNvFp4Block},
                        plan);
    });
  });
  return true;
}

void DecodeNvFp4WithKernels(const BlockTensor& tensor, std::span<float> values, int threads) {
  const NvFp4Scale scale = {tensor.tensor_scale, tensor.format.tensor_scale};
  const bool streams = values.size_bytes() >= kStreamedBytes;
  ForRanges(values.size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    ChunkCodes codes(tensor.format.element_bits, tensor.codes);
    for (std::size_t first = begin; first < end; first += kChunk) {
      const std::size_t count = std::min(kChunk, end - first);
      DecodeNvFp4Blocks({.codes = codes.Unpacked(first, count),
                         .scales = tensor.scales.data() + first / kNvFp4Block,
                         .blocks = count / kNvFp4Block,
                         .values = values.data() + first,
                         .streams = streams},
                        scale);
    }
  });
}

// A type of ggml with kernels.
struct GgmlKernels {
  std::string_view name;
  void (*encode)(const GgmlTask& task);
  void (*decode)(const GgmlDecodeTask& task);
};
constexpr GgmlKernels kGgmlKernels[] = {{"q8_0", EncodeQ80Blocks, DecodeQ80Blocks},
                                        {"q4_0", EncodeQ40Blocks, DecodeQ40Blocks}};

const GgmlKernels* GgmlKernelsOf(const BlockFormat& format) {
  const auto* const found = std::ranges::find(kGgmlKernels, format.name, &GgmlKernels::name);
  return found == std::end(kGgmlKernels) ? nullptr : found;
}

void EncodeGgmlWithKernels(std::span<const float> values, BlockTensor& tensor, int threads) {
  const auto elements = static_cast<std::size_t>(tensor.format.block_elements);
  const auto bytes = static_cast<std::size_t>(tensor.format.block_bits) / 8;
  ForRanges(values.size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    GgmlKernelsOf(tensor.format)
        ->encode({.values = values.data() + begin,
                  .blocks = (end - begin) / elements,
                  .bytes = tensor.codes.data() + begin / elements * bytes});
  });
}

void DecodeGgmlWithKernels(const BlockTensor& tensor, std::span<float> values, int threads) {
  const auto elements = static_cast<std::size_t>(tensor.format.block_elements);
  const auto bytes = static_cast<std::size_t>(tensor.format.block_bits) / 8;
  const bool streams = values.size_bytes() >= kStreamedBytes;
  ForRanges(values.size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    GgmlKernelsOf(tensor.format)
        ->decode({.bytes = tensor.codes.data() + begin / elements * bytes,
                  .blocks = (end - begin) / elements,
                  .values = values.data() + begin,
                  .streams = streams});
  });
}

bool HasKernels(const BlockTensor& tensor) {
  if (!HasVectors() || !HasWholeBlocks(tensor)) {
    return false;
  }
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
    case BlockKind::kTwoLevel:
      return true;
    case BlockKind::kGgml:
      return GgmlKernelsOf(tensor.format) != nullptr;
    case BlockKind::kCodeBook:
    case BlockKind::kInteger:
      break;
  }
  return false;
}

// NVFP4's comparisons are made for nearest-even.
bool CanEncode(const BlockTensor& tensor, const Conversion& conversion) {
  return HasKernels(tensor) && (tensor.format.kind != BlockKind::kTwoLevel ||
                                (conversion.rounding == RoundingMode::kNearestEven &&
                                 conversion.subnormals == Subnormals::kKept));
}

// Of a scale that is no number, and of 0 ÷ 0, each processor makes a NaN of its own.
bool CanDecode(const BlockTensor& tensor) {
  const bool divides = tensor.format.tensor_scale == TensorScale::kDivisor;
  return HasKernels(tensor) &&
         (tensor.format.kind != BlockKind::kTwoLevel ||
          (std::isfinite(tensor.tensor_scale) && !(divides && tensor.tensor_scale == 0)));
}

}  // namespace

Result<void> EncodeBlocks(std::span<const float> values, const Conversion& conversion,
                          BlockTensor& tensor, int threads) {
  TRY_VOID(CheckShape(tensor, values.size()));
  TRY_VOID(CheckConversion(conversion, tensor.format));
  if (!CanEncode(tensor, conversion)) {
    return EncodeTensor(values, conversion, tensor);
  }
  const DefaultFloatEnvironment environment;
  ResizeArrays(tensor);
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
      EncodeMx(values, conversion, tensor, threads);
      return {};
    case BlockKind::kTwoLevel:
      return EncodeNvFp4WithKernels(values, tensor, threads)
                 ? Result<void>()
                 : EncodeTensor(values, conversion, tensor);
    default:
      EncodeGgmlWithKernels(values, tensor, threads);
      return {};
  }
}

Result<void> DecodeBlocks(const BlockTensor& tensor, std::span<float> values, int threads) {
  TRY_VOID(CheckShape(tensor, values.size()));
  TRY_VOID(CheckArrays(tensor));
  if (!CanDecode(tensor)) {
    DecodeTensor(tensor, values);
    return {};
  }
  const DefaultFloatEnvironment environment;
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
      DecodeMx(tensor, values, threads);
      return {};
    case BlockKind::kTwoLevel:
      DecodeNvFp4WithKernels(tensor, values, threads);
      return {};
    default:
      DecodeGgmlWithKernels(tensor, values, threads);
      return {};
  }
}

}  // namespace fourpiles
