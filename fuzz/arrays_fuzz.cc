// A name of a format and any values: the array functions give what the scalar codecs give one by
// one, on every instruction set, and any bytes decode to the same. The input is four bytes (the
// conversion; columns of a tensor; the index of the first element; where in memory codes begin),
// the name up to the end of the line, and float32 values.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "formats/block_codec.h"
#include "formats/choices.h"
#include "fourpiles/arrays.h"
#include "kernels/each_target.h"
#include "kernels/scalar_arrays.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostValues = 4096;

struct Input {
  Conversion conversion;
  std::int64_t columns = 1;
  int threads = 2;
  std::size_t offset = 0;
  std::string_view name = {};
  std::vector<float> values = {};
};

Conversion ConversionOf(std::uint32_t byte, std::uint32_t place) {
  return {.rounding = kRoundingModes[byte % 7],
          .overflow = kOverflows[byte / 7 % 3],
          .infinities = kOverflows[byte / 14 % 3],
          .subnormals = kSubnormals[byte / 28 % 3],
          .seed = byte,
          .first_index = place * 0x01010101ULL};
}

Input InputOf(std::span<const std::uint8_t> data) {
  Input input = {
      .conversion = ConversionOf(data[0], data[2]), .columns = data[1] + 1, .offset = data[3] % 8U};
  const auto rest = data.subspan(4);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  input.name = text.substr(0, text.find('\n'));
  const std::string_view bytes = text.substr(std::min(text.size(), input.name.size() + 1));
  input.values.resize(std::min(kMostValues, bytes.size() / sizeof(float)));
  if (!input.values.empty()) {
    std::memcpy(input.values.data(), bytes.data(), input.values.size() * sizeof(float));
  }
  return input;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

template <class T>
bool IsSame(const T& a, const T& b) {
  return std::ranges::equal(std::as_bytes(std::span(&a, 1)), std::as_bytes(std::span(&b, 1)));
}

// --- One value a code ---

std::uint64_t CodeOf(double value, const NumberFormat& from, const NumberFormat& to,
                     const Conversion& conversion, std::uint64_t index) {
  const bool flushes = conversion.subnormals == Subnormals::kFlushedOnInput;
  return Encode(flushes ? FlushSubnormal(value, from) : value, to, conversion, index).code;
}

// Any codes decode to their values, and convert to another format with one rounding.
void CheckCodes(ConstCodes codes, const Input& input) {
  const auto size = static_cast<std::size_t>(CodeBytes(codes.format));
  const std::size_t count = codes.bytes.size() / size;
  const NumberFormat other = FindFormat("float8_e5m2").value();
  std::vector<float> values(count);
  std::vector<std::byte> converted(count);
  DecodeArray(codes, values, input.threads);
  ConvertArray(codes, {other, converted}, input.conversion, input.threads);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = Decode(LoadCode(codes.bytes.data(), i, codes.format), codes.format);
    CHECK(std::bit_cast<std::uint32_t>(values[i]) ==
          std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    CHECK(std::to_integer<std::uint64_t>(converted[i]) ==
          CodeOf(value, codes.format, other, input.conversion, i));
  }
}

void CheckRounding(ConstCodes codes, const Input& input) {
  std::vector<float> decoded(input.values.size());
  DecodeArray(codes, decoded);
  std::vector<float> rounded(input.values.size());
  const RoundingStatistics counted =
      RoundArray(input.values, codes.format, input.conversion, rounded, input.threads);
  CHECK(SameBits(rounded, decoded));
  CHECK(counted.count == static_cast<std::int64_t>(input.values.size()));
  const RoundingStatistics wanted =
      RoundAndCountScalar(input.values, codes.format, input.conversion, {}, 0);
  CHECK(IsSame(counted, wanted));
  std::vector<float> in_place = input.values;
  RoundTripArray(in_place, codes.format, input.conversion, in_place, input.threads);
  CHECK(SameBits(in_place, decoded));
}

void CheckFormat(const NumberFormat& format, const Input& input) {
  const std::size_t bytes = input.values.size() * static_cast<std::size_t>(CodeBytes(format));
  std::vector<std::byte> memory(input.offset + bytes);
  const auto codes = std::span(memory).subspan(input.offset);
  EncodeArray(input.values, {format, codes}, input.conversion, input.threads);
  const NumberFormat float32 = FindFormat("float32").value();
  for (std::size_t i = 0; i < input.values.size(); ++i) {
    CHECK(LoadCode(codes.data(), i, format) ==
          CodeOf(input.values[i], float32, format, input.conversion, i));
  }
  CheckRounding({format, codes}, input);
  const auto any = std::as_bytes(std::span(input.values));
  const auto from = any.subspan(std::min(input.offset, any.size()));
  const std::size_t count = from.size() / static_cast<std::size_t>(CodeBytes(format));
  CheckCodes({format, from.first(count * static_cast<std::size_t>(CodeBytes(format)))}, input);
}

// --- Blocks ---

bool AreSame(const BlockTensor& a, const BlockTensor& b) {
  return a.codes == b.codes && a.scales == b.scales && a.zero_points == b.zero_points &&
         IsSame(a.tensor_scale, b.tensor_scale) && SameBits(a.scale_scales, b.scale_scales) &&
         IsSame(a.scale_offset, b.scale_offset);
}

void CheckDecoding(const BlockTensor& tensor, std::size_t count, int threads) {
  std::vector<float> values(count);
  CHECK(DecodeBlocks(tensor, values, threads));
  std::vector<float> wanted(count);
  DecodeTensor(tensor, wanted);
  CHECK(SameBits(values, wanted));
}

void Fill(std::span<std::byte> array, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    array[i] = bytes[i % bytes.size()];
  }
}

void CheckBlocks(const BlockFormat& format, const Input& input) {
  const TensorShape shape = {static_cast<std::int64_t>(input.values.size()) / input.columns,
                             input.columns};
  const auto count = static_cast<std::size_t>(shape.rows * shape.columns);
  const auto values = std::span(input.values).first(count);
  BlockTensor wanted = {.format = format, .shape = shape};
  BlockTensor tensor = {.format = format, .shape = shape};
  const bool encodes = CheckShape(wanted, values.size()).has_value() &&
                       EncodeTensor(values, input.conversion, wanted).has_value();
  CHECK(EncodeBlocks(values, input.conversion, tensor, input.threads).has_value() == encodes);
  if (encodes) {
    CHECK(AreSame(tensor, wanted));
    CheckDecoding(tensor, count, input.threads);
  }
  const bool has_whole_blocks =
      format.kind != BlockKind::kGgml || shape.columns % format.block_elements == 0;
  if (count == 0 || !has_whole_blocks) {
    return;
  }
  ResizeArrays(tensor);
  const auto bytes = std::as_bytes(values);
  Fill(tensor.codes, bytes);
  Fill(tensor.scales, bytes);
  Fill(tensor.zero_points, bytes);
  Fill(std::as_writable_bytes(std::span(tensor.scale_scales)), bytes);
  tensor.tensor_scale = values[count / 2];
  CheckDecoding(tensor, count, input.threads);
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fourpiles;
  if (size < 5) {
    return 0;
  }
  const Input input = InputOf({data, size});
  const Result<NumberFormat> format = FindFormat(input.name);
  const Result<BlockFormat> blocks = FindBlockFormat(input.name);
  ForEachTarget([&](const char* /*target*/) {
    if (format) {
      CheckFormat(*format, input);
    }
    if (blocks) {
      CheckBlocks(*blocks, input);
    }
  });
  return 0;
}
