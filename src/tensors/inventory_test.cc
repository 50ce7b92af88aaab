#include "tensors/inventory.h"

#include <string>

#include <gtest/gtest.h>

#include "tensors/difference.h"

namespace fourpiles {
namespace {

struct Given {
  const char* name;
  const char* type;
  std::vector<std::int64_t> shape;
  std::int32_t file = 0;
};

Checkpoint CheckpointOf(const std::vector<Given>& given, Json config = {}) {
  Checkpoint checkpoint;
  checkpoint.configs.config = std::move(config);
  for (const auto& [name, type, shape, file] : given) {
    const StoredType* stored = FindStoredType(type);
    const Checked elements = ElementsOf(shape);
    checkpoint.tensors.push_back({.name = name,
                                  .dtype = type,
                                  .type = stored,
                                  .shape = shape,
                                  .elements = elements.value(),
                                  .bytes = StorageBytes(elements, *stored).value(),
                                  .file = file});
    checkpoint.files.resize(static_cast<std::size_t>(file) + 1);
  }
  return checkpoint;
}

std::string Text(const TensorTotal& total) {
  return std::to_string(total.tensors) + "/" + std::to_string(total.parameters) + "/" +
         std::to_string(total.bytes);
}

template <class Lines>
std::string TextOf(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) {
    text += line.name + " " + Text(line.total) + "\n";
  }
  return text;
}

Inventory InventoryOf(const Checkpoint& checkpoint, const InventoryChoice& choice = {}) {
  static StoredWeights weights;  // outlives the inventory
  weights = StoredWeightsOf(checkpoint);
  return InventoryOf(checkpoint, weights, choice);
}

const std::vector<Given> kSmallModel = {
    {"model.embed_tokens.weight", "bfloat16", {10, 4}},
    {"model.layers.0.mlp.up.weight", "bfloat16", {8, 4}},
    {"model.layers.1.mlp.up.weight", "bfloat16", {8, 4}, 1},
    {"model.layers.1.norm.weight", "float32", {4}, 1},
};

TEST(Inventory, AddsUpByFormatFileModuleAndPattern) {
  const Checkpoint checkpoint = CheckpointOf(kSmallModel);
  const Inventory inventory = InventoryOf(checkpoint);
  EXPECT_EQ(Text(inventory.total), "4/108/224");
  EXPECT_EQ(TextOf(inventory.formats), "bfloat16 3/104/208\nfloat32 1/4/16\n");
  EXPECT_EQ(TextOf(inventory.files), " 2/72/144\n 2/36/80\n");
  EXPECT_EQ(TextOf(inventory.modules),
            "model.layers.{0..1}.mlp 2/64/128\nmodel.embed_tokens 1/40/80\n"
            "model.layers.1.norm 1/4/16\n");
  EXPECT_EQ(TextOf(inventory.groups),
            "model.layers.{0..1}.mlp.up.weight 2/64/128\nmodel.embed_tokens.weight 1/40/80\n"
            "model.layers.1.norm.weight 1/4/16\n");
  EXPECT_EQ(inventory.groups[0].count, 2);
  EXPECT_TRUE(inventory.warnings.empty());
}

TEST(Inventory, CountsWhatAFilterChooses) {
  const Checkpoint checkpoint = CheckpointOf(kSmallModel);
  const Inventory inventory = InventoryOf(checkpoint, {.filters = {"norm", "*.0.*"}});
  EXPECT_EQ(Text(inventory.total), "2/36/80");
  EXPECT_EQ(TextOf(inventory.formats), "bfloat16 1/32/64\nfloat32 1/4/16\n");
  EXPECT_EQ(TextOf(inventory.files), " 1/32/64\n 1/4/16\n");
  EXPECT_EQ(inventory.chosen, (std::vector<bool>{false, true, false, true}));
}

// DeepSeek-V3's layout: codes in float8, a float32 scale for 128 × 128 of them; the scales may lie
// in another shard.
TEST(Inventory, TakesAPackedWeightForOneRowAndItsPartsWhereTheyLie) {
  const Checkpoint checkpoint = CheckpointOf(
      {{"l.0.weight_scale_inv", "float32", {2, 2}}, {"l.0.weight", "float8_e4m3fn", {256, 256}, 1}},
      Json::Object{
          {"quantization_config",
           Json::Object{{"quant_method", "fp8"}, {"weight_block_size", Json::Array{128, 128}}}}});
  const Inventory inventory = InventoryOf(checkpoint);
  ASSERT_EQ(inventory.rows.size(), 1U);
  EXPECT_EQ(TextOf(inventory.formats), "float8_e4m3fn, fp8, blocks of 128 × 128 2/65536/65552\n");
  EXPECT_EQ(TextOf(inventory.files), " 1/0/16\n 1/65536/65536\n");
  EXPECT_EQ(inventory.formats[0].parts.codes, 65536);
  EXPECT_EQ(inventory.formats[0].parts.scales, 16);
}

TEST(Inventory, WarnsOfWhatSurprises) {
  const Checkpoint checkpoint =
      CheckpointOf({{"model.embed_tokens.weight", "bfloat16", {100, 4}},
                    {"lm_head.weight", "bfloat16", {100, 4}},
                    {"model.layers.0.router.weight", "float32", {4, 4}},
                    {"model.norm.weight", "float32", {4}}},
                   Json::Object{{"tie_word_embeddings", true}, {"torch_dtype", "float16"}});
  EXPECT_EQ(InventoryOf(checkpoint).warnings,
            (std::vector<std::string>{
                "a tensor of more than one dimension in float32 within a bfloat16 model: 64 bytes; "
                "the largest is \"model.layers.0.router.weight\"",
                "\"model.embed_tokens.weight\" and \"lm_head.weight\" are tied by config.json and "
                "stored twice: 800 bytes too many",
                "config.json says float16, most weights are bfloat16"}));
  // Whatever part of it is shown.
  EXPECT_EQ(InventoryOf(checkpoint, {.filters = {"norm"}}).warnings.size(), 3U);
}

// A name may hold what a pattern is written with.
TEST(Inventory, StandsNamesWithBraces) {
  const Checkpoint checkpoint =
      CheckpointOf({{"x.{}.w", "int8", {1}}, {"x.5.w", "int8", {1}}, {"{}.{}", "int8", {1}}});
  EXPECT_EQ(InventoryOf(checkpoint).groups.size(), 3U);
}

TEST(Difference, TellsRowsApartByName) {
  const Checkpoint before = CheckpointOf(kSmallModel);
  const Checkpoint after = CheckpointOf({{"model.embed_tokens.weight", "bfloat16", {10, 4}},
                                         {"model.layers.0.mlp.up.weight", "float16", {8, 4}},
                                         {"model.layers.1.mlp.up.weight", "float16", {8, 4}},
                                         {"lm_head.weight", "bfloat16", {10, 4}}});
  const StoredWeights weights[2] = {StoredWeightsOf(before), StoredWeightsOf(after)};
  const Inventory first = InventoryOf(before, weights[0]);
  const Inventory second = InventoryOf(after, weights[1]);
  const CheckpointDifference difference = DifferenceOf(first, second);
  EXPECT_EQ(difference.alike, 1);
  EXPECT_EQ(TextOf(difference.only[0]), "model.layers.1.norm.weight 1/4/16\n");
  EXPECT_EQ(TextOf(difference.only[1]), "lm_head.weight 1/40/80\n");
  ASSERT_EQ(difference.changed.size(), 1U);
  EXPECT_EQ(difference.changed[0].name, "model.layers.{0..1}.mlp.up.weight");
  EXPECT_EQ(difference.changed[0].format[0] + " " + difference.changed[0].format[1],
            "bfloat16 float16");
}

// Two tensors on a storage of 100 bytes, one on a storage of 4, and one on none.
TEST(Inventory, CountsEachStorageOnce) {
  Checkpoint checkpoint = CheckpointOf({{"a.weight", "float32", {10}},
                                        {"b.weight", "float32", {10}},
                                        {"c.weight", "float32", {1}},
                                        {"d.weight", "float32", {2}}});
  checkpoint.storages = {{.bytes = 100}, {.bytes = 4}, {.bytes = 50}};
  checkpoint.tensors[0].storage = 0;
  checkpoint.tensors[1].storage = 0;
  checkpoint.tensors[2].storage = 1;
  const Inventory all = InventoryOf(checkpoint);
  EXPECT_EQ(all.total.bytes, 40 + 40 + 4 + 8);
  EXPECT_EQ(all.unique_storage_bytes, 100 + 4 + 8);
  EXPECT_EQ(all.storages, 2);
  const Inventory some = InventoryOf(checkpoint, {.filters = {"b.weight"}});
  EXPECT_EQ(some.unique_storage_bytes, 100);
  EXPECT_EQ(some.storages, 1);
}

}  // namespace
}  // namespace fourpiles
