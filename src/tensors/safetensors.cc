#include "tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/huge_pages.h"
#include "base/json_scanner.h"
#include "tensors/finding_list.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMostHeaderBytes = 100'000'000;  // tensor.rs, MAX_HEADER_SIZE
// "":{"dtype":"U8","shape":[],"data_offsets":[0,0]}, and so no more tensors than the header's bytes
// divided by it.
constexpr std::int64_t kShortestEntry = 50;
constexpr std::size_t kMostMetadata = 10'000;  // real files have ten or so
constexpr std::size_t kLongestDtype = 64;
constexpr std::string_view kCutShort = "the download may have been cut short; fetch the file again";

struct Dtype {
  std::string_view word;
  std::string_view type;  // of formats/stored_type.h
};
// tensor.rs, enum Dtype. The last three are spellings that other writers use.
constexpr std::array kDtypes = {
    Dtype{"BF16", "bfloat16"},
    Dtype{"F32", "float32"},
    Dtype{"F16", "float16"},
    Dtype{"F8_E4M3", "float8_e4m3fn"},
    Dtype{"F8_E5M2", "float8_e5m2"},
    Dtype{"F8_E8M0", "float8_e8m0fnu"},
    Dtype{"F8_E4M3FNUZ", "float8_e4m3fnuz"},
    Dtype{"F8_E5M2FNUZ", "float8_e5m2fnuz"},
    Dtype{"F6_E2M3", "float6_e2m3fn"},
    Dtype{"F6_E3M2", "float6_e3m2fn"},
    Dtype{"F4", "float4_e2m1fn"},
    Dtype{"BOOL", "bool"},
    Dtype{"U8", "uint8"},
    Dtype{"I8", "int8"},
    Dtype{"U16", "uint16"},
    Dtype{"I16", "int16"},
    Dtype{"U32", "uint32"},
    Dtype{"I32", "int32"},
    Dtype{"U64", "uint64"},
    Dtype{"I64", "int64"},
    Dtype{"F64", "float64"},
    Dtype{"C64", "complex64"},
    Dtype{"E8M0", "float8_e8m0fnu"},
    Dtype{"UE8", "float8_e8m0fnu"},
    Dtype{"FP4", "float4_e2m1fn"},
};

const StoredType* TypeOf(std::string_view word) {
  static const auto types = [] {
    std::array<const StoredType*, kDtypes.size()> found;
    std::ranges::transform(kDtypes, found.begin(),
                           [](const Dtype& dtype) { return FindStoredType(dtype.type); });
    return found;
  }();
  const auto* const found = std::ranges::find(kDtypes, word, &Dtype::word);
  return found == kDtypes.end() ? nullptr
                                : types[static_cast<std::size_t>(found - kDtypes.begin())];
}

// The extent of one tensor, from the start of the data.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The fields of an entry that were seen.
struct SeenFields {
  bool dtype = false;
  bool shape = false;
  bool data_offsets = false;
};

class HeaderReader {
 public:
  HeaderReader(const ByteSource& source, std::int64_t header_bytes)
      : name_(source.Name()),
        data_start_(kLengthBytes + header_bytes),
        data_bytes_(source.Size() - data_start_),
        json_(source, kLengthBytes, data_start_) {}

  FileReading Read() {
    if (json_.NextKind() != JsonKind::kObject) {
      RefuseWhole();
      return Finish();
    }
    if (json_.Place() > 0) {
      Add(FileVerdict::kAcceptWithWarning, "header", "white space before the first brace",
          "the format says the header begins with \"{\"");
    }
    json_.EnterObject();
    ReserveOnHugePages(reading_.tensors, static_cast<std::size_t>(data_start_ / kShortestEntry));
    ReadMembers();
    if (!json_.Finish()) {
      RefuseJson();
      reading_.tensors.clear();
      return Finish();
    }
    if (beyond_ > 0) {
      Refuse(fmt::format("byte {}", data_start_ + data_bytes_),
             fmt::format("the file ends, and {} of {} tensors reach beyond", beyond_,
                         beyond_ + reading_.tensors.size()),
             fmt::format("expected {} bytes in all", OrLargest(Checked(data_start_) + farthest_)),
             kCutShort);
    }
    CheckNames();
    CheckCoverage();
    return Finish();
  }

 private:
  FileReading Finish() {
    reading_.findings = std::move(findings_).Take(name_);
    return std::move(reading_);
  }

