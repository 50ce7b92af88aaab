#include "tensors/npy.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "tensors/file_formats.h"
#include "tensors/npy_rules.h"
#include "tensors/test_cases.h"
#include "tensors/zip_testing.h"

namespace fourpiles {
namespace {

FileReading Read(std::string_view name, std::string_view bytes) {
  return ReadTensorFile(MemorySource(std::string(name), std::as_bytes(std::span(bytes))));
}

std::string CaseText(std::string_view name) {
  return ReadWholeFile(CasePath(name), 1 << 20).value();
}

// The verdict and the first finding.
std::string Told(const FileReading& reading) {
  const auto& findings = reading.findings;
  return std::string(Name(WorstOf(findings))) +
         (findings.empty() ? "" : ": " + ErrorLine(Error{.text = findings.front().text}));
}

// An array with that header and so many bytes of data.
std::string ArrayOf(std::string_view header, std::size_t bytes, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  AppendNumber(text, header.size(), version == 1 ? 2 : 4);
  return text.append(header).append(bytes, 'x');
}
std::string ToldOf(std::string_view header, std::size_t bytes) {
  return Told(Read("x.npy", ArrayOf(header, bytes)));
}
std::string HeaderOf(std::string_view descr) {
  return fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': (2, 3), }}\n", descr);
}

std::vector<std::int64_t> IntegersOf(const Json* array) {
  std::vector<std::int64_t> integers;
  for (const Json& each : array == nullptr ? Json::Array() : *array->AsArray()) {
    integers.push_back(*each.AsInteger());
  }
  return integers;
}

// Order of bytes and strides of every tensor of the list.
void ExpectLayout(const Json& row, const FileReading& reading) {
  for (std::size_t i = 0; i < reading.tensors.size(); ++i) {
    const FileTensor& tensor = reading.tensors[i];
    const Json& expected = (*row.Find("list")->AsArray())[i];
    EXPECT_EQ(tensor.big_endian, *expected.Find("big_endian")->AsBool()) << tensor.name;
    EXPECT_EQ(tensor.strides, IntegersOf(expected.Find("strides"))) << tensor.name;
    EXPECT_EQ(tensor.packed, TextOf(row, "file") == "types_deflated.npz");
  }
}

// NumPy 1.24.2 reads 32, and says of 33: "maximum supported dimension for an ndarray is 32".
TEST(Npy, WarnsOfMoreDimensionsThanNumPy1Reads) {
  const auto told = [](int dimensions) {
    std::string shape;
    for (int i = 0; i < dimensions; ++i) {
      shape += "1, ";
    }
    return ToldOf(
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}\n", shape), 4);
  };
  EXPECT_EQ(told(32), "accept");
  EXPECT_EQ(told(33),
            "accept-with-warning: x.npy | 33 dimensions | NumPy before 2.0 reads at most "
            "32 | ");
  EXPECT_EQ(told(64).substr(0, 19), "accept-with-warning");
  EXPECT_EQ(told(65).substr(0, 6), "refuse");
}

// Facts as another reader of the same headers told them, and NumPy of the arrays that it wrote.
TEST(Npy, GivesEveryCaseItsOutcomeAndFacts) {
  for (const Json& row : ReadCases("npy.jsonl")) {
    const std::string file = TextOf(row, "file");
    SCOPED_TRACE(file);
    const std::string text = CaseText("npy/" + file);
    const FileReading reading = Read(file, text);
    EXPECT_EQ(Name(WorstOf(reading.findings)), TextOf(row, "outcome")) << Told(reading);
    EXPECT_EQ(reading.format, file.substr(file.size() - 3));
    EXPECT_EQ(BrokenNpyRule(reading, std::ssize(text)), "");
    ExpectFacts(row, reading.tensors);
    ExpectList(row, reading.tensors);
    ExpectLayout(row, reading);
  }
}

TEST(Npy, SaysWhatIsWrong) {
  const std::string once = "expected descr, fortran_order and shape, each once | ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"bad_expression",
       "refuse: x: byte 20 | \"__import__('os').system(\" | "
       "expected a text in quotes | "},
      {"bad_extra_key", "refuse: x: byte 70 | the key \"x\" too many | " + once},
      {"bad_long", "refuse: x | 9 bytes of data | its shape and type take 8 | "},
      {"bad_negative",
       "refuse: x: byte 61 | \"-1,), }                 \" | "
       "expected a dimension from 0 on | "},
      {"bad_object",
       "report: x | objects of Python, which are kept as a pickle | "
       "expected numbers | a pickle can run code when it is read, and is not; "
       "save the array with a type of numbers"},
      {"bad_shape_overflow",
       "refuse: x | a dimension overflow: more than 2^53 elements or bytes | "
       "expected fewer | "},
      {"float8_V1",
       "accept-with-warning: x | raw bytes, whose type the file does not name; "
       "float8 and int4 are saved so | "
       "expected a type of numbers and its order of bytes | "},
      {"bfloat16_named",
       "accept-with-warning: x | raw bytes, whose type the file does not name; "
       "counted as bfloat16, which is saved so | "
       "expected a type of numbers and its order of bytes | "},
  };
  for (const auto& [name, told] : cases) {
    const std::string text = CaseText("npy/" + name + ".npy");
    EXPECT_EQ(Told(ReadNpy(MemorySource("x", std::as_bytes(std::span(text))))), told);
  }
}

