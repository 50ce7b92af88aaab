#pragma once

// The cache of engines that keep it in pages: what one layer takes of a token, on one rank of
// tensor parallelism.

#include <cstdint>

#include "base/checked.h"
#include "model/network.h"

namespace fourpiles {

// What one attention layer keeps of each token. A rank has max(1, heads / tensor_parallel) of the
// heads (vllm/config/model.py, get_num_kv_heads): past one head a rank they are copied. Latent
// attention keeps one head, which is therefore on every rank.
struct PagedLayer {
  std::int64_t heads = 1;
  std::int64_t elements_per_head = 0;  // key and value: 128 + 128, or the latent: 512 + 64
  int bits = 16;                       // of an element
  std::int64_t tensor_parallel = 1;
};

// Bytes of one token in one layer, on one rank. Llama-3.1-8B: 8 × 256 × 2 = 4,096; on 16 ranks 512.
Checked TokenBytes(const PagedLayer& layer);

// What one layer of linear attention or of a state-space model keeps of each request.
struct PagedState {
  std::int64_t convolution_elements = 0;
  int convolution_bits = 16;
  std::int64_t recurrent_elements = 0;
  int recurrent_bits = 32;
  std::int64_t tensor_parallel = 1;
};
PagedState PagedStateOf(const Cache& cache, std::int64_t tensor_parallel);

// Bytes of one request in one layer, on one rank; both parts are spread over the ranks
// (vllm/model_executor/layers/mamba/mamba_utils.py). Kimi-Linear on 2 ranks:
// 3 × 12,288 / 2 × 2 + 32 / 2 × 128 × 128 × 4 = 1,085,440.
Checked StateBytes(const PagedState& state);

// a / b rounded down; both at least 0. Not ok for b = 0.
Checked DivideRoundingDown(Checked a, Checked b);

// `share` of the bytes, rounded down: 0.9 of them. Not ok for a share outside 0 to 1.
Checked ShareOf(Checked bytes, double share);

}  // namespace fourpiles
