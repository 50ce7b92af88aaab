#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/stored_type.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

BlockFormat Find(std::string_view name) {
  return FindBlockFormat(name).value();
}

std::string Message(std::string_view name) {
  const Error error = FindBlockFormat(name, "--to").error();
  EXPECT_EQ(error.kind, ErrorKind::kUsage);
  return error.text.where + ": " + error.text.found + ", " + error.text.expected + "; " +
         error.text.hint;
}

TEST(BlockTable, EveryRecordIsSoundAndFoundByItsName) {
  std::set<std::string> names;
  for (const BlockFormat& format : BlockFormats()) {
    EXPECT_TRUE(names.insert(std::string(format.name)).second) << format.name << " stands twice";
    EXPECT_FALSE(format.source.empty()) << format.name;
    EXPECT_EQ(Find(format.name).name, format.name);
    EXPECT_GT(BitsPerElement(format), 1.0) << format.name;
    EXPECT_EQ(FullName(Find(FullName(format))), FullName(format));
  }
}

TEST(BlockTable, FindsTheNamesPeopleType) {
  EXPECT_EQ(Find("MXFP8").name, "mxfp8_e4m3");
  EXPECT_EQ(Find("mxfp4_e2m1").name, "mxfp4");
  EXPECT_EQ(Find("fp4").kind, BlockKind::kCodeBook);  // bitsandbytes' fp4, not OCP's
  EXPECT_EQ(Find("q4_K").kind, BlockKind::kGgml);
  EXPECT_EQ(Find("ggml_mxfp4").block_bits, 136);
  EXPECT_EQ(Find("mxfp4").kind, BlockKind::kMicroscaling);
}

TEST(BlockTable, HasAllBlocksOfGgml) {
  std::size_t types = 0;
  for (const StoredType& type : StoredTypes()) {
    types += type.block_elements > 1 ? 1 : 0;
  }
  std::size_t formats = 0;
  for (const BlockFormat& format : BlockFormats()) {
    formats += format.kind == BlockKind::kGgml ? 1 : 0;
  }
  EXPECT_EQ(formats, types);
}

TEST(BlockTable, ReadsChoices) {
  EXPECT_EQ(Find("mxfp4:scale=rceil").scale_rule, ScaleRule::kRceil);
  const BlockFormat nf4 = Find("NF4:Block=128,Double");
  EXPECT_EQ(nf4.block_elements, 128);
  EXPECT_TRUE(nf4.double_quantized);
  const BlockFormat int4 = Find("int4:group=32,asymmetric");
  EXPECT_EQ(int4.block_elements, 32);
  EXPECT_TRUE(int4.asymmetric);
  EXPECT_EQ(Find("int8:channel").granularity, Granularity::kChannel);
  EXPECT_EQ(Find("int8:tensor").granularity, Granularity::kTensor);
  EXPECT_EQ(Find("int8:group=64").granularity, Granularity::kGroup);
  EXPECT_EQ(Find("nvfp4:tensor-scale=divisor").tensor_scale, TensorScale::kDivisor);
  EXPECT_EQ(Find("nvfp4").tensor_scale, TensorScale::kMultiplier);
}

TEST(BlockTable, WritesNamesWithTheirChoices) {
  EXPECT_EQ(FullName(Find("mxfp8")), "mxfp8_e4m3:scale=floor");
  EXPECT_EQ(FullName(Find("nvfp4")), "nvfp4:tensor-scale=multiplier");
  EXPECT_EQ(FullName(Find("nf4:double")), "nf4:block=64,double");
  EXPECT_EQ(FullName(Find("int4")), "int4:group=128,symmetric");
  EXPECT_EQ(FullName(Find("int8:tensor,asymmetric")), "int8:tensor,asymmetric");
  EXPECT_EQ(FullName(Find("uint4")), "uint4:group=128");
  EXPECT_EQ(FullName(Find("q6_k")), "q6_k");
}

