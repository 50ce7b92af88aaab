#pragma once

// What GPT-2 and the decoders after it have in common.

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "model/part_flows.h"

namespace fourpiles {

// The keys under which a family keeps the sizes that all have.
struct SizeKeys {
  std::string_view hidden_size = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
};
// Every head has a key and a value of its own, and the heads make up the width.
Decoder ReadMultiHeadDecoder(Record& config, bool tied, const SizeKeys& keys = {});

// What a layer with two parts computes.
struct TwoParts {
  std::string_view attention_norm = {};
  std::string_view mlp_norm = {};  // the same one: both parts read what it puts out
  PartFlow attention = {};
  PartFlow mlp = {};
  bool parallel = false;     // both parts read what comes in
  bool norms_after = false;  // behind each sum
};

// Nothing where a part is not described.
std::vector<Operator> DescribeLayer(const Parameters& parameters, const TwoParts& parts);

inline constexpr double kGpt2Dropout = 0.1;  // configuration_gpt2.py, configuration_opt.py

}  // namespace fourpiles
