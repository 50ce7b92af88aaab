#include "base/write_file.h"

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/byte_source.h"
#include "base/testing.h"

namespace fourpiles {
namespace {

namespace fs = std::filesystem;

class WriteFileTest : public FolderTest {
 protected:
  std::string Content(std::string_view name) const {
    return ReadWholeFile(PathTo(name), 1'000'000).value();
  }
  std::ptrdiff_t FileCount() const {
    return std::distance(fs::directory_iterator(Folder()), fs::directory_iterator());
  }
};

TEST_F(WriteFileTest, MakesAFileAndReplacesIt) {
  EXPECT_TRUE(WriteFileAtomically(PathTo("a"), "first"));
  EXPECT_EQ(Content("a"), "first");
  EXPECT_TRUE(WriteFileAtomically(PathTo("a"), std::string(100'000, 'x')));
  EXPECT_EQ(Content("a"), std::string(100'000, 'x'));
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(WriteFileTest, WritesIntoTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(Folder());
  EXPECT_TRUE(WriteFileAtomically("a", "here"));
  fs::current_path(before);
  EXPECT_EQ(Content("a"), "here");
}

TEST_F(WriteFileTest, KeepsPermissionsAndLinks) {
  ASSERT_TRUE(WriteFileAtomically(PathTo("a"), "first"));
  ASSERT_EQ(chmod(PathTo("a").c_str(), 0640), 0);
  fs::create_symlink("a", PathTo("link"));
  EXPECT_TRUE(WriteFileAtomically(PathTo("link"), "second"));
  EXPECT_TRUE(fs::is_symlink(PathTo("link")));
  EXPECT_EQ(Content("a"), "second");
  EXPECT_EQ(fs::status(PathTo("a")).permissions(), fs::perms(0640));
}

TEST_F(WriteFileTest, RefusesWhatCannotTakeAFile) {
  EXPECT_EQ(ErrorLine(WriteFileAtomically(Folder().string(), "x")),
            Folder().string() + " | a folder | expected a place to write a file | ");
  EXPECT_EQ(WriteFileAtomically(PathTo("absent/a"), "x").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(
      ErrorLine(WriteFileAtomically(PathTo("absent/a"), "x")),
      PathTo("absent/a") + " | No such file or directory | expected a place to write a file | ");
  EXPECT_EQ(ErrorLine(WriteFileAtomically("/dev/null", "x")),
            "/dev/null | a pipe or device | expected a place to write a file | ");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(FileCount(), 0);
}

// A limit on the size of files stands for a full disk.
TEST_F(WriteFileTest, LeavesTheOldFileAndNoOtherWhenTheDiskIsFull) {
  ASSERT_TRUE(WriteFileAtomically(PathTo("a"), "first"));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> result = WriteFileAtomically(PathTo("a"), std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(ErrorLine(result),
            PathTo("a") + " | File too large | expected a place to write a file | ");
  EXPECT_EQ(Content("a"), "first");
  EXPECT_EQ(FileCount(), 1);
}

}  // namespace
}  // namespace fourpiles
