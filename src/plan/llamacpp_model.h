#pragma once

// A model as llama.cpp sees it: the tensors of its GGUF, a file's or those that the converter would
// make, summed up as they are placed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "fourpiles/result.h"
#include "plan/gguf_tensors.h"
#include "plan/job.h"

namespace fourpiles {

// Tensors of one type that are placed as the one with that number.
struct AlikeTensors {
  std::size_t number = 0;
  Checked elements = 0;
  Checked bytes = 0;         // of the file, and on the host
  Checked device_bytes = 0;  // CUDA and HIP buffers pad rows and align tensors
};

// Rows of a layer's attn_q, of its attn_qkv, and of attn_k_b, which takes the queries of all heads
// to the latent; 0 where it has none.
struct QueryRows {
  std::int64_t alone = 0;
  std::int64_t fused = 0;
  std::int64_t latent = 0;
};

// The model as llama.cpp sees it.
struct LlamacppModel {
  std::shared_ptr<const Network> network = {};
  GgufTensors gguf = {};
  std::int64_t layers = 1;
  bool padded = false;
  std::vector<AlikeTensors> alike = {};
  std::vector<QueryRows> queries = {};  // of each layer
};

// Errors: kUsage, kInput.
Result<LlamacppModel> LlamacppModelOf(const Job& job);

}  // namespace fourpiles
