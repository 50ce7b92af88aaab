#pragma once

// Which type llama-quantize gives each tensor of a model: its mixtures, "Q4_K_M", "IQ3_XXS".
//
// A mixture has one type for most tensors. Those that lose the most get more bits: the output
// layer, values, and the second half of the feed-forward part in some of the layers. Of the
// Q4_K_M of Llama-3.1-8B, 226 tensors are 193 q4_k and 33 q6_k: the output, and values and ffn_down
// of 16 layers each.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stored_type.h"
#include "fourpiles/result.h"

namespace fourpiles {

// A tensor of a GGUF: rows of ne0 elements. Experts of a layer are stacked in one.
struct GgufTensor {
  std::string name = {};   // "blk.3.attn_q.weight"
  std::int64_t ne0 = 1;    // elements of a row
  std::int64_t rows = 1;   // of all experts
  int dimensions = 1;      // 1 for a vector, 3 for stacked experts
  std::int64_t layer = 0;  // -1: stands once
};

// What the rules ask of the model.
struct MixtureModel {
  std::int64_t layers = 1;
  std::int64_t experts = 0;
  std::int64_t queries_per_value = 1;  // heads that share a key-value head
  bool falcon = false;
  bool size_70b = false;  // what llama.cpp takes for a 70B: 80 layers of Llama 2 and 3, or Qwen 2
};

struct Mixture {
  std::string_view name = {};  // "Q4_K_M"
  const StoredType* base = nullptr;
  bool needs_imatrix = false;  // llama-quantize refuses to make it without
};

// The mixture of that name, whatever the case; "Q4_K" is Q4_K_M, "bfloat16" BF16. Error (kUsage):
// none has it.
Result<Mixture> FindMixture(std::string_view name, std::string_view where);

// The type of each tensor, in the same order. Tensors stand in the order of their layers. `imatrix`
// says whether an importance matrix was given.
std::vector<const StoredType*> MixtureTypes(const Mixture& mixture, bool imatrix,
                                            const MixtureModel& model,
                                            std::span<const GgufTensor> tensors);

}  // namespace fourpiles
