#include "tensors/safetensors.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing.h"
#include "tensors/quantised.h"
#include "tensors/test_cases.h"

namespace fourpiles {
namespace {

// A file with that header; its length is set before it.
std::string FileOf(std::string_view header, std::string_view data = {}) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file += static_cast<char>(header.size() >> (8 * i) & 0xFFU);
  }
  return file.append(header).append(data);
}

FileReading Read(const std::string& bytes) {
  return ReadSafetensors(MemorySource("x", std::as_bytes(std::span(bytes))));
}

// The verdict and the first finding, "refuse: WHERE | FOUND | EXPECTED | HINT".
std::string FirstFinding(const std::string& bytes) {
  const FileReading reading = Read(bytes);
  return std::string(Name(WorstOf(reading.findings))) +
         (reading.findings.empty()
              ? ""
              : ": " + ErrorLine(Error{.text = reading.findings.front().text}));
}

TEST(Safetensors, GivesEveryCaseItsOutcomeAndFacts) {
  for (const Json& row : ReadCases("safetensors.jsonl")) {
    SCOPED_TRACE(TextOf(row, "file"));
    const auto source = FileSource::Open(CasePath("safetensors/" + TextOf(row, "file")));
    ASSERT_TRUE(source.has_value());
    const FileReading reading = ReadSafetensors(*source);
    EXPECT_EQ(Name(WorstOf(reading.findings)), TextOf(row, "outcome"));
    ExpectFacts(row, reading.tensors);
    ExpectList(row, reading.tensors);
    for (const auto& [key, value] : reading.facts) {
      if (const Json* expected = row.Find(key)) {
        EXPECT_EQ(*value.AsInteger(), *expected->AsInteger()) << key;
      }
    }
  }
}

TEST(Safetensors, SaysWhatIsWrong) {
  EXPECT_EQ(FirstFinding("1234"),
            "refuse: x: byte 0 | 4 bytes in all | expected 8 that give the length of the header | "
            "the download may have been cut short; fetch the file again");
  EXPECT_EQ(
      FirstFinding(FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234")),
      "refuse: x: byte 66 | the file ends, and 1 of 1 tensors reach beyond | expected 70 bytes "
      "in all | the download may have been cut short; fetch the file again");
  EXPECT_EQ(
      FirstFinding(FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234")),
      "refuse: x: tensor \"a\" | 4 bytes of data | its shape and dtype take 8 bytes | ");
  EXPECT_EQ(FirstFinding(FileOf(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "12")),
            "refuse: x: tensor \"a\" | 2 bytes of data | its shape and dtype take 12 bits, which "
            "fill no whole bytes | ");
  EXPECT_EQ(FirstFinding(FileOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                                "123")),
            "refuse: x: tensor \"b\" | data from byte 115 of the file | no tensor covers the bytes "
            "from 114 on | ");
  EXPECT_EQ(FirstFinding(FileOf(R"({"__metadata__":{"epoch":3}})")),
            "refuse: x: __metadata__.epoch | 3 | expected a string | ");
  // safetensors issue 466
  EXPECT_NE(FirstFinding(FileOf(R"({},"__metadata__":{"format":"pt"}})")).find("0.4.3"),
            std::string::npos);
}

// Finer than the three dtypes of the cases: tensor.rs, enum Dtype, the sizes of bitsize().
TEST(Safetensors, KnowsEveryDtype) {
  const std::pair<const char*, int> kBits[] = {
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64},
  };
  for (const auto& [dtype, bits] : kBits) {
    const int bytes = bits * 8 / 8;  // of eight elements
    const std::string header = std::string(R"({"a":{"dtype":")") + dtype +
                               R"(","shape":[8],"data_offsets":[0,)" + std::to_string(bytes) +
                               "]}}";
    EXPECT_EQ(FirstFinding(FileOf(header, std::string(static_cast<std::size_t>(bytes), 'x'))),
              "accept")
        << dtype;
  }
}

TEST(Safetensors, ListsATensorOfAnUnknownDtype) {
  const FileReading reading = Read(
      FileOf(R"({"a":{"dtype":"F128","shape":[1],"data_offsets":[0,16]}})", std::string(16, 'x')));
  EXPECT_EQ(WorstOf(reading.findings), FileVerdict::kRefuse);
  ASSERT_EQ(reading.tensors.size(), 1U);
  EXPECT_EQ(reading.tensors[0].dtype, "F128");
  EXPECT_EQ(reading.tensors[0].bytes, 16);
  EXPECT_EQ(reading.tensors[0].type, nullptr);
}

TEST(Safetensors, RefusesDeepNestingWithoutRecursion) {
  const std::string deep = R"({"a":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_EQ(WorstOf(Read(FileOf(deep)).findings), FileVerdict::kRefuse);
}

// Twenty faults tell of a thousand, and one line how many more there are.
TEST(Safetensors, KeepsFewFindings) {
  std::string header = "{";
  for (int i = 0; i < 1000; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":null";
  }
  EXPECT_EQ(Read(FileOf(header + "}")).findings.size(), 21U);
}

std::vector<std::string> SmallGoodFiles() {
  std::vector<std::string> files;
  for (const Json& row : ReadCases("safetensors.jsonl")) {
    if (TextOf(row, "outcome") != "refuse") {
      files.push_back("safetensors/" + TextOf(row, "file"));
    }
  }
  for (const Json& row : ReadCases("quant.jsonl")) {
    files.push_back("quant/" + TextOf(row, "folder") + "/model.safetensors");
  }
  return files;
}

// A file that is cut is refused, wherever the cut; and whatever bit of a header is turned, what is
// told lies within the file, and what packed weights mean can be asked.
TEST(Safetensors, StandsEveryCutAndEveryTurnedBit) {
  for (const std::string& name : SmallGoodFiles()) {
    const std::string whole = *ReadWholeFile(CasePath(name), 1'000'000);
    const auto header = static_cast<std::size_t>(*Read(whole).facts[1].second.AsInteger());
    for (std::size_t length = 0; length < header; ++length) {
      EXPECT_EQ(WorstOf(Read(whole.substr(0, length)).findings), FileVerdict::kRefuse) << length;
    }
    EXPECT_EQ(WorstOf(Read(whole.substr(0, whole.size() - 1)).findings), FileVerdict::kRefuse);
    for (std::size_t bit = 0; bit < header * 8; ++bit) {
      std::string turned = whole;
      turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ (1 << bit % 8));
      Checkpoint checkpoint = {.tensors = Read(turned).tensors};
      for (const FileTensor& tensor : checkpoint.tensors) {
        EXPECT_LE(tensor.offset + tensor.bytes, static_cast<std::int64_t>(turned.size())) << bit;
      }
      checkpoint.files.push_back(
          {.source = std::make_shared<MemorySource>("x", std::as_bytes(std::span(turned)))});
      EXPECT_EQ(StoredWeightsOf(checkpoint).tensors.size(), checkpoint.tensors.size());
    }
  }
}

}  // namespace
}  // namespace fourpiles
