#include "model/open_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing.h"
#include "model/compare_tensors.h"
#include "model/test_configs.h"
#include "tensors/checkpoint.h"

namespace fourpiles {
namespace {

class OpenModelTest : public testing::Test {
 protected:
  OpenModelTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("fourpiles-open-model-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~OpenModelTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) const { std::ofstream(Config()) << text; }
  std::string Folder() const { return folder_.string(); }
  std::string Config() const { return (folder_ / "config.json").string(); }

 private:
  std::filesystem::path folder_;
};

TEST_F(OpenModelTest, ReadsTheConfigOfAFolder) {
  Write(Llama());
  for (const std::string& path : {Folder(), Config()}) {
    const Result<Model> model = OpenModel(path);
    ASSERT_TRUE(model) << Message(model.error());
    EXPECT_EQ(model->name, path);
    EXPECT_EQ(model->source, Config());
    EXPECT_EQ(model->network.vocab_size, 100);
  }
}

TEST_F(OpenModelTest, ReadsARecordOfTheCataloguesForm) {
  Write(Llama("id", "\"my-llama\""));
  const Result<Model> model = OpenModel(Config());
  ASSERT_TRUE(model) << Message(model.error());
  EXPECT_EQ(model->name, "my-llama");
}

TEST_F(OpenModelTest, RefusesAFolderWithoutAConfig) {
  const Result<Model> model = OpenModel(Folder());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::kInput);
  EXPECT_EQ(Message(model.error()),
            "error: " + Folder() +
                ": no model in this folder, expected safetensors, GGUF, files of PyTorch or "
                "NumPy, a checkpoint of several ranks, or a config.json\n"
                "hint: name the folder that holds the model's files");
}

TEST_F(OpenModelTest, RefusesAFileThatIsNotThere) {
  const Result<Model> model = OpenModel(Config());
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: " + Config() + ": no such file\nhint: check the spelling of the path");
}

TEST_F(OpenModelTest, RefusesAFileThatItMayNotRead) {
  Write(Llama());
  std::filesystem::permissions(Config(), std::filesystem::perms::none);
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;  // root may read anything
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const Result<Model> model = OpenModel(Config());
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: " + Config() + ": Permission denied, expected a file to read");
}

TEST_F(OpenModelTest, RefusesAFileThatIsTooLarge) {
  Write(Llama());
  std::filesystem::resize_file(Config(), (4 << 20) + 1);
  const Result<Model> model = OpenModel(Config());
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: " + Config() + ": 4194305 bytes, expected at most 4194304");
}

TEST_F(OpenModelTest, RefusesWhatIsNoFile) {
  const Result<Model> model = OpenModel("/dev/zero");
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: /dev/zero: a pipe or device, expected a regular file\n"
            "hint: copy its content to a file");
}

// --- Tensors ---

std::string LittleEndian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(value >> (8 * i) & 0xFFU);
  }
  return text;
}

// Tensors of zeros in bfloat16.
std::string Safetensors(const std::vector<LogicalTensor>& tensors) {
  Json::Object header;
  std::int64_t end = 0;
  for (const LogicalTensor& tensor : tensors) {
    const std::int64_t begin = end;
    end += 2 * ElementsOf(tensor.shape).value();
    header.emplace_back(
        tensor.name, Json::Object{{"dtype", "BF16"},
                                  {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())},
                                  {"data_offsets", Json::Array{begin, end}}});
  }
  const std::string text = WriteJson(Json(std::move(header)));
  return LittleEndian(text.size(), 8) + text + std::string(static_cast<std::size_t>(end), '\0');
}

std::vector<LogicalTensor> TensorsOfLlama() {
  std::vector<LogicalTensor> tensors;
  ForEachTensor(FromText(Llama()).value(), [&tensors](const NamedTensor& tensor) {
    tensors.push_back({.name = tensor.name, .shape = tensor.parameter->shape});
  });
  return tensors;
}

std::string GgufText(std::string_view text) {
  return LittleEndian(text.size(), 8).append(text);
}

