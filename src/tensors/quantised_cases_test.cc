// The files of tests/data/cases/quant against the numbers beside them, which were written down when
// the files were made.

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "tensors/quantised_testing.h"

namespace fourpiles {
namespace {

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

}  // namespace
}  // namespace fourpiles