TEST(BlockTable, RefusesUnknownNamesWithTheNearest) {
  EXPECT_EQ(Message("mxfp5"),
            "--to: unknown block format \"mxfp5\", did you mean \"mxfp8\"?; "
            "\"fourpiles formats\" lists them all");
  EXPECT_EQ(Message("NVFP5:x"),
            "--to: unknown block format \"NVFP5\", did you mean \"nvfp4\"?; "
            "\"fourpiles formats\" lists them all");
  EXPECT_EQ(Message("mxfp6"),
            "--to: unknown block format \"mxfp6\", did you mean \"mxfp6_e2m3\" or "
            "\"mxfp6_e3m2\"?; \"fourpiles formats\" lists them all");
}

TEST(BlockTable, SaysThatAFormatOfOneValueIsNoneOfBlocks) {
  EXPECT_EQ(Message("E4M3"),
            "--to: \"E4M3\" is a format of one value, expected a block format; "
            "\"fourpiles formats\" lists both");
}

TEST(BlockTable, SaysWhichChoiceAValueIsOf) {
  EXPECT_EQ(Message("nf4:128"),
            "--to: \"nf4\" has no choice \"128\", did you mean \"nf4:block=128\"?; "
            "nf4 has block=…, double");
  EXPECT_EQ(Message("int8:symmetric,64"),
            "--to: \"int8\" has no choice \"64\", did you mean \"int8:symmetric,group=64\"?; "
            "int8 has group=…, channel, tensor, symmetric, asymmetric");
  EXPECT_EQ(Message("mxfp8:rceil"),
            "--to: \"mxfp8_e4m3\" has no choice \"rceil\", did you mean \"mxfp8:scale=rceil\"?; "
            "mxfp8_e4m3 has scale=…");
}

TEST(BlockTable, TellsFormatsFromChoices) {
  EXPECT_EQ(Message("mxfp4:scale=floor,nvfp4"),
            "--to: \"nvfp4\" is a format, no choice of \"mxfp4\", ; "
            "behind a colon a space separates formats: mxfp4:scale=floor nvfp4");
  EXPECT_EQ(Message("nf4:double,int4:group=32,fp16"),
            "--to: \"int4:group=32\" is a format, no choice of \"nf4\", ; "
            "behind a colon a space separates formats: nf4:double int4:group=32,fp16");
  EXPECT_EQ(Message("int8:double"),  // float64, but who would mean that?
            "--to: \"int8\" has no choice \"double\", ; "
            "int8 has group=…, channel, tensor, symmetric, asymmetric");
}

TEST(BlockTable, RefusesChoicesThatContradictEachOther) {
  EXPECT_EQ(Message("int4:channel,group=64"),
            "--to: \"channel\" and \"group=64\" of \"int4\", expected one of them; ");
  EXPECT_EQ(Message("int8:symmetric,tensor,asymmetric"),
            "--to: \"symmetric\" and \"asymmetric\" of \"int8\", expected one of them; ");
  EXPECT_EQ(Message("nf4:block=64,double,block=128"),
            "--to: \"block=64\" and \"block=128\" of \"nf4\", expected one of them; ");
  EXPECT_EQ(Message("nf4:double,double"),
            "--to: \"double\" and \"double\" of \"nf4\", expected one of them; ");
}

TEST(BlockTable, RefusesEmptyChoices) {
  for (const std::string name : {"nf4:", "nf4:block=64,", "nf4:,double"}) {
    EXPECT_EQ(Message(name), "--to: \"" + name +
                                 "\" has an empty choice, expected one behind each "
                                 "colon and comma; nf4 has block=…, double");
  }
}