// Version 3, with float16 tensors of zeros. Shapes have the slowest dimension first.
std::string Gguf(const std::vector<std::pair<std::string, std::uint32_t>>& keys,
                 const std::vector<LogicalTensor>& tensors,
                 std::string_view architecture = "llama") {
  constexpr std::uint64_t kUint32 = 4;
  constexpr std::uint64_t kString = 8;
  constexpr std::uint64_t kFloat16 = 1;
  std::string text = "GGUF" + LittleEndian(3, 4) + LittleEndian(tensors.size(), 8) +
                     LittleEndian(keys.size() + 1, 8) + GgufText("general.architecture") +
                     LittleEndian(kString, 4) + GgufText(architecture);
  for (const auto& [key, value] : keys) {
    text += GgufText(key) + LittleEndian(kUint32, 4) + LittleEndian(value, 4);
  }
  std::uint64_t data = 0;
  for (const LogicalTensor& tensor : tensors) {
    const std::vector<std::int64_t>& shape = tensor.shape;
    text += GgufText(tensor.name) + LittleEndian(shape.size(), 4);
    for (std::size_t i = shape.size(); i-- > 0;) {
      text += LittleEndian(static_cast<std::uint64_t>(shape[i]), 8);
    }
    text += LittleEndian(kFloat16, 4) + LittleEndian(data, 8);
    data += 2 * static_cast<std::uint64_t>(ElementsOf(shape).value());
    data = (data + 31) / 32 * 32;
  }
  text.resize((text.size() + 31) / 32 * 32);
  return text + std::string(data, '\0');
}

const std::vector<std::pair<std::string, std::uint32_t>> kKeys = {
    {"llama.block_count", 1},
    {"llama.embedding_length", 64},
    {"llama.feed_forward_length", 128},
    {"llama.attention.head_count", 4},
    {"llama.attention.head_count_kv", 2},
    {"llama.context_length", 512}};

const std::vector<LogicalTensor> kGgufTensors = {
    {.name = "token_embd.weight", .shape = {100, 64}},
    {.name = "output_norm.weight", .shape = {64}},
    {.name = "rope_freqs.weight", .shape = {8}},
    {.name = "blk.0.attn_norm.weight", .shape = {64}},
    {.name = "blk.0.attn_q.weight", .shape = {64, 64}},
    {.name = "blk.0.attn_k.weight", .shape = {32, 64}},
    {.name = "blk.0.attn_v.weight", .shape = {32, 64}},
    {.name = "blk.0.attn_output.weight", .shape = {64, 64}},
    {.name = "blk.0.ffn_norm.weight", .shape = {64}},
    {.name = "blk.0.ffn_gate.weight", .shape = {128, 64}},
    {.name = "blk.0.ffn_up.weight", .shape = {128, 64}},
    {.name = "blk.0.ffn_down.weight", .shape = {64, 128}}};

class OpenTensorsTest : public FolderTest {};

Model Opened(const std::string& path) {
  Result<Model> model = OpenModel(path);
  EXPECT_TRUE(model) << path << ": " << ErrorLine(model);
  return model.value_or(Model());
}

TEST_F(OpenTensorsTest, ChecksSafetensorsAgainstTheConfig) {
  std::vector<LogicalTensor> tensors = TensorsOfLlama();
  MakeFile("config.json", Llama());
  const std::string file = MakeFile("model.safetensors", Safetensors(tensors));
  for (const std::string& path : {file, Folder().string()}) {
    const Model model = Opened(path);
    EXPECT_TRUE(model.warnings.empty()) << model.warnings.front();
    ASSERT_TRUE(model.checkpoint);
    EXPECT_EQ(model.checkpoint->parameters, ParameterCount(model.network));
    EXPECT_EQ(model.checkpoint->bytes, 2 * ParameterCount(model.network));
    ASSERT_EQ(model.checkpoint->formats.size(), 1U);
    EXPECT_EQ(model.checkpoint->formats.front().name, "bfloat16");
  }
  tensors.back().shape = {100, 32};
  std::erase_if(tensors, [](const auto& tensor) { return tensor.name == "model.norm.weight"; });
  MakeFile("model.safetensors", Safetensors(tensors));
  EXPECT_EQ(Opened(file).warnings,
            (std::vector<std::string>{"1 tensor is missing: model.norm.weight",
                                      "lm_head.weight has shape [100, 32], expected [100, 64]"}));
}

