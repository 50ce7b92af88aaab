#include "tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "base/json_view.h"
#include "tensors/finding_list.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMostHeaderBytes = 100'000'000;  // tensor.rs, MAX_HEADER_SIZE
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

std::optional<StoredType> TypeOf(std::string_view word) {
  static const auto types = [] {
    std::array<std::optional<StoredType>, kDtypes.size()> found;
    std::ranges::transform(kDtypes, found.begin(),
                           [](const Dtype& dtype) { return FindStoredType(dtype.type); });
    return found;
  }();
  const auto* const found = std::ranges::find(kDtypes, word, &Dtype::word);
  return found == kDtypes.end() ? std::nullopt
                                : types[static_cast<std::size_t>(found - kDtypes.begin())];
}

// The extent of one tensor, from the start of the data.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class HeaderReader {
 public:
  HeaderReader(const ByteSource& source, std::string_view header)
      : name_(source.Name()),
        data_start_(kLengthBytes + static_cast<std::int64_t>(header.size())),
        data_bytes_(source.Size() - data_start_),
        header_(header) {}

  FileReading Read() {
    const auto document = JsonDocument::Read(header_, fmt::format("{}: header", name_));
    if (!document) {
      RefuseJson(document.error().text);
      return Finish();
    }
    if (!document->Root().IsObject()) {
      Refuse("header", document->Root().Description(), "expected an object of tensors");
      return Finish();
    }
    if (!header_.starts_with('{')) {
      Add(FileVerdict::kAcceptWithWarning, "header", "white space before the first brace",
          "the format says the header begins with \"{\"");
    }
    reading_.tensors.reserve(document->Root().Count());
    document->Root().ForEachMember([this](std::string_view key, JsonView value) {
      if (key == "__metadata__") {
        ReadMetadata(value);
      } else {
        ReadTensor(key, value);
      }
    });
    if (beyond_ > 0) {
      Refuse(fmt::format("byte {}", data_start_ + data_bytes_),
             fmt::format("the file ends, and {} of {} tensors reach beyond", beyond_,
                         beyond_ + reading_.tensors.size()),
             fmt::format("expected {} bytes in all", OrLargest(Checked(data_start_) + farthest_)),
             kCutShort);
    }
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

  void RefuseJson(ErrorText text) {
    // safetensors 0.4.3 wrote this for a file without tensors (issue 466).
    if (header_.starts_with("{},\"__metadata__\"")) {
      text.hint = "safetensors 0.4.3 wrote such headers; save the file again with a newer version";
    }
    findings_.Refuse(std::move(text));
  }

  void ReadMetadata(JsonView value) {
    if (!value.IsObject()) {
      Refuse("__metadata__", value.Description(), "expected an object of strings");
      return;
    }
    value.ForEachMember([this](std::string_view key, JsonView text) {
      if (const auto content = text.Text()) {
        reading_.metadata.push_back({.key = std::string(key), .value = Json(*content)});
      } else {
        Refuse(fmt::format("__metadata__.{}", key), text.Description(), "expected a string");
      }
    });
  }

  void ReadTensor(std::string_view name, JsonView entry) {
    FileTensor tensor = {.name = std::string(name)};
    Extent extent;
    if (ReadFields(entry, tensor, extent) && CheckSize(tensor, extent)) {
      tensor.bytes = extent.end - extent.begin;
      tensor.offset = data_start_ + extent.begin;
      reading_.tensors.push_back(std::move(tensor));
    }
  }

  // False when the entry is not of the form that the format has.
  bool ReadFields(JsonView entry, FileTensor& tensor, Extent& extent) {
    if (!entry.IsObject()) {
      RefuseTensor(tensor.name, entry.Description(),
                   "expected an object of dtype, shape and data_offsets");
      return false;
    }
    int known = 0;
    bool good = true;
    entry.ForEachMember([&](std::string_view key, JsonView value) {
      const bool is_known = key == "dtype" || key == "shape" || key == "data_offsets";
      known += is_known ? 1 : 0;
      if (!is_known) {
        RefuseTensor(tensor.name, fmt::format("the field \"{}\"", key),
                     "expected dtype, shape and data_offsets alone");
      }
      good = is_known && ReadField(key, value, tensor, extent) && good;
    });
    if (good && known < 3) {
      RefuseTensor(tensor.name, "a field is missing", "expected dtype, shape and data_offsets");
    }
    return good && known == 3;
  }

  bool ReadField(std::string_view key, JsonView value, FileTensor& tensor, Extent& extent) {
    if (key == "dtype") {
      const auto word = value.Text();
      if (!word) {
        RefuseTensor(tensor.name, "dtype is " + value.Description(), "expected a string");
        return false;
      }
      tensor.dtype = *word;
      tensor.type = TypeOf(*word);
      return true;
    }
    std::vector<std::int64_t> offsets;
    const bool is_shape = key == "shape";
    if (!ReadCounts(tensor.name, key, value, is_shape ? tensor.shape : offsets)) {
      return false;
    }
    if (is_shape) {
      return true;
    }
    if (offsets.size() != 2) {
      RefuseTensor(tensor.name, fmt::format("{} data_offsets", offsets.size()),
                   "expected two: where the data begins and ends");
      return false;
    }
    extent = {offsets[0], offsets[1]};
    return true;
  }

  bool ReadCounts(std::string_view tensor, std::string_view key, JsonView value,
                  std::vector<std::int64_t>& counts) {
    if (!value.IsArray()) {
      RefuseTensor(tensor, fmt::format("{} is {}", key, value.Description()),
                   "expected an array of whole numbers");
      return false;
    }
    bool good = true;
    value.ForEachElement([&](JsonView element) {
      const auto number = element.WholeNumber();
      if (good && (!number || *number < 0 || counts.size() == kMostDimensions)) {
        RefuseTensor(tensor, fmt::format("{} has {}", key, element.Description()),
                     fmt::format("expected up to {} whole numbers from 0 on", kMostDimensions));
        good = false;
      }
      counts.push_back(good ? *number : 0);
      if (counts.size() > kMostDimensions) {
        counts.pop_back();
      }
    });
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

  // In the order of the data, each tensor begins where the one before it ends, and the last one
  // ends with the file: no byte is hidden and none belongs to two.
  void CheckCoverage() {
    if (findings_.HasRefusals()) {
      return;  // a tensor that was left out would look like a hole
    }
    std::vector<FileTensor>& tensors = reading_.tensors;
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(
        order, {}, [&](std::uint32_t i) { return std::pair(tensors[i].offset, tensors[i].bytes); });
    std::int64_t end = data_start_;
    for (const std::uint32_t i : order) {
      if (tensors[i].offset != end) {
        RefuseTensor(
            tensors[i].name, fmt::format("data from byte {} of the file", tensors[i].offset),
            tensors[i].offset < end ? fmt::format("the tensor before it reaches to byte {}", end)
                                    : fmt::format("no tensor covers the bytes from {} on", end));
      }
      end = tensors[i].offset + tensors[i].bytes;
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
  std::string_view header_;
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
  std::string header(static_cast<std::size_t>(header_bytes), '\0');
  if (const auto read = source.ReadAt(kLengthBytes, std::as_writable_bytes(std::span(header)));
      !read) {
    return {.format = "safetensors", .findings = {{FileVerdict::kRefuse, read.error().text}}};
  }
  FileReading reading = HeaderReader(source, header).Read();
  reading.facts = {{"header_bytes", header_bytes}, {"data_start", kLengthBytes + header_bytes}};
  return reading;
}

}  // namespace fourpiles
