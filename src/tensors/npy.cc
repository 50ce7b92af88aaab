#include "tensors/npy.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/try.h"
#include "tensors/finding_list.h"
#include "tensors/npy_header.h"
#include "tensors/zip.h"

namespace fourpiles {
namespace {

// Most headers are 128 bytes; what is no longer than this is read at once.
constexpr std::int64_t kUsualBytes = 256;
// Of all longer headers of an archive: a header of 1 MB may be deflated to 1 KB.
constexpr std::int64_t kMostLongHeaders = 100'000'000;
constexpr std::string_view kEnding = ".npy";
// NPY_MAXDIMS was 32 up to NumPy 1.26, and is 64 (numpy/core/include/numpy/ndarraytypes.h).
constexpr std::size_t kMostDimensionsOfNumPy1 = 32;

// Strides of an array whose first dimension is the fastest, of at least one element; empty where
// that is row-major too.
std::vector<std::int64_t> ColumnMajor(const std::vector<std::int64_t>& shape) {
  const auto longer = std::ranges::count_if(shape, [](std::int64_t d) { return d > 1; });
  if (longer < 2) {
    return {};
  }
  std::vector<std::int64_t> strides;
  std::int64_t stride = 1;
  for (const std::int64_t dimension : shape) {
    strides.push_back(stride);
    stride *= dimension;
  }
  return strides;
}

// The array that the header describes, of a file or member of `file_bytes`. Nothing: it was
// reported.
Result<std::optional<FileTensor>> TensorOf(const NpyHeader& header, std::int64_t file_bytes,
                                           const std::string& where, FindingList& findings) {
  const NpyType& type = header.type;
  if (type.has_objects) {
    findings.Add(
        {.verdict = FileVerdict::kReport,
         .text = {where, "objects of Python, which are kept as a pickle", "expected numbers",
                  "a pickle can run code when it is read, and is not; save the array "
                  "with a type of numbers"}});
    return std::nullopt;
  }
  if (!type.warning.empty()) {
    findings.Warn({where, type.warning, "expected a type of numbers and its order of bytes", ""});
  }
  if (header.shape.size() > kMostDimensionsOfNumPy1) {
    findings.Warn({where, fmt::format("{} dimensions", header.shape.size()),
                   fmt::format("NumPy before 2.0 reads at most {}", kMostDimensionsOfNumPy1), ""});
  }
  const Checked elements = ElementsOf(header.shape);
  const Checked bytes = elements * type.bytes;
  if (!elements.ok() || !bytes.ok()) {
    return BadInput(
        {where, "a dimension overflow: more than 2^53 elements or bytes", "expected fewer", ""});
  }
  const std::int64_t there = file_bytes - header.data_start;
  if (bytes.value() != there) {
    const bool is_short = there < bytes.value();
    return BadInput(
        {where, fmt::format("{} bytes of data", there),
         fmt::format("its shape and type take {}", bytes.value()),
         is_short ? "the file may be cut short; compare its size with the source" : ""});
  }
  FileTensor tensor = {.dtype = type.dtype,
                       .type = type.type,
                       .shape = header.shape,
                       .elements = elements.value(),
                       .bytes = bytes.value(),
                       .offset = header.data_start,
                       .big_endian = type.big_endian};
  if (header.fortran_order && tensor.elements > 0) {
    tensor.strides = ColumnMajor(header.shape);
  }
  return tensor;
}

// One pass through an archive.
class Archive {
 public:
  explicit Archive(const ByteSource& source) : source_(source) {}

  FileReading Read() && {
    Result<ZipDirectory> directory = ReadZip(source_);
    if (directory) {
      for (const ZipMember& member : directory->members) {
        if (auto read = ReadMember(member); !read) {
          findings_.Refuse(std::move(read).error().text);
        }
      }
      CheckNames();
      reading_.facts = {{"members", std::ssize(directory->members)}};
      reading_.findings = std::move(directory->findings);
    } else {
      findings_.Refuse(std::move(directory).error().text);
    }
    std::ranges::move(std::move(findings_).Take(source_.Name()),
                      std::back_inserter(reading_.findings));
    return std::move(reading_);
  }

