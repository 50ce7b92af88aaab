// Sizes and shapes by hand, from the layouts that quantised_integers.cc names.

#include "tensors/quantised_testing.h"

namespace fourpiles {
namespace {

// AutoAWQ, WQLinear_GEMM: in 128, out 64, 4 bits, groups of 32. qweight [128, 64·4/32 = 8].
TEST(Quantised, ReadsAwqByTheColumnsOfItsScales) {
  for (const std::string_view config :
       {R"({})", R"({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32,
                    "version": "gemm", "zero_point": true}})"}) {
    MadeCheckpoint made(config);
    made.With("l.q.qweight", "I32", {128, 8})
        .With("l.q.qzeros", "I32", {4, 8})
        .With("l.q.scales", "F16", {4, 64})
        .With("l.q.bias", "F16", {64});
    const StoredWeights weights = made.Weights();
    const std::string evidence = config == "{}" ? "(scales)" : "(config.json, scales)";
    EXPECT_EQ(Lines(weights), Texts{"awq uint4 64x128 g1x32: 4096 512 128 0 " + evidence});
    EXPECT_EQ(Parameters(weights), 64 * 128 + 64);
  }
}

// WQLinear_GEMV: in 256, out 64, groups of 64: qweight [64, 256/8 = 32]; 4 groups need one word of
// zeros, filled up to 2, so scales [64, 2·8 = 16].
TEST(Quantised, ReadsAwqGemv) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "awq", "bits": 4,
                          "group_size": 64, "version": "gemv"}})");
  made.With("q.qweight", "I32", {64, 32})
      .With("q.qzeros", "I32", {64, 2})
      .With("q.scales", "F16", {64, 16});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"awq uint4 64x256 g1x64: 8192 2048 512 0 (config.json, scales)"});
}

// WQLinear_GEMVFast: qweight I16 [out/4, in].
TEST(Quantised, ReadsAwqGemvFast) {
  MadeCheckpoint made;
  made.With("q.qweight", "I16", {16, 128})
      .With("q.qzeros", "F16", {1, 64})
      .With("q.scales", "F16", {1, 64});
  EXPECT_EQ(Lines(made.Weights()), Texts{"awq uint4 64x128 g1x0: 4096 128 128 0 (scales)"});
}

// in 128, out 64. Rows of words: 128·b/32.
TEST(Quantised, ReadsGptqOfAllWidthsWithoutConfig) {
  for (const std::int64_t bits : {2, 3, 4, 8}) {
    MadeCheckpoint made;
    made.With("q.qweight", "I32", {4 * bits, 64})
        .With("q.scales", "F16", {4, 64})
        .With("q.g_idx", "I32", {128});
    EXPECT_EQ(Lines(made.Weights()), Texts{"gptq uint" + std::to_string(bits) + " 64x128 g1x32: " +
                                           std::to_string(1024 * bits) + " 512 0 512 (g_idx)"});
  }
}

TEST(Quantised, TakesGptqGroupsOf128ForGrantedOnlyWhenNothingSaysMore) {
  MadeCheckpoint made;
  made.With("q.qweight", "I32", {32, 64}).With("q.scales", "F16", {2, 64});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Lines(weights), Texts{"gptq uint4 64x256 g1x128: 8192 256 0 0 (scales)"});
  EXPECT_EQ(weights.notes, Texts{"gptq: groups of 128 are taken for granted: q"});
}

TEST(Quantised, BelievesTheOrderOfRowsMoreThanTheDeclaredBits) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "gptq", "bits": 4,
                          "group_size": 32}})");
  made.With("q.qweight", "I32", {32, 64})
      .With("q.scales", "F16", {4, 64})
      .With("q.g_idx", "I32", {128});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"gptq uint8 64x128 g1x32: 8192 512 0 512 (config.json, g_idx)"});
}

TEST(Quantised, FindsTheDeclarationOfATextPart) {
  MadeCheckpoint made(R"({"text_config": {"quantization_config": {"quant_method": "gptq",
                          "bits": 4, "group_size": -1}}})");
  made.With("q.qweight", "I32", {16, 64}).With("q.scales", "F16", {1, 64});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"gptq uint4 64x128 g1x0: 4096 128 0 0 (config.json, qweight)"});
}

TEST(Quantised, ReadsQuantizeConfig) {
  MadeCheckpoint made("{}", R"({"bits": 2, "group_size": 32, "desc_act": false})");
  made.With("q.qweight", "I32", {8, 64}).With("q.scales", "F16", {4, 64});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"gptq uint2 64x128 g1x32: 2048 512 0 0 (quantize_config.json, qweight)"});
}

