#pragma once

// What a network is: its parameter tensors, block by block, and what serving it keeps a request.
// No bytes, no devices.
//
// Layers that are alike stand once, with a count, and so do the experts of a layer: DeepSeek-V3 has
// 44,000 tensors and fits on a page. Tensors() writes out the names that the checkpoint has.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/formats.h"
#include "fourpiles/result.h"
#include "model/operators.h"

namespace fourpiles {

struct Parameter {
  // As in the Hugging Face checkpoint, after the name of its block; "{}" stands for the number of
  // the expert: "mlp.experts.{}.up_proj.weight".
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  // How many tensors of this name and shape one layer has: 1, or its number of experts.
  std::int64_t copies = 1;
  // The dimension that tensor parallelism cuts (Shoeybi et al. 2019, Megatron-LM, section 3);
  // without one every rank keeps the whole tensor.
  std::optional<int> cut = {};
  // Belongs to routed experts, which expert parallelism spreads: over the copies, or where the
  // experts are stacked in one tensor over dimension 0.
  bool routed = false;
  // False: the optimizer leaves it alone.
  bool trainable = true;
  // Kept in float32 whatever the recipe's format.
  bool float32 = false;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

// What stands once, or a run of layers that are alike.
struct Block {
  std::string name = {};   // "model.layers.{}": "{}" stands for the number of the layer
  std::int64_t first = 0;  // the number of the first layer
  std::int64_t repeat = 1;
  std::vector<Parameter> parameters = {};  // of one layer
  // Of one layer, in the order of the forward pass; the last one's output goes to the next block.
  // Empty: what it computes is not described.
  std::vector<Operator> operators = {};
};

// What one layer keeps for each request while serving, in elements.
struct Cache {
  std::int64_t layer = 0;
  std::int64_t key_elements_per_token = 0;    // with latent attention: the latent, kept once
  std::int64_t value_elements_per_token = 0;  // with latent attention: none
  // Latent attention: the rotary part of the latent, and the keys and values of all heads that it
  // stands for.
  std::int64_t rotary_elements = 0;
  std::int64_t full_heads = 0;
  std::int64_t full_key_elements = 0;
  std::int64_t full_value_elements = 0;
  std::int64_t index_elements_per_token = 0;  // keys of the indexer of sparse attention
  // The last so many tokens are kept, or all of them.
  std::optional<std::int64_t> window = {};
  // Cross attention: keys and values are of so many tokens that an encoder makes of a request, of
  // an image for example, and of none of its context.
  std::optional<std::int64_t> encoder_tokens = {};
  // The elements belong to this many heads. Tensor parallelism spreads whole heads; ranks beyond
  // them keep copies.
  std::int64_t heads = 1;
  // State that does not grow with the context: inputs of the short convolution, and the memory of
  // linear attention or of a state-space layer.
  std::int64_t convolution_elements_per_request = 0;
  std::int64_t recurrent_elements_per_request = 0;
};

// A tensor that every step is given: tokens, labels, images.
struct BatchTensor {
  std::string name = {};
  std::int64_t elements = 1;  // a sample, or a token of it
  bool per_token = false;
  bool indices = false;  // int64; else in the format of the weights
  bool float32 = false;  // whatever the format of the weights
};

// A table that is no parameter: masks, rotary embeddings, running means.
struct Buffer {
  std::string name = {};
  std::int64_t elements = 1;
  int bits = 32;  // of one; 0: in the format of the weights
};

struct Network {
  std::string model_type = {};     // of the config.json; "" for a bare count
  std::vector<Block> blocks = {};  // in the order of the forward pass
  std::vector<Cache> caches = {};  // in the order of the layers; layers without have none
  std::vector<BatchTensor> batch = {};
  std::vector<Buffer> buffers = {};
  // Tokens of every sample, where the network fixes them: patches of an image.
  std::optional<std::int64_t> tokens_per_sample = {};
  // Unknown for a bare count, unless it was given.
  std::optional<std::int64_t> num_hidden_layers = {};
  std::optional<std::int64_t> hidden_size = {};
  std::optional<std::int64_t> vocab_size = {};
  std::optional<std::int64_t> max_position_embeddings = {};  // longest sequence
  // Of the weights in the checkpoint, where the config says so.
  std::optional<NumberFormat> stored_format = {};
  std::string quantization = {};  // of the checkpoint: its quant_method, "fp8"; empty: none
  // Parts of the checkpoint that are not counted: "1 multi-token-prediction layer".
  std::vector<std::string> left_out = {};
};

// One tensor of a checkpoint.
struct NamedTensor {
  std::string name = {};
  const Parameter* parameter = nullptr;  // of the network
};

// Calls `use` for every tensor, in the order of the forward pass.
void ForEachTensor(const Network& network, const std::function<void(const NamedTensor&)>& use);

// Elements of all copies, in one layer.
std::int64_t ElementsOf(const Parameter& parameter);
// Elements of all layers.
std::int64_t ElementsOf(const Block& block);
std::int64_t ParameterCount(const Network& network);
// Of one layer of the block.
std::int64_t TrainableElementsOfLayer(const Block& block);
std::int64_t TrainableParameterCount(const Network& network);

// Tensors of trainable parameters, and the elements of the largest.
std::int64_t TrainableTensorCount(const Network& network);
std::int64_t LargestTrainableTensor(const Network& network);

// "model.layers.{}" and 7 make "model.layers.7".
std::string WithNumber(const std::string& pattern, std::int64_t number);

// Whether every block with parameters says what it computes.
bool OperatorsAreKnown(const Network& network);

// Of the blocks whose name has a number: layers.
bool IsNumbered(const Block& block);

// Makes the rows of the vocabulary, in embedding and output layer, a multiple of this, as
// frameworks do whose kernels or ranks want it.
void PadVocabulary(Network& network, std::int64_t multiple);

// Refuses a network where the elements of all tensors, or of all caches for one token, pass 2^53;
// the functions above may be asked afterwards. Every builder below ends with it.
Result<void> CheckNetwork(const Network& network, std::string_view where);

// A bare count is one tensor of one dimension, without caches; with a number of layers there is
// also a block of that many layers, which hold no parameters of their own.
struct BareCount {
  std::int64_t parameters = 0;  // 1 to 2^53
  std::optional<std::int64_t> num_hidden_layers = {};
  std::optional<std::int64_t> hidden_size = {};
};
Result<Network> NetworkFromCount(const BareCount& count);

}  // namespace fourpiles
