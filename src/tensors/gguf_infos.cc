#include "tensors/gguf_infos.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/try.h"
#include "base/utf8.h"
#include "tensors/gguf_types.h"

namespace fourpiles {
namespace {

constexpr std::size_t kGgmlNameBytes = 64;  // GGML_MAX_NAME, its final NUL included
constexpr std::size_t kGgmlDimensions = 4;  // GGML_MAX_DIMS
constexpr std::string_view kGgmlRefuses = "llama.cpp will refuse the file";
constexpr std::string_view kCutHint = "the file may be cut short; compare its size with the source";

std::string TensorWhere(std::string_view file, std::string_view name) {
  return fmt::format("{}: tensor \"{}\"", file, name);
}

// An info as it stands in the file.
struct RawInfo {
  std::string name = {};
  std::vector<std::uint64_t> dimensions = {};  // the fastest first
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

Result<RawInfo> ReadRawInfo(GgufStream& stream) {
  RawInfo info;
  TRY(info.name, stream.String(kMostGgufStringBytes, "the name of a tensor"));
  const std::int64_t place = stream.Place();
  TRY(const std::uint32_t count, stream.Uint32("a number of dimensions"));
  if (count > kMostDimensions) {
    return BadInput({.where = TensorWhere(stream.Name(), info.name),
                     .found = fmt::format("{} dimensions at byte {}", count, place),
                     .expected = fmt::format("expected at most {}", kMostDimensions),
                     .hint = "the tensors from here on are not listed"});
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    TRY(const std::uint64_t dimension, stream.Count("a dimension"));
    info.dimensions.push_back(dimension);
  }
  TRY(info.type, stream.Uint32("a tensor type"));
  TRY(info.offset, stream.Number(8, "the offset of a tensor"));
  return info;
}

// The first number that is past 2^53, if one is.
std::optional<std::uint64_t> Overlarge(const RawInfo& info) {
  const auto is_large = [](std::uint64_t number) { return number > std::uint64_t{kLargestAmount}; };
  const auto found = std::ranges::find_if(info.dimensions, is_large);
  return found != info.dimensions.end() ? std::optional(*found) : std::nullopt;
}

// Elements, type and bytes of a tensor whose name and shape are set; or what is wrong with them,
// where the rest of the error is up to the caller.
Result<void> Measure(const RawInfo& info, const GgufType& type, FileTensor& tensor) {
  if (tensor.name.empty()) {
    return BadInput(
        {.found = "an empty name",
         .expected = "expected a name",
         .hint = "padding may have been taken for a tensor: compare the number of tensors"});
  }
  if (const auto dimension = Overlarge(info)) {
    return BadInput({.found = fmt::format("dimension overflow: {}", *dimension),
                     .expected = "expected at most 2^53"});
  }
  tensor.shape.assign(info.dimensions.rbegin(), info.dimensions.rend());
  const Checked elements = ElementsOf(tensor.shape);
  if (!elements.ok()) {
    return BadInput({.found = "dimension overflow: " + ShapeText(tensor.shape),
                     .expected = "expected at most 2^53 elements"});
  }
  tensor.elements = elements.value();
  tensor.dtype = type.dtype;
  tensor.type = type.type;
  if (!type.type) {
    return {};
  }
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % type.type->block_elements != 0) {
    return BadInput({.found = fmt::format("rows of {} elements", row),
                     .expected = fmt::format("expected a multiple of {}, the block of {}",
                                             type.type->block_elements, type.dtype)});
  }
  const Checked bytes = StorageBytes(elements, *type.type);
  if (!bytes.ok()) {
    return BadInput({.found = fmt::format("{} {}", type.dtype, ShapeText(tensor.shape)),
                     .expected = "expected at most 2^53 bytes"});
  }
  tensor.bytes = bytes.value();
  return {};
}

// What ggml or the text of the format objects to, though the tensor can be read.
void WarnOfOddities(const FileTensor& tensor, std::string_view file, FindingList& findings) {
  const auto where = [&] { return TensorWhere(file, tensor.name); };
  if (tensor.name.size() >= kGgmlNameBytes) {
    findings.Warn({where(), fmt::format("a name of {} bytes", tensor.name.size()),
                   fmt::format("expected fewer than {}", kGgmlNameBytes),
                   std::string(kGgmlRefuses)});
  }
  if (Utf8Prefix(tensor.name) != tensor.name.size()) {
    findings.Warn({where(), "a name that is no UTF-8", "expected UTF-8 text", ""});
  }
  if (tensor.shape.size() > kGgmlDimensions) {
    findings.Warn({where(), fmt::format("{} dimensions", tensor.shape.size()),
                   fmt::format("expected at most {}", kGgmlDimensions), std::string(kGgmlRefuses)});
  }
}

std::optional<FileTensor> TensorOf(RawInfo info, const GgufType& type, std::string_view file,
                                   FindingList& findings) {
  FileTensor tensor;
  tensor.name = std::move(info.name);
  if (auto measured = Measure(info, type, tensor); !measured) {
    ErrorText text = std::move(measured).error().text;
    text.where = TensorWhere(file, tensor.name);
    findings.Refuse(std::move(text));
    return std::nullopt;
  }
  if (info.offset > std::uint64_t{kLargestAmount}) {
    findings.Refuse({TensorWhere(file, tensor.name),
                     fmt::format("tensor data past the end of the file: offset {}", info.offset),
                     "expected an offset in the file", std::string(kCutHint)});
    return std::nullopt;
  }
  tensor.offset = static_cast<std::int64_t>(info.offset);
  WarnOfOddities(tensor, file, findings);
  if (!type.type) {
    findings.Refuse({TensorWhere(file, tensor.name), type.description, "expected a type of ggml",
                     "its bytes are counted up to the next tensor; its values cannot be read"});
  }
  return tensor;
}

std::int64_t AlignUp(std::int64_t place, std::int64_t alignment) {
  return (place + alignment - 1) / alignment * alignment;
}

// Turns the offset into a place in the file; false, with a finding, where the tensor has none.
bool FindPlace(FileTensor& tensor, const GgufData& data, FindingList& findings) {
  if (tensor.offset % data.alignment != 0) {
    findings.Refuse({TensorWhere(data.file, tensor.name),
                     fmt::format("misaligned offset {}", tensor.offset),
                     fmt::format("expected a multiple of {}", data.alignment), ""});
    return false;
  }
  const Checked start = Checked(data.start) + tensor.offset;
  const Checked end = start + tensor.bytes;
  if (!end.ok() || end.value() > data.file_bytes) {
    findings.Refuse(
        {TensorWhere(data.file, tensor.name),
         fmt::format("tensor data past the end of the file: {} {}, {} bytes from byte {}",
                     tensor.dtype, ShapeText(tensor.shape), tensor.bytes, OrLargest(start)),
         fmt::format("the file ends at byte {}", data.file_bytes), std::string(kCutHint)});
    return false;
  }
  tensor.offset = start.value();
  return true;
}

// Indices in the order of the data; of those at one place, empty ones come first.
std::vector<std::size_t> DataOrder(const std::vector<FileTensor>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&tensors](std::size_t a, std::size_t b) {
    const auto key = [](const FileTensor& tensor) {
      return std::pair(tensor.offset, tensor.elements != 0);
    };
    return key(tensors[a]) < key(tensors[b]);
  });
  return order;
}