// EETQ: qweight I8 [in, out].
TEST(Quantised, ReadsEetq) {
  MadeCheckpoint made;
  made.With("q.qweight", "I8", {128, 64}).With("q.weight_scales", "F16", {64});
  EXPECT_EQ(Lines(made.Weights()), Texts{"eetq int8 64x128 g1x0: 8192 128 0 0 (weight_scales)"});
}

// mlx-lm: an override for each layer that differs. 6 bits: 128·6/32 = 24 words.
TEST(Quantised, ReadsMlxOverrides) {
  MadeCheckpoint made(R"({"quantization": {"group_size": 64, "bits": 4,
                          "l.v": {"group_size": 32, "bits": 6}, "l.o": false}})");
  made.With("l.q.weight", "U32", {64, 16})
      .With("l.q.scales", "BF16", {64, 2})
      .With("l.q.biases", "BF16", {64, 2})
      .With("l.v.weight", "U32", {64, 24})
      .With("l.v.scales", "BF16", {64, 4})
      .With("l.v.biases", "BF16", {64, 4})
      .With("l.o.weight", "BF16", {64, 128});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Lines(weights),
            (Texts{"mlx uint4 64x128 g1x64: 4096 256 256 0 (config.json, scales)",
                   "mlx uint6 64x128 g1x32: 6144 512 512 0 (config.json, scales)"}));
  EXPECT_EQ(Parameters(weights), 3 * 64 * 128);
}

// An override may be named otherwise than the tensors are: 5 bits and groups of 64 show in shapes.
TEST(Quantised, ReadsMlxByShapesWhereTheConfigMisses) {
  MadeCheckpoint made(R"({"quantization": {"group_size": 64, "bits": 4}})");
  made.With("language_model.v.weight", "U32", {2, 64, 20})
      .With("language_model.v.scales", "BF16", {2, 64, 2})
      .With("language_model.v.biases", "BF16", {2, 64, 2});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"mlx uint5 2x64x128 g1x64: 10240 512 512 0 (config.json, scales)"});
}

// 8 words and one scale: 2 bits in groups of 128, or 4 in groups of 64, or 8 in groups of 32.
TEST(Quantised, TellsMlxShapesApartByTheDeclaredGroup) {
  for (const auto& [group, line] : std::vector<std::pair<std::string, std::string>>{
           {"128", "mlx uint2 8x128 g1x128: 256 16 16 0 (config.json, scales)"},
           {"64", "mlx uint4 8x64 g1x64: 256 16 16 0 (config.json, scales)"},
           {"32", "mlx uint8 8x32 g1x32: 256 16 16 0 (config.json, scales)"}}) {
    MadeCheckpoint made(R"({"quantization": {"bits": 4, "group_size": )" + group + "}}");
    made.With("v.weight", "U32", {8, 8})
        .With("v.scales", "BF16", {8, 1})
        .With("v.biases", "BF16", {8, 1});
    EXPECT_EQ(Lines(made.Weights()), Texts{line});
  }
}

TEST(Quantised, ReadsTheFloatModesOfMlx) {
  MadeCheckpoint made(R"({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}})");
  made.With("v.weight", "U32", {64, 16}).With("v.scales", "U8", {64, 4});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"mlx float4_e2m1fn 64x128 g1x32: 4096 256 0 0 (config.json, scales)"});
}

// hqq/core/bitpack.py: 4 bits, two rows a byte of the matrix [group, values/group]; 3 bits, ten
// rows a word, the last word filled up: 64 rows need 7 words.
TEST(Quantised, ReadsHqqByItsShape) {
  MadeCheckpoint made;
  made.With("q.W_q", "U8", {32, 128})
      .With("q.scale", "F16", {1, 128})
      .With("q.zero", "F16", {1, 128})
      .With("q.shape", "I32", {2}, Bytes<std::int32_t>({64, 128}))
      .With("q.group_size", "I32", {}, Bytes<std::int32_t>({64}))
      .With("v.W_q", "I32", {7, 128})
      .With("v.scale", "F16", {1, 128})
      .With("v.zero", "F16", {1, 128})
      .With("v.shape", "I64", {2}, Bytes<std::int64_t>({64, 128}));
  EXPECT_EQ(Lines(made.Weights()), (Texts{"hqq uint4 64x128 g1x64: 4096 256 256 12 (shape)",
                                          "hqq uint3 64x128 g1x0: 3584 256 256 16 (shape)"}));
}

TEST(Quantised, ReadsHqqByItsBitsWithoutShape) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "hqq", "quant_config": {
                          "weight_quant_params": {"nbits": 2, "group_size": 64}}}})");
  made.With("q.W_q", "U8", {16, 128}).With("q.scale", "F16", {1, 128});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"hqq uint2 8192 g1x64: 2048 256 0 0 (config.json, nbits)"});
}

}  // namespace
}  // namespace fourpiles
