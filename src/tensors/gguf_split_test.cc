#include "tensors/gguf_split.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/byte_source.h"
#include "base/testing.h"
#include "tensors/gguf.h"

namespace fourpiles {
namespace {

using Lines = std::vector<std::string>;

TEST(GgufSplit, ReadsAndWritesTheNamesOfParts) {
  EXPECT_EQ(ParseSplitName("m-00002-of-00003.gguf"), (SplitName{"m", 2, 3}));
  EXPECT_EQ(ParseSplitName("m-00002-of-00003.safetensors"), (SplitName{"m", 2, 3, ".safetensors"}));
  EXPECT_EQ(ParseSplitName("m-00002-of-00003.bin"), (SplitName{"m", 2, 3, ".bin"}));
  EXPECT_EQ(ParseSplitName("a-b-00001-of-00001-00100-of-123456.gguf"),
            (SplitName{"a-b-00001-of-00001", 100, 123456}));
  EXPECT_EQ(SplitFileName({"m", 2, 3}), "m-00002-of-00003.gguf");
  EXPECT_EQ(SplitFileName({"m", 100000, 123456}), "m-100000-of-123456.gguf");
  for (const std::string_view name :
       {"", "m.gguf", "m-00002-of-00003", "m-0002-of-00003.gguf", "m-000002-of-000003.gguf",
        "m-00004-of-00003.gguf", "m-00000-of-00003.gguf", "m00001-of-00003.gguf",
        "m-00001of-00003.gguf", "m-00001-of-99999999999999999999.gguf", "-of-00003.gguf",
        "m-00002-of-00003.onnx", "00003.gguf"}) {
    EXPECT_FALSE(ParseSplitName(name).has_value()) << name;
  }
}

struct Part {
  std::string name;
  Json::Object facts;
  std::int64_t tensors;
};

Part MakePart(std::string name, std::int64_t number, std::int64_t count, std::int64_t tensors = 1,
              std::int64_t tensors_in_all = 2) {
  return {std::move(name),
          {{"split_no", number}, {"split_count", count}, {"split_tensors", tensors_in_all}},
          tensors};
}

Lines Check(const std::vector<Part>& parts) {
  std::vector<SplitPart> views;
  for (const Part& part : parts) {
    views.push_back({part.name, part.facts, part.tensors});
  }
  Lines lines;
  for (const Finding& finding : CheckSplit(views)) {
    EXPECT_EQ(finding.verdict, FileVerdict::kRefuse);
    lines.push_back(ErrorLine(Error{.text = finding.text}));
  }
  return lines;
}

// The files of a folder, each read on its own without a finding.
std::vector<Part> ReadParts(const std::string& folder) {
  std::vector<Part> parts;
  const std::string path = FOURPILES_TEST_DATA "/cases/gguf_split/" + folder;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    FileReading reading = ReadGguf(FileSource::Open(entry.path().string()).value());
    EXPECT_TRUE(reading.findings.empty()) << entry.path();
    parts.push_back({entry.path().filename().string(), std::move(reading.facts),
                     static_cast<std::int64_t>(reading.tensors.size())});
  }
  std::ranges::sort(parts, std::greater<>(), &Part::name);  // the order given does not matter
  return parts;
}

constexpr std::string_view kHint = " | the file may have been renamed, or be of another split";
std::string WithHint(std::string_view line) {
  return std::string(line) + std::string(kHint);
}

TEST(GgufSplit, TakesAWholeModelAndRefusesTheFaultyCases) {
  EXPECT_EQ(ReadParts("good").size(), 3U);
  EXPECT_EQ(Check(ReadParts("good")), Lines{});
  EXPECT_EQ(Check(ReadParts("missing_part")),
            Lines{"m-00002-of-00003.gguf | missing part; 1 of 3 are absent | "
                  "expected all parts in one folder | "});
  EXPECT_EQ(Check(ReadParts("wrong_count")),
            (Lines{WithHint("m-00001-of-00003.gguf | split.count 4 | expected 3"),
                   WithHint("m-00002-of-00003.gguf | split.count 4 | expected 3"),
                   WithHint("m-00003-of-00003.gguf | split.count 4 | expected 3")}));
  EXPECT_EQ(Check(ReadParts("wrong_order")),
            (Lines{WithHint("m-00002-of-00003.gguf | split.no 2 | expected 1"),
                   WithHint("m-00003-of-00003.gguf | split.no 1 | expected 2")}));
}

TEST(GgufSplit, RefusesOtherNamesAndDisagreeingKeys) {
  const Part first = MakePart("m-00001-of-00002.gguf", 0, 2);
  const Part second = MakePart("m-00002-of-00002.gguf", 1, 2);
  EXPECT_EQ(Check({}), Lines{});
  EXPECT_EQ(Check({first, second}), Lines{});
  EXPECT_EQ(Check({first}), Lines{"m-00002-of-00002.gguf | missing part; 1 of 2 are absent | "
                                  "expected all parts in one folder | "});
  EXPECT_EQ(Check({first, second, second})[0],
            "m-00002-of-00002.gguf | given twice | expected each part once | ");
  EXPECT_EQ(Check({first, second, MakePart("n-00001-of-00002.gguf", 0, 2)}),
            Lines{"n-00001-of-00002.gguf | a part of another model | "
                  "expected a name like m-00001-of-00002.gguf | "});
  EXPECT_EQ(Check({first, second, MakePart("m.gguf", 0, 2)}),
            Lines{"m.gguf | a name that is no part's | expected NAME-00001-of-00002.gguf | "
                  "give parts under the names that they were made with"});
  EXPECT_EQ(Check({first, {second.name, {{"split_no", 1}}, 1}}),
            Lines{WithHint("m-00002-of-00002.gguf | no key split.count | expected 2")});
  EXPECT_EQ(Check({first, MakePart("m-00002-of-00002.gguf", 1, 2, 5)}),
            (Lines{WithHint("m-00001-of-00002.gguf | split.tensors.count 2 | expected 6"),
                   WithHint("m-00002-of-00002.gguf | split.tensors.count 2 | expected 6")}));
}

// The gap is counted, not walked.
TEST(GgufSplit, CountsManyMissingParts) {
  EXPECT_EQ(Check({MakePart("m-00002-of-999999999.gguf", 1, 999999999)}),
            Lines{"m-00001-of-999999999.gguf | missing part; 999999998 of 999999999 are absent | "
                  "expected all parts in one folder | "});
}

}  // namespace
}  // namespace fourpiles