TEST(BlockTable, RefusesChoicesThatTheFormatDoesNotHave) {
  EXPECT_EQ(Message("mxfp4:scales=even"),
            "--to: \"mxfp4\" has no choice \"scales\", did you mean \"scale\"?; "
            "mxfp4 has scale=…");
  EXPECT_EQ(Message("uint8:symmetric"),
            "--to: \"uint8\" has no choice \"symmetric\", ; "
            "uint8 has group=…, channel, tensor");
  EXPECT_EQ(Message("q4_0:block=32"),
            "--to: \"q4_0\" has no choice \"block\", ; q4_0 has no choices");
}

TEST(BlockTable, RefusesValuesThatAChoiceCannotHave) {
  EXPECT_EQ(Message("mxfp4:scale=round"),
            "--to: \"scale=round\" of \"mxfp4\", expected scale=floor, even, ceil or rceil; ");
  EXPECT_EQ(Message("int8:channel=3"), "--to: \"channel=3\" of \"int8\", expected no value; ");
  for (const char* const name : {"nf4:block=48", "nf4:block=16", "nf4:block=8192", "nf4:block",
                                 "nf4:block=", "nf4:block=64x", "af4:block=128", "int4:group=0",
                                 "int4:group=-3", "int4:group=99999999999", "mxfp4:scale"}) {
    EXPECT_FALSE(FindBlockFormat(name)) << name;
  }
}

TEST(BlockTable, CountsBits) {
  EXPECT_EQ(BitsPerElement(Find("mxfp4")), 4.25);  // reference figures of sqnr.csv
  EXPECT_EQ(BitsPerElement(Find("mxfp6_e2m3")), 6.25);
  EXPECT_EQ(BitsPerElement(Find("mxfp8")), 8.25);
  EXPECT_EQ(BitsPerElement(Find("nvfp4")), 4.5);
  EXPECT_EQ(BitsPerElement(Find("nf4")), 4.5);
  EXPECT_NEAR(BitsPerElement(Find("nf4:double")), 4.127, 0.0005);
  EXPECT_EQ(BitsPerElement(Find("q4_k")), 4.5);
  EXPECT_EQ(BitsPerElement(Find("int4:group=32")), 5.0);  // scales are float32
  EXPECT_EQ(BitsPerElement(Find("int8")), 8.0);
}

TEST(BlockTable, CountsScalesAndBytes) {
  // Two rows of 33: MX blocks begin anew with each, bitsandbytes' run through.
  EXPECT_EQ(ScaleCount({2, 33}, Find("mxfp4")), 4);
  EXPECT_EQ(StorageBytes({2, 33}, Find("mxfp4")), 33 + 4);
  EXPECT_EQ(StorageBytes({1, 3}, Find("mxfp6_e3m2")), 3 + 1);  // 18 bits
  EXPECT_EQ(ScaleCount({2, 33}, Find("nf4")), 2);
  EXPECT_EQ(StorageBytes({2, 33}, Find("nf4")), 33 + 8);
  EXPECT_EQ(StorageBytes({2, 33}, Find("nf4:double")), 33 + 2 + 4 + 4);
  EXPECT_EQ(ScaleCount({2, 33}, Find("nvfp4")), 6);
  EXPECT_EQ(StorageBytes({2, 33}, Find("nvfp4")), 33 + 6 + 4);
  EXPECT_EQ(ScaleCount({2, 33}, Find("int8:channel")), 2);
  EXPECT_EQ(ScaleCount({2, 33}, Find("int8:tensor")), 1);
  EXPECT_EQ(StorageBytes({2, 33}, Find("uint8:tensor")), 66 + 4 + 1);
  EXPECT_EQ(StorageBytes({2, 256}, Find("q4_k")), 288);
  EXPECT_EQ(ScaleCount({2, 256}, Find("q4_k")), 0);
  for (const BlockFormat& format : BlockFormats()) {
    EXPECT_EQ(ScaleCount({0, 64}, format), 0) << format.name;
    EXPECT_EQ(ScaleCount({5, 0}, format), 0) << format.name;
    EXPECT_LE(StorageBytes({5, 0}, format), 4) << format.name;
  }
}

}  // namespace
}  // namespace fourpiles
