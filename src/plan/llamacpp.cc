// ggml-org/llama.cpp, of which the functions that the header names are in src/llama-context.cpp,
// src/llama-kv-cache.cpp, src/llama-kv-cache-iswa.cpp, src/llama-memory-recurrent.cpp and
// ggml/src/ggml-cuda/ggml-cuda.cu; forks: ikawrakow/ik_llama.cpp.

#include "plan/llamacpp.h"

#include <algorithm>

namespace fourpiles {
namespace {

Checked Smaller(const Checked& a, const Checked& b) {
  return OrLargest(a) <= OrLargest(b) ? a : b;
}

}  // namespace

CacheCells CellsFor(const ContextRequest& request, const LlamacppVersion& version) {
  const Checked cells = PadTo(request.context_length, version.padding);
  if (request.unified) {
    return {.cells = cells};
  }
  const std::int64_t each = OrLargest(cells) / std::max<std::int64_t>(1, request.sequences);
  return {.cells = PadTo(each, version.padding), .streams = request.sequences};
}

CacheCells SlidingCellsFor(const ContextRequest& request, std::int64_t window,
                           const LlamacppVersion& version) {
  const CacheCells full = CellsFor(request, version);
  if (!version.sliding_caches) {
    return full;
  }
  const Checked seen =
      Checked(window) * (request.unified ? request.sequences : 1) + request.micro_batch;
  return {.cells = PadTo(Smaller(full.cells, seen), version.padding), .streams = full.streams};
}

CacheTypes SlidingTypes(const CacheTypes& asked, const LlamacppVersion& version) {
  const auto type = [&](const StoredType* t) {
    const bool quantised = t != nullptr && t->block_elements > 1;
    return quantised && !version.quantised_windows ? FindStoredType("float16") : t;
  };
  return {.key = type(asked.key), .value = type(asked.value)};
}

CacheBytes CacheBytesOf(const CacheLayers& layers, const CacheCells& cells,
                        const CacheTypes& types) {
  const Checked rows = cells.cells * cells.streams * layers.layers;
  const auto bytes = [&](std::int64_t width, const StoredType* type) {
    return width == 0 || type == nullptr ? Checked(0) : StorageBytes(width, *type) * rows;
  };
  return {.key = bytes(layers.key_width, types.key),
          .value = bytes(layers.value_width, types.value)};
}

CacheLayers LatentCache(const LatentAttention& shape, std::int64_t layers, bool absorbed,
                        const LlamacppVersion& version) {
  if (absorbed) {
    return {.layers = layers,
            .key_width = shape.kv_lora_rank + shape.qk_rope_head_dim,
            .value_width = version.latent_values ? shape.kv_lora_rank : 0};
  }
  return {.layers = layers,
          .key_width = OrLargest(Checked(shape.heads) *
                                 (Checked(shape.qk_nope_head_dim) + shape.qk_rope_head_dim)),
          .value_width = OrLargest(Checked(shape.heads) * shape.v_head_dim)};
}

CacheBytes RecurrentBytes(const RecurrentLayers& layers, const RecurrentRows& rows) {
  const Checked count = Checked(rows.sequences) * (Checked(rows.snapshots) + 1) * layers.layers * 4;
  const Checked width = Checked(2) * layers.groups * layers.state + layers.inner;
  return {.key = (Checked(layers.convolution) - 1) * width * count,
          .value = Checked(layers.state) * layers.inner * count};
}

Checked CudaTensorBytes(const CudaTensor& tensor) {
  constexpr std::int64_t kRowPadding = 512;  // MATRIX_ROW_PADDING
  constexpr std::int64_t kAlignment = 128;
  Checked bytes = StorageBytes(tensor.ne0, *tensor.type) * tensor.rows;
  const std::int64_t rest = tensor.ne0 % kRowPadding;
  if (tensor.type->block_elements > 1 && rest != 0) {
    bytes = bytes + StorageBytes(kRowPadding - rest, *tensor.type);
  }
  return PadTo(bytes, kAlignment);
}

Checked CudaCacheBytes(const CacheLayers& layers, const CacheCells& cells, const CacheTypes& types,
                       std::optional<std::int64_t> head) {
  const Checked rows = cells.cells * cells.streams;
  Checked bytes = 0;
  if (layers.key_width > 0 && types.key != nullptr) {
    const std::int64_t ne0 =
        std::clamp<std::int64_t>(head.value_or(layers.key_width), 1, layers.key_width);
    bytes = CudaTensorBytes({types.key, ne0, rows * (layers.key_width / ne0)});
  }
  if (layers.value_width > 0 && types.value != nullptr) {
    bytes = bytes + CudaTensorBytes({types.value, layers.value_width, rows});
  }
  return bytes * layers.layers;
}

Checked OutputBufferBytes(std::int64_t sequences, std::int64_t vocab_size) {
  return Checked(sequences) * vocab_size * 4;
}

}  // namespace fourpiles
