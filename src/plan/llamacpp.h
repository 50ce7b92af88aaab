#pragma once

// What llama.cpp allocates beside the weights: caches, states, and its buffers. Sizes in, bytes
// out; the rules are those of its sources, each named at its function, and reproduce its logs at
// the printed digits, but for the compute buffer.

#include <cstdint>
#include <optional>

#include "base/checked.h"
#include "formats/stored_type.h"

namespace fourpiles {

// What differs between versions and forks.
struct LlamacppVersion {
  // Cells are a multiple of this: 256; before late 2025, without flash attention, 32.
  std::int64_t padding = 256;
  std::int64_t padding_without_flash = 256;
  // Windows have caches of their own size (June 2025); else they keep the whole context.
  bool sliding_caches = true;
  // Rows of the key cache are one head long (ik_llama.cpp); else all heads of a token.
  bool key_rows_are_heads = false;
  // Caches of windows are quantised as the others; false: they stay float16 (a build of April
  // 2026).
  bool quantised_windows = true;
  // Latent attention keeps a second copy of the latent, on its side, as values: the first builds
  // that had it, and ik_llama.cpp's mla=1.
  bool latent_values = false;
  // Latent attention keeps the latent; false: the keys and values of all heads (before April 2025).
  bool latent_cache = true;
  // The output layer goes to a device when all other layers are there; since late 2025 first.
  bool output_last = false;
};

// Rounded up to a multiple.
constexpr Checked PadTo(Checked amount, std::int64_t multiple) {
  return DivideRoundingUp(amount, multiple) * multiple;
}

// A context as llama-server gets it.
struct ContextRequest {
  std::int64_t context_length = 0;  // --ctx-size, of all slots together
  std::int64_t sequences = 1;       // --parallel
  bool unified = true;              // --kv-unified: the slots share the cells
  std::int64_t micro_batch = 512;   // --ubatch-size
};

// Cells of a layer's cache: streams × cells, each for one token.
struct CacheCells {
  Checked cells = 0;
  std::int64_t streams = 1;
};

// llama_context's constructor. 16,384 over 8 slots that are apart: 8 streams of 2,048.
CacheCells CellsFor(const ContextRequest& request, const LlamacppVersion& version = {});

// Of layers with a window of so many tokens (llama_kv_cache_iswa): the window of every slot and a
// micro-batch, and no more than the others have. A window of 1,024, 4 slots, a micro-batch of 512:
// 4,608 cells.
CacheCells SlidingCellsFor(const ContextRequest& request, std::int64_t window,
                           const LlamacppVersion& version = {});

// The cache of layers that are alike.
struct CacheLayers {
  std::int64_t layers = 0;
  std::int64_t key_width = 0;    // elements of a token's keys: heads × head size
  std::int64_t value_width = 0;  // 0: no values are kept
};
struct CacheTypes {
  const StoredType* key = nullptr;
  const StoredType* value = nullptr;
};
// Of layers with a window.
CacheTypes SlidingTypes(const CacheTypes& asked, const LlamacppVersion& version = {});

struct CacheBytes {
  Checked key = 0;
  Checked value = 0;
};

// What the log prints as K and V (llama_kv_cache::size_k_bytes). Llama-3-70B at 8,192 in float16:
// 80 × 1,024 × 8,192 × 2 × 2 bytes are 2.50 GiB.
CacheBytes CacheBytesOf(const CacheLayers& layers, const CacheCells& cells,
                        const CacheTypes& types);

// Latent attention (DeepSeek V2, V3), whose cache is one head of kv_lora_rank + qk_rope_head_dim
// where the up-projection of the keys is folded into the queries ("absorbed"), else all heads.
// DeepSeek-V3 keeps 61 × 576 = 35,136 elements a token.
struct LatentAttention {
  std::int64_t heads = 1;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};
CacheLayers LatentCache(const LatentAttention& shape, std::int64_t layers, bool absorbed,
                        const LlamacppVersion& version = {});

// State of layers with a memory (llama_memory_recurrent): inputs of the convolution and the memory,
// always float32. Rows: a slot's own, and as many as can be rolled back to.
struct RecurrentLayers {
  std::int64_t layers = 0;
  std::int64_t convolution = 1;  // d_conv
  std::int64_t inner = 0;        // d_inner
  std::int64_t state = 0;        // d_state
  std::int64_t groups = 0;       // n_group; 0 for Mamba, whose B and C do not pass the convolution
};
struct RecurrentRows {
  std::int64_t sequences = 1;
  std::int64_t snapshots = 0;  // n_rs_seq
};
CacheBytes RecurrentBytes(const RecurrentLayers& layers, const RecurrentRows& rows);

// A tensor in a CUDA buffer (ggml_backend_cuda_buffer_type_get_alloc_size): where a row of a
// quantised tensor is no multiple of 512, so many elements more, once; then to 128 bytes.
struct CudaTensor {
  const StoredType* type = nullptr;
  std::int64_t ne0 = 1;
  Checked rows = 1;
};
Checked CudaTensorBytes(const CudaTensor& tensor);

// The cache as it lies in a CUDA buffer; `head` is the size of a head of keys.
Checked CudaCacheBytes(const CacheLayers& layers, const CacheCells& cells, const CacheTypes& types,
                       std::optional<std::int64_t> head = {});

// Logits of the outputs that are kept, one for each slot (llama_context::output_reserve).
Checked OutputBufferBytes(std::int64_t sequences, std::int64_t vocab_size);

}  // namespace fourpiles
