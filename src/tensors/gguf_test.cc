#include "tensors/gguf.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tensors/gguf_testing.h"

namespace fourpiles {
namespace {

Json Listed(const std::vector<FileTensor>& tensors) {
  Json::Array list;
  for (const FileTensor& tensor : tensors) {
    list.emplace_back(Json::Object{{"name", tensor.name},
                                   {"dtype", tensor.dtype},
                                   {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())},
                                   {"bytes", tensor.bytes},
                                   {"offset", tensor.offset}});
  }
  return list;
}

// The facts of a case, in the words of the case.
Json::Object CaseFacts(const FileReading& reading) {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  std::map<std::string, std::int64_t> dtypes;
  for (const FileTensor& tensor : reading.tensors) {
    bytes += tensor.bytes;
    elements += tensor.elements;
    ++dtypes[tensor.dtype];
  }
  Json::Object dtype_counts;
  for (const auto& [dtype, count] : dtypes) {
    dtype_counts.emplace_back(dtype, count);
  }
  const Json facts = reading.facts;
  const auto fact = [&facts](std::string_view key) {
    return facts.Find(key) == nullptr ? Json() : *facts.Find(key);
  };
  return {{"tensors", static_cast<std::int64_t>(reading.tensors.size())},
          {"bytes", bytes},
          {"params", elements},
          {"version", fact("version")},
          {"endian", fact("endian")},
          {"kv", fact("metadata_keys")},
          {"arch", fact("architecture")},
          {"alignment", fact("alignment")},
          {"data_start", fact("data_start")},
          {"dtypes", dtype_counts},
          {"list", Listed(reading.tensors)}};
}

// Verdicts, facts and lists come with the files; they were not made with this reader.
TEST(Gguf, ReadsTheCasesAsTheirFactsSay) {
  const std::vector<Json> rows = ReadRows(kCases + "gguf.jsonl");
  EXPECT_EQ(rows.size(), 35U);
  for (const Json& row : rows) {
    const std::string file = *row.Find("file")->AsString();
    SCOPED_TRACE(file);
    const std::string text = FileText(kCases + "gguf/" + file);
    const FileReading reading = ReadText(text);
    EXPECT_EQ(Name(WorstOf(reading.findings)), *row.Find("outcome")->AsString());
    EXPECT_EQ(BrokenRule(reading, static_cast<std::int64_t>(text.size())), "");
    if (*row.Find("outcome")->AsString() == "refuse") {
      continue;
    }
    for (const auto& [key, value] : CaseFacts(reading)) {
      EXPECT_EQ(WriteJson(value), WriteJson(*row.Find(key))) << key;
    }
  }
}

struct CaseLine {
  std::string_view name;
  std::string line;
};

// The first finding of each faulty case, in full.
void ExpectFirstLines(const std::vector<CaseLine>& cases) {
  for (const auto& [name, line] : cases) {
    const FileReading reading = ReadText(FileText(fmt::format("{}gguf/{}.gguf", kCases, name)));
    const std::string_view verdict = Name(WorstOf(reading.findings));
    ASSERT_FALSE(reading.findings.empty()) << name;
    EXPECT_EQ(Lines(reading)[0], fmt::format("{}: {}", verdict, line)) << name;
  }
}

TEST(Gguf, SaysWhatIsWrongWithHeaders) {
  const std::string no_place = "where the tensors lie cannot be told";
  const std::string older = "convert it with the convert-llama-ggml-to-gguf.py of an old llama.cpp";
  const std::string odd = "the file is damaged, or newer than this version of fourpiles";
  ExpectFirstLines({
      {"bad_utf8_string",
       "x: byte 82 | a string that is no UTF-8 at its byte 0 (of key \"k\") |  | "
       "it is shown with its bytes written out"},
      {"uppercase_key",
       "x: key \"Bad Key\n\" | a key that breaks the naming rule | expected "
       "lower-case letters, digits, \".\" and \"_\" | "},
      {"bad_alignment_0",
       "x: key \"general.alignment\" | alignment 0 | "
       "expected a power of two up to 2^30 | " +
           no_place},
      {"bad_alignment_48",
       "x: key \"general.alignment\" | alignment 48 | "
       "expected a power of two up to 2^30 | " +
           no_place},
      {"bad_alignment_as_string",
       "x: key \"general.alignment\" | alignment type string | "
       "expected uint32 | " +
           no_place},
      {"bad_array_bad_type",
       "x: byte 37 | array type 13 (of key \"k\") | expected one from 0 to 12 | " + odd},
      {"bad_array_len_huge",
       "x: byte 41 | an array of 4611686018427387904 elements (uint32), past "
       "the end of the file (of key \"k\") | expected at most 3 in the 15 "
       "bytes that follow | " +
           kCut},
      {"bad_bool_2", "x: byte 82 | a bool of 2 (of key \"k\") | expected 0 or 1 | "},
      {"bad_ggjt_old", "x | a GGJT file, a format older than GGUF | expected GGUF | " + older},
      {"bad_ggml_old", "x | a GGML file, a format older than GGUF | expected GGUF | " + older},
      {"bad_magic_only",
       "x: byte 4 | the end of the file in the version | "
       "expected 4 more bytes, not 0 | " +
           kCut},
      {"bad_n_kv_2_63",
       "x: byte 16 | 9223372036854775809 keys, past the end of the file | "
       "expected at most 20 | " +
           kCut},
      {"bad_through_utf8",
       "x: byte 102 | the name of a tensor of 655360 bytes, past the end of the "
       "file | expected at most 288 | " +
           kCut},
      {"bad_value_type_13",
       "x: byte 33 | value type 13 (of key \"k\") | expected one from 0 to 12 | " + odd},
  });
  const auto mangled = ReadText(FileText(kCases + "gguf/bad_through_utf8.gguf"));
  EXPECT_EQ(Lines(mangled).back(),
            "refuse: x | bytes EF BF BD in place of others: a program took the file for text |  | "
            "get the file again, without conversion of text");
}

TEST(Gguf, SaysWhatIsWrongWithTensors) {
  const std::string ggml = "llama.cpp will refuse the file";
  ExpectFirstLines({
      {"infos_out_of_order",
       "x: tensor \"a\" | infos out of order: its data lies before that of "
       "tensor \"b\" | expected infos in the order of the data | " +
           ggml},
      {"name_65", "x: tensor \"" + std::string(65, 'n') +
                      "\" | a name of 65 bytes | expected fewer than 64 | " + ggml},
      {"bad_dims_negative",
       "x: tensor \"a\" | dimension overflow: 18446744073709551615 | "
       "expected at most 2^53 | "},
      {"bad_dims_overflow",
       "x: tensor \"a\" | dimension overflow: [4294967296, 4294967296] | "
       "expected at most 2^53 elements | "},
      {"bad_overlap",
       "x: tensor \"b\" | overlaps tensor \"a\": begins at byte 192 | "
       "expected byte 224 or later | "},
      {"bad_pad_overflow",
       "x: tensor \"a\" | dimension overflow: 4611686018427387903 | "
       "expected at most 2^53 | "},
      {"bad_sum_overflow",
       "x: tensor \"a\" | dimension overflow: 1152921504606846976 | "
       "expected at most 2^53 | "},
      {"bad_truncated_data",
       "x: tensor \"out.weight\" | tensor data past the end of the file: Q4_0 "
       "[2, 32], 36 bytes from byte 256 | the file ends at byte 291 | " +
           kCut},
  });
}

TEST(Gguf, NamesUnknownTypes) {
  const std::string up_to =
      "its bytes are counted up to the next tensor; its values cannot be read";
  const auto type = [&up_to](std::string_view words) {
    return fmt::format("x: tensor \"x\" | tensor type {} | expected a type of ggml | {}", words,
                       up_to);
  };
  ExpectFirstLines({
      {"bad_type_255", type("255 (a number of ik_llama.cpp)")},
      {"bad_type_31", type("31 (Q4_0_4_4, removed from ggml)")},
      {"bad_type_36", type("36 (I2_S of BitNet)")},
      {"bad_type_4", type("4 (Q4_2, removed from ggml)")},
      {"bad_type_4294967295", type("4294967295")},
      {"bad_type_43", type("43")},
      {"bad_type_5", type("5 (Q4_3, removed from ggml)")},
  });
}

// The same two tensors in each version and order of bytes.
TEST(Gguf, ReadsEachVersionInEachOrderOfBytes) {
  for (const std::uint32_t version : {1U, 2U, 3U}) {
    for (const bool big_endian : {false, true}) {
      Builder file(2, 3, {big_endian, version});
      file.Key("general.architecture", "llama").Key("llama.block_count", kGgufUint16, 258, 2);
      file.ArrayKey("tokenizer.ggml.tokens", kGgufString, 2).Text("a").Text("bc");
      file.Info("a", {64, 2}, 2, 0).Info("b", {3}, 0, 96);
      const FileReading reading = ReadText(file.Data(128));
      const auto start = static_cast<std::int64_t>(file.Data(0).size());
      EXPECT_EQ(Lines(reading), LinesOf{});
      EXPECT_EQ(ListText(reading),
                fmt::format("a Q4_0 [2,64,] {}+72\nb F32 [3,] {}+12\n", start, start + 96));
      EXPECT_EQ(WriteJson(reading.facts),
                WriteJson(Json::Object{{"version", std::int64_t{version}},
                                       {"endian", big_endian ? "big" : "little"},
                                       {"metadata_keys", 3},
                                       {"architecture", "llama"},
                                       {"alignment", 32},
                                       {"vocabulary", 2},
                                       {"data_start", start}}));
      EXPECT_EQ(*reading.metadata[1].value.AsInteger(), 258);
      EXPECT_TRUE(reading.metadata[2].value.IsNull());
      EXPECT_EQ(reading.metadata[2].array_length, 2);
    }
  }
}

TEST(Gguf, RefusesOtherVersionsAndOtherFiles) {
  EXPECT_EQ(Lines(ReadText("GGUF" + std::string("\4\0\0\0", 4))),
            LinesOf{"refuse: x: byte 4 | version 4 | expected 1 to 3 | "});
  EXPECT_EQ(Lines(ReadText("GGUF" + std::string(4, '\0'))),
            LinesOf{"refuse: x: byte 4 | version 0 | expected 1 to 3 | "});
  EXPECT_EQ(Lines(ReadText("fmgg    ")).at(0).substr(0, 24), "refuse: x | a GGMF file,");
  EXPECT_EQ(
      Lines(ReadText("ABCD")),
      LinesOf{"refuse: x: byte 0 | the bytes \"ABCD\": an unknown format | expected \"GGUF\" | "});
  EXPECT_EQ(Lines(ReadText("")), LinesOf{"refuse: x: byte 0 | the end of the file in the header | "
                                         "expected 4 more bytes, not 0 | " +
                                         kCut});
}

// Where the last byte of a file's header or of its last tensor lies.
std::size_t EndOf(const std::string& text) {
  const FileReading reading = ReadText(text);
  std::int64_t end = 0;
  for (const FileTensor& tensor : reading.tensors) {
    end = std::max(end, tensor.offset + tensor.bytes);
  }
  return reading.tensors.empty() ? text.size() : static_cast<std::size_t>(end);
}

void ExpectEachCutIsRefused(std::string_view text, std::size_t end) {
  for (std::size_t size = 0; size < text.size(); ++size) {
    const FileReading reading = ReadText(text.substr(0, size));
    EXPECT_EQ(BrokenRule(reading, static_cast<std::int64_t>(size)), "") << size;
    EXPECT_TRUE(size >= end || WorstOf(reading.findings) == FileVerdict::kRefuse) << size;
  }
}

void ExpectRulesWithEachBitFlipped(std::string text) {
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    const auto mask = static_cast<char>(1U << bit % 8);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    EXPECT_EQ(BrokenRule(ReadText(text), static_cast<std::int64_t>(text.size())), "") << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
}

TEST(Gguf, SurvivesCutsAndFlippedBitsOfGoodFiles) {
  for (const Json& row : ReadRows(kCases + "gguf.jsonl")) {
    if (*row.Find("outcome")->AsString() != "refuse") {
      SCOPED_TRACE(*row.Find("file")->AsString());
      const std::string text = FileText(kCases + "gguf/" + *row.Find("file")->AsString());
      ExpectEachCutIsRefused(text, EndOf(text));
      ExpectRulesWithEachBitFlipped(text);
    }
  }
}

}  // namespace
}  // namespace fourpiles
