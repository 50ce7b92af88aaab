#pragma once

// Checkpoints made by hand, and weights as lines of text, for the tests of quantised layouts.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "base/json.h"
#include "base/testing.h"
#include "tensors/quantised.h"

namespace fourpiles {

// A checkpoint made by hand: the tensors' bytes lie one behind the other in memory.
class MadeCheckpoint {
 public:
  explicit MadeCheckpoint(std::string_view config = "{}", std::string_view quantization = "null") {
    checkpoint_.configs.config = Read(config);
    checkpoint_.configs.quantization = Read(quantization);
  }

  // `content` when its bytes matter; else zeros that are not stored.
  MadeCheckpoint& With(std::string name, std::string_view dtype, std::vector<std::int64_t> shape,
                       std::string_view content = {}) {
    FileTensor tensor;
    tensor.name = std::move(name);
    tensor.dtype = dtype;
    tensor.type = FindStoredType(dtype);
    EXPECT_TRUE(tensor.type) << dtype;
    tensor.shape = std::move(shape);
    tensor.elements = OrLargest(ElementsOf(tensor.shape));
    tensor.bytes = OrLargest(StorageBytes(tensor.elements, *tensor.type));
    tensor.offset = static_cast<std::int64_t>(data_.size());
    if (!content.empty()) {
      EXPECT_EQ(static_cast<std::int64_t>(content.size()), tensor.bytes);
      data_.append(content);
    }
    checkpoint_.tensors.push_back(std::move(tensor));
    return *this;
  }

  StoredWeights Weights() {
    checkpoint_.files.resize(1);
    checkpoint_.files[0].source =
        std::make_shared<MemorySource>("made", std::as_bytes(std::span(data_)));
    return StoredWeightsOf(checkpoint_);
  }
  Checkpoint& Made() { return checkpoint_; }

 private:
  static Json Read(std::string_view text) {
    const Result<Json> json = ReadJson(text, "config.json");
    EXPECT_TRUE(json) << text;
    return json ? *json : Json();
  }

  std::string data_;
  Checkpoint checkpoint_;
};

template <class Integer>
std::string Bytes(const std::vector<Integer>& values) {
  std::string bytes(values.size() * sizeof(Integer), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::int64_t Parameters(const StoredWeights& weights) {
  return std::accumulate(
      weights.tensors.begin(), weights.tensors.end(), std::int64_t{0},
      [](std::int64_t sum, const TensorMeaning& meaning) { return sum + meaning.parameters; });
}

// "gptq uint4 64x128 g32x1: codes 4096, scales 512, zero points 128, other 512 (config.json, …)"
inline std::string Line(const StoredWeight& weight) {
  std::ostringstream line;
  line << weight.scheme << ' ' << weight.format << ' ';
  for (std::size_t i = 0; i < weight.shape.size(); ++i) {
    line << (i == 0 ? "" : "x") << weight.shape[i];
  }
  line << " g" << weight.group_rows << 'x' << weight.group_size << ": " << weight.code_bytes << ' '
       << weight.scale_bytes << ' ' << weight.zero_point_bytes << ' ' << weight.other_bytes << " ("
       << weight.evidence << ')';
  return line.str();
}

inline std::vector<std::string> Lines(const StoredWeights& weights) {
  std::vector<std::string> lines;
  for (const StoredWeight& weight : weights.weights) {
    lines.push_back(Line(weight));
  }
  return lines;
}

using Texts = std::vector<std::string>;

}  // namespace fourpiles