  void Add(FileVerdict verdict, std::string_view where, std::string found, std::string expected,
           std::string_view hint = {}) {
    findings_.Add({.verdict = verdict,
                   .text = {.where = fmt::format("{}: {}", name_, where),
                            .found = std::move(found),
                            .expected = std::move(expected),
                            .hint = std::string(hint)}});
  }
  void Refuse(std::string_view where, std::string found, std::string expected,
              std::string_view hint = {}) {
    Add(FileVerdict::kRefuse, where, std::move(found), std::move(expected), hint);
  }
  void RefuseTensor(std::string_view tensor, std::string found, std::string expected) {
    Refuse(fmt::format("tensor \"{}\"", tensor), std::move(found), std::move(expected));
  }

  // The header is no object.
  void RefuseWhole() {
    const std::string found = json_.SkipValue();
    if (json_.HasFault()) {
      RefuseJson();
    } else {
      Refuse("header", found, "expected an object of tensors");
    }
  }

  void RefuseJson() {
    const JsonFault& fault = json_.Fault();
    // A file without tensors became {},"__metadata__":{…}} (safetensors, issue 466).
    const bool is_known = fault.byte == 2 && reading_.tensors.empty();
    Refuse(fmt::format("byte {}", kLengthBytes + static_cast<std::int64_t>(fault.byte)),
           fault.found, fault.expected,
           is_known ? "safetensors 0.4.3 wrote such headers; save the file again with a newer one"
                    : "");
  }

  void ReadMembers() {
    bool has_metadata = false;
    for (std::string key; json_.NextKey(key);) {
      if (key != "__metadata__") {
        ReadTensor(key);
      } else if (has_metadata) {
        Refuse("header", "\"__metadata__\" a second time", "expected each key once");
        json_.SkipValue();
      } else {
        has_metadata = true;
        ReadMetadata();
      }
    }
  }

  void ReadMetadata() {
    if (json_.NextKind() != JsonKind::kObject) {
      Refuse("__metadata__", json_.SkipValue(), "expected an object of strings");
      return;
    }
    json_.EnterObject();
    std::string text;
    for (std::string key; json_.NextKey(key);) {
      if (reading_.metadata.size() == kMostMetadata) {
        Refuse("__metadata__", fmt::format("more than {} entries", kMostMetadata),
               "expected fewer");
        json_.SkipValue();
      } else if (json_.NextKind() == JsonKind::kString) {
        json_.ReadString(text);
        reading_.metadata.push_back({.key = key, .value = Json(text)});
      } else {
        Refuse(fmt::format("__metadata__.{}", key), json_.SkipValue(), "expected a string");
      }
    }
  }

  void ReadTensor(const std::string& name) {
    FileTensor tensor = {.name = name};
    Extent extent;
    if (ReadEntry(tensor, extent) && !json_.HasFault() && CheckSize(tensor, extent)) {
      tensor.bytes = extent.end - extent.begin;
      tensor.offset = data_start_ + extent.begin;
      reading_.tensors.push_back(std::move(tensor));
    }
  }

  // False when the entry is not of the form that the format has; the rest of it is skipped.
  bool ReadEntry(FileTensor& tensor, Extent& extent) {
    if (json_.NextKind() != JsonKind::kObject) {
      RefuseTensor(tensor.name, json_.SkipValue(),
                   "expected an object of dtype, shape and data_offsets");
      return false;
    }
    json_.EnterObject();
    bool good = true;
    SeenFields seen;
    while (json_.NextKey(field_)) {
      good = ReadField(seen, tensor, extent) && good;
    }
    if (good && !(seen.dtype && seen.shape && seen.data_offsets)) {
      RefuseTensor(tensor.name, "a field is missing", "expected dtype, shape and data_offsets");
      return false;
    }
    return good;
  }

  // The value of field_.
  bool ReadField(SeenFields& seen, FileTensor& tensor, Extent& extent) {
    if (field_ == "dtype" && !std::exchange(seen.dtype, true)) {
      return ReadDtype(tensor);
    }
    if (field_ == "shape" && !std::exchange(seen.shape, true)) {
      return ReadCounts(tensor.name, tensor.shape);
    }
    if (field_ == "data_offsets" && !std::exchange(seen.data_offsets, true)) {
      return ReadExtent(tensor.name, extent);
    }
    RefuseTensor(tensor.name, fmt::format("the field \"{}\" too many", field_),
                 "expected dtype, shape and data_offsets, each once");
    json_.SkipValue();
    return false;
  }

