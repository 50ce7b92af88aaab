#include "tensors/quantised.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include "base/byte_source.h"
#include "tensors/quantised_config.h"

namespace fourpiles {
namespace {

// A checkpoint made by hand: the tensors' bytes lie one behind the other in memory.
class MadeCheckpoint {
 public:
  explicit MadeCheckpoint(std::string_view config = "{}", std::string_view quantization = "null") {
    checkpoint_.configs.config = Read(config);
    checkpoint_.configs.quantization = Read(quantization);
  }

  // `content` when its bytes matter; else zeros that are not stored.
  MadeCheckpoint& With(std::string name, std::string_view dtype, std::vector<std::int64_t> shape,
                       std::string_view content = {}) {
    FileTensor tensor;
    tensor.name = std::move(name);
    tensor.dtype = dtype;
    tensor.type = FindStoredType(dtype);
    EXPECT_TRUE(tensor.type) << dtype;
    tensor.shape = std::move(shape);
    tensor.elements = OrLargest(ElementsOf(tensor.shape));
    tensor.bytes = OrLargest(StorageBytes(tensor.elements, *tensor.type));
    tensor.offset = static_cast<std::int64_t>(data_.size());
    if (!content.empty()) {
      EXPECT_EQ(static_cast<std::int64_t>(content.size()), tensor.bytes);
      data_.append(content);
    }
    checkpoint_.tensors.push_back(std::move(tensor));
    return *this;
  }

  StoredWeights Weights() {
    checkpoint_.files.resize(1);
    checkpoint_.files[0].source =
        std::make_shared<MemorySource>("made", std::as_bytes(std::span(data_)));
    return StoredWeightsOf(checkpoint_);
  }
  Checkpoint& Made() { return checkpoint_; }

 private:
  static Json Read(std::string_view text) {
    const Result<Json> json = ReadJson(text, "config.json");
    EXPECT_TRUE(json) << text;
    return json ? *json : Json();
  }

