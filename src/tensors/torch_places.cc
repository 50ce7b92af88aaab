// Tensors of PyTorch held against the bytes that are there.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tensors/torch_tensors.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostNamed = 6;      // in a message
constexpr std::size_t kMostListed = 1000;  // in the facts

// What is wrong with the place of a tensor in its storage; empty: nothing.
struct Fault {
  std::string found = {};
  std::string expected = {};
};

// The elements that a tensor reaches to, from the start of its storage: offset + 1 + the sum of
// (dimension - 1) × stride (torch/csrc, computeStorageNbytes). 2 × 2 with strides (2, 1) from 0 on
// reaches to 0 + 1 + 1 × 2 + 1 × 1 = 4.
Checked ReachOf(const TorchTensor& tensor) {
  Checked reach = Checked(tensor.offset) + 1;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    reach = reach + Checked(tensor.shape[i] - 1) * tensor.strides[i];
  }
  return reach;
}

// Rows of types of less than a byte begin with a byte of their own: 3 × 5 of 4 bits are 3 × 3 bytes
// (ATen/quantized/Quantizer.cpp, get_sub_byte_tensor_size).
Checked BytesOf(const TorchTensor& tensor) {
  const Checked elements = ElementsOf(tensor.shape);
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (tensor.type->bits >= 8 || columns == 0 || !elements.ok()) {
    return DivideRoundingUp(elements * tensor.type->bits, 8);
  }
  return Checked(elements.value() / columns) *
         DivideRoundingUp(Checked(columns) * tensor.type->bits, 8).value();
}

Fault FaultOf(const TorchTensor& tensor, const TorchStorage& storage) {
  if (tensor.shape.size() != tensor.strides.size()) {
    return {fmt::format("{} dimensions and {} strides", tensor.shape.size(), tensor.strides.size()),
            "expected as many"};
  }
  const auto is_negative = [](std::int64_t number) { return number < 0; };
  if (std::ranges::any_of(tensor.shape, is_negative) ||
      std::ranges::any_of(tensor.strides, is_negative) || tensor.offset < 0) {
    return {"a negative dimension, stride or offset", "expected numbers from 0 on"};
  }
  const Checked elements = ElementsOf(tensor.shape);
  if (!elements.ok() || !(elements * tensor.type->bits).ok()) {
    return {"a shape of more than 2^53 bits", "expected fewer"};
  }
  const Checked reach = elements.value() == 0 ? Checked(0) : ReachOf(tensor);
  Checked bytes = DivideRoundingUp(reach * tensor.type->bits, 8);
  if (const Checked rows = BytesOf(tensor); tensor.type->bits < 8 && rows.ok() && bytes.ok()) {
    bytes = Checked(std::max(bytes.value(), rows.value()));
  }
  if (!bytes.ok() || bytes.value() > storage.bytes) {
    return {bytes.ok() ? fmt::format("it reaches to byte {} of its storage", bytes.value())
                       : "it reaches beyond byte 2^53 of its storage",
            fmt::format("the storage \"{}\" has {}", storage.key, storage.bytes)};
  }
  return {};
}

// Whether the elements lie one behind the other, the last dimension fastest.
bool LiesInOrder(const TorchTensor& tensor) {
  Checked expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != OrLargest(expected)) {
      return false;
    }
    expected = expected * tensor.shape[i];
  }
  return true;
}

FileTensor PlacedTensor(const TorchTensor& tensor, const StoragePlace& place, bool big_endian) {
  const std::int64_t elements = ElementsOf(tensor.shape).value();
  const bool in_order = elements == 0 || LiesInOrder(tensor);
  return {.name = tensor.name,
          .dtype = std::string(tensor.type->dtype),
          .type = FindStoredType(tensor.type->stored),
          .shape = tensor.shape,
          .elements = elements,
          .bytes = BytesOf(tensor).value(),
          .offset = (place.packed ? 0 : place.offset) + tensor.offset * tensor.type->bits / 8,
          .big_endian = big_endian,
          .packed = place.packed,
          .strides = in_order ? std::vector<std::int64_t>() : tensor.strides,
          .storage = tensor.storage};
}

// A tensor of the device "meta" has a shape and no values: its type is not told, so that nobody
// reads them.
void AddWithoutStorage(const TorchTensor& tensor, FileFindings& findings, FileReading& reading) {
  const bool is_good = tensor.shape.size() == tensor.strides.size() &&
                       std::ranges::all_of(tensor.shape, [](std::int64_t n) { return n >= 0; });
  const Checked elements = is_good ? ElementsOf(tensor.shape) : Checked(0);
  if (!is_good || !elements.ok()) {
    return findings.Refuse(fmt::format("tensor \"{}\"", tensor.name),
                           "a shape that no tensor can have", "expected numbers from 0 on");
  }
  findings.Add(FileVerdict::kAcceptWithWarning, fmt::format("tensor \"{}\"", tensor.name),
               "a tensor without values", "it was saved from the device \"meta\"");
  reading.tensors.push_back({.name = tensor.name,
                             .dtype = std::string(tensor.type->dtype),
                             .shape = tensor.shape,
                             .elements = elements.value()});
}

