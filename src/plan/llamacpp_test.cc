#include "plan/llamacpp.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

constexpr double kMiB = 1048576;

CacheTypes Both(std::string_view type) {
  return {FindStoredType(type), FindStoredType(type)};
}

double Mib(const CacheBytes& bytes) {
  return static_cast<double>((bytes.key + bytes.value).value()) / kMiB;
}

// 80 layers, 8 heads of 128, 8,192 tokens in float16: 2.50 GiB.
TEST(LlamacppCache, Of70BAt8kIsTwoAndAHalfGib) {
  const CacheLayers layers = {.layers = 80, .key_width = 1024, .value_width = 1024};
  EXPECT_EQ(Mib(CacheBytesOf(layers, CellsFor({.context_length = 8192}), Both("float16"))), 2560);
}

// Logs of llama.cpp: GLM-Z1-32B at 5,120 in Q8_0, K and V 81.02 MiB each.
TEST(LlamacppCache, CountsTheScalesOfQuantisedTypes) {
  const CacheLayers layers = {.layers = 61, .key_width = 256, .value_width = 256};
  const CacheBytes bytes = CacheBytesOf(layers, CellsFor({.context_length = 5120}), Both("q8_0"));
  EXPECT_NEAR(static_cast<double>(bytes.key.value()) / kMiB, 81.02, 0.02);
  EXPECT_EQ(bytes.key.value(), bytes.value.value());
}

// DeepSeek-V3 keeps 35,136 elements a token; at 32k in bfloat16 2.14 GiB (2,196 MiB).
TEST(LlamacppCache, OfLatentAttentionIsOneHead) {
  const LatentAttention shape = {.heads = 128,
                                 .kv_lora_rank = 512,
                                 .qk_rope_head_dim = 64,
                                 .qk_nope_head_dim = 128,
                                 .v_head_dim = 128};
  const CacheLayers absorbed = LatentCache(shape, 61, true);
  EXPECT_EQ(absorbed.layers * absorbed.key_width, 35136);
  EXPECT_EQ(absorbed.value_width, 0);
  const CacheCells cells = CellsFor({.context_length = 32768});
  EXPECT_EQ(Mib(CacheBytesOf(absorbed, cells, Both("bfloat16"))), 2196);
  // ikawrakow/ik_llama.cpp, at 16,384: mla=1 keeps 1098.00 + 976.00 MiB.
  const CacheLayers twice = LatentCache(shape, 61, true, {.latent_values = true});
  EXPECT_EQ(Mib(CacheBytesOf(twice, CellsFor({.context_length = 16384}), Both("f16"))), 2074);
  // Without absorption at 512: K 1464.00, V 976.00 MiB.
  const CacheLayers apart = LatentCache(shape, 61, false);
  EXPECT_EQ(Mib(CacheBytesOf(apart, CellsFor({.context_length = 512}), Both("f16"))), 2440);
}

TEST(LlamacppCells, ArePadded) {
  EXPECT_EQ(CellsFor({.context_length = 1}).cells.value(), 256);
  EXPECT_EQ(CellsFor({.context_length = 8193}).cells.value(), 8448);
  EXPECT_EQ(CellsFor({.context_length = 1}, {.padding = 32}).cells.value(), 32);
}

// A log of llama-server: 2,048 cells in 8 streams for 16,384 over 8 slots.
TEST(LlamacppCells, AreSpreadOverSlotsThatAreApart) {
  const CacheCells cells = CellsFor({.context_length = 16384, .sequences = 8, .unified = false});
  EXPECT_EQ(cells.cells.value(), 2048);
  EXPECT_EQ(cells.streams, 8);
}

// Logs: gpt-oss (window 128) at 131,072 768 cells, with a micro-batch of 128 256 cells; 4 slots of
// Gemma 4 (window 1,024) 4,608; of Gemma 2 (4,096) the whole context of 8,192.
TEST(LlamacppCells, OfWindowsHoldEachSlotsWindowAndAMicroBatch) {
  EXPECT_EQ(SlidingCellsFor({.context_length = 131072}, 128).cells.value(), 768);
  EXPECT_EQ(SlidingCellsFor({.context_length = 8192, .micro_batch = 128}, 128).cells.value(), 256);
  EXPECT_EQ(SlidingCellsFor({.context_length = 8192, .sequences = 4}, 1024).cells.value(), 4608);
  EXPECT_EQ(SlidingCellsFor({.context_length = 8192, .sequences = 4}, 4096).cells.value(), 8192);
  EXPECT_EQ(SlidingCellsFor({.context_length = 8192}, 128, {.sliding_caches = false}).cells.value(),
            8192);
}

TEST(LlamacppCells, OfWindowsKeepFloat16WhereABuildSaysSo) {
  EXPECT_EQ(SlidingTypes(Both("q8_0")).key->name, "q8_0");
  EXPECT_EQ(SlidingTypes(Both("q8_0"), {.quantised_windows = false}).value->name, "float16");
  EXPECT_EQ(SlidingTypes(Both("float32"), {.quantised_windows = false}).key->name, "float32");
}

// Logs: Qwen3.5-27B with 4 slots and 2 snapshots, R 67.50 S 1728.00 MiB; Mamba-1.4B, 14.25 MiB.
TEST(LlamacppState, HasARowForEachSlotAndSnapshot) {
  const CacheBytes bytes =
      RecurrentBytes({.layers = 48, .convolution = 4, .inner = 6144, .state = 128, .groups = 16},
                     {.sequences = 4, .snapshots = 2});
  EXPECT_EQ(static_cast<double>(bytes.key.value()) / kMiB, 67.5);
  EXPECT_EQ(static_cast<double>(bytes.value.value()) / kMiB, 1728);
  EXPECT_EQ(Mib(RecurrentBytes({.layers = 48, .convolution = 4, .inner = 4096, .state = 16}, {})),
            14.25);
}

// ikawrakow/ik_llama.cpp on an RTX A6000 at 32,768 in Q8_0: DeepSeek-R1's CUDA buffer has 1166.65
// MiB where the cache has 1166.62; Qwen3-235B's, with rows of one head, 3196.05 where it has
// 3196.00.
TEST(LlamacppDevice, PadsRowsThatAreNoMultipleOf512) {
  const CacheCells cells = CellsFor({.context_length = 32768});
  const CacheLayers latent = {.layers = 61, .key_width = 576};
  EXPECT_NEAR(static_cast<double>(CudaCacheBytes(latent, cells, Both("q8_0")).value()) / kMiB,
              1166.65, 0.005);
  const CacheLayers heads = {.layers = 94, .key_width = 512, .value_width = 512};
  EXPECT_NEAR(static_cast<double>(CudaCacheBytes(heads, cells, Both("q8_0"), 128).value()) / kMiB,
              3196.05, 0.005);
  EXPECT_EQ(CudaCacheBytes(heads, cells, Both("q8_0")).value(), std::int64_t{3196} << 20);
}

// A log: 4 slots of Gemma 2, 3.91 MiB.
TEST(LlamacppDevice, KeepsTheLogitsOfEverySlot) {
  EXPECT_NEAR(static_cast<double>(OutputBufferBytes(4, 256000).value()) / kMiB, 3.91, 0.005);
}

TEST(LlamacppCache, RemembersAnOverflow) {
  const CacheLayers layers = {.layers = 1 << 20, .key_width = 1 << 30, .value_width = 1};
  EXPECT_FALSE(
      CacheBytesOf(layers, CellsFor({.context_length = kLargestAmount}), Both("f16")).key.ok());
}

}  // namespace
}  // namespace fourpiles