TEST(Npy, RefusesOtherVersionsAndLengths) {
  const std::string good = HeaderOf("'<f4'");
  const std::string cut = " | the file may be cut short; compare its size with the source";
  EXPECT_EQ(Told(Read("x", ArrayOf(good, 24))), "accept");
  EXPECT_EQ(Told(Read("x", ArrayOf(good, 24, 2))), "accept");
  EXPECT_EQ(Told(Read("x", ArrayOf(good, 24, 3))), "accept");
  EXPECT_EQ(Told(Read("x", ArrayOf(good, 24, 9))),
            "refuse: x: byte 6 | version 9.0 | expected 1.0, 2.0 or 3.0 | ");
  EXPECT_EQ(Told(Read("x", ArrayOf(good, 24).substr(0, 9))),
            "refuse: x: byte 9 | the end of the file | expected version and length" + cut);
  EXPECT_EQ(Told(Read("x", ArrayOf(good, 24).substr(0, 40))),
            "refuse: x: byte 40 | the end of the file | expected a header up to byte 70" + cut);
  EXPECT_EQ(Told(Read("x", ArrayOf(good, 23))),
            "refuse: x | 23 bytes of data | its shape and type take 24" + cut);
  EXPECT_EQ(Told(Read("x", ArrayOf(std::string(1'000'001, ' '), 0, 2))),
            "refuse: x: byte 8 | a header of 1000001 bytes | expected at most 1000000 | ");
  EXPECT_EQ(Told(Read("x", ArrayOf(HeaderOf("[('\xFF', '<f4')]"), 24, 1))), "accept");
  EXPECT_EQ(
      Told(Read("x", ArrayOf(HeaderOf("[('\xFF', '<f4')]"), 24, 3))),
      "refuse: x: byte 25 | bytes that are no UTF-8 | expected a header of version 3 to be | ");
}

