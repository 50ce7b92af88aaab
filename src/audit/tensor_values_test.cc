#include "audit/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

std::string DataPath(std::string_view name) {
  return std::string(FOURPILES_TEST_DATA "/") + std::string(name);
}

const FileTensor& TensorOf(const Checkpoint& checkpoint, std::string_view name) {
  return *std::ranges::find(checkpoint.tensors, name, &FileTensor::name);
}

// All values, read `at_once` at a time.
template <class Value>
std::vector<Value> ValuesOf(const Checkpoint& checkpoint, std::string_view name,
                            std::int64_t at_once = 1000) {
  StorageCache cache(checkpoint);
  const auto values = TensorValues::Of(checkpoint, TensorOf(checkpoint, name), cache);
  EXPECT_TRUE(values.has_value()) << ErrorLine(values);
  std::vector<Value> all(values ? static_cast<std::size_t>(values->Elements()) : 0);
  for (std::int64_t i = 0; i < std::ssize(all); i += at_once) {
    const auto count = std::min(at_once, std::ssize(all) - i);
    const auto part =
        std::span(all).subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(count));
    EXPECT_TRUE(values->Read(i, part).has_value());
  }
  return all;
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// The values are those that the scripts put in, and that torch.load and numpy.load give back.
TEST(TensorValues, OfPlainTensorsAreRead) {
  const auto checkpoint = OpenCheckpoint(DataPath("cases/torch/trainer.pt"));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "model.fc.weight", 4),
            Floats({0, 0.25F, 0.5F, 0.75F, 1, 1.25F}));
  EXPECT_EQ(ValuesOf<double>(*checkpoint, "model.fc.weight", 4),
            Doubles({0, 0.25, 0.5, 0.75, 1, 1.25}));
}

TEST(TensorValues, OfViewsComeInTheirOwnOrder) {
  const auto checkpoint = OpenCheckpoint(DataPath("cases/torch/views.pt"));
  ASSERT_TRUE(checkpoint.has_value());
  const Floats base = ValuesOf<float>(*checkpoint, "base");
  const Floats transposed = ValuesOf<float>(*checkpoint, "t", 7);
  ASSERT_EQ(base.size(), 240U);
  for (std::size_t i = 0; i < transposed.size(); ++i) {
    EXPECT_EQ(transposed[i], base[i % 12 * 20 + i / 12]);
  }
  const Floats repeated = ValuesOf<float>(*checkpoint, "exp", 50);
  for (std::size_t i = 0; i < repeated.size(); ++i) {
    EXPECT_EQ(repeated[i], base[i % 20]);
  }
  const Floats permuted = ValuesOf<float>(*checkpoint, "perm");
  EXPECT_EQ(Floats(permuted.begin(), permuted.begin() + 8), Floats({0, 4, 8, 12, 16, 20, 1, 5}));
  const Doubles narrow = ValuesOf<double>(*checkpoint, "bf", 3);
  EXPECT_EQ(Doubles(narrow.begin(), narrow.begin() + 4), Doubles({0, 2.859375, 0.142578125, 3}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "empty"), Floats());
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "scalar"), Floats({3.5F}));
}

TEST(TensorValues, OfOtherTypesAreWidened) {
  const auto checkpoint = OpenCheckpoint(DataPath("cases/torch/views.pt"));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(ValuesOf<double>(*checkpoint, "f64"), Doubles({3.141592653589793, 1e-310, 1e300}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "f64"),
            Floats({3.14159274F, 0, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(ValuesOf<double>(*checkpoint, "i64"), Doubles({4611686018427387904.0, -1}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "i16", 1), Floats({-32768, 32767}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "b"), Floats({1, 0, 1}));
  const Floats bytes = ValuesOf<float>(*checkpoint, "u8");
  EXPECT_EQ(Floats(bytes.begin(), bytes.begin() + 2), Floats({250, 251}));
}

TEST(TensorValues, OfDeflatedArraysAreUnpacked) {
  const auto checkpoint = OpenCheckpoint(DataPath("audit/deflated.npz"));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "fortran", 2), Floats({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ValuesOf<double>(*checkpoint, "big"), Doubles({1.5, -2.25, 1e300}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "small"), Floats({-32768, -1, 32767}));
  EXPECT_EQ(ValuesOf<double>(*checkpoint, "large"), Doubles({0x1p63, 0x1p24 + 1}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "large"), Floats({0x1p63F, 0x1p24F}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "empty"), Floats());
}

TEST(TensorValues, OfOneDeflatedStorageShareIt) {
  const auto checkpoint = OpenCheckpoint(DataPath("audit/views.pt"));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_TRUE(TensorOf(*checkpoint, "base").packed);
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "base", 5),
            Floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "transposed", 5),
            Floats({0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "part"), Floats({5, 6, 9, 10}));
  StorageCache cache(*checkpoint);
  const HeldPlace place = {.offset = checkpoint->storages.front().offset, .packed = true};
  const auto first = cache.Bytes(place);
  EXPECT_EQ(*first, *cache.Bytes(place));
}

// torch.arange(20) in rows of two ranks (tests/data/cases/dcp/make.py).
TEST(TensorValues, OfRowsOfRanksAreJoined) {
  const auto checkpoint = OpenCheckpoint(DataPath("cases/dcp/two_ranks"));
  ASSERT_TRUE(checkpoint.has_value());
  const Floats values = ValuesOf<float>(*checkpoint, "model.weight", 7);
  ASSERT_EQ(values.size(), 20U);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], static_cast<float>(i));
  }
}

