#pragma once

// What the config files of a checkpoint declare about its quantisation. Each member of a wrong kind
// is left out, with a note: what the tensors show counts for more.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

// How the weights of some layers are stored; 0 and "" where it is not said.
struct DeclaredWeights {
  std::int64_t bits = 0;
  std::int64_t group_size = 0;
  std::string type = {};  // "int", "float", "NVFP4", "mxfp4"
};

struct DeclaredQuantisation {
  std::string source = {};  // the file that says most of it: "config.json"; "": nothing is declared
  std::string method = {};  // "gptq", "compressed-tensors", "mlx", in lower case
  std::string algo = {};    // of ModelOpt: "NVFP4"
  std::string format = {};  // of compressed-tensors; of AWQ its version, in lower case: "gemv"
  std::string expert_dtype = {};
  std::int64_t block_rows = 0;  // of float8 weights: weight_block_size
  std::int64_t block_columns = 0;
  // One, or one for each group of layers.
  std::vector<DeclaredWeights> weights = {};
  // By the layer's path without ".weight": the overrides of MLX, quantized_layers of ModelOpt.
  std::map<std::string, DeclaredWeights, std::less<>> layers = {};
  // Modules that stay as they are: modules_to_not_convert, ignore, exclude_modules, as written.
  std::vector<std::string> plain = {};
  // Of bitsandbytes, load_in_4bit and bnb_4bit_use_double_quant: scales that are coded too.
  bool four_bits = false;
  bool double_scales = false;
  std::vector<std::string> notes = {};
};

DeclaredQuantisation DeclaredQuantisationOf(const CheckpointConfigs& configs);

// What is declared for one layer, by its own path or by one a few steps up ("layers.0.ffn.experts"
// for an expert's projection); nullptr: nothing.
const DeclaredWeights* FindDeclaredLayer(const DeclaredQuantisation& declared,
                                         std::string_view layer);

// For people, each where it is declared: "quant_method", "quant_algo", "expert_dtype",
// "quantized_layers" (how many entries the map of layers has), "exclude" (how many the list of
// modules that stay as they are has).
Json::Object QuantisationFactsOf(const CheckpointConfigs& configs);

}  // namespace fourpiles
