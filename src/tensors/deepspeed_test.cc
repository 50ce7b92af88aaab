#include "tensors/deepspeed.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/testing.h"
#include "tensors/deepspeed_join.h"
#include "tensors/deepspeed_ranks.h"
#include "tensors/pieces_testing.h"
#include "tensors/piles.h"
#include "tensors/test_cases.h"

// The folders of tests/data/cases/deepspeed: element i of parameter n is 100 n + i, of its first
// moment 1000 more, of its second 2000 more (make.py).

namespace fourpiles {
namespace {

namespace fs = std::filesystem;

std::string FolderOfCase(std::string_view name) {
  return CasePath("deepspeed/") + std::string(name);
}

Checkpoint Open(const std::string& path) {
  Result<Checkpoint> checkpoint = OpenCheckpoint(path);
  EXPECT_TRUE(checkpoint.has_value()) << path;
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

std::vector<float> From(int first, int count) {
  std::vector<float> numbers;
  numbers.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(first + i));
  }
  return numbers;
}

// The parameters of make.py, and their moments, of any stage.
void ExpectParameters(const Checkpoint& checkpoint) {
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
    int count;
  };
  const std::vector<Parameter> parameters = {
      {"a.weight", {3, 2}, 6}, {"a.bias", {5}, 5}, {"norm", {4}, 4}, {"scale", {}, 1}};
  int number = 0;
  for (const Parameter& parameter : parameters) {
    ++number;
    int more = 0;
    for (const char* kind : {"master", "exp_avg", "exp_avg_sq"}) {
      const std::string name = "optimizer.state." + parameter.name + "." + kind;
      SCOPED_TRACE(name);
      const FileTensor& tensor = TensorNamed(checkpoint, name);
      EXPECT_EQ(tensor.shape, parameter.shape);
      EXPECT_EQ(tensor.dtype, "F32");
      EXPECT_EQ(FloatsOf(checkpoint, tensor), From(number * 100 + more, parameter.count));
      more += 1000;
    }
  }
}

TEST(DeepSpeed, CutsTheVectorsOfZero2) {
  const Checkpoint checkpoint = Open(FolderOfCase("zero2"));  // which has "latest"
  EXPECT_EQ(VerdictOf(checkpoint), FileVerdict::kAccept);
  ExpectParameters(checkpoint);
  // Of 11 elements, padded to 12, the first rank has 6: a.weight is whole.
  EXPECT_TRUE(TensorNamed(checkpoint, "optimizer.state.a.weight.master").pieces.empty());
  const std::vector<PiledTensor> piles = TensorPilesOf(checkpoint.tensors);
  for (std::size_t i = 0; i < piles.size(); ++i) {
    const FileTensor& tensor = checkpoint.tensors[i];
    if (tensor.name == "optimizer.state.norm.master") {
      EXPECT_EQ(piles[i].pile, TensorPile::kOptimizer);
      EXPECT_EQ(piles[i].moment, "master");
      ASSERT_GE(piles[i].weight, 0);
      EXPECT_EQ(checkpoint.tensors[static_cast<std::size_t>(piles[i].weight)].name, "module.norm");
    }
  }
}

