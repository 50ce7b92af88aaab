#include "tensors/open_distributed.h"

#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "base/testing.h"
#include "tensors/folder.h"
#include "tensors/pieces_testing.h"
#include "tensors/test_cases.h"

// The folders of tests/data/cases/dcp: what they hold is said in make.py, which had PyTorch write
// them.

namespace fourpiles {
namespace {

namespace fs = std::filesystem;

std::string FolderOfCase(std::string_view name) {
  return CasePath("dcp/") + std::string(name);
}

Checkpoint Open(std::string_view name) {
  Result<Checkpoint> checkpoint = OpenCheckpoint(FolderOfCase(name));
  EXPECT_TRUE(checkpoint.has_value()) << name;
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

std::vector<float> Numbers(int count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

// The first finding of the worst verdict, without the folder.
std::string WorstFinding(std::string_view name) {
  const Checkpoint checkpoint = Open(name);
  const FileVerdict worst = VerdictOf(checkpoint);
  for (const Finding& finding : AllFindings(checkpoint)) {
    if (finding.verdict == worst) {
      std::string line = ErrorLine(Error{.text = finding.text});
      const std::string folder = FolderOfCase(name);
      if (const std::size_t place = line.find(folder); place != std::string::npos) {
        line.erase(place, folder.size());
      }
      return std::string(Name(worst)) + ": " + line;
    }
  }
  return std::string(Name(worst));
}

TEST(OpenDistributed, JoinsTheChunksOfTwoRanks) {
  const Checkpoint checkpoint = Open("two_ranks");
  EXPECT_EQ(VerdictOf(checkpoint), FileVerdict::kAccept);
  ASSERT_EQ(checkpoint.tensors.size(), 3U);
  const FileTensor& weight = TensorNamed(checkpoint, "model.weight");
  EXPECT_EQ(weight.dtype, "F32");
  EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{5, 4}));
  EXPECT_EQ(weight.bytes, 80);
  ASSERT_EQ(weight.pieces.size(), 2U);
  EXPECT_EQ(checkpoint.files[static_cast<std::size_t>(weight.pieces[1].file)].name, "__1_0.distcp");
  EXPECT_EQ(weight.pieces[1].start, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(weight.pieces[1].shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(FloatsOf(checkpoint, weight), Numbers(20));
  const FileTensor& bias = TensorNamed(checkpoint, "model.bias");
  EXPECT_EQ(bias.dtype, "BF16");
  EXPECT_TRUE(bias.pieces.empty());
  EXPECT_EQ(TensorNamed(checkpoint, "model.scalar").bytes, 8);
  const CheckpointFile& metadata = checkpoint.files.front();
  ASSERT_EQ(metadata.metadata.size(), 1U);
  EXPECT_EQ(metadata.metadata[0].key, "model.step");
  EXPECT_EQ(*metadata.metadata[0].value.AsInteger(), 7);
}

TEST(OpenDistributed, TakesTheNameOfTheMetadataToo) {
  const Checkpoint checkpoint = Open("alone/.metadata");
  EXPECT_EQ(VerdictOf(checkpoint), FileVerdict::kAccept);
  ASSERT_EQ(checkpoint.tensors.size(), 3U);
  EXPECT_EQ(TensorNamed(checkpoint, "w").bytes, 12);
  EXPECT_EQ(TensorNamed(checkpoint, "empty").shape, (std::vector<std::int64_t>{0, 4}));
  EXPECT_TRUE(checkpoint.files.front().metadata[0].value.IsNull());  // a dict
}

TEST(OpenDistributed, ReadsTheClassesOfPyTorch2AndAGridOfChunks) {
  const Checkpoint checkpoint = Open("grid");
  EXPECT_EQ(VerdictOf(checkpoint), FileVerdict::kAccept);
  const FileTensor& weight = TensorNamed(checkpoint, "model.w");
  EXPECT_EQ(weight.pieces.size(), 4U);
  EXPECT_EQ(FloatsOf(checkpoint, weight), Numbers(12));
}

// The layout of Megatron-LM: a file names the iteration, and that its folder.
TEST(OpenDistributed, FollowsTheNumberOfTheLatestIteration) {
  const fs::path folder = fs::path(testing::TempDir()) / "fourpiles_megatron";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "latest_checkpointed_iteration.txt") << "7";
  fs::copy(FolderOfCase("grid"), folder / "iter_0000007");
  std::ofstream(folder / "iter_0000007/metadata.json")
      << R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})";
  const auto checkpoint = OpenCheckpoint(folder.string());
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(VerdictOf(*checkpoint), FileVerdict::kAccept);
  EXPECT_EQ(checkpoint->tensors.size(), 1U);
  EXPECT_EQ(checkpoint->path, folder.string());
  fs::remove_all(folder);
}

TEST(OpenDistributed, ReadsTheNameOfTheLatestFolder) {
  EXPECT_EQ(LatestFolder("global_step500\n"), "global_step500");
  EXPECT_EQ(LatestFolder(" 12 "), "iter_0000012");
  EXPECT_EQ(LatestFolder("12345678"), "iter_12345678");
  EXPECT_EQ(LatestFolder("release"), "release");
  for (const char* text : {"", " \n", ".", "..", "a/b", "/a", "../a", "a\\b"}) {
    EXPECT_EQ(LatestFolder(text), "") << text;
  }
}

TEST(OpenDistributed, KeepsStridesAndTellsWhatObjectsImport) {
  const Checkpoint checkpoint = Open("objects");
  const FileTensor& tensor = TensorNamed(checkpoint, "t");
  EXPECT_EQ(tensor.strides, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(FloatsOf(checkpoint, tensor), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  std::string objects;
  for (const MetadataEntry& entry : checkpoint.files.front().metadata) {
    objects += entry.key + "=" + WriteJson(entry.value);
  }
  EXPECT_EQ(objects, "text=\"a\"\nreal=0.5\nyes=true\nevil=null\n");
  const std::string finding = WorstFinding("objects");
  EXPECT_NE(finding.find("loading it would import posix.system"), std::string::npos) << finding;
  EXPECT_EQ(finding.substr(0, 7), "report:");
}

// Of two_ranks the second rank wrote rows 3 and 4 of the weight, and nothing else (make.py).
TEST(OpenDistributed, NamesTheFilesThatAreMissingAndWhatLiesInThem) {
  const fs::path folder = fs::path(testing::TempDir()) / "fourpiles_missing_rank";
  fs::remove_all(folder);
  fs::copy(FolderOfCase("two_ranks"), folder);
  fs::remove(folder / "__1_0.distcp");
  const auto second = OpenCheckpoint(folder.string());
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(VerdictOf(*second), FileVerdict::kRefuse);
  EXPECT_EQ(second->tensors.size(), 2U);
  ASSERT_EQ(AllFindings(*second).size(), 1U);
  EXPECT_EQ(ErrorLine(Error{.text = AllFindings(*second).front().text}),
            folder.string() +
                " | 1 of 2 files are missing: \"__1_0.distcp\"; they hold all or part of "
                "\"model.weight\" | expected the files that .metadata names | each rank writes "
                "files of its own, perhaps on its own disk: copy all of them into this folder");
  fs::remove(folder / "__0_0.distcp");
  const auto both = OpenCheckpoint(folder.string());
  ASSERT_TRUE(both.has_value());
  EXPECT_TRUE(both->tensors.empty());
  ASSERT_EQ(AllFindings(*both).size(), 1U);
  EXPECT_EQ(AllFindings(*both).front().text.found,
            "2 of 2 files are missing: \"__0_0.distcp\", \"__1_0.distcp\"; they hold all or part "
            "of \"model.bias\", \"model.scalar\", \"model.step\", \"model.weight\"");
  fs::remove_all(folder);
}

TEST(OpenDistributed, SaysWhereAPartBelongs) {
  const std::string folder = FOURPILES_TEST_DATA "/cases/dcp/grid";
  const auto part = OpenCheckpoint(folder + "/__0_0.distcp");
  ASSERT_FALSE(part);
  EXPECT_EQ(ErrorLine(part), folder +
                                 "/__0_0.distcp | a part of a distributed checkpoint | expected "
                                 "the whole of it | give its folder, " +
                                 folder);
}

TEST(OpenDistributed, SaysWhatIsWrong) {
  EXPECT_EQ(WorstFinding("chunk_outside"),
            "refuse: /.metadata: tensor \"model.w\" | a chunk from [2, 0] of shape [2, 2] | "
            "expected it within [3, 2] | ");
  EXPECT_EQ(WorstFinding("chunks_overlap"),
            "refuse: /.metadata: storage_data | two places for one chunk | expected one | ");
  EXPECT_EQ(WorstFinding("offset_past_eof"),
            "refuse: /__0_0.distcp: \"model.w\" | bytes 1000000 to 1000606 | the file has 1212 | "
            "the file may have been cut short; fetch it again");
  EXPECT_EQ(WorstFinding("path_escapes"),
            "refuse:  | the file name \"../../../etc/passwd\" | expected a name within the folder "
            "| ");
  EXPECT_EQ(WorstFinding("gap"),
            "refuse: /.metadata: tensor \"model.w\" | chunks of 11 elements, the tensor has 12 | "
            "expected each element in one chunk | ");
  EXPECT_EQ(WorstFinding("other_type"),
            "refuse: /__0_0.distcp: chunk of \"model.w\" | F16 of shape [2, 1] | .metadata says "
            "F32 of shape [2, 1] | ");
  EXPECT_EQ(WorstFinding("other_shape"),
            "refuse: /__0_0.distcp: chunk of \"model.w\" | F32 of shape [1, 2] | .metadata says "
            "F32 of shape [2, 1] | ");
  EXPECT_EQ(WorstFinding("dict"),
            "refuse: /__0_0.distcp: chunk of \"model.w\" | a tensor within a container, as \"w\" | "
            "expected the tensor alone | ");
  EXPECT_EQ(WorstFinding("zstd"),
            "refuse: /.metadata: tensor \"model.w\" | bytes that were written through zstd | this "
            "version reads what torch.save writes | save the checkpoint without extensions of the "
            "stream");
  EXPECT_EQ(WorstFinding("safetensors"),
            "refuse: /__0_0.distcp: chunk of \"model.w\" | a chunk in safetensors | this version "
            "reads what torch.save writes | ");
  EXPECT_EQ(WorstFinding("getattr"),
            "report: /.metadata | loading it would import builtins.getattr | a state dict needs "
            "none of these | such names run commands, read files or load other code when the "
            "file is loaded: do not load it; nothing of it was run here");
}

}  // namespace
}  // namespace fourpiles