// A tensor of unknown type ends where the next one begins, padding included.
void MeasureUnknown(std::vector<FileTensor>& tensors, const std::vector<std::size_t>& order,
                    std::int64_t file_bytes) {
  std::int64_t above = file_bytes;  // the first place behind this one where a tensor begins
  std::int64_t last = file_bytes;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    FileTensor& tensor = tensors[*i];
    above = tensor.offset < last ? last : above;
    last = tensor.offset;
    if (!tensor.type && tensor.elements != 0) {
      tensor.bytes = above - tensor.offset;
    }
  }
}

struct Sweep {
  std::vector<bool> overlaps = {};  // by index of the tensor
  std::int64_t end = 0;             // of all data
  std::int64_t gap_bytes = 0;
  std::int64_t gap_start = 0;  // of the first one
};

// Walks the data in order. A tensor that begins within another one overlaps it.
Sweep SweepData(const std::vector<FileTensor>& tensors, const std::vector<std::size_t>& order,
                const GgufData& data, FindingList& findings) {
  Sweep sweep{.overlaps = std::vector<bool>(tensors.size()), .end = data.start};
  std::size_t before = 0;  // the tensor that ends there
  for (const std::size_t i : order) {
    const FileTensor& tensor = tensors[i];
    if (tensor.bytes == 0) {
      continue;
    }
    if (tensor.offset < sweep.end) {
      sweep.overlaps[i] = true;
      findings.Refuse({TensorWhere(data.file, tensor.name),
                       fmt::format("overlaps tensor \"{}\": begins at byte {}",
                                   tensors[before].name, tensor.offset),
                       fmt::format("expected byte {} or later", sweep.end), ""});
      continue;
    }
    const std::int64_t padded = AlignUp(sweep.end, data.alignment);
    if (tensor.offset > padded) {
      sweep.gap_start = sweep.gap_bytes == 0 ? padded : sweep.gap_start;
      sweep.gap_bytes += tensor.offset - padded;
    }
    sweep.end = tensor.offset + tensor.bytes;
    before = i;
  }
  return sweep;
}

