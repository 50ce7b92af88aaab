#pragma once

// What the tests of GGUF share.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/testing.h"
#include "tensors/gguf.h"
#include "tensors/gguf_rules.h"
#include "tensors/gguf_values.h"

namespace fourpiles {

inline const std::string kCases = FOURPILES_TEST_DATA "/cases/";

inline std::string FileText(const std::string& path) {
  return ReadWholeFile(path, 1 << 20).value();
}

inline FileReading ReadText(std::string_view text) {
  return ReadGguf(MemorySource("x", std::as_bytes(std::span(text))));
}

inline std::vector<std::string> Lines(const FileReading& reading) {
  std::vector<std::string> lines;
  for (const Finding& finding : reading.findings) {
    lines.push_back(std::string(Name(finding.verdict)) + ": " +
                    ErrorLine(Error{.text = finding.text}));
  }
  return lines;
}
using LinesOf = std::vector<std::string>;

// The rows of a file with one JSON document a line.
inline std::vector<Json> ReadRows(const std::string& path) {
  std::vector<Json> rows;
  const std::string text = FileText(path);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    rows.push_back(ReadJson(std::string_view(text).substr(at, end - at), path).value());
    at = end + 1;
  }
  return rows;
}

// A header built by hand, for one order of bytes and one version.
struct FileLayout {
  bool big_endian = false;
  std::uint32_t version = 3;
};

class Builder {
 public:
  Builder(std::uint64_t tensors, std::uint64_t keys, FileLayout layout = {}) : layout_(layout) {
    text_ = "GGUF";
    Number(layout.version, 4).Count(tensors).Count(keys);
  }
  Builder& Number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      const int shift = 8 * (layout_.big_endian ? bytes - 1 - i : i);
      text_ += static_cast<char>(value >> shift & 0xFFU);
    }
    return *this;
  }
  Builder& Count(std::uint64_t value) { return Number(value, layout_.version == 1 ? 4 : 8); }
  Builder& Text(std::string_view text) {
    Count(text.size());
    text_ += text;
    return *this;
  }
  Builder& Key(std::string_view key, std::uint32_t type, std::uint64_t value, int bytes) {
    return Text(key).Number(type, 4).Number(value, bytes);
  }
  Builder& Key(std::string_view key, std::string_view value) {
    return Text(key).Number(kGgufString, 4).Text(value);
  }
  Builder& ArrayKey(std::string_view key, std::uint32_t type, std::uint64_t length) {
    return Text(key).Number(kGgufArray, 4).Number(type, 4).Count(length);
  }
  Builder& Info(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                std::uint32_t type, std::uint64_t offset) {
    Text(name).Number(dimensions.size(), 4);
    for (const std::uint64_t dimension : dimensions) {
      Count(dimension);
    }
    return Number(type, 4).Number(offset, 8);
  }
  Builder& Zeros(std::size_t count) {
    text_.append(count, '\0');
    return *this;
  }
  // Padding up to the data, and the data.
  std::string Data(std::size_t bytes, std::size_t alignment = 32) const {
    std::string text = text_;
    text.append((alignment - text.size() % alignment) % alignment + bytes, '\0');
    return text;
  }
  const std::string& Bytes() const { return text_; }

 private:
  FileLayout layout_;
  std::string text_;
};

// "name dtype [shape] offset+bytes", one a line.
inline std::string ListText(const FileReading& reading) {
  std::string text;
  for (const FileTensor& tensor : reading.tensors) {
    text += fmt::format("{} {} [", tensor.name, tensor.dtype);
    for (const std::int64_t dimension : tensor.shape) {
      text += fmt::format("{},", dimension);
    }
    text += fmt::format("] {}+{}\n", tensor.offset, tensor.bytes);
  }
  return text;
}

inline const std::string kCut = "the file may be cut short; compare its size with the source";

}  // namespace fourpiles