TEST(DeepSpeed, CutsTheVectorsOfZero3) {
  const Checkpoint checkpoint = Open(FolderOfCase("zero3"));
  EXPECT_EQ(VerdictOf(checkpoint), FileVerdict::kAccept);
  ExpectParameters(checkpoint);
  const FileTensor& bias = TensorNamed(checkpoint, "optimizer.state.a.bias.master");
  ASSERT_EQ(bias.pieces.size(), 3U);  // 2, 2 and 1 of its 5 elements
  EXPECT_EQ(bias.pieces[2].start, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(bias.pieces[2].shape, (std::vector<std::int64_t>{1}));
  const FileTensor& frozen = TensorNamed(checkpoint, "module.frozen");
  EXPECT_EQ(frozen.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(frozen.pieces.size(), 2U);  // the third rank has padding
  EXPECT_EQ(FloatsOf(checkpoint, frozen), From(500, 4));
  EXPECT_EQ(checkpoint.tensors.size(), 14U);  // the buffer once, no empty parameters
}

// A copy of a folder, without or with other files.
class DeepSpeedCopy : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        (std::string("fourpiles_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Copy(std::string_view from) { fs::copy(FolderOfCase(from), folder_); }
  void Write(const char* name, std::string_view text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string Finding() const {
    const Checkpoint checkpoint = Open(folder_.string());
    const std::vector<fourpiles::Finding> findings = AllFindings(checkpoint);
    if (findings.empty()) {
      return "";
    }
    std::string line = ErrorLine(Error{.text = findings.front().text});
    return line.substr(line.find(folder_.string()) + folder_.string().size());
  }

  fs::path folder_;
};

TEST_F(DeepSpeedCopy, NamesTheRankThatIsMissing) {
  Copy("zero3");
  fs::remove(folder_ / "zero_pp_rank_1_mp_rank_00_optim_states.pt");
  EXPECT_EQ(Finding(),
            ": mp_rank_00 | states of the optimizer of 2 ranks, and none of data rank 1 | it is "
            "cut among 3 | fetch the missing files");
  // The vectors are listed as they are.
  const Checkpoint checkpoint = Open(folder_.string());
  TensorNamed(checkpoint, "optimizer_state_dict.fp32_flat_groups.0");
}

TEST_F(DeepSpeedCopy, NamesFragmentsThatAreMissing) {
  Copy("zero3");
  fs::remove(folder_ / "zero_pp_rank_1_mp_rank_00_model_states.pt");
  EXPECT_EQ(Finding(), ": mp_rank_00 | frozen parameters of 2 ranks | expected those of all 3 | ");
}

TEST_F(DeepSpeedCopy, TellsRanksOfTwoCheckpoints) {
  Copy("zero2/global_step2");
  fs::copy_file(folder_ / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
                folder_ / "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt");
  EXPECT_EQ(Finding(),
            ": mp_rank_00 | states of the optimizer of 3 ranks | it is cut among 2 | the files are "
            "of two checkpoints");
  fs::remove(folder_ / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt");
  fs::copy_file(FolderOfCase("zero3/zero_pp_rank_1_mp_rank_00_optim_states.pt"),
                folder_ / "zero_pp_rank_1_mp_rank_00_optim_states.pt");
  EXPECT_EQ(Finding(),
            ": mp_rank_00 | ZeRO 3 of 3 ranks in the file of data rank 1 | another one has ZeRO 2 "
            "of 2 | the files are of two checkpoints");
}

TEST_F(DeepSpeedCopy, NeedsTheStatesOfTheModel) {
  Copy("zero2/global_step2");
  fs::remove(folder_ / "mp_rank_00_model_states.pt");
  EXPECT_EQ(Finding(),
            ": mp_rank_00 | no states of the model beside those of the optimizer | its "
            "param_shapes say what the flat vectors hold | fetch the files …_model_states.pt");
}

TEST_F(DeepSpeedCopy, ReadsTheModelAlone) {
  Copy("zero2/global_step2");
  for (const char* rank : {"0", "1"}) {
    fs::remove(folder_ /
               (std::string("bf16_zero_pp_rank_") + rank + "_mp_rank_00_optim_states.pt"));
  }
  const Checkpoint checkpoint = Open(folder_.string());
  EXPECT_EQ(VerdictOf(checkpoint), FileVerdict::kAccept);
  EXPECT_EQ(checkpoint.tensors.size(), 4U);
}

TEST_F(DeepSpeedCopy, PrefixesNamesOfSeveralModelRanks) {
  Copy("zero2/global_step2");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::string name = entry.path().filename().string();
    const std::size_t place = name.find("mp_rank_00");
    if (place != std::string::npos) {
      fs::copy_file(entry.path(), folder_ / name.replace(place, 10, "mp_rank_01"));
    }
  }
  const Checkpoint checkpoint = Open(folder_.string());
  EXPECT_EQ(VerdictOf(checkpoint), FileVerdict::kAccept);
  EXPECT_EQ(
      FloatsOf(checkpoint, TensorNamed(checkpoint, "mp_rank_01.optimizer.state.norm.exp_avg")),
      From(1300, 4));
}

TEST_F(DeepSpeedCopy, FollowsNoNameOutOfTheFolder) {
  for (const char* name : {"../zero2/global_step2", ".", "", "..", "nowhere", "/tmp"}) {
    Write("latest", name);
    EXPECT_FALSE(OpenCheckpoint(folder_.string()).has_value()) << name;
  }
}

TEST(DeepSpeed, ReadsTheNamesOfFiles) {
  const auto text = [](std::string_view file) -> std::string {
    const auto name = ParseRankName(file);
    return !name ? "none"
                 : std::string(name->has_optimizer ? "optimizer " : "model ") +
                       std::to_string(name->data_rank) + " " + std::to_string(name->model_rank);
  };
  EXPECT_EQ(text("mp_rank_00_model_states.pt"), "model -1 0");
  EXPECT_EQ(text("mp_rank_12_model_states.pt"), "model -1 12");
  EXPECT_EQ(text("zero_pp_rank_7_mp_rank_01_model_states.pt"), "model 7 1");
  EXPECT_EQ(text("bf16_zero_pp_rank_10_mp_rank_00_optim_states.pt"), "optimizer 10 0");
  EXPECT_EQ(text("mp_rank_00_optim_states.pt"), "none");
  EXPECT_EQ(text("layer_01-model_00-model_states.pt"), "none");
  EXPECT_EQ(text("zero_pp_rank_99999999999999999999_mp_rank_00_optim_states.pt"), "none");
}

FileTensor Flat(const char* name, std::int32_t file, std::int64_t elements) {
  return {.name = name,
          .dtype = "F32",
          .type = FindStoredType("float32"),
          .shape = {elements},
          .elements = elements,
          .bytes = elements * 4,
          .offset = 64,
          .file = file};
}

// Vectors too short, too long by more than padding, and of another number of groups.
TEST(DeepSpeed, RefusesVectorsThatTheShapesDoNotFill) {
  const char* group = "optimizer_state_dict.single_partition_of_fp32_groups.0";
  const auto fault = [&](std::int64_t stage, std::int64_t elements, std::int64_t needed) {
    const ZeroLayout layout = {.facts = {.stage = stage, .ranks = 2},
                               .groups = {{{.name = "w", .shape = {needed}, .elements = needed}}}};
    const JoinedVectors joined =
        JoinFlatVectors({Flat(group, 0, elements), Flat(group, 1, elements)}, {0, 1}, layout);
    return joined.faults.empty() ? "" : joined.faults[0].found + ", " + joined.faults[0].expected;
  };
  EXPECT_EQ(fault(2, 6, 11), "");
  EXPECT_EQ(fault(2, 6, 12), "");
  EXPECT_EQ(fault(2, 6, 13),
            "flat vectors \"master\": group 0 of 12 elements, its parameters have 13");
  EXPECT_EQ(fault(1, 6, 8),
            "flat vectors \"master\": group 0 of 12 elements, its parameters have 8");
  EXPECT_EQ(fault(3, 6, 11), "");
  EXPECT_EQ(fault(3, 6, 9),
            "flat vectors \"master\": 6 elements of rank 0, its parts of the parameters have 5");
  EXPECT_EQ(fault(2, 6, kLargestAmount / 64).substr(0, 44),
            "flat vectors \"master\": group 0 of 12 element");
}

// Parameters without elements take no bytes of a vector, and moments may share one.
TEST(DeepSpeed, RefusesVectorsThatAreCutIntoMuch) {
  const std::string group = "optimizer_state_dict.single_partition_of_fp32_groups.0";
  ZeroLayout layout = {.facts = {.stage = 2, .ranks = 1}, .groups = {{}}};
  const auto fault = [&](int moments) {
    std::vector<FileTensor> tensors = {Flat(group.c_str(), 0, 1)};
    for (int i = 0; i < moments; ++i) {
      const std::string name =
          "optimizer_state_dict.base_optimizer_state.state.0.k" + std::to_string(i);
      tensors.push_back(Flat(name.c_str(), 0, 1));
    }
    const JoinedVectors joined = JoinFlatVectors(tensors, {0}, layout);
    return joined.faults.empty() ? "" : joined.faults[0].found + ", " + joined.faults[0].expected;
  };
  layout.groups[0].push_back({.name = "w", .shape = {1}, .elements = 1});
  EXPECT_EQ(fault(63), "");
  EXPECT_EQ(fault(64), "65 kinds of flat vectors, expected at most 64");
  for (int i = 0; i < 1000; ++i) {
    layout.groups[0].push_back({.name = std::string(10'000, 'n'), .shape = {0}});
  }
  EXPECT_EQ(fault(0), "");
  EXPECT_EQ(fault(1),
            "flat vectors \"k0\": names and pieces of more than 16778240 bytes, expected fewer");
}

}  // namespace
}  // namespace fourpiles
