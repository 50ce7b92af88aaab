#include "tensors/open_checkpoint.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/testing.h"
#include "tensors/test_cases.h"

namespace fourpiles {
namespace {

using OpenCheckpointTest = FolderTest;

std::string FirstRefusal(const Checkpoint& checkpoint) {
  for (const Finding& finding : checkpoint.findings) {
    if (finding.verdict >= FileVerdict::kReport) {
      return finding.text.found;
    }
  }
  for (const CheckpointFile& file : checkpoint.files) {
    for (const Finding& finding : file.findings) {
      if (finding.verdict >= FileVerdict::kReport) {
        return finding.text.found;
      }
    }
  }
  return "none";
}

std::string Whole(std::string_view header, std::string_view data) {
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length.append(header).append(data);
}

const std::string kOneFloat =
    Whole(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");

TEST(OpenCheckpoint, GivesEveryShardedCaseItsOutcome) {
  for (const Json& row : ReadCases("sharded.jsonl")) {
    const std::string path = CasePath("sharded/" + TextOf(row, "file"));
    for (const std::string& each : {path, std::filesystem::path(path).parent_path().string()}) {
      const auto checkpoint = OpenCheckpoint(each);
      ASSERT_TRUE(checkpoint.has_value()) << each;
      EXPECT_EQ(Name(VerdictOf(*checkpoint)), TextOf(row, "outcome")) << each;
    }
  }
}

TEST_F(OpenCheckpointTest, RefusesAShardThatIsALinkOutOfTheFolder) {
  std::filesystem::copy(CasePath("sharded/symlink"), PathTo("model"));
  std::filesystem::create_symlink("/etc/passwd", PathTo("model/link.safetensors"));
  const auto checkpoint = OpenCheckpoint(PathTo("model"));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(FirstRefusal(*checkpoint), "a symbolic link");
}

TEST_F(OpenCheckpointTest, ReportsAnIndexWithoutAnyShard) {
  const std::string index =
      MakeFile("model.safetensors.index.json",
               R"({"metadata":{"total_size":8,"total_parameters":2},)"
               R"("weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}})");
  const auto checkpoint = OpenCheckpoint(index);
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(VerdictOf(*checkpoint), FileVerdict::kReport);
  EXPECT_EQ(FirstRefusal(*checkpoint), "an index without its 2 shards");
  EXPECT_EQ(WriteJson(checkpoint->facts),
            "{\n  \"total_size\": 8,\n  \"total_parameters\": 2,\n  \"entries\": 2,\n  \"shards\": "
            "2\n}\n");
  MakeFile("x-1.safetensors", kOneFloat);
  EXPECT_EQ(FirstRefusal(*OpenCheckpoint(index)),
            "1 of 2 shards are missing, the first \"x-2.safetensors\"");
}

TEST_F(OpenCheckpointTest, TellsGitLfsPointersTogether) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5000000000\n";
  MakeFile("model-00001-of-00002.safetensors", pointer);
  MakeFile("model-00002-of-00002.safetensors", pointer);
  const auto checkpoint = OpenCheckpoint(Folder());
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(FirstRefusal(*checkpoint),
            "2 of 2 files are Git LFS pointers, which stand for 10000000000 bytes");
  EXPECT_EQ(VerdictOf(*checkpoint), FileVerdict::kRefuse);
}

TEST_F(OpenCheckpointTest, NamesWhatItDoesNotRead) {
  const auto found = [&](std::string_view name, std::string_view content) {
    const auto checkpoint = OpenCheckpoint(MakeFile(name, content));
    return checkpoint ? FirstRefusal(*checkpoint) : checkpoint.error().text.found;
  };
  const std::string suffix = ", which this version does not read";
  using namespace std::string_literals;
  EXPECT_EQ(found("a.safetensors", ""), "an empty file");
  EXPECT_EQ(found("b.safetensors", "version https://git-lfs.github.com/spec/v1\n"),
            "a Git LFS pointer" + suffix);
  EXPECT_EQ(found("c.gguf", "<!DOCTYPE html><html>"), "an HTML page" + suffix);
  EXPECT_EQ(found("f", "\x89HDF\r\n\x1a\n"), "an HDF5 file" + suffix);
  EXPECT_EQ(found("g.onnx", "\x08\x07\x12\x07pytorch"), "an ONNX model" + suffix);
  EXPECT_EQ(found("h", "\x1c\x00\x00\x00TFL3...."s), "a TensorFlow Lite model" + suffix);
  EXPECT_EQ(found("i", "7z\xBC\xAF\x27\x1C"), "a 7z archive" + suffix);
  EXPECT_EQ(found("j", "\x1F\x8B\x08"), "a gzip archive" + suffix);
  EXPECT_EQ(found("l", "tjgg\x03"), "a GGML file, older than GGUF" + suffix);
  EXPECT_EQ(found("m.bin", "\x01\x02\x03\x04\x05"), "a file of no known kind");
  EXPECT_EQ(found("m.pt", "not a model\n"), "a text file that begins \"not a model\"");
  EXPECT_EQ(found("m.safetensors", "\n{\"error\":\"Répondez plus tard\"}\n0123456789"),
            "a text file that begins \"{\"error\":\"Répondez plus tard\"}\"");
  EXPECT_EQ(found("m.ckpt", std::string(59, 'a') + "é" + std::string(600, 'b')),
            "a text file that begins \"" + std::string(59, 'a') + "…\"");
  // 512 bytes end within a character.
  EXPECT_EQ(found("m.pt", std::string("a\n") + std::string(509, 'a') + "é"),
            "a text file that begins \"a\"");
}