  std::string data_;
  Checkpoint checkpoint_;
};

template <class Integer>
std::string Bytes(const std::vector<Integer>& values) {
  std::string bytes(values.size() * sizeof(Integer), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::int64_t Parameters(const StoredWeights& weights) {
  return std::accumulate(
      weights.tensors.begin(), weights.tensors.end(), std::int64_t{0},
      [](std::int64_t sum, const TensorMeaning& meaning) { return sum + meaning.parameters; });
}

// "gptq uint4 64x128 g32x1: codes 4096, scales 512, zero points 128, other 512 (config.json, …)"
std::string Line(const StoredWeight& weight) {
  std::ostringstream line;
  line << weight.scheme << ' ' << weight.format << ' ';
  for (std::size_t i = 0; i < weight.shape.size(); ++i) {
    line << (i == 0 ? "" : "x") << weight.shape[i];
  }
  line << " g" << weight.group_rows << 'x' << weight.group_size << ": " << weight.code_bytes << ' '
       << weight.scale_bytes << ' ' << weight.zero_point_bytes << ' ' << weight.other_bytes << " ("
       << weight.evidence << ')';
  return line.str();
}

std::vector<std::string> Lines(const StoredWeights& weights) {
  std::vector<std::string> lines;
  for (const StoredWeight& weight : weights.weights) {
    lines.push_back(Line(weight));
  }
  return lines;
}

using Texts = std::vector<std::string>;

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file of the folder with the cases, its header read as the format says and no further.
class CaseFile {
 public:
  explicit CaseFile(const std::string& folder) : bytes_(FileText(folder + "/model.safetensors")) {
    std::uint64_t length = 0;
    EXPECT_GE(bytes_.size(), sizeof length) << folder;
    std::memcpy(&length, bytes_.data(), sizeof length);
    const Json header = Read(bytes_.substr(8, length));
    for (const auto& [name, value] : *header.AsObject()) {
      if (name != "__metadata__") {
        AddTensor(name, value, static_cast<std::int64_t>(8 + length));
      }
    }
    checkpoint_.files.resize(1);
    checkpoint_.files[0].source =
        std::make_shared<MemorySource>(folder, std::as_bytes(std::span(bytes_)));
    checkpoint_.configs.config = Read(FileText(folder + "/config.json"));
    const std::string quantization = FileText(folder + "/hf_quant_config.json");
    checkpoint_.configs.quantization = quantization.empty() ? Json() : Read(quantization);
  }

  const Checkpoint& Opened() const { return checkpoint_; }

 private:
  static Json Read(const std::string& text) {
    const Result<Json> json = ReadJson(text, "case");
    EXPECT_TRUE(json) << text;
    return json ? *json : Json(Json::Object());
  }

  void AddTensor(const std::string& name, const Json& value, std::int64_t data_start) {
    FileTensor tensor;
    tensor.name = name;
    tensor.dtype = *value.Find("dtype")->AsString();
    tensor.type = FindStoredType(tensor.dtype);
    for (const Json& dimension : *value.Find("shape")->AsArray()) {
      tensor.shape.push_back(*dimension.AsInteger());
    }
    const Json::Array& offsets = *value.Find("data_offsets")->AsArray();
    tensor.elements = ElementsOf(tensor.shape).value();
    tensor.offset = data_start + *offsets[0].AsInteger();
    tensor.bytes = *offsets[1].AsInteger() - *offsets[0].AsInteger();
    checkpoint_.tensors.push_back(std::move(tensor));
  }

  std::string bytes_;
  Checkpoint checkpoint_;
};

constexpr const char* kCases = FOURPILES_TEST_DATA "/cases/";

// The numbers of parameters were written down when the files were made, from the shapes of the
// layers before they were packed.
TEST(Quantised, CountsTheLogicalParametersOfEveryCase) {
  std::ifstream rows(std::string(kCases) + "quant.jsonl");
  int cases = 0;
  for (std::string row; std::getline(rows, row); ++cases) {
    const Json expected = ReadJson(row, "quant.jsonl").value();
    const std::string folder = *expected.Find("folder")->AsString();
    const CaseFile file(std::string(kCases) + "quant/" + folder);
    const StoredWeights weights = StoredWeightsOf(file.Opened());
    EXPECT_EQ(Parameters(weights), *expected.Find("logical_parameters")->AsInteger()) << folder;
    EXPECT_EQ(weights.notes, Texts()) << folder;
    std::int64_t bytes = 0;
    for (const StoredWeight& weight : weights.weights) {
      bytes +=
          weight.code_bytes + weight.scale_bytes + weight.zero_point_bytes + weight.other_bytes;
    }
    for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
      bytes += weights.tensors[i].weight < 0 ? file.Opened().tensors[i].bytes : 0;
    }
    EXPECT_EQ(bytes, *expected.Find("bytes")->AsInteger()) << folder;
  }
  EXPECT_EQ(cases, 12);
}

// Sizes by hand, from the shapes in the headers: [64, 128] in groups of 32, 64 or 16.
TEST(Quantised, TellsTheLayoutOfEveryCase) {
  const std::map<std::string, Texts> expected = {
      {"bnb_int8", {"bitsandbytes int8 64x128 g1x0: 8192 256 0 1 (config.json, SCB)"}},
      {"bnb_nf4_nested",
       {"bitsandbytes nf4 64x128 g1x64: 4096 132 0 1244 (config.json, quant_state)"}},
      {"ct_nvfp4",
       {"compressed-tensors float4_e2m1fn 64x128 g1x16: 4096 516 0 4 (config.json, "
        "weight_packed)"}},
      {"fp8_block_deepseek_v3",
       {"fp8 float8_e4m3fn 256x256 g128x128: 65536 16 0 0 (config.json, scale_inv)"}},
      {"fp8_ue8m0_fp4_experts",
       {"fp8 float4_e2m1fn 32x128 g1x32: 2048 128 0 0 (config.json, scale)",
        "fp8 float8_e4m3fn 128x128 g128x128: 16384 1 0 0 (config.json, scale)"}},
      {"gptq3", {"gptq uint3 64x128 g1x32: 3072 512 96 512 (config.json, g_idx)"}},
      {"gptq4", {"gptq uint4 64x128 g1x32: 4096 512 128 512 (config.json, g_idx)"}},
      {"gptq8", {"gptq uint8 64x128 g1x32: 8192 512 256 0 (config.json, qzeros)"}},
      {"mlx_3bit", {"mlx uint3 64x128 g1x64: 3072 256 256 0 (config.json, scales)"}},
      {"mlx_4bit", {"mlx uint4 64x128 g1x64: 4096 256 256 0 (config.json, scales)"}},
      {"modelopt_nvfp4",
       {"modelopt float4_e2m1fn 64x128 g1x16: 4096 516 0 4 (hf_quant_config.json, scale)"}},
      {"mxfp4_gpt_oss", {"mxfp4 float4_e2m1fn 2x64x96 g1x32: 6144 384 0 0 (config.json, _scales)"}},
  };
  for (const auto& [folder, lines] : expected) {
    const CaseFile file(std::string(kCases) + "quant/" + folder);
    EXPECT_EQ(Lines(StoredWeightsOf(file.Opened())), lines) << folder;
  }
}

TEST(Quantised, CountsTheSameWithoutConfigFiles) {
  // All but those whose shapes alone leave it open: nothing is left open here.
  std::ifstream rows(std::string(kCases) + "quant.jsonl");
  for (std::string row; std::getline(rows, row);) {
    const Json expected = ReadJson(row, "quant.jsonl").value();
    const std::string folder = *expected.Find("folder")->AsString();
    const CaseFile file(std::string(kCases) + "quant/" + folder);
    Checkpoint bare = file.Opened();
    bare.configs = {};
    EXPECT_EQ(Parameters(StoredWeightsOf(bare)), *expected.Find("logical_parameters")->AsInteger())
        << folder;
  }
}

TEST(Quantised, NamesTheWeightAsThePlainLayerDoes) {
  const CaseFile gptq(std::string(kCases) + "quant/gptq4");
  EXPECT_EQ(StoredWeightsOf(gptq.Opened()).weights.at(0).name,
            "model.layers.0.mlp.down_proj.weight");
  const CaseFile blocks(std::string(kCases) + "quant/mxfp4_gpt_oss");
  EXPECT_EQ(StoredWeightsOf(blocks.Opened()).weights.at(0).name,
            "model.layers.0.mlp.experts.gate_up_proj");
}

TEST(Quantised, GivesEachTensorItsRole) {
  const CaseFile file(std::string(kCases) + "quant/gptq4");
  const StoredWeights weights = StoredWeightsOf(file.Opened());
  std::vector<TensorRole> roles;
  for (const TensorMeaning& meaning : weights.tensors) {
    roles.push_back(meaning.role);
    EXPECT_EQ(meaning.weight, meaning.role == TensorRole::kPlain ? -1 : 0);
  }
  EXPECT_EQ(roles,
            (std::vector<TensorRole>{TensorRole::kCodes, TensorRole::kZeroPoints,
                                     TensorRole::kScales, TensorRole::kOther, TensorRole::kPlain}));
}

TEST(Quantised, KeepsPlainTensorsPlain) {
  MadeCheckpoint made;
  made.With("embed.weight", "BF16", {100, 8})
      .With("position_ids", "I64", {1, 512})
      .With("mask", "U8", {4, 4})
      .With("block.scale", "F32", {8})
      .With("block.scales", "BF16", {8, 2})
      .With("block.weight", "BF16", {8, 8});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Parameters(weights), 800 + 512 + 16 + 8 + 16 + 64);
  EXPECT_TRUE(weights.weights.empty());
  EXPECT_TRUE(weights.notes.empty());
  for (const TensorMeaning& meaning : weights.tensors) {
    EXPECT_EQ(meaning.role, TensorRole::kPlain);
  }
}

TEST(Quantised, CountsALearnableScaleBesideIntegers) {
  MadeCheckpoint made;
  made.With("table.weight", "I8", {8, 8}).With("table.scale", "F32", {8});
  EXPECT_EQ(Parameters(made.Weights()), 64 + 8);
}

TEST(Quantised, CountsNoPowersOfTwo) {
  MadeCheckpoint made;
  made.With("a.weight", "BF16", {8, 8}).With("a.block_exponents", "F8_E8M0", {8, 1});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Parameters(weights), 64);
  EXPECT_EQ(weights.tensors[1].role, TensorRole::kScales);
}

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

TEST(Quantised, ReadsOneOrTwoValuesAByte) {
  constexpr std::string_view kCompressed =
      R"({"quantization_config": {"quant_method": "compressed-tensors"}})";
  constexpr std::string_view kModelopt =
      R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}})";
  const ScaledRow rows[] = {
      // float-quantized, by row; fbgemm_fp8 is the same
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
       "modelopt int4 64x128 g1x32: 4096 512 0 0 (config.json, scale)"},
      // rows that the blocks of 128 do not divide
      {"{}",
       "F8_E4M3",
       {200, 300},
       "_scale_inv",
       "F32",
       {2, 3},
       "fp8 float8_e4m3fn 200x300 g100x100: 60000 24 0 0 (scale_inv)"},
      {R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})",
       "F8_E4M3",
       {200, 300},
       "_scale_inv",
       "F32",
       {2, 3},
       "fp8 float8_e4m3fn 200x300 g128x128: 60000 24 0 0 (config.json, scale_inv)"},
  };
  for (const ScaledRow& row : rows) {
    MadeCheckpoint made(row.config);
    made.With("q.weight", row.dtype, row.shape)
        .With("q.weight" + std::string(row.scale), row.scale_dtype, row.scale_shape);
    EXPECT_EQ(Lines(made.Weights()), Texts{std::string(row.expected)});
  }
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

