// Llama 3.2 Vision: a Llama some of whose layers see, instead of the words before, the patches of
// an image, which a tower of its own encodes.
//
// Names and shapes: huggingface/transformers, src/transformers/models/mllama/modeling_mllama.py.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"
#include "model/llama.h"

namespace fourpiles {
namespace {

// vision_config, with the defaults of MllamaVisionConfig.
struct Tower {
  std::int64_t hidden_size = 1280;
  std::int64_t intermediate_size = 5120;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_global_layers = 8;
  std::int64_t vision_output_dim = 7680;
  std::int64_t num_channels = 3;
  std::int64_t image_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t max_num_tiles = 4;

  // Of a tile, and one that stands for the whole of it: (560 / 14)² + 1 = 1,601.
  std::int64_t Patches() const {
    const std::int64_t side = image_size / patch_size;
    return side * side + 1;
  }
  // Of the image that has the most tiles. An image with fewer is padded to them
  // (image_processing_mllama.py, pack_images): 4 × 1,601 = 6,404.
  std::int64_t Tokens() const { return max_num_tiles * Patches(); }
  // Shapes of so many tiles or fewer, and one row for none: widths × heights (image_processing_
  // mllama.py, get_all_supported_aspect_ratios). 4 + 2 + 1 + 1 + 1 = 9.
  std::int64_t AspectRatioRows() const {
    std::int64_t rows = 1;
    for (std::int64_t width = 1; width <= max_num_tiles; ++width) {
      rows += max_num_tiles / width;
    }
    return rows;
  }
};

constexpr Range kTiles = {1, 1 << 10};
constexpr Range kPixels = {1, 1 << 16};

Tower ReadTower(Record& config) {
  Tower tower;
  std::optional<Record> vision = config.Object("vision_config");
  if (!vision) {
    return tower;
  }
  const auto read = [&vision](std::string_view key, std::int64_t& value, Range range) {
    value = vision->CountOr(key, value, range);
  };
  read("hidden_size", tower.hidden_size, kCounts);
  read("intermediate_size", tower.intermediate_size, kCounts);
  read("num_hidden_layers", tower.num_hidden_layers, kLayers);
  read("num_global_layers", tower.num_global_layers, kLayers);
  read("vision_output_dim", tower.vision_output_dim, kCounts);
  read("num_channels", tower.num_channels, kTiles);
  read("image_size", tower.image_size, kPixels);
  read("patch_size", tower.patch_size, kPixels);
  read("max_num_tiles", tower.max_num_tiles, kTiles);
  RequireDivisor(*vision, "patch_size", tower.patch_size, {"image_size", tower.image_size});
  config.Include(*vision);
  return tower;
}

Parameters TowerEmbeddings(const Tower& tower) {
  const std::int64_t hidden = tower.hidden_size;
  const std::int64_t tiles = tower.max_num_tiles * hidden;
  Parameters parameters = Tensor("patch_embedding.weight",
                                 {hidden, tower.num_channels, tower.patch_size, tower.patch_size});
  Append(parameters, Tensor("class_embedding", {hidden}));
  Append(parameters, "gated_positional_embedding", Tensor("gate", {1}));
  Append(parameters, "gated_positional_embedding", Tensor("embedding", {tower.Patches(), hidden}));
  Append(parameters, "gated_positional_embedding.tile_embedding",
         Tensor("weight", {tower.AspectRatioRows(), tower.Patches() * tiles}));
  for (const char* name : {"pre_tile_positional_embedding", "post_tile_positional_embedding"}) {
    Append(parameters, name, Tensor("gate", {1}));
    Append(parameters, fmt::format("{}.embedding", name),
           Tensor("weight", {tower.AspectRatioRows(), tiles}));
  }
  Append(parameters, "layernorm_pre", Norm(hidden, true));
  Append(parameters, "layernorm_post", Norm(hidden, true));
  return parameters;
}

Parameters TowerLayer(const Tower& tower, bool gated) {
  const std::int64_t hidden = tower.hidden_size;
  Parameters layer;
  // One head stands for all: the projections are square.
  Append(layer, "self_attn", Attention({.hidden_size = hidden, .head_dim = hidden}));
  Append(layer, "mlp", Mlp(hidden, tower.intermediate_size, true, "fc1", "fc2"));
  Append(layer, Norms(kNormsBefore, hidden, true));
  if (gated) {
    Append(layer, Tensor("gate_attn", {1}));
    Append(layer, Tensor("gate_ffn", {1}));
  }
  return layer;
}

void AddTower(Network& network, const Tower& tower, std::int64_t words_width) {
  Network whole;
  AddBlock(whole, "vision_model", TowerEmbeddings(tower));
  AddLayers(whole, "vision_model.transformer.layers.{}", tower.num_hidden_layers,
            [&tower](std::int64_t) { return Layer{.parameters = TowerLayer(tower, false)}; });
  AddLayers(whole, "vision_model.global_transformer.layers.{}", tower.num_global_layers,
            [&tower](std::int64_t) { return Layer{.parameters = TowerLayer(tower, true)}; });
  AddBlock(whole, "multi_modal_projector",
           Linear({words_width, tower.vision_output_dim}, Divide::kNot, true));
  network.blocks.insert(network.blocks.begin(), std::make_move_iterator(whole.blocks.begin()),
                        std::make_move_iterator(whole.blocks.end()));
}

}  // namespace

Network BuildMllama(Record& config) {
  const Decoder decoder = ReadDecoder(config, kMllamaDefaults);
  const Tower tower = ReadTower(config);
  std::vector<std::int64_t> crossing =
      config.Counts("cross_attention_layers", {0, decoder.num_hidden_layers - 1});
  if (!config.Has("cross_attention_layers")) {
    crossing = {3, 8, 13, 18, 23, 28, 33, 38};  // configuration_mllama.py
  }
  const FeedForward mlp = DenseMlp(config, decoder);
  Network network = DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    const bool crosses = std::ranges::find(crossing, number) != crossing.end();
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    if (crosses) {
      Append(layer.parameters, "cross_attn",
             Attention(decoder.heads, {.head_norm = HeadNorm::kEachHead}));
      Append(layer.parameters, Tensor("cross_attn_attn_gate", {1}));
      Append(layer.parameters, Tensor("cross_attn_mlp_gate", {1}));
      layer.cache->encoder_tokens = tower.Tokens();
    } else {
      Append(layer.parameters, "self_attn", Attention(decoder.heads));
    }
    Append(layer.parameters, mlp(number).parameters);
    Append(layer.parameters, Norms(kNormsBefore, decoder.heads.hidden_size));
    return layer;
  });
  constexpr std::int64_t kImageWords = 8;  // rows of the embedding that the output layer has not
  network.blocks.front().parameters.front().shape.front() += kImageWords;
  for (Block& block : network.blocks) {
    block.operators.clear();  // the layers between are not described
  }
  AddTower(network, tower, decoder.heads.hidden_size);
  return network;
}

}  // namespace fourpiles
