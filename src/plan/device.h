#pragma once

// What a job runs on, as a record says: its memory, and how fast it is in each format.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/units.h"
#include "model/names.h"

namespace fourpiles {

struct Device {
  Names names = {};
  std::string name = {};  // as it is sold: "H100 SXM 80GB"
  std::string vendor = {};
  std::string kind = {};          // "datacenter", "workstation", "consumer", "unified"
  std::string architecture = {};  // "sm90"
  Bytes memory = {};
  // The memory is what the driver reports; else the size it is sold with, taken as 10^9 bytes a GB.
  bool memory_from_driver = false;
  // What PyTorch names as "total capacity", a little less; the least and the most that was seen.
  struct Seen {
    Bytes least = {};
    Bytes most = {};
  };
  std::optional<Seen> pytorch_total = {};
  std::optional<std::int64_t> bandwidth_bytes_per_second = {};
  struct Speed {
    std::string format = {};  // "bfloat16"
    double tflops = 0;        // dense, 10^12 operations a second
  };
  std::vector<Speed> dense_tflops = {};
  std::vector<Speed> achieved_tflops = {};  // that large products were seen to reach
  // Sent to the other devices of its node, and of its share of the node's network to other nodes,
  // one way.
  std::optional<std::int64_t> link_bytes_per_second = {};
  std::optional<std::int64_t> network_bytes_per_second = {};
  std::vector<std::string> native_formats = {};
  std::string note = {};
  std::vector<std::string> unverified = {};  // keys that one source alone gives
  std::string source = {};
  std::string checked = {};  // the day, as 2026-11-29
};

// The record of one device; `where` names it in errors.
Result<Device> DeviceFromJson(const Json& json, std::string_view where);

// The catalogue, sorted by id.
std::vector<Device> Devices();

// The catalogue's device of that id or alias, or the one in a file that ends in ".json".
Result<Device> FindDevice(std::string_view name, std::string_view where = "--device");

// A device of which only the memory is given, "80GB": no record, so neither overhead nor band is
// known. Errors: no size, 0 bytes.
Result<Device> DeviceOfSize(std::string_view size, std::string_view where = "--device");
inline bool IsSize(const Device& device) {
  return device.names.id.empty();
}

// What a budget on this device should warn of; "" when there is nothing.
std::string MemoryWarning(const Device& device);

}  // namespace fourpiles