TEST(Quantised, SaysWhatItCannotCount) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "aqlm"}})");
  made.With("a.codes", "I16", {8, 16, 1})
      .With("a.codebooks", "F16", {1, 65536, 1, 8})
      .With("a.scales", "F16", {8, 1, 1, 1})
      .With("b.codes", "I16", {8, 16, 1})
      .With("b.codebooks", "F16", {1, 65536, 1, 8})
      .With("b.scales", "F16", {8, 1, 1, 1});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(weights.notes,
            Texts{"aqlm: packed, the logical number of parameters is not known: a.codes and 1 "
                  "more"});
  EXPECT_EQ(Parameters(weights), 2 * (128 + 524288 + 8));
  EXPECT_EQ(weights.tensors[0].role, TensorRole::kCodes);
}

TEST(Quantised, SaysThatADeclaredQuantisationWasNotFound) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "quark"}})");
  made.With("a.weight", "BF16", {8, 8});
  EXPECT_EQ(
      made.Weights().notes,
      Texts{"quark: declared in config.json, but no tensor is packed in a way that is known"});
}

TEST(Quantised, CountsNoScalesWhoseWeightLiesElsewhere) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "fp8"}})");
  made.With("q.weight_scale_inv", "F32", {2, 2})
      .With("attn.k_scale", "F32", {})
      .With("v.weight", "F8_E4M3", {4, 4})
      .With("v.weight_scale_inv", "F32", {1, 1});
  EXPECT_EQ(Parameters(made.Weights()), 16);
}

