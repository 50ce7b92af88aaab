// Sizes and shapes by hand, from the layouts that quantised_packed.cc, quantised_scaled.cc and
// quantised_bitsandbytes.cc name.

#include "tensors/quantised_testing.h"

namespace fourpiles {
namespace {

constexpr std::string_view kPackQuantized = R"({"quantization_config": {
    "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {
    "group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 32,
    "type": "int", "symmetric": false}}}}})";

// compressed-tensors, pack_to_int32. 99 values of 4 bits: ⌈396/32⌉ = 13 words; 4 groups of 32.
TEST(Quantised, ReadsPackQuantizedRowsThatFillNoWord) {
  MadeCheckpoint made(kPackQuantized);
  made.With("q.weight_packed", "I32", {64, 13})
      .With("q.weight_scale", "BF16", {64, 4})
      .With("q.weight_zero_point", "I32", {8, 4})
      .With("q.weight_shape", "I64", {2}, Bytes<std::int64_t>({64, 99}));
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Lines(weights), Texts{"compressed-tensors int4 64x99 g1x32: 3328 512 128 16 "
                                  "(config.json, weight_shape)"});
  EXPECT_EQ(Parameters(weights), 64 * 99);
}

// 3 bits: dense, 100 values fill ⌈300/32⌉ = 10 words; word by word, 10 values each, 10 as well, and
// 128 values fill 12 against 13 words.
TEST(Quantised, ReadsDenseAndPaddedWordsOfThreeBits) {
  for (const std::int64_t words : {12, 13}) {
    MadeCheckpoint made;
    made.With("q.weight_packed", "I32", {8, words})
        .With("q.weight_scale", "BF16", {8, 1})
        .With("q.weight_shape", "I32", {2}, Bytes<std::int32_t>({8, 128}));
    EXPECT_EQ(Lines(made.Weights()), Texts{"compressed-tensors int3 8x128 g1x0: " +
                                           std::to_string(32 * words) + " 16 0 8 (weight_shape)"});
  }
}

// Dense: 101 values of 3 bits are 303 bits, 10 words. Word by word they would be 11.
TEST(Quantised, ReadsDenseWordsWhoseLastIsNotFull) {
  MadeCheckpoint made;
  made.With("q.weight_packed", "I32", {8, 10})
      .With("q.weight_shape", "I64", {2}, Bytes<std::int64_t>({8, 101}));
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"compressed-tensors int3 8x101 g1x0: 320 0 0 16 (weight_shape)"});
}

TEST(Quantised, FallsBackToGroupsWhenWeightShapeIsWrong) {
  MadeCheckpoint made(kPackQuantized);
  made.With("q.weight_packed", "I32", {64, 16})
      .With("q.weight_scale", "BF16", {64, 4})
      .With("q.weight_shape", "I64", {2}, Bytes<std::int64_t>({64, std::int64_t{1} << 60}));
  EXPECT_EQ(Lines(made.Weights()), Texts{"compressed-tensors int4 64x128 g1x32: 4096 512 0 16 "
                                         "(config.json, weight_scale)"});
}

TEST(Quantised, ReadsMxfp4PackQuantized) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "compressed-tensors",
                          "format": "mxfp4-pack-quantized"}})");
  made.With("q.weight_packed", "U8", {64, 64}).With("q.weight_scale", "U8", {64, 4});
  EXPECT_EQ(Lines(made.Weights()), Texts{"compressed-tensors float4_e2m1fn 64x128 g1x32: 4096 256 "
                                         "0 0 (config.json, weight_packed)"});
}

struct ScaledRow {
  std::string_view config;
  std::string_view dtype;
  std::vector<std::int64_t> shape;
  std::string_view scale;  // name and type
  std::string_view scale_dtype;
  std::vector<std::int64_t> scale_shape;
  std::string_view expected;
};

constexpr std::string_view kCompressed =
    R"({"quantization_config": {"quant_method": "compressed-tensors"}})";
constexpr std::string_view kModelopt =
    R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}})";

void ExpectRows(const std::vector<ScaledRow>& rows) {
  for (const ScaledRow& row : rows) {
    MadeCheckpoint made(row.config);
    made.With("q.weight", row.dtype, row.shape)
        .With("q.weight" + std::string(row.scale), row.scale_dtype, row.scale_shape);
    EXPECT_EQ(Lines(made.Weights()), Texts{std::string(row.expected)});
  }
}

TEST(Quantised, ReadsOneOrTwoValuesAByte) {
  ExpectRows({// float-quantized, by row; fbgemm_fp8 is the same
              {kCompressed,
               "F8_E4M3",
               {64, 128},
               "_scale",
               "BF16",
               {64, 1},
               "compressed-tensors float8_e4m3fn 64x128 g1x0: 8192 128 0 0 (config.json, scale)"},
              // int-quantized, of the whole tensor
              {kCompressed,
               "I8",
               {64, 128},
               "_scale",
               "F32",
               {1},
               "compressed-tensors int8 64x128 g1x0: 8192 4 0 0 (config.json, scale)"},
              // mxfp8
              {kModelopt,
               "F8_E4M3",
               {64, 128},
               "_scale",
               "U8",
               {64, 4},
               "modelopt float8_e4m3fn 64x128 g1x32: 8192 256 0 0 (config.json, scale)"},
              // Quark: MXFP4 in bytes
              {"{}",
               "U8",
               {64, 64},
               "_scale",
               "F8_E8M0",
               {64, 4},
               "mxfp4 float4_e2m1fn 64x128 g1x32: 4096 256 0 0 (scale)"},
              // ModelOpt W4A16_AWQ: two rows a byte
              {kModelopt,
               "U8",
               {32, 128},
               "_scale",
               "BF16",
               {64, 4},
               "modelopt int4 64x128 g1x32: 4096 512 0 0 (config.json, scale)"}});
}