void WarnOfGaps(const Sweep& sweep, const GgufData& data, FindingList& findings) {
  const std::int64_t padded = AlignUp(sweep.end, data.alignment);
  if (sweep.gap_bytes > 0) {
    findings.Warn({fmt::format("{}: byte {}", data.file, sweep.gap_start),
                   fmt::format("a gap: {} bytes between tensors belong to none", sweep.gap_bytes),
                   "expected tensors one behind the other", std::string(kGgmlRefuses)});
  }
  if (data.file_bytes > padded) {
    findings.Warn(
        {fmt::format("{}: byte {}", data.file, padded),
         fmt::format("{} trailing bytes that belong to no tensor", data.file_bytes - padded),
         "expected the end of the file", ""});
  }
}

void WarnOfOrder(const std::vector<FileTensor>& tensors, std::string_view file,
                 FindingList& findings) {
  const auto by_offset = [](const FileTensor& a, const FileTensor& b) {
    return a.offset > b.offset;
  };
  const auto found = std::ranges::adjacent_find(tensors, by_offset);
  if (found != tensors.end()) {
    findings.Warn(
        {TensorWhere(file, (found + 1)->name),
         fmt::format("infos out of order: its data lies before that of tensor \"{}\"", found->name),
         "expected infos in the order of the data", std::string(kGgmlRefuses)});
  }
}

// Leaves out the tensors that are marked.
void Drop(std::vector<FileTensor>& tensors, const std::vector<bool>& marked) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!marked[i]) {
      if (kept != i) {
        tensors[kept] = std::move(tensors[i]);
      }
      ++kept;
    }
  }
  tensors.resize(kept);
}

void DropRepeated(std::vector<FileTensor>& tensors, std::string_view file, FindingList& findings) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const FileTensor& tensor : tensors) {
    names.emplace_back(tensor.name);
  }
  std::vector<bool> marked(tensors.size());
  for (const std::size_t i : RepeatedNames(names)) {
    marked[i] = true;
    findings.Refuse({TensorWhere(file, tensors[i].name), "a duplicate: the name stands before",
                     "expected each name once", "only the first one is listed"});
  }
  Drop(tensors, marked);
}

}  // namespace

Result<std::vector<FileTensor>> ReadGgufInfos(GgufStream& stream, std::int64_t count,
                                              std::int64_t& name_bytes, FindingList& findings) {
  GgufTypes types;
  std::vector<FileTensor> tensors;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = stream.Place();
    TRY(RawInfo info, ReadRawInfo(stream));
    name_bytes -= static_cast<std::int64_t>(info.name.size());
    if (name_bytes < 0) {
      return BadInput(
          {.where = stream.WhereAt(place),
           .found = "names that are too long",
           .expected = fmt::format("expected at most {} bytes in all", kMostGgufNameBytes)});
    }
    const GgufType& type = types.Find(info.type);
    if (auto tensor = TensorOf(std::move(info), type, stream.Name(), findings)) {
      tensors.push_back(*std::move(tensor));
    }
  }
  return tensors;
}

void PlaceGgufTensors(std::vector<FileTensor>& tensors, const GgufData& data,
                      FindingList& findings) {
  DropRepeated(tensors, data.file, findings);
  std::vector<bool> homeless(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    homeless[i] = !FindPlace(tensors[i], data, findings);
  }
  Drop(tensors, homeless);
  const std::vector<std::size_t> order = DataOrder(tensors);
  MeasureUnknown(tensors, order, data.file_bytes);
  const bool is_whole = !findings.HasRefusals();  // else what was left out would read as a gap
  const Sweep sweep = SweepData(tensors, order, data, findings);
  Drop(tensors, sweep.overlaps);
  WarnOfOrder(tensors, data.file, findings);
  if (is_whole) {
    WarnOfGaps(sweep, data, findings);
  }
}

}  // namespace fourpiles
