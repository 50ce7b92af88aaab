#include "tensors/gguf_infos.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tensors/gguf_testing.h"

namespace fourpiles {
namespace {

struct Oddity {
  std::string bytes;
  std::string tensors;
  LinesOf lines;
};

void ExpectOddities(const std::vector<Oddity>& oddities) {
  for (const Oddity& oddity : oddities) {
    const FileReading reading = ReadText(oddity.bytes);
    EXPECT_EQ(Lines(reading), oddity.lines);
    EXPECT_EQ(ListText(reading), oddity.tensors);
    EXPECT_EQ(BrokenRule(reading, static_cast<std::int64_t>(oddity.bytes.size())), "");
  }
}

TEST(Gguf, WarnsOfWhatLlamaCppRefuses) {
  const std::string ggml = "llama.cpp will refuse the file";
  ExpectOddities({
      {Builder(2, 0).Info("a", {8}, 0, 0).Info("b", {8}, 0, 96).Data(128),
       "a F32 [8,] 96+32\nb F32 [8,] 192+32\n",
       {"accept-with-warning: x: byte 128 | a gap: 64 bytes between tensors belong to none | "
        "expected tensors one behind the other | " +
        ggml}},
      {Builder(1, 0).Info("a", {8}, 0, 0).Data(33),
       "a F32 [8,] 64+32\n",
       {"accept-with-warning: x: byte 96 | 1 trailing bytes that belong to no tensor | "
        "expected the end of the file | "}},
      {Builder(0, 0).Data(1),
       "",
       {"accept-with-warning: x: byte 32 | 1 trailing bytes that belong to no tensor | "
        "expected the end of the file | "}},
      {Builder(1, 0).Info("a", {1, 1, 1, 1, 2}, 0, 0).Data(8),
       "a F32 [2,1,1,1,1,] 96+8\n",
       {"accept-with-warning: x: tensor \"a\" | 5 dimensions | expected at most 4 | " + ggml}},
      {Builder(1, 0).Info("\xff", {2}, 0, 0).Data(8),
       "\xff F32 [2,] 64+8\n",
       {"accept-with-warning: x: tensor \"\xff\" | a name that is no UTF-8 | "
        "expected UTF-8 text | "}},
      {Builder(1, 1).Key("general.alignment", kGgufUint32, 4, 4).Info("a", {2}, 0, 0).Data(8, 4),
       "a F32 [2,] 92+8\n",
       {"accept-with-warning: x: key \"general.alignment\" | alignment 4 | "
        "expected a multiple of 8 | "}},
  });
  // Names of architectures have hyphens.
  EXPECT_EQ(Lines(ReadText(Builder(0, 1).Key("command-r.block_count", kGgufUint32, 1, 4).Bytes())),
            LinesOf{});
}

TEST(Gguf, RefusesTensorsThatCannotBeTrustedAndListsTheOthers) {
  ExpectOddities({
      {Builder(2, 0).Info("a", {33}, 2, 0).Info("b", {32}, 2, 64).Data(96),
       "b Q4_0 [32,] 160+18\n",
       {"refuse: x: tensor \"a\" | rows of 33 elements | "
        "expected a multiple of 32, the block of Q4_0 | "}},
      {Builder(2, 0).Info("a", {8}, 0, 0).Info("", {}, 0, 0).Data(32),
       "a F32 [8,] 96+32\n",
       {"refuse: x: tensor \"\" | an empty name | expected a name | "
        "padding may have been taken for a tensor: compare the number of tensors"}},
      {Builder(1, 0).Info("a", {}, 2, 0).Data(32),
       "",
       {"refuse: x: tensor \"a\" | rows of 1 elements | "
        "expected a multiple of 32, the block of Q4_0 | "}},
      {Builder(2, 0).Info("a", {8}, 0, 4).Info("b", {8}, 0, 32).Data(64),
       "b F32 [8,] 128+32\n",
       {"refuse: x: tensor \"a\" | misaligned offset 4 | expected a multiple of 32 | "}},
      {Builder(2, 0).Info("a", {8}, 0, 0).Info("b", {8}, 0, UINT64_MAX - 31).Data(32),
       "a F32 [8,] 96+32\n",
       {"refuse: x: tensor \"b\" | tensor data past the end of the file: offset "
        "18446744073709551584 | expected an offset in the file | " +
        kCut}},
      {Builder(2, 0).Info("a", {8}, 0, 0).Info("b", {8}, 0, 32).Data(63),
       "a F32 [8,] 96+32\n",
       {"refuse: x: tensor \"b\" | tensor data past the end of the file: F32 [8], 32 bytes from "
        "byte 128 | the file ends at byte 159 | " +
        kCut}},
      {Builder(1, 0).Info("a", {std::uint64_t{1} << 52, 2}, 28, 0).Data(8),
       "",
       {"refuse: x: tensor \"a\" | F64 [2, 4503599627370496] | expected at most 2^53 bytes | "}},
      {Builder(3, 0).Info("a", {8}, 0, 0).Info("b", {4}, 0, 32).Info("a", {4}, 0, 64).Data(96),
       "a F32 [8,] 128+32\nb F32 [4,] 160+16\n",
       {"refuse: x: tensor \"a\" | a duplicate: the name stands before | expected each name once | "
        "only the first one is listed"}},
      {Builder(1, 2)
           .Key("k", kGgufUint8, 1, 1)
           .Key("k", kGgufUint8, 2, 1)
           .Info("a", {2}, 0, 0)
           .Data(8),
       "a F32 [2,] 96+8\n",
       {"refuse: x: key \"k\" | a duplicate: the key stands before | expected each key once | "}},
      {Builder(1, 1).Key("", kGgufUint8, 1, 1).Info("a", {2}, 0, 0).Data(8),
       "a F32 [2,] 96+8\n",
       {"refuse: x: byte 24 | an empty key | expected a name | "}},
      {Builder(0, 1).ArrayKey("k", kGgufBool, 2).Number(1, 1).Number(3, 1).Bytes(),
       "",
       {"refuse: x: byte 50 | a bool of 3 (of key \"k\") | expected 0 or 1 | "}},
      {Builder(2, 0).Info("a", {8}, 0, 0).Text("b").Number(0x80000000, 4).Data(64),
       "",
       {"refuse: x: tensor \"b\" | 2147483648 dimensions at byte 66 | expected at most 64 | "
        "the tensors from here on are not listed"}},
  });
}

TEST(Gguf, ListsUnknownTypesWithTheBytesUpToTheNextTensor) {
  const std::string end =
      " | expected a type of ggml | "
      "its bytes are counted up to the next tensor; its values cannot be read";
  Builder file(4, 0);
  file.Info("last", {256}, 1000, 96).Info("a", {256}, 137, 0).Info("b", {8}, 0, 64);
  file.Info("empty", {0}, 99, 64);
  const std::string text = file.Data(100);
  ExpectOddities(
      {{text,
        "last type 1000 [256,] 288+4\na IQ2_K (ik_llama.cpp) [256,] 192+64\n"
        "b F32 [8,] 256+32\nempty Q8_2_X4 (ik_llama.cpp) [0,] 256+0\n",
        {"refuse: x: tensor \"last\" | tensor type 1000" + end,
         "refuse: x: tensor \"a\" | tensor type 137 (IQ2_K of ik_llama.cpp)" + end,
         "refuse: x: tensor \"empty\" | tensor type 99 (Q8_2_X4 of ik_llama.cpp)" + end,
         "accept-with-warning: x: tensor \"a\" | infos out of order: its data lies before "
         "that of tensor \"last\" | expected infos in the order of the data | "
         "llama.cpp will refuse the file"}}});
}

TEST(Gguf, UnknownTypesAtOnePlaceOverlap) {
  const FileReading reading =
      ReadText(Builder(2, 0).Info("a", {8}, 1000, 0).Info("b", {8}, 1000, 0).Data(64));
  EXPECT_EQ(ListText(reading), "a type 1000 [8,] 96+64\n");
  EXPECT_EQ(Lines(reading).back(),
            "refuse: x: tensor \"b\" | overlaps tensor \"a\": begins at byte 96 | "
            "expected byte 160 or later | ");
}

TEST(Gguf, KeepsTheFirstFindingsOfManyAlike) {
  Builder file(150, 0);
  for (int i = 0; i < 150; ++i) {
    file.Info(fmt::format("t{}", i), {1}, 2, 0);
  }
  const LinesOf lines = Lines(ReadText(file.Data(0)));
  ASSERT_EQ(lines.size(), 101U);
  EXPECT_EQ(lines.back(), "refuse: x | 50 more findings of this kind: refuse |  | ");
}

}  // namespace
}  // namespace fourpiles