TEST(Npy, ReadsHeadersAsOthersWriteThem) {
  EXPECT_EQ(ToldOf("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4), "accept");
  EXPECT_EQ(ToldOf("{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f4\"}", 24), "accept");
  EXPECT_EQ(ToldOf("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}\n", 24), "accept");
  EXPECT_EQ(ToldOf("{'descr': '=f4', 'fortran_order': False, 'shape': (6,)}", 24),
            "accept-with-warning: x.npy | no order of bytes; taken as little-endian | "
            "expected a type of numbers and its order of bytes | ");
}

TEST(Npy, RefusesWhatIsNoHeader) {
  for (const std::string_view header : {
           "",
           "{}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 03)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.0)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1+2)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 9007199254740993)}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<f5', 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': 'float32', 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<', 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '', 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': [('a', '<f4'], 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': [('a')], 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': [('a', '<f4', (1, ), 1)], 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<U9007199254740992', 'fortran_order': False, 'shape': (2, 3)}",
       }) {
    const FileReading reading = Read("x.npy", ArrayOf(header, 24));
    EXPECT_EQ(WorstOf(reading.findings), FileVerdict::kRefuse) << header;
    EXPECT_TRUE(reading.tensors.empty()) << header;
  }
}

// Python's own parser of literals crashed on the like of it.
TEST(Npy, RefusesDeepNesting) {
  const std::string tuples = "{'descr': " + std::string(100'000, '(') + std::string(100'000, ')');
  EXPECT_EQ(WorstOf(Read("x.npy", ArrayOf(tuples, 0, 2)).findings), FileVerdict::kRefuse);
  std::string records;
  for (int i = 0; i < 50'000; ++i) {
    records += "[('a',";
  }
  EXPECT_NE(Told(Read("x.npy", ArrayOf("{'descr': " + records, 0, 2)))
                .find("records within records, more than 16"),
            std::string::npos);
  const std::string dimensions = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  std::string ones;
  for (int i = 0; i < 65; ++i) {
    ones += "1, ";
  }
  EXPECT_NE(ToldOf(dimensions + ones + ")}", 4).find("more than 64 dimensions"), std::string::npos);
}

// Objects hide in records too.
TEST(Npy, ReportsObjectsWhereverTheyAre) {
  for (const std::string_view descr :
       {"'|O'", "'O'", "[('a', '<f4'), ('b', '|O')]", "[('a', [('b', '|O', (2,))])]"}) {
    const FileReading reading = Read("x.npy", ArrayOf(HeaderOf(descr), 40));
    EXPECT_EQ(WorstOf(reading.findings), FileVerdict::kReport) << descr;
    EXPECT_TRUE(reading.tensors.empty()) << descr;
  }
}

TEST(Npz, SaysWhichMemberIsWrong) {
  const std::string good = ArrayOf(HeaderOf("'<f4'"), 24);
  const auto told = [](const std::vector<MadeMember>& members) {
    const FileReading reading = Read("x.npz", MakeZip(members));
    std::string names;
    for (const FileTensor& tensor : reading.tensors) {
      names += tensor.name + " ";
    }
    return names + Told(reading);
  };
  EXPECT_EQ(told({MakeMember("a.npy", good), MakeMember("b.npy", good, true)}), "a b accept");
  EXPECT_EQ(told({MakeMember("a.npy", good + "x"), MakeMember("b.npy", good)}),
            "b refuse: x.npz: member \"a.npy\" | 25 bytes of data | its shape and type take 24 | ");
  EXPECT_EQ(told({MakeMember("a.npy", "none"), MakeMember("b.npy", good)}),
            "b refuse: x.npz: member \"a.npy\": byte 0 | no array of NumPy | "
            "expected the bytes \"\\x93NUMPY\" | ");
  EXPECT_EQ(
      told({MakeMember("folder/", ""), MakeMember("readme", "none"), MakeMember("b.npy", good)}),
      "b accept-with-warning: x.npz: member \"readme\" | no array of NumPy | "
      "expected arrays alone | it is left out");
  EXPECT_EQ(told({MakeMember("a.npy", good), MakeMember("a", good)}),
            "a a refuse: x.npz: tensor \"a\" | a second time | expected each name once | ");
  EXPECT_EQ(told({MakeMember("../a.npy", good)}),
            "../a report: x.npz: member \"../a.npy\" at byte 0 | "
            "a name that is no path within a folder | expected no \"..\", root or \"\\\" | ");
  MadeMember damaged = MakeMember("a.npy", good);
  damaged.data.back() = 'y';
  EXPECT_EQ(told({damaged}).substr(0, 56),
            "refuse: x.npz: member \"a.npy\" | bytes of the CRC " + told({damaged}).substr(49, 7));
  EXPECT_EQ(Told(Read("x.npz", "PK\x03\x04" + std::string(40, ' '))),
            "refuse: x.npz | a zip archive without the directory at its end | "
            "expected an end record | the file may be cut short, or hold something else beside the "
            "archive");
}

// 64 MiB of zeros in 64 KiB: the header tells all that is asked.
TEST(Npz, ListsABombAndWarns) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (16777216,), }";
  const std::string array = ArrayOf(header, 0) + std::string(std::size_t{64} << 20, '\0');
  const FileReading reading = Read("x.npz", MakeZip({MakeMember("a.npy", array, true)}));
  EXPECT_EQ(WorstOf(reading.findings), FileVerdict::kAcceptWithWarning);
  ASSERT_EQ(reading.tensors.size(), 1U);
  EXPECT_EQ(reading.tensors[0].bytes, 67'108'864);
  EXPECT_TRUE(reading.tensors[0].packed);
}

// A hundred headers of 1 MB in 100 KB: reading each is little, reading all is not.
TEST(Npz, ReadsSoMuchOfLongHeaders) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }";
  header.resize(999'988, ' ');  // with its prefix 1,000,000
  const std::string array = std::string("\x93NUMPY\x02\x00\x34\x42\x0f\x00", 12) + header + "x";
  std::vector<MadeMember> members(101, MakeMember("", array, true));
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].local.name = members[i].central.name = std::to_string(i) + ".npy";
  }
  const FileReading reading = Read("x.npz", MakeZip(members));
  EXPECT_EQ(reading.tensors.size(), 100U);
  EXPECT_EQ(Told(reading),
            "refuse: x.npz: member \"100.npy\" | a long header, as many members before it have | "
            "expected at most 100000000 bytes of them | ");
}

