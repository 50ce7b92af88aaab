#include "plan/device.h"

#include <fmt/format.h>

#include "model/record.h"
#include "model/record_files.h"
#include "units/parse.h"

namespace fourpiles {

std::span<const DataFile> DeviceFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {"id",
                                      "aliases",
                                      "name",
                                      "vendor",
                                      "kind",
                                      "architecture",
                                      "memory_bytes",
                                      "memory_from",
                                      "pytorch_total_bytes",
                                      "bandwidth_bytes_per_second",
                                      "dense_tflops",
                                      "achieved_tflops",
                                      "link_bytes_per_second",
                                      "network_bytes_per_second",
                                      "native_formats",
                                      "note",
                                      "unverified",
                                      "source",
                                      "checked"};

// "driver" or "marketing".
bool IsFromDriver(Record& record) {
  const std::string from = record.TextOr("memory_from", "driver");
  if (from != "driver" && from != "marketing") {
    record.Refuse("memory_from", {.found = fmt::format("\"{}\"", from),
                                  .expected = "expected \"driver\" or \"marketing\""});
  }
  return from == "driver";
}

std::optional<Device::Seen> PytorchTotal(Record& record) {
  const std::vector<std::int64_t> seen = record.Counts("pytorch_total_bytes", {1, kLargestAmount});
  if (seen.empty()) {
    return std::nullopt;
  }
  if (seen.size() != 2) {
    record.Refuse("pytorch_total_bytes", {.found = fmt::format("{} numbers", seen.size()),
                                          .expected = "expected two, the least and the most"});
  }
  return Device::Seen{.least = Bytes(seen.front()), .most = Bytes(seen.back())};
}

Result<std::vector<Device::Speed>> SpeedsOf(const Fields& fields, std::string_view key) {
  std::vector<Device::Speed> speeds;
  TRY(const std::optional<Fields> given, fields.OptionalObject(key));
  if (!given) {
    return speeds;
  }
  for (const auto& [format, value] : given->Members()) {
    TRY(const double tflops, given->Number(format, {.least = 0, .most = 1e6}));
    speeds.push_back({.format = format, .tflops = tflops});
  }
  return speeds;
}

}  // namespace

Result<Device> DeviceFromJson(const Json& json, std::string_view where) {
  TRY(const Fields fields, Fields::Of(json, std::string(where)));
  TRY_VOID(fields.RefuseUnknown(kKeys));
  TRY(std::vector<Device::Speed> speeds, SpeedsOf(fields, "dense_tflops"));
  TRY(std::vector<Device::Speed> achieved, SpeedsOf(fields, "achieved_tflops"));
  Record record(fields);
  const std::string id = record.Text("id");
  Device device = {
      .names = {.id = id, .aliases = record.Texts("aliases")},
      .name = record.TextOr("name", id),
      .vendor = record.TextOr("vendor", ""),
      .kind = record.TextOr("kind", ""),
      .architecture = record.TextOr("architecture", ""),
      .memory = Bytes(record.Count("memory_bytes", {1, kLargestAmount})),
      .memory_from_driver = IsFromDriver(record),
      .pytorch_total = PytorchTotal(record),
      .bandwidth_bytes_per_second =
          record.OptionalCount("bandwidth_bytes_per_second", {1, kLargestAmount}),
      .dense_tflops = std::move(speeds),
      .achieved_tflops = std::move(achieved),
      .link_bytes_per_second = record.OptionalCount("link_bytes_per_second", {1, kLargestAmount}),
      .network_bytes_per_second =
          record.OptionalCount("network_bytes_per_second", {1, kLargestAmount}),
      .native_formats = record.Texts("native_formats"),
      .note = record.TextOr("note", ""),
      .unverified = record.Texts("unverified"),
      .source = record.TextOr("source", ""),
      .checked = record.TextOr("checked", ""),
  };
  TRY_VOID(record.Finish());
  return device;
}

std::vector<Device> Devices() {
  return CompiledRecords(DeviceFiles(), DeviceFromJson);
}

Result<Device> FindDevice(std::string_view name, std::string_view where) {
  return FindRecord(
      name, DeviceFiles(), DeviceFromJson,
      {.kind = "device", .where = where, .hint = "\"fourpiles devices\" lists them all"});
}

Result<Device> DeviceOfSize(std::string_view size, std::string_view where) {
  TRY(const Bytes memory, ParseBytes(size, where));
  constexpr Bytes kLeast(std::int64_t{1} << 20);
  if (memory < kLeast) {  // "80" is 80 bytes
    return WrongUsage({.where = std::string(where),
                       .found = fmt::format("a device of {} bytes", memory.value()),
                       .expected = "expected a size with its unit, such as 80GB"});
  }
  Device device;
  device.name = size;
  device.memory = memory;
  device.memory_from_driver = true;  // the bytes are what was asked for
  return device;
}

std::string MemoryWarning(const Device& device) {
  return device.memory_from_driver
             ? ""
             : fmt::format(
                   "{}: what the driver reports is not known; the memory is the size it is "
                   "sold with, {} bytes, and less is usable",
                   device.names.id, device.memory.value());
}

}  // namespace fourpiles