// A shape that would count more values than the codes have bits.
TEST(Quantised, CountsHostileShapesAsTheyLie) {
  MadeCheckpoint made;
  made.With("q.W_q", "U8", {4, 4})
      .With("q.shape", "I64", {2}, Bytes<std::int64_t>({1 << 20, 1 << 20}));
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Parameters(weights), 16 + 2);
  EXPECT_EQ(weights.notes, Texts{"hqq: the declared shape does not fit the codes, which count as "
                                 "they lie: q.W_q"});
}

TEST(Quantised, LivesThroughOddShapes) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {}, {0}, {1}, {0, 0}, {1, 0}, {3, 5}, {1, 1, 1}, {2, 2, 16}, {std::int64_t{1} << 52, 1}};
  for (const char* suffix :
       {".qweight", ".weight", ".weight_packed", "_blocks", ".W_q", ".weight._data"}) {
    for (const char* dtype : {"I32", "U32", "U8", "I8", "F8_E4M3", "I16"}) {
      for (const auto& shape : shapes) {
        for (const auto& scale : shapes) {
          MadeCheckpoint made(kPackQuantized);
          made.With("q" + std::string(suffix), dtype, shape);
          for (const char* neighbour : {".scales", ".weight_scale", "_scales", ".weight._scale"}) {
            made.With("q" + std::string(neighbour), "F32", scale);
          }
          const StoredWeights weights = made.Weights();
          EXPECT_GE(Parameters(weights), 0);
        }
      }
    }
  }
}