  bool ReadDtype(FileTensor& tensor) {
    if (json_.NextKind() != JsonKind::kString) {
      RefuseTensor(tensor.name, "dtype is " + json_.SkipValue(), "expected a string");
      return false;
    }
    json_.ReadString(tensor.dtype);
    tensor.type = TypeOf(tensor.dtype);
    tensor.dtype.resize(std::min(tensor.dtype.size(), kLongestDtype));  // an unknown one
    return true;
  }

  bool ReadExtent(std::string_view tensor, Extent& extent) {
    std::vector<std::int64_t> offsets;
    if (!ReadCounts(tensor, offsets)) {
      return false;
    }
    if (offsets.size() != 2) {
      RefuseTensor(tensor, fmt::format("{} data_offsets", offsets.size()),
                   "expected two: where the data begins and ends");
      return false;
    }
    extent = {offsets[0], offsets[1]};
    return true;
  }

  // An array of field_.
  bool ReadCounts(std::string_view tensor, std::vector<std::int64_t>& counts) {
    if (json_.NextKind() != JsonKind::kArray) {
      RefuseTensor(tensor, fmt::format("{} is {}", field_, json_.SkipValue()),
                   "expected an array of whole numbers");
      return false;
    }
    json_.EnterArray();
    counts.reserve(2);  // of most tensors
    bool good = true;
    while (json_.NextElement()) {
      const bool is_number = json_.NextKind() == JsonKind::kNumber;
      const std::optional<std::int64_t> number = is_number ? json_.ReadNumber() : std::nullopt;
      if (number && *number >= 0 && counts.size() < kMostDimensions) {
        counts.push_back(*number);
        continue;
      }
      const std::string other = is_number ? "another number" : json_.SkipValue();
      if (good) {
        RefuseTensor(tensor,
                     fmt::format("{} has {}", field_, number ? std::to_string(*number) : other),
                     fmt::format("expected up to {} whole numbers from 0 on", kMostDimensions));
      }
      good = false;
    }
    return good;
  }

  // The extent within the data, and as long as shape and type say.
  bool CheckSize(FileTensor& tensor, const Extent& extent) {
    const Checked elements = ElementsOf(tensor.shape);
    if (!elements.ok()) {
      RefuseTensor(tensor.name, "a shape of more than 2^53 elements", "expected fewer");
      return false;
    }
    tensor.elements = elements.value();
    if (extent.end < extent.begin) {
      RefuseTensor(tensor.name, fmt::format("data_offsets {} to {}", extent.begin, extent.end),
                   "expected an end that is not before the beginning");
      return false;
    }
    if (extent.end > data_bytes_) {
      ++beyond_;
      farthest_ = std::max(farthest_, extent.end);
      return false;
    }
    if (!tensor.type) {
      RefuseTensor(tensor.name, fmt::format("unknown dtype \"{}\"", tensor.dtype),
                   "expected one of BF16, F16, F32, F8_E4M3 …");
      return true;
    }
    const Checked bits = elements * tensor.type->block_bits;
    const std::int64_t bytes = extent.end - extent.begin;
    if (bits.ok() && bits.value() % 8 == 0 && bits.value() / 8 == bytes) {
      return true;
    }
    const bool whole = bits.ok() && bits.value() % 8 == 0;
    RefuseTensor(tensor.name, fmt::format("{} bytes of data", bytes),
                 bits.ok() ? fmt::format("its shape and dtype take {} {}",
                                         whole ? bits.value() / 8 : bits.value(),
                                         whole ? "bytes" : "bits, which fill no whole bytes")
                           : "its shape and dtype take more than 2^53 bits");
    return false;
  }