TEST(TensorValues, CodesAreInTheProcessorsOrder) {
  const auto checkpoint = OpenCheckpoint(DataPath("audit/deflated.npz"));
  const auto values = TensorValues::Of(*checkpoint, TensorOf(*checkpoint, "big"));
  std::vector<double> codes(2);
  ASSERT_TRUE(values->ReadCodes(1, 2, std::as_writable_bytes(std::span(codes))).has_value());
  EXPECT_EQ(codes, Doubles({-2.25, 1e300}));
}

class TensorFile : public FolderTest {
 protected:
  // A file of safetensors with one tensor.
  std::string Make(std::string_view dtype, std::string_view shape, const std::string& data) const {
    std::string header = "{\"x\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[" +
                         std::string(shape) + "],\"data_offsets\":[0," +
                         std::to_string(data.size()) + "]}}";
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size());
    return MakeFile("x.safetensors", length + header + data);
  }
};

TEST_F(TensorFile, OfNibblesIsUnpacked) {
  // Codes 1, 2, 3, 15, 8, 7 of float4_e2m1fn, the first in the low half of its byte.
  const auto checkpoint = OpenCheckpoint(Make("F4", "6", "\x21\xf3\x78"));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(ValuesOf<float>(*checkpoint, "x", 2), Floats({0.5F, 1, 1.5F, -6, -0.0F, 6}));
  EXPECT_EQ(ValuesOf<double>(*checkpoint, "x", 5), Doubles({0.5, 1, 1.5, -6, -0.0, 6}));
}

TEST_F(TensorFile, ThatShrinksIsAnError) {
  const std::string path = Make("F32", "4", std::string(16, '\0'));
  const auto checkpoint = OpenCheckpoint(path);
  const auto values = TensorValues::Of(*checkpoint, checkpoint->tensors.front());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
  Floats floats(4);
  const auto read = values->Read(0, std::span(floats));
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().kind, ErrorKind::kInput);
  EXPECT_NE(ErrorLine(read).find("the end of the file"), std::string::npos) << ErrorLine(read);
}

TEST_F(TensorFile, OfComplexNumbersIsRefused) {
  const auto checkpoint = OpenCheckpoint(Make("C64", "1", std::string(8, '\0')));
  ASSERT_EQ(checkpoint->tensors.size(), 1U);
  const auto values = TensorValues::Of(*checkpoint, checkpoint->tensors.front());
  EXPECT_EQ(
      ErrorLine(values),
      PathTo("x.safetensors") + ": tensor \"x\" | the type complex64 | expected real numbers | ");
}

TEST_F(TensorFile, OfBlocksIsDecoded) {
  // q8_0: a float16 scale, here 0.5, and 32 int8 codes.
  std::string block("\x00\x38", 2);
  for (int i = 0; i < 32; ++i) {
    block += static_cast<char>(i - 16);
  }
  const std::string path = MakeFile("blocks", block + block);
  const FileTensor tensor = {
      .name = "b", .type = FindStoredType("q8_0"), .shape = {2, 32}, .elements = 64, .bytes = 68};
  const Checkpoint checkpoint = {
      .files = {{.name = "blocks",
                 .bytes = 68,
                 .source = std::make_shared<FileSource>(*FileSource::Open(path))}},
      .tensors = {tensor}};
  const Floats values = ValuesOf<float>(checkpoint, "b", 32);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], 0.5F * (static_cast<float>(i % 32) - 16));
  }
}

TEST_F(TensorFile, OfBoxesAndRunsIsJoined) {
  // A tensor of 3 × 4 with the values 0 … 11: columns 0 and 1, columns 2 and 3 of rows 0 and 1,
  // and the last two elements as a run.
  const std::string path = MakeFile(
      "boxes", std::string("\x00\x01\x04\x05\x08\x09", 6) + "\x02\x03\x06\x07" + "\x0a\x0b");
  FileTensor tensor = {
      .name = "x", .type = FindStoredType("uint8"), .shape = {3, 4}, .elements = 12, .bytes = 12};
  tensor.pieces = {{.bytes = 6, .start = {0, 0}, .shape = {3, 2}},
                   {.offset = 6, .bytes = 4, .start = {0, 2}, .shape = {2, 2}},
                   {.offset = 10, .bytes = 2, .start = {10}, .shape = {2}}};
  Checkpoint checkpoint = {
      .files = {{.name = "boxes",
                 .bytes = 12,
                 .source = std::make_shared<FileSource>(*FileSource::Open(path))}},
      .tensors = {tensor}};
  for (const std::int64_t at_once : {1, 3, 5, 12}) {
    EXPECT_EQ(ValuesOf<float>(checkpoint, "x", at_once),
              Floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  }
  tensor.pieces[1].start = {2, 2};
  EXPECT_FALSE(TensorValues::Of(checkpoint, tensor).has_value());
}

TEST_F(TensorFile, OfARepeatingViewBeyondTheLimitIsRefused) {
  const std::string path = MakeFile("few", "\x00\x00\x00\x00");
  const FileTensor tensor = {.name = "x",
                             .type = FindStoredType("float32"),
                             .shape = {std::int64_t{1} << 40},
                             .elements = std::int64_t{1} << 40,
                             .bytes = std::int64_t{1} << 42,
                             .strides = {0}};
  const Checkpoint checkpoint = {
      .files = {{.name = "few",
                 .bytes = 4,
                 .source = std::make_shared<FileSource>(*FileSource::Open(path))}},
      .tensors = {tensor}};
  EXPECT_FALSE(TensorValues::Of(checkpoint, tensor).has_value());
}

}  // namespace
}  // namespace fourpiles