TEST(Quantised, ReadsBlocksOfFloat8) {
  ExpectRows(
      {// rows that the blocks of 128 do not divide
       {"{}",
        "F8_E4M3",
        {200, 300},
        "_scale_inv",
        "F32",
        {2, 3},
        "fp8 float8_e4m3fn 200x300 g100x100: 60000 24 0 0 (scale_inv)"},
       // blocks that are as wide as the rows
       {"{}",
        "F8_E4M3",
        {256, 64},
        "_scale_inv",
        "F32",
        {2, 1},
        "fp8 float8_e4m3fn 256x64 g128x64: 16384 8 0 0 (scale_inv)"},
       {R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})",
        "F8_E4M3",
        {200, 300},
        "_scale_inv",
        "F32",
        {2, 3},
        "fp8 float8_e4m3fn 200x300 g128x128: 60000 24 0 0 (config.json, scale_inv)"}});
}

// transformers, integrations/bitnet.py: four rows a byte.
TEST(Quantised, ReadsBitNet) {
  for (const std::string_view config :
       {R"({})", R"({"quantization_config": {"quant_method": "bitnet"}})"}) {
    MadeCheckpoint made(config);
    made.With("q.weight", "U8", {16, 128}).With("q.weight_scale", "BF16", {1});
    const StoredWeights weights = made.Weights();
    EXPECT_EQ(Lines(weights), Texts{std::string("bitnet ternary 64x128 g1x0: 2048 2 0 0 (") +
                                    (config == "{}" ? "" : "config.json, ") + "scale)"});
    EXPECT_EQ(Parameters(weights), 64 * 128);
  }
}

// optimum-quanto: weight._data and weight._scale.
TEST(Quantised, ReadsQuantoInt8) {
  MadeCheckpoint made;
  made.With("q.weight._data", "I8", {64, 128}).With("q.weight._scale", "F32", {64, 1});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Lines(weights), Texts{"quanto int8 64x128 g1x0: 8192 256 0 0 (_scale)"});
  EXPECT_EQ(weights.weights[0].name, "q.weight");
}

// Experts of one tensor: [experts, rows, columns/2] with scales under the tensor's own name.
TEST(Quantised, ReadsFusedExperts) {
  MadeCheckpoint made;
  made.With("experts.up", "U8", {2, 64, 64})
      .With("experts.up_weight_scale", "F8_E4M3", {2, 64, 8})
      .With("experts.up_weight_scale_2", "F32", {})
      .With("experts.up_input_scale", "F32", {});
  EXPECT_EQ(Lines(made.Weights()),
            Texts{"modelopt float4_e2m1fn 2x64x128 g1x16: 8192 1028 0 4 (weight_scale)"});
}

std::string NfState(const std::string& shape) {
  return R"({"quant_type": "nf4", "blocksize": 64, "shape": )" + shape + "}";
}

Texts BitsAndBytesLines(const std::string& shape, std::string_view dtype, std::int64_t elements) {
  const std::string state = NfState(shape);
  MadeCheckpoint made;
  made.With("q.weight", dtype, {elements, 1})
      .With("q.weight.absmax", "F32", {128})
      .With("q.weight.quant_map", "F32", {16})
      .With("q.weight.quant_state.bitsandbytes__fp4", "U8",
            {static_cast<std::int64_t>(state.size())}, state);
  Texts lines = Lines(made.Weights());
  // The bytes of the state differ with its text.
  for (std::string& line : lines) {
    const std::string other = ' ' + std::to_string(64 + state.size()) + " (";
    line.replace(line.find(other), other.size(), " OTHER (");
  }
  return lines;
}

TEST(Quantised, ReadsTheStateOfBitsAndBytes) {
  EXPECT_EQ(BitsAndBytesLines("[64, 128]", "U8", 4096),
            Texts{"bitsandbytes fp4 64x128 g1x64: 4096 512 0 OTHER (quant_state)"});
  // bnb_4bit_quant_storage: the same bytes viewed as bfloat16
  EXPECT_EQ(BitsAndBytesLines("[64, 128]", "BF16", 2048),
            Texts{"bitsandbytes fp4 64x128 g1x64: 4096 512 0 OTHER (quant_state)"});
}

TEST(Quantised, DoesNotBelieveAStateThatFitsNoBytes) {
  for (const char* shape : {"[64, 129]", "[-64, -128]", "[4294967296, 4294967296]", "\"64\"",
                            "[[64]]", "[]", "[0.5]"}) {
    EXPECT_EQ(BitsAndBytesLines(shape, "U8", 4096),
              Texts{"bitsandbytes fp4 8192 g1x64: 4096 512 0 OTHER (names)"})
        << shape;
  }
}

}  // namespace
}  // namespace fourpiles
