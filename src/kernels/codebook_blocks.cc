// Tensors of a table's entries: whole blocks by the kernels, a short one at the end by the scalar
// way.

#include <algorithm>
#include <cstring>

#include "formats/block_codebook.h"
#include "formats/float32.h"
#include "kernels/block_chunks.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostBlocks = kPiece / kShortestBlock;

const CodeBookPlan& PlanOfScales() {
  static const CodeBookPlan plan = PlanCodeBook(FindCodeBook("dynamic8"));
  return plan;
}

// What lies in whole blocks, and what in the last if that is short.
struct Parts {
  std::size_t block = 0;
  std::size_t whole = 0;
  std::size_t rest = 0;
};

Parts PartsOf(std::size_t elements, const BlockFormat& format) {
  const auto block = static_cast<std::size_t>(format.block_elements);
  return {block, elements / block * block, elements % block};
}

// The scale of block `first` and those after it. Of a double-quantised tensor they stand where
// their own scales go, for now.
void StoreScales(std::span<const float> scales, std::size_t first, BlockTensor& tensor) {
  if (tensor.format.double_quantized) {
    std::ranges::copy(scales, tensor.scale_scales.data() + first);
  } else {
    std::memcpy(tensor.scales.data() + first * sizeof(float), scales.data(), scales.size_bytes());
  }
}

// As CodeBookScaleOf has them.
void LoadScaleGroup(const BlockTensor& tensor, std::size_t first, std::span<float> scales) {
  const float common = tensor.scale_scales[first / kScalesPerGroup];
  if (!IsFinite(common) || !IsFinite(tensor.scale_offset)) {
    for (float& scale : scales) {
      scale = CodeBookScaleOf(tensor, first++);
    }
    return;
  }
  DecodeCodeBookCodes(std::span(tensor.scales).subspan(first, scales.size()), common,
                      PlanOfScales(), scales.data());
  AddToAll(tensor.scale_offset, scales.data(), scales.size());
}

void LoadScales(const BlockTensor& tensor, std::size_t first, std::span<float> scales) {
  if (!tensor.format.double_quantized) {
    std::memcpy(scales.data(), tensor.scales.data() + first * sizeof(float), scales.size_bytes());
    return;
  }
  while (!scales.empty()) {
    const std::size_t count = std::min(scales.size(), kScalesPerGroup - first % kScalesPerGroup);
    LoadScaleGroup(tensor, first, scales.first(count));
    scales = scales.subspan(count);
    first += count;
  }
}

// From the scales themselves in scale_scales to their codes and what goes with them.
void QuantizeScales(BlockTensor& tensor) {
  std::vector<float>& scales = tensor.scale_scales;
  tensor.scale_offset = MeanScale(scales);
  AddToAll(-tensor.scale_offset, scales.data(), scales.size());
  const std::size_t groups = scales.size() / kScalesPerGroup;
  std::array<float, kPiece / kScalesPerGroup> common;
  for (std::size_t g = 0; g < groups; g += common.size()) {
    const std::size_t count = std::min(common.size(), groups - g);
    EncodeCodeBookBlocks({.values = scales.data() + g * kScalesPerGroup,
                          .blocks = count,
                          .block_elements = kScalesPerGroup,
                          .codes = tensor.scales.data() + g * kScalesPerGroup,
                          .scales = common.data()},
                         PlanOfScales());
    std::ranges::copy_n(common.begin(), static_cast<std::ptrdiff_t>(count), scales.data() + g);
  }
  const auto rest = std::span<const float>(scales).subspan(groups * kScalesPerGroup);
  std::size_t all = groups;
  if (!rest.empty()) {
    const float scale = CodeBookScale(rest, Subnormals::kKept);
    EncodeCodeBookBlock(rest, scale, *PlanOfScales().book,
                        std::span(tensor.scales).subspan(groups * kScalesPerGroup));
    scales[all++] = scale;
  }
  scales.resize(all);
}

void EncodeRest(const ValueSource& source, const Parts& parts, Subnormals subnormals,
                BlockTensor& tensor) {
  std::array<float, kPiece> room;
  std::array<std::byte, kPiece> codes;
  const std::span values(source.At(parts.whole, parts.rest, room.data()), parts.rest);
  const float scale = CodeBookScale(values, subnormals);
  StoreScales({&scale, 1}, parts.whole / parts.block, tensor);
  const auto used = std::span<std::byte>(codes).first(parts.rest);
  EncodeCodeBookBlock(values, scale, FindCodeBook(tensor.format.element), used);
  PutCodes(tensor.codes, parts.whole, PackingOf(tensor.format), used);
}

void DecodeRest(const BlockTensor& tensor, const Parts& parts, const ValueSink& sink) {
  std::array<float, kPiece> room;
  std::array<std::byte, kPiece> codes;
  const auto used = std::span<std::byte>(codes).first(parts.rest);
  GetCodes(tensor.codes, parts.whole, PackingOf(tensor.format), used);
  DecodeCodeBookBlock(used, CodeBookScaleOf(tensor, parts.whole / parts.block),
                      FindCodeBook(tensor.format.element),
                      {sink.At(parts.whole, room.data()), parts.rest});
  sink.Put(parts.whole, parts.rest, room.data());
}

}  // namespace

void EncodeCodeBooks(const ValueSource& source, const Conversion& conversion, BlockTensor& tensor,
                     int threads) {
  const CodeBookPlan plan = PlanCodeBook(FindCodeBook(tensor.format.element));
  const Parts parts = PartsOf(source.Size(), tensor.format);
  if (tensor.format.double_quantized) {
    tensor.scale_scales.resize(tensor.scales.size());
  }
  ForRanges(parts.whole, kRange, threads, [&](std::size_t begin, std::size_t end) {
    EncodeChunks({begin, end}, source, tensor,
                 [&](const Chunk& chunk, const float* values, std::byte* codes) {
                   std::array<float, kMostBlocks> scales;
                   const std::size_t blocks = chunk.count / parts.block;
                   EncodeCodeBookBlocks({.values = values,
                                         .blocks = blocks,
                                         .block_elements = parts.block,
                                         .subnormals = conversion.subnormals,
                                         .codes = codes,
                                         .scales = scales.data()},
                                        plan);
                   StoreScales({scales.data(), blocks}, chunk.first / parts.block, tensor);
                 });
  });
  if (parts.rest != 0) {
    EncodeRest(source, parts, conversion.subnormals, tensor);
  }
  if (tensor.format.double_quantized) {
    QuantizeScales(tensor);
  }
}

void DecodeCodeBooks(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  const CodeBookPlan plan = PlanCodeBook(FindCodeBook(tensor.format.element));
  const Parts parts = PartsOf(sink.Size(), tensor.format);
  ForRanges(parts.whole, kRange, threads, [&](std::size_t begin, std::size_t end) {
    DecodeChunks({begin, end}, tensor, sink,
                 [&](const Chunk& chunk, const std::byte* codes, float* values) {
                   std::array<float, kMostBlocks> scales;
                   const std::size_t blocks = chunk.count / parts.block;
                   LoadScales(tensor, chunk.first / parts.block, {scales.data(), blocks});
                   DecodeCodeBookBlocks({.codes = codes,
                                         .scales = scales.data(),
                                         .blocks = blocks,
                                         .block_elements = parts.block,
                                         .values = values,
                                         .streams = sink.Streams()},
                                        plan);
                 });
  });
  if (parts.rest != 0) {
    DecodeRest(tensor, parts, sink);
  }
}

}  // namespace fourpiles