 private:
  Result<void> ReadMember(const ZipMember& member) {
    const bool is_named = member.name.ends_with(kEnding);
    if (member.name.ends_with('/') && member.bytes == 0) {
      return {};  // a folder
    }
    const std::string where = fmt::format("{}: member \"{}\"", source_.Name(), member.name);
    TRY(std::string bytes, ReadZipBeginning(source_, member, kUsualBytes));
    if (!is_named && !StartsAsNpy(bytes)) {
      findings_.Warn({where, "no array of NumPy", "expected arrays alone", "it is left out"});
      return {};
    }
    TRY(const std::int64_t data_start, NpyDataStart(bytes, where));
    if (data_start > kUsualBytes) {
      long_headers_ += data_start;
      if (long_headers_ > kMostLongHeaders) {
        return BadInput({where, "a long header, as many members before it have",
                         fmt::format("expected at most {} bytes of them", kMostLongHeaders), ""});
      }
      TRY(bytes, ReadZipBeginning(source_, member, data_start));
    }
    bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(data_start)));
    TRY(const NpyHeader header, ParseNpyHeader(bytes, where));
    TRY(std::optional<FileTensor> tensor, TensorOf(header, member.bytes, where, findings_));
    if (tensor) {
      tensor->name = member.name.substr(0, member.name.size() - (is_named ? kEnding.size() : 0));
      tensor->packed = member.method == ZipMethod::kDeflated;
      tensor->offset = member.offset + (tensor->packed ? 0 : data_start);
      reading_.tensors.push_back(*std::move(tensor));
    }
    return {};
  }

  // "a" and "a.npy" are two members, and give one name.
  void CheckNames() {
    std::vector<std::string_view> names;
    names.reserve(reading_.tensors.size());
    for (const FileTensor& tensor : reading_.tensors) {
      names.emplace_back(tensor.name);
    }
    for (const std::size_t i : RepeatedNames(names)) {
      findings_.Refuse({fmt::format("{}: tensor \"{}\"", source_.Name(), names[i]), "a second time",
                        "expected each name once", ""});
    }
  }

  const ByteSource& source_;
  FileReading reading_ = {.format = "npz"};
  FindingList findings_ = {};
  std::int64_t long_headers_ = 0;  // bytes
};

Result<std::string> Beginning(const ByteSource& source, std::int64_t count) {
  std::string bytes(static_cast<std::size_t>(std::min(count, source.Size())), '\0');
  TRY_VOID(source.ReadAt(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

Result<void> ReadArray(const ByteSource& source, FileReading& reading, FindingList& findings) {
  const std::string where(source.Name());
  TRY(const std::string prefix, Beginning(source, kNpyPrefixBytes));
  TRY(const std::int64_t data_start, NpyDataStart(prefix, where));
  TRY(const std::string bytes, Beginning(source, data_start));
  TRY(const NpyHeader header, ParseNpyHeader(bytes, where));
  reading.facts = {{"version", header.version}, {"data_start", header.data_start}};
  TRY(std::optional<FileTensor> tensor, TensorOf(header, source.Size(), where, findings));
  if (tensor) {
    reading.tensors.push_back(*std::move(tensor));
  }
  return {};
}

}  // namespace

FileReading ReadNpy(const ByteSource& source) {
  FileReading reading = {.format = "npy"};
  FindingList findings;
  if (auto read = ReadArray(source, reading, findings); !read) {
    findings.Refuse(std::move(read).error().text);
  }
  reading.findings = std::move(findings).Take(source.Name());
  return reading;
}

FileReading ReadNpz(const ByteSource& source) {
  return Archive(source).Read();
}

}  // namespace fourpiles