// {"a.b": …} and {"a": {"b": …}} are one name.
void WarnOfNames(const std::vector<FileTensor>& tensors, FileFindings& findings) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const FileTensor& tensor : tensors) {
    names.emplace_back(tensor.name);
  }
  for (const std::size_t repeated : RepeatedNames(names)) {
    findings.Add(FileVerdict::kAcceptWithWarning, fmt::format("tensor \"{}\"", names[repeated]),
                 "a name that another tensor has too", "keys are joined by \".\"");
  }
}

// Storages that are not there, or shorter than the pickle says.
bool IsThere(const TorchStorage& storage, const StoragePlace& place, FileFindings& findings) {
  if (place.bytes >= storage.bytes) {
    return true;
  }
  const bool is_missing = place.bytes < 0;
  findings.Refuse(fmt::format("storage \"{}\"", storage.key),
                  is_missing ? "nowhere in the file" : fmt::format("{} bytes", place.bytes),
                  fmt::format("the pickle says {} bytes", storage.bytes),
                  is_missing ? "" : "the file may have been cut short; fetch it again");
  return false;
}

}  // namespace

void FileFindings::Add(FileVerdict verdict, std::string_view where, std::string found,
                       std::string expected, std::string_view hint) {
  list_.Add({.verdict = verdict,
             .text = {.where = where.empty() ? file_ : fmt::format("{}: {}", file_, where),
                      .found = std::move(found),
                      .expected = std::move(expected),
                      .hint = std::string(hint)}});
}

void PlaceTensors(const TorchContents& contents, const StoragePlaces& places,
                  FileFindings& findings, FileReading& reading) {
  std::vector<bool> is_there(places.places.size());
  Checked bytes = 0;
  for (std::size_t i = 0; i < is_there.size(); ++i) {
    const TorchStorage& storage = contents.storages[i];
    const StoragePlace& place = places.places[i];
    is_there[i] = IsThere(storage, place, findings);
    bytes = bytes + storage.bytes;
    reading.storages.push_back({.key = storage.key,
                                .bytes = storage.bytes,
                                .offset = place.offset,
                                .packed = place.packed});
  }
  for (const TorchTensor& tensor : contents.tensors) {
    if (tensor.storage < 0) {
      AddWithoutStorage(tensor, findings, reading);
      continue;
    }
    const auto number = static_cast<std::size_t>(tensor.storage);
    if (const Fault fault = FaultOf(tensor, contents.storages[number]); !fault.found.empty()) {
      findings.Refuse(fmt::format("tensor \"{}\"", tensor.name), fault.found, fault.expected);
    } else if (is_there[number]) {
      reading.tensors.push_back(PlacedTensor(tensor, places.places[number], places.big_endian));
    }
  }
  WarnOfNames(reading.tensors, findings);
  reading.facts.emplace_back("storages", static_cast<std::int64_t>(is_there.size()));
  reading.facts.emplace_back("storage_bytes", OrLargest(bytes));
}

void TellGlobals(const Pickle& pickle, std::string_view where, FileFindings& findings,
                 FileReading& reading, PickleUse use) {
  std::vector<std::string_view> names = UnknownGlobals(pickle, use);
  if (names.empty()) {
    return;
  }
  std::ranges::sort(names);
  const auto others = std::stable_partition(names.begin(), names.end(), IsDangerousGlobal);
  const auto dangerous = static_cast<std::size_t>(others - names.begin());
  auto fact = std::ranges::find(reading.facts, "unsafe_globals", &Json::Member::first);
  if (fact == reading.facts.end()) {
    reading.facts.emplace_back("unsafe_globals", Json::Array());
    fact = std::prev(reading.facts.end());
  }
  if (fact->second.AsArray()->size() < kMostListed) {
    Json::Array listed = *fact->second.AsArray();
    for (const std::string_view name :
         std::span(names).first(std::min(names.size(), kMostListed - listed.size()))) {
      listed.emplace_back(std::string(name));
    }
    fact->second = Json(std::move(listed));
  }
  const std::size_t count = names.size();
  // Those that run commands are told whatever their number, as far as a text can be read.
  const std::size_t named = std::min({count, kMostListed, std::max(kMostNamed, dangerous)});
  names.resize(named);
  findings.Add(FileVerdict::kReport, where,
               fmt::format("loading it would import {}{}", fmt::join(names, ", "),
                           count > named ? fmt::format(" and {} more", count - named) : ""),
               "a state dict needs none of these",
               dangerous > 0
                   ? "such names run commands, read files or load other code when the file is "
                     "loaded: do not load it; nothing of it was run here"
                   : "classes and functions of these names run when it is loaded: do not load it "
                     "unless you trust who made it; nothing of it was run here");
}

}  // namespace fourpiles