TEST_F(OpenTensorsTest, CountsSafetensorsWithoutAConfig) {
  const Model model = Opened(MakeFile("a.safetensors", Safetensors(TensorsOfLlama())));
  EXPECT_TRUE(model.tensors_alone);
  EXPECT_EQ(ParameterCount(model.network), ParameterCount(FromText(Llama()).value()));
  EXPECT_FALSE(model.network.num_hidden_layers);
}

TEST_F(OpenTensorsTest, ReadsTheNetworkOffAGguf) {
  const std::string file = MakeFile("a.gguf", Gguf(kKeys, kGgufTensors));
  for (const std::string& path : {file, Folder().string()}) {
    const Model model = Opened(path);
    EXPECT_TRUE(model.warnings.empty()) << model.warnings.front();
    EXPECT_EQ(model.network.num_hidden_layers, 1);
    EXPECT_EQ(model.network.vocab_size, 100);
    EXPECT_EQ(model.network.max_position_embeddings, 512);
    ASSERT_TRUE(model.checkpoint);
    EXPECT_EQ(model.checkpoint->parameters, ParameterCount(model.network) + 8);  // rope_freqs
  }
  std::vector<LogicalTensor> tensors = kGgufTensors;
  tensors.pop_back();
  tensors.push_back({.name = "blk.0.attn_q.bias", .shape = {64}});
  EXPECT_EQ(Opened(MakeFile("a.gguf", Gguf(kKeys, tensors))).warnings,
            std::vector<std::string>{
                "4 tensors are missing: model.layers.0.self_attn.k_proj.bias, "
                "model.layers.0.self_attn.v_proj.bias, model.layers.0.self_attn.o_proj.bias and 1 "
                "other name"});
}

TEST_F(OpenTensorsTest, ReadsAllPartsOfASplitGguf) {
  const std::vector<LogicalTensor> first(kGgufTensors.begin(), kGgufTensors.begin() + 5);
  const std::vector<LogicalTensor> second(kGgufTensors.begin() + 5, kGgufTensors.end());
  auto keys = kKeys;
  keys.insert(keys.end(), {{"split.no", 0}, {"split.count", 2}, {"split.tensors.count", 12}});
  const std::string one = MakeFile("a-00001-of-00002.gguf", Gguf(keys, first));
  const Result<Model> alone = OpenModel(one);
  EXPECT_EQ(ErrorLine(alone), PathTo("a-00002-of-00002.gguf") +
                                  " | no such file |  | check the spelling of the path");
  const std::string two =
      MakeFile("a-00002-of-00002.gguf",
               Gguf({{"split.no", 1}, {"split.count", 2}, {"split.tensors.count", 12}}, second));
  for (const std::string& path : {one, two, Folder().string()}) {
    EXPECT_EQ(Opened(path).checkpoint->parameters, ParameterCount(Opened(path).network) + 8);
    EXPECT_TRUE(Opened(path).warnings.empty()) << path << Opened(path).warnings.front();
  }
}

TEST_F(OpenTensorsTest, RefusesDamagedTensors) {
  MakeFile("config.json", Llama());
  std::string text = Safetensors(TensorsOfLlama());
  text.resize(text.size() - 10);
  MakeFile("model.safetensors", text);
  const Result<Model> model = OpenModel(Folder().string());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::kInput);
  EXPECT_TRUE(OpenModel(PathTo("config.json")));  // which looks at no tensors
}

TEST_F(OpenTensorsTest, TensorsThatWereNotFetchedAreAWarning) {
  MakeFile("config.json", Llama());
  MakeFile("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:" +
                                    std::string(64, 'a') + "\nsize 123\n");
  const Model model = Opened(Folder().string());
  EXPECT_EQ(model.warnings.size(), 1U);
  EXPECT_FALSE(model.checkpoint);
  EXPECT_EQ(model.network.vocab_size, 100);
}

std::string TestModel(const std::string& name) {
  return FOURPILES_TEST_DATA "/models/" + name;
}

