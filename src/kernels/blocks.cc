// Tensors in block formats: chunks of whole blocks for the kernels, threads, and the scalar way for
// the rest: rows that end in a short block, other roundings, most types of ggml.

#include <cmath>

#include "base/check.h"
#include "base/try.h"
#include "formats/block_codec.h"
#include "kernels/array_tasks.h"
#include "kernels/block_chunks.h"
#include "kernels/scalar_arrays.h"

namespace fourpiles {
namespace {

bool HasWholeBlocks(const BlockTensor& tensor) {
  return tensor.format.block_elements > 0 &&
         tensor.shape.columns % tensor.format.block_elements == 0;
}

void EncodeMx(const ValueSource& source, const Conversion& conversion, BlockTensor& tensor,
              int threads) {
  const MxPlan plan = PlanMx(MicroscalingOf(tensor.format), conversion);
  const bool stochastic = plan.encode.stochastic;
  ForRanges(source.Size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    std::array<std::uint32_t, kChunk> random = {};
    EncodeChunks({begin, end, kChunk}, source, tensor,
                 [&](const Chunk& chunk, const float* values, std::byte* codes) {
                   if (stochastic) {
                     FillRandom(
                         {.seed = conversion.seed, .first = conversion.first_index + chunk.first},
                         random.data(), chunk.count);
                   }
                   EncodeMxBlocks({.values = values,
                                   .blocks = chunk.count / kMxBlock,
                                   .first = chunk.first,
                                   .random = stochastic ? random.data() : nullptr,
                                   .codes = codes,
                                   .scales = tensor.scales.data() + chunk.first / kMxBlock},
                                  plan);
                 });
  });
}

void DecodeMx(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  const MxPlan plan = PlanMx(MicroscalingOf(tensor.format), {});
  ForRanges(sink.Size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    DecodeChunks({begin, end, kChunk}, tensor, sink,
                 [&](const Chunk& chunk, const std::byte* codes, float* values) {
                   DecodeMxBlocks({.codes = codes,
                                   .scales = tensor.scales.data() + chunk.first / kMxBlock,
                                   .blocks = chunk.count / kMxBlock,
                                   .values = values,
                                   .streams = sink.Streams()},
                                  plan);
                 });
  });
}

float LargestFiniteOf(const ValueSource& source, int threads) {
  std::vector<float> largest((source.Size() + kRange - 1) / kRange);
  ForRanges(source.Size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    std::array<float, kPiece> room;
    for (std::size_t i = begin; i < end; i += kPiece) {
      const std::size_t count = std::min(kPiece, end - i);
      const float* const values = source.At(i, count, room.data());
      largest[i / kRange] = std::max(largest[i / kRange], LargestFinite(values, count));
    }
  });
  return largest.empty() ? 0 : *std::ranges::max_element(largest);
}

// False: the tensor's scale is none of the plain ones, and nothing was encoded.
bool EncodeNvFp4WithKernels(const ValueSource& source, BlockTensor& tensor, int threads) {
  const NvFp4Scale scale =
      NvFp4TensorScale(LargestFiniteOf(source, threads), tensor.format.tensor_scale);
  tensor.tensor_scale = scale.value;
  const NvFp4Plan plan = PlanNvFp4(scale);
  if (!plan.is_plain) {
    return false;
  }
  ForRanges(source.Size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    EncodeChunks({begin, end, kChunk}, source, tensor,
                 [&](const Chunk& chunk, const float* values, std::byte* codes) {
                   EncodeNvFp4Blocks({.values = values,
                                      .blocks = chunk.count / kNvFp4Block,
                                      .codes = codes,
                                      .scales = tensor.scales.data() + chunk.first / kNvFp4Block},
                                     plan);
                 });
  });
  return true;
}

void DecodeNvFp4WithKernels(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  const NvFp4Scale scale = {tensor.tensor_scale, tensor.format.tensor_scale};
  ForRanges(sink.Size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    DecodeChunks({begin, end, kChunk}, tensor, sink,
                 [&](const Chunk& chunk, const std::byte* codes, float* values) {
                   DecodeNvFp4Blocks({.codes = codes,
                                      .scales = tensor.scales.data() + chunk.first / kNvFp4Block,
                                      .blocks = chunk.count / kNvFp4Block,
                                      .values = values,
                                      .streams = sink.Streams()},
                                     scale);
                 });
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

void EncodeGgmlWithKernels(const ValueSource& source, BlockTensor& tensor, int threads) {
  const auto elements = static_cast<std::size_t>(tensor.format.block_elements);
  const auto bytes = static_cast<std::size_t>(tensor.format.block_bits) / 8;
  ForRanges(source.Size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    std::array<float, kPiece> room;
    for (std::size_t i = begin; i < end; i += kPiece) {
      const std::size_t count = std::min(kPiece, end - i);
      GgmlKernelsOf(tensor.format)
          ->encode({.values = source.At(i, count, room.data()),
                    .blocks = count / elements,
                    .bytes = tensor.codes.data() + i / elements * bytes});
    }
  });
}

void DecodeGgmlWithKernels(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  const auto elements = static_cast<std::size_t>(tensor.format.block_elements);
  const auto bytes = static_cast<std::size_t>(tensor.format.block_bits) / 8;
  ForRanges(sink.Size(), kRange, threads, [&](std::size_t begin, std::size_t end) {
    std::array<float, kPiece> room;
    for (std::size_t i = begin; i < end; i += kPiece) {
      const std::size_t count = std::min(kPiece, end - i);
      GgmlKernelsOf(tensor.format)
          ->decode({.bytes = tensor.codes.data() + i / elements * bytes,
                    .blocks = count / elements,
                    .values = sink.At(i, room.data()),
                    .streams = sink.Streams()});
      sink.Put(i, count, room.data());
    }
    hwy::FlushStream();
  });
}

bool HasKernels(const BlockTensor& tensor) {
  if (!HasVectors()) {
    return false;
  }
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
    case BlockKind::kTwoLevel:
      return HasWholeBlocks(tensor);
    case BlockKind::kCodeBook:
      return true;
    case BlockKind::kInteger:
      return HasIntegerKernels(tensor);
    case BlockKind::kGgml:
      break;
  }
  return HasWholeBlocks(tensor) && GgmlKernelsOf(tensor.format) != nullptr;
}