// The first member tells an archive of arrays from others.
TEST(Npz, IsToldByItsContent) {
  const std::string array = ArrayOf(HeaderOf("'<f4'"), 24);
  EXPECT_EQ(Read("x.zip", MakeZip({MakeMember("a.npy", array)})).format, "npz");
  EXPECT_EQ(Read("x.npz", MakeZip({})).format, "npz");
  EXPECT_NE(Read("x.zip", MakeZip({MakeMember("a", array)})).format, "npz");
}

// A cut file is refused; whatever bit is turned, what is told lies within the file.
TEST(Npy, StandsEveryCutAndEveryTurnedBit) {
  for (const Json& row : ReadCases("npy.jsonl")) {
    const std::string file = TextOf(row, "file");
    SCOPED_TRACE(file);
    std::string text = CaseText("npy/" + file);
    if (text.size() > 300 || TextOf(row, "outcome") == "refuse") {
      continue;
    }
    const auto read = [&](std::string_view bytes) {
      const MemorySource source("x", std::as_bytes(std::span(bytes)));
      return file.ends_with("npz") ? ReadNpz(source) : ReadNpy(source);
    };
    for (std::size_t size = 0; size < text.size(); ++size) {
      const FileVerdict verdict = WorstOf(read(text.substr(0, size)).findings);
      EXPECT_GE(verdict, FileVerdict::kReport) << size;  // objects are reported however many
    }
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
      const auto mask = static_cast<char>(1U << bit % 8);
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
      EXPECT_EQ(BrokenNpyRule(read(text), std::ssize(text)), "") << bit;
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    }
  }
}

// The same of an archive with a stored and a deflated array.
TEST(Npz, StandsEveryCutAndEveryTurnedBit) {
  const std::string array = ArrayOf(HeaderOf("'<f4'"), 24);
  std::string text = MakeZip({MakeMember("a.npy", array), MakeMember("b.npy", array, true)});
  ASSERT_EQ(Read("x.npz", text).tensors.size(), 2U);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(WorstOf(Read("x.npz", text.substr(0, size)).findings), FileVerdict::kRefuse) << size;
  }
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    const auto mask = static_cast<char>(1U << bit % 8);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    EXPECT_EQ(BrokenNpyRule(Read("x.npz", text), std::ssize(text)), "") << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
}

}  // namespace
}  // namespace fourpiles