TEST_F(OpenCheckpointTest, GoesByContentAndWarnsOfTheEnding) {
  const auto checkpoint = OpenCheckpoint(MakeFile("a.gguf", kOneFloat));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(checkpoint->tensors.size(), 1U);
  EXPECT_EQ(VerdictOf(*checkpoint), FileVerdict::kAcceptWithWarning);
}

TEST_F(OpenCheckpointTest, ChoosesTheModelOfAFolder) {
  EXPECT_EQ(ErrorLine(OpenCheckpoint(Folder())),
            Folder().string() +
                " | no model in this folder | expected safetensors, GGUF, files of PyTorch or "
                "NumPy, a checkpoint of several ranks, or a config.json | name the folder that "
                "holds the model's files");
  std::filesystem::create_directory(PathTo("unet"));
  MakeFile("unet/a.safetensors", kOneFloat);
  EXPECT_EQ(OpenCheckpoint(Folder()).error().text.hint,
            "these folders have one: " + PathTo("unet"));
  MakeFile("config.json", "{}");
  EXPECT_TRUE(OpenCheckpoint(Folder())->tensors.empty());
  MakeFile("a.safetensors", kOneFloat);
  EXPECT_EQ(OpenCheckpoint(Folder())->tensors.size(), 1U);
  MakeFile("b.safetensors", kOneFloat);
  EXPECT_EQ(OpenCheckpoint(Folder()).error().text.found,
            "several models: a.safetensors, b.safetensors");
  MakeFile("model.safetensors", kOneFloat);
  EXPECT_EQ(OpenCheckpoint(Folder())->files.front().name, "model.safetensors");
}

// What Trainer of transformers writes beside the weights, and a second copy of them.
TEST_F(OpenCheckpointTest, NamesThePicklesThatItDidNotRead) {
  MakeFile("model.safetensors", kOneFloat);
  for (const char* name : {"training_args.bin", "optimizer.pt", "rng_state.pth", "config.json",
                           "pytorch_model.bin", "vocab.txt", "zero_to_fp32.py"}) {
    MakeFile(name, "{}");
  }
  const auto not_read = [&] {
    const Checkpoint checkpoint = *OpenCheckpoint(Folder());
    std::string names;
    for (const auto& [key, value] : checkpoint.facts) {
      for (const Json& name : key == "not_read" ? *value.AsArray() : Json::Array()) {
        names += *name.AsString() + " ";
      }
    }
    return names;
  };
  EXPECT_EQ(not_read(), "optimizer.pt pytorch_model.bin rng_state.pth training_args.bin ");
  std::filesystem::remove(PathTo("model.safetensors"));
  EXPECT_EQ(not_read(), "optimizer.pt rng_state.pth training_args.bin ");  // the .bin is read
}

// Megatron-LM keeps common.pt beside the chunks.
TEST_F(OpenCheckpointTest, NamesThePicklesInTheLatestFolder) {
  std::filesystem::copy(CasePath("dcp/grid"), PathTo("iter_0000007"));
  MakeFile("iter_0000007/common.pt", "");
  MakeFile("latest_checkpointed_iteration.txt", "7");
  const Checkpoint checkpoint = *OpenCheckpoint(Folder());
  const Json facts = Json(checkpoint.facts);
  ASSERT_NE(facts.Find("not_read"), nullptr);
  EXPECT_EQ(*facts.Find("not_read")->AsArray()->front().AsString(), "common.pt");
}

}  // namespace
}  // namespace fourpiles