// Tables, quotients and NVFP4's comparisons are made for nearest-even.
bool CanEncode(const BlockTensor& tensor, const Conversion& conversion) {
  const bool nearest = conversion.rounding == RoundingMode::kNearestEven;
  switch (tensor.format.kind) {
    case BlockKind::kTwoLevel:
      return HasKernels(tensor) && nearest && conversion.subnormals == Subnormals::kKept;
    case BlockKind::kCodeBook:
    case BlockKind::kInteger:
      return HasKernels(tensor) && nearest;
    case BlockKind::kMicroscaling:
    case BlockKind::kGgml:
      break;
  }
  return HasKernels(tensor);
}

// Of a scale that is no number, and of 0 ÷ 0, each processor makes a NaN of its own.
bool CanDecode(const BlockTensor& tensor) {
  const bool divides = tensor.format.tensor_scale == TensorScale::kDivisor;
  return HasKernels(tensor) &&
         (tensor.format.kind != BlockKind::kTwoLevel ||
          (std::isfinite(tensor.tensor_scale) && !(divides && tensor.tensor_scale == 0)));
}

Result<void> EncodeScalar(const ValueSource& source, const Conversion& conversion,
                          BlockTensor& tensor) {
  std::vector<float> room;
  return EncodeTensor(source.All(room), conversion, tensor);
}

Result<void> EncodeFrom(const ValueSource& source, const Conversion& conversion,
                        BlockTensor& tensor, int threads) {
  TRY_VOID(CheckShape(tensor, source.Size()));
  TRY_VOID(CheckConversion(conversion, tensor.format));
  if (!CanEncode(tensor, conversion)) {
    return EncodeScalar(source, conversion, tensor);
  }
  const DefaultFloatEnvironment environment;
  ResizeArrays(tensor);
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
      EncodeMx(source, conversion, tensor, threads);
      break;
    case BlockKind::kTwoLevel:
      return EncodeNvFp4WithKernels(source, tensor, threads)
                 ? Result<void>()
                 : EncodeScalar(source, conversion, tensor);
    case BlockKind::kCodeBook:
      EncodeCodeBooks(source, conversion, tensor, threads);
      break;
    case BlockKind::kInteger:
      EncodeIntegerRows(source, conversion, tensor, threads);
      break;
    case BlockKind::kGgml:
      EncodeGgmlWithKernels(source, tensor, threads);
  }
  return {};
}

void DecodeWithKernels(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  const DefaultFloatEnvironment environment;
  switch (tensor.format.kind) {
    case BlockKind::kMicroscaling:
      return DecodeMx(tensor, sink, threads);
    case BlockKind::kTwoLevel:
      return DecodeNvFp4WithKernels(tensor, sink, threads);
    case BlockKind::kCodeBook:
      return DecodeCodeBooks(tensor, sink, threads);
    case BlockKind::kInteger:
      return DecodeIntegerRows(tensor, sink, threads);
    case BlockKind::kGgml:
      break;
  }
  DecodeGgmlWithKernels(tensor, sink, threads);
}

Result<void> DecodeTo(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  TRY_VOID(CheckShape(tensor, sink.Size()));
  TRY_VOID(CheckArrays(tensor));
  if (CanDecode(tensor)) {
    DecodeWithKernels(tensor, sink, threads);
  } else {
    sink.PutAll([&](std::span<float> values) { DecodeTensor(tensor, values); });
  }
  return {};
}

}  // namespace

Result<void> EncodeBlocks(std::span<const float> values, const Conversion& conversion,
                          BlockTensor& tensor, int threads) {
  return EncodeFrom(ValueSource(values), conversion, tensor, threads);
}

Result<void> EncodeBlocks(ConstCodes from, const Conversion& conversion, BlockTensor& tensor,
                          int threads) {
  return EncodeFrom(ValueSource(from), conversion, tensor, threads);
}

Result<void> DecodeBlocks(const BlockTensor& tensor, std::span<float> values, int threads) {
  return DecodeTo(tensor, ValueSink(values), threads);
}

Result<void> DecodeBlocks(const BlockTensor& tensor, Codes to, const Conversion& conversion,
                          int threads) {
  return DecodeTo(tensor, ValueSink(to, conversion), threads);
}

Result<RoundingStatistics> RoundBlocks(std::span<const float> values, const Conversion& conversion,
                                       BlockTensor& scratch, std::span<float> rounded,
                                       int threads) {
  CHECK(rounded.size() == values.size());
  TRY_VOID(EncodeBlocks(values, conversion, scratch, threads));
  TRY_VOID(DecodeBlocks(scratch, rounded, threads));
  std::vector<RoundingStatistics> blocks((values.size() + kSumBlock - 1) / kSumBlock);
  ForRanges(values.size(), kSumBlock, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += kSumBlock) {
      const std::size_t count = std::min(kSumBlock, end - i);
      blocks[i / kSumBlock] =
          HasVectors()
              ? CompareAndCount(
                    {.values = values.data() + i, .count = count, .rounded = rounded.data() + i})
              : CompareAndCountScalar(values.subspan(i, count), rounded.subspan(i, count));
    }
  });
  return Merged(blocks);
}

}  // namespace fourpiles
