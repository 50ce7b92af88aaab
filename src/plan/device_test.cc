#include "plan/device.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error_text.h"
#include "fourpiles/formats.h"
#include "model/data_file.h"

namespace fourpiles {

std::span<const DataFile> DeviceFiles();  // made from data/ by data/embed.cmake

namespace {

std::string Message(const Error& error) {
  std::string text = ErrorMessage(error);
  text.pop_back();  // the end of the last line
  return text;
}

TEST(DeviceCatalogue, HasTheIdOfEachRecordAsTheNameOfItsFile) {
  const std::vector<Device> devices = Devices();
  ASSERT_EQ(devices.size(), DeviceFiles().size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].names.id, DeviceFiles()[i].name);
    EXPECT_TRUE(std::regex_match(devices[i].names.id, std::regex("[a-z0-9]+(-[a-z0-9]+)*")))
        << devices[i].names.id;
  }
}

TEST(DeviceCatalogue, GivesASourceAndADayForEachRecord) {
  for (const Device& device : Devices()) {
    EXPECT_GE(device.source.size(), 10u) << device.names.id;
    EXPECT_TRUE(std::regex_match(device.checked, std::regex("20\\d\\d-[01]\\d-[0-3]\\d")))
        << device.names.id;
  }
}

TEST(DeviceCatalogue, HasNoNameTwice) {
  std::map<std::string, std::string> seen;
  for (const Device& device : Devices()) {
    EXPECT_TRUE(seen.emplace(device.names.id, device.names.id).second) << device.names.id;
    for (const std::string& alias : device.names.aliases) {
      EXPECT_TRUE(seen.emplace(alias, device.names.id).second)
          << alias << " means " << device.names.id << " and " << seen[alias];
    }
  }
}

// A card of 8 GB and a machine of 512 are the ends today; 20 TB/s and 20 PFLOPS are beyond any.
TEST(DeviceCatalogue, HasSaneFigures) {
  for (const Device& device : Devices()) {
    EXPECT_GE(device.memory.value(), std::int64_t{1} << 30) << device.names.id;
    EXPECT_LE(device.memory.value(), std::int64_t{4} << 40) << device.names.id;
    if (device.pytorch_total && device.memory_from_driver) {
      EXPECT_LE(device.pytorch_total->least, device.pytorch_total->most) << device.names.id;
      EXPECT_LE(device.pytorch_total->most, device.memory) << device.names.id;
      EXPECT_GE(device.pytorch_total->least.value(), device.memory.value() / 100 * 95)
          << device.names.id;
    }
    const std::int64_t bandwidth = device.bandwidth_bytes_per_second.value_or(1'000'000'000'000);
    EXPECT_GE(bandwidth, 50'000'000'000) << device.names.id;
    EXPECT_LE(bandwidth, 20'000'000'000'000) << device.names.id;
    for (const Device::Speed& speed : device.dense_tflops) {
      EXPECT_GE(speed.tflops, 1) << device.names.id;
      EXPECT_LE(speed.tflops, 20'000) << device.names.id;
      EXPECT_FALSE(speed.format.empty());
    }
  }
}

// nvidia-smi prints 81559 MiB for an H100 SXM, 23028 for an A10 with ECC, 15360 for a T4.
TEST(DeviceCatalogue, HasTheMemoryThatTheDriverReports) {
  const std::map<std::string, std::int64_t> mebibytes = {
      {"h100-sxm-80gb", 81559}, {"a100-sxm-80gb", 81920}, {"a10-24gb", 23028},
      {"t4-16gb", 15360},       {"rtx-4090-24gb", 24564}, {"h200-sxm-141gb", 143771},
      {"b200-180gb", 183359},
  };
  for (const auto& [id, memory] : mebibytes) {
    const Result<Device> device = FindDevice(id);
    ASSERT_TRUE(device) << Message(device.error());
    EXPECT_EQ(device->memory.value(), memory << 20) << id;
    EXPECT_EQ(MemoryWarning(*device), "") << id;
  }
}

TEST(DeviceCatalogue, WarnsWhereItHasOnlyTheSizeThatIsSold) {
  const Result<Device> device = FindDevice("p100");
  ASSERT_TRUE(device) << Message(device.error());
  EXPECT_EQ(device->memory.value(), 16'000'000'000);
  EXPECT_EQ(MemoryWarning(*device),
            "p100-16gb: what the driver reports is not known; the memory is the size it is sold "
            "with, 16000000000 bytes, and less is usable");
}

TEST(FindDevice, TakesIdsAndAliasesWhateverTheCase) {
  for (const char* name : {"h100-sxm-80gb", "H100", "h100-80GB"}) {
    const Result<Device> device = FindDevice(name);
    ASSERT_TRUE(device) << Message(device.error());
    EXPECT_EQ(device->names.id, "h100-sxm-80gb");
  }
}

TEST(FindDevice, SuggestsTheNearestName) {
  const Result<Device> device = FindDevice("h100-sxn-80gb");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Message(device.error()),
            "error: --device: unknown device \"h100-sxn-80gb\", did you mean \"h100-sxm-80gb\"?\n"
            "hint: \"fourpiles devices\" lists them all");
}

TEST(FindDevice, ReadsAFileOfTheUser) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("fourpiles-device-" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << R"({"id": "mine", "memory_bytes": 1000000000})";
  const Result<Device> device = FindDevice(path.string());
  std::filesystem::remove(path);
  ASSERT_TRUE(device) << Message(device.error());
  EXPECT_EQ(device->name, "mine");
  EXPECT_EQ(device->memory.value(), 1'000'000'000);
  EXPECT_TRUE(device->memory_from_driver);
}

TEST(DeviceFromJson, RefusesAFieldThatDoesNotFit) {
  struct Case {
    const char* json;
    const char* message;
  };
  const Case cases[] = {
      {R"({"memory_bytes": 1})", "error: mine.json: id: nothing, expected a string"},
      {R"({"id": "a", "memory_bytes": 0})",
       "error: mine.json: memory_bytes: 0, expected a whole number from 1 to 2^53"},
      {R"({"id": "a", "memory_bytes": 1, "memory_from": "hearsay"})",
       "error: mine.json: memory_from: \"hearsay\", expected \"driver\" or \"marketing\""},
      {R"({"id": "a", "memory_bytes": 1, "dense_tflops": {"bfloat16": "fast"}})",
       "error: mine.json: dense_tflops.bfloat16: the string \"fast\", expected a number from 0 to "
       "1000000"},
  };
  for (const Case& c : cases) {
    const Result<Json> json = ReadJson(c.json, "mine.json");
    ASSERT_TRUE(json);
    const Result<Device> device = DeviceFromJson(*json, "mine.json");
    ASSERT_FALSE(device);
    EXPECT_EQ(Message(device.error()), c.message);
  }
}

TEST(DeviceFromJson, RefusesAnUnknownKey) {
  const Result<Json> json = ReadJson(R"({"id": "a", "memory_byte": 1})", "mine.json");
  ASSERT_TRUE(json);
  const Result<Device> device = DeviceFromJson(*json, "mine.json");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().text.where, "mine.json: memory_byte");
  EXPECT_EQ(device.error().text.found, "an unknown key");
  EXPECT_EQ(device.error().text.expected, "did you mean \"memory_bytes\"?");
}

}  // namespace
}  // namespace fourpiles