// Saved by PyTorch 1.13.1 from the tensors of tiny_llama (make_torch.py): 12,960 float32.
TEST_F(OpenTensorsTest, ShardsOfPyTorchAreHeldAgainstTheConfig) {
  for (const char* name : {"tiny_llama_torch", "tiny_llama_torch/pytorch_model.bin.index.json",
                           "tiny_llama_torch/pytorch_model-00001-of-00002.bin",
                           "tiny_llama_torch/pytorch_model-00002-of-00002.bin"}) {
    const Model model = Opened(TestModel(name));
    EXPECT_EQ(model.network.hidden_size, 32) << name;
    ASSERT_TRUE(model.checkpoint) << name;
    EXPECT_EQ(model.checkpoint->bytes, 4 * 12'960) << name;
    EXPECT_EQ(model.checkpoint->formats.front().name, "float32") << name;
    EXPECT_EQ(model.warnings,
              std::vector<std::string>{"config.json says bfloat16, most weights are float32"})
        << name;
  }
}

TEST_F(OpenTensorsTest, AShardOfPyTorchWithoutTheOtherIsRefused) {
  const std::string name = "pytorch_model-00001-of-00002.bin";
  std::filesystem::copy(TestModel("tiny_llama_torch/" + name), PathTo(name));
  const Result<Model> model = OpenModel(PathTo(name));
  EXPECT_EQ(ErrorLine(model),
            "pytorch_model-00002-of-00002.bin | missing part; 1 of 2 are absent | expected all "
            "parts in one folder | ");
}

TEST_F(OpenTensorsTest, AFileOfPyTorchIsHeldAgainstTheConfigBesideIt) {
  MakeFile("config.json", Llama());
  std::filesystem::copy(TestModel("buffers.pt"), PathTo("pytorch_model.bin"));
  for (const std::string& path : {Folder().string(), PathTo("pytorch_model.bin")}) {
    const Model model = Opened(path);
    EXPECT_EQ(model.network.vocab_size, 100);
    const auto has = [&model](std::string_view text) {
      return std::ranges::any_of(model.warnings, [text](const std::string& warning) {
        return warning.find(text) != std::string::npos;
      });
    };
    EXPECT_TRUE(has("are missing: model.embed_tokens.weight")) << path;
    EXPECT_FALSE(has("model_type")) << path;
  }
}

// A state dict of Linear(4, 8) without bias, BatchNorm1d(8) and a mask of 3 x 3.
TEST_F(OpenTensorsTest, WholeNumbersAndTruthValuesAreBuffers) {
  const Model model = Opened(TestModel("buffers.pt"));
  EXPECT_EQ(ParameterCount(model.network), 32 + 4 * 8 + 1 + 9);
  EXPECT_EQ(TrainableParameterCount(model.network), 32 + 4 * 8);
}

// DeepSpeed leaves the trained weights of ZeRO 3 to the optimizer: 16 beside 6 that are frozen.
TEST_F(OpenTensorsTest, MasterCopiesAreTheWeightsOfZero3) {
  EXPECT_EQ(ParameterCount(Opened(FOURPILES_TEST_DATA "/cases/deepspeed/zero3").network), 16 + 6);
  EXPECT_EQ(ParameterCount(Opened(FOURPILES_TEST_DATA "/cases/deepspeed/zero2").network), 16);
}

// What scripts leave beside a model says nothing of it.
TEST_F(OpenTensorsTest, AFileOfNoModelBesideAConfigIsAWarning) {
  MakeFile("config.json", Llama());
  MakeFile("training_args.bin", "hello");
  const Model model = Opened(Folder().string());
  EXPECT_EQ(model.network.vocab_size, 100);
  EXPECT_FALSE(model.checkpoint);
  EXPECT_EQ(model.warnings.size(), 1U);
}

TEST_F(OpenTensorsTest, AnInfinityInAConfigIsNoMistake) {
  EXPECT_EQ(Opened(MakeFile("config.json", Llama("time_step_limit", "[0.0, Infinity]")))
                .network.vocab_size,
            100);
}

}  // namespace
}  // namespace fourpiles