TEST(Quantised, IsCheapForPlainTensors) {
  MadeCheckpoint made;
  for (int i = 0; i < 91'000; ++i) {
    made.With("model.layers." + std::to_string(i) + ".mlp.down_proj.weight", "BF16", {64, 64});
  }
  const auto begin = std::chrono::steady_clock::now();
  const StoredWeights weights = made.Weights();
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(Parameters(weights), std::int64_t{91'000} * 64 * 64);
  RecordProperty("milliseconds", static_cast<int>(elapsed / std::chrono::milliseconds(1)));
}

std::string FactsText(std::string_view config, std::string_view quantization) {
  const CheckpointConfigs configs = {.config = ReadJson(config, "config.json").value(),
                                     .quantization = ReadJson(quantization, "q.json").value()};
  std::string text;
  for (const auto& [key, value] : QuantisationFactsOf(configs)) {
    text += key + '=' + Describe(value) + ' ';
  }
  return text;
}

TEST(QuantisationFacts, ReadsConfigJson) {
  EXPECT_EQ(FactsText(R"({"expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8",
                          "quant_algo": "MIXED_PRECISION", "ignore": ["a", "re:b.*"],
                          "quantized_layers": {"x": {"quant_algo": "NVFP4"}}}})",
                      "null"),
            "quant_method=the string \"fp8\" quant_algo=the string \"MIXED_PRECISION\" "
            "expert_dtype=the string \"fp4\" quantized_layers=1 exclude=2 ");
}

TEST(QuantisationFacts, ReadsHfQuantConfig) {
  constexpr std::string_view kDocument = R"({"producer": {"name": "modelopt"}, "quantization": {
      "quant_algo": "FP8", "exclude_modules": ["lm_head"]}})";
  constexpr std::string_view kFacts = "quant_algo=the string \"FP8\" exclude=1 ";
  EXPECT_EQ(FactsText("{}", kDocument), kFacts);
  EXPECT_EQ(FactsText(kDocument, "null"), kFacts);
}

TEST(QuantisationFacts, SaysNothingOfPlainModels) {
  EXPECT_EQ(FactsText(R"({"hidden_size": 64, "text_config": {}})", "null"), "");
  EXPECT_EQ(FactsText("[]", "3"), "");
}

TEST(DeclaredQuantisation, LeavesOutWhatIsOfAWrongKind) {
  const CheckpointConfigs configs = {
      .config = ReadJson(R"({"expert_dtype": 4, "quantization_config": {"quant_method": ["gptq"],
                             "bits": "4", "group_size": 1e3, "weight_block_size": [0, "x"],
                             "config_groups": [1], "quantized_layers": 7, "format": {}}})",
                         "config.json")
                    .value()};
  const DeclaredQuantisation declared = DeclaredQuantisationOf(configs);
  EXPECT_EQ(declared.method, "");
  EXPECT_EQ(declared.block_rows, 0);
  EXPECT_EQ(declared.notes,
            (Texts{"config.json: quant_method: expected a short string; left out",
                   "config.json: format: expected a short string; left out",
                   "config.json: bits: expected a whole number from 1 to 16; left out",
                   "config.json: group_size: expected a whole number from 1 to 1048576; left out",
                   "config.json: expert_dtype: expected a short string; left out"}));
}

TEST(DeclaredQuantisation, FindsALayerByItselfOrAFewStepsUp) {
  DeclaredQuantisation declared;
  declared.layers["layers.0.ffn.experts"] = {.bits = 4};
  EXPECT_NE(FindDeclaredLayer(declared, "layers.0.ffn.experts"), nullptr);
  EXPECT_NE(FindDeclaredLayer(declared, "layers.0.ffn.experts.17.w1"), nullptr);
  EXPECT_EQ(FindDeclaredLayer(declared, "layers.1.ffn.experts.17.w1"), nullptr);
  EXPECT_EQ(FindDeclaredLayer(declared, "layers.0.ffn.experts.a.b.c.d.e"), nullptr);
}

}  // namespace
}  // namespace fourpiles