  // The reference keeps the last of two tensors of one name; the format forbids them.
  void CheckNames() {
    std::set<std::string_view> keys;
    for (const MetadataEntry& entry : reading_.metadata) {
      if (!keys.insert(entry.key).second) {
        Refuse(fmt::format("__metadata__.{}", entry.key), "a second time",
               "expected each key once");
      }
    }
    const std::vector<FileTensor>& tensors = reading_.tensors;
    std::vector<std::pair<std::size_t, std::uint32_t>> order;  // by hash first, which is quick
    order.reserve(tensors.size());
    for (std::uint32_t i = 0; i < tensors.size(); ++i) {
      order.emplace_back(std::hash<std::string>{}(tensors[i].name), i);
    }
    std::ranges::sort(order, [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first
                                : tensors[a.second].name < tensors[b.second].name;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::string& name = tensors[order[i].second].name;
      if (order[i].first == order[i - 1].first && name == tensors[order[i - 1].second].name) {
        RefuseTensor(name, "a second time", "expected each name once");
      }
    }
  }

  // A tensor that begins before the one before it ends is not listed: its bytes are another's.
  void LeaveOut(const std::vector<bool>& overlaps) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < overlaps.size(); ++i) {
      if (!overlaps[i]) {
        std::swap(reading_.tensors[kept++], reading_.tensors[i]);
      }
    }
    reading_.tensors.resize(kept);
  }

  // In the order of the data, each tensor begins where the one before it ends, and the last one
  // ends with the file: no byte is hidden and none belongs to two.
  void CheckCoverage() {
    if (findings_.HasRefusals()) {
      return;  // a tensor that was left out would look like a hole
    }
    std::vector<FileTensor>& tensors = reading_.tensors;
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto place = [&](std::uint32_t i) {
      return std::pair(tensors[i].offset, tensors[i].bytes);
    };
    if (!std::ranges::is_sorted(order, {}, place)) {  // most writers sort them
      std::ranges::sort(order, {}, place);
    }
    std::int64_t end = data_start_;
    std::vector<bool> overlaps(tensors.size());
    for (const std::uint32_t i : order) {
      overlaps[i] = tensors[i].offset < end;
      if (tensors[i].offset != end) {
        RefuseTensor(
            tensors[i].name, fmt::format("data from byte {} of the file", tensors[i].offset),
            tensors[i].offset < end ? fmt::format("the tensor before it reaches to byte {}", end)
                                    : fmt::format("no tensor covers the bytes from {} on", end));
      }
      end = std::max(end, tensors[i].offset + tensors[i].bytes);
    }
    if (findings_.HasRefusals()) {
      LeaveOut(overlaps);
    }
    if (!findings_.HasRefusals() && end != data_start_ + data_bytes_) {
      Refuse(fmt::format("byte {}", end),
             fmt::format("{} bytes behind the last tensor", data_start_ + data_bytes_ - end),
             "expected the end of the file");
    }
  }

  std::string_view name_;
  std::int64_t data_start_;
  std::int64_t data_bytes_;
  JsonScanner json_;
  std::string field_;  // of the entry that is being read
  FileReading reading_ = {.format = "safetensors"};
  FindingList findings_ = {};
  // Tensors that reach beyond the end of the file, told together: a download that was cut short has
  // hundreds.
  std::size_t beyond_ = 0;
  std::int64_t farthest_ = 0;
};

FileReading Refused(const ByteSource& source, ErrorText text) {
  text.where = fmt::format("{}: {}", source.Name(), text.where);
  return {.format = "safetensors",
          .findings = {{.verdict = FileVerdict::kRefuse, .text = std::move(text)}}};
}

}  // namespace

FileReading ReadSafetensors(const ByteSource& source) {
  if (source.Size() < kLengthBytes) {
    return Refused(source,
                   {"byte 0", fmt::format("{} bytes in all", source.Size()),
                    "expected 8 that give the length of the header", std::string(kCutShort)});
  }
  std::array<std::byte, kLengthBytes> bytes = {};
  if (const auto read = source.ReadAt(0, bytes); !read) {
    return {.format = "safetensors", .findings = {{FileVerdict::kRefuse, read.error().text}}};
  }
  std::uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes)) {
    return Refused(source, {"byte 0", fmt::format("a header of {} bytes", length),
                            fmt::format("expected at most {}", kMostHeaderBytes),
                            "it may be no safetensors file"});
  }
  const auto header_bytes = static_cast<std::int64_t>(length);
  if (header_bytes > source.Size() - kLengthBytes) {
    return Refused(source, {"byte 0", fmt::format("a header of {} bytes", length),
                            fmt::format("the file ends after {}", source.Size() - kLengthBytes),
                            std::string(kCutShort)});
  }
  FileReading reading = HeaderReader(source, header_bytes).Read();
  reading.facts = {{"header_bytes", header_bytes}, {"data_start", kLengthBytes + header_bytes}};
  return reading;
}

}  // namespace fourpiles
