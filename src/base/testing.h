#pragma once

// What tests of several folders share.

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "fourpiles/result.h"

namespace fourpiles {

// "WHERE | FOUND | EXPECTED | HINT", so that a test compares all parts at once.
inline std::string ErrorLine(const Error& error) {
  const auto& [where, found, expected, hint] = error.text;
  return where + " | " + found + " | " + expected + " | " + hint;
}
template <class T>
std::string ErrorLine(const Result<T>& result) {
  return result ? "no error" : ErrorLine(result.error());
}

// A test with a folder of its own, removed at its end.
class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "fourpiles-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string PathTo(std::string_view name) const { return (folder_ / name).string(); }
  // Returns the path of the new file.
  std::string MakeFile(std::string_view name, std::string_view content) const {
    std::ofstream(PathTo(name), std::ios::binary) << content;
    return PathTo(name);
  }
  const std::filesystem::path& Folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace fourpiles
