#include "base/byte_source.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/testing.h"

namespace fourpiles {
namespace {

using ByteSourceTest = FolderTest;

std::string TextAt(const ByteSource& source, std::int64_t offset, std::size_t count) {
  std::string text(count, '?');
  const Result<void> result = source.ReadAt(offset, std::as_writable_bytes(std::span(text)));
  return result ? text : ErrorLine(result);
}

std::vector<std::string> RangesWithin(const ByteSource& source) {
  return {TextAt(source, 0, 10), TextAt(source, 3, 2), TextAt(source, 10, 0)};
}

std::vector<std::string> RangesBeside(const ByteSource& source) {
  return {TextAt(source, 8, 3), TextAt(source, 11, 0), TextAt(source, -1, 1),
          TextAt(source, INT64_MAX, 1)};
}
std::vector<std::string> RefusalsBeside(const std::string& name) {
  const std::string hint = " | the file may be cut short; compare its size with the source";
  return {name + ": byte 8 | the end at byte 10 | expected 3 bytes here" + hint,
          name + ": byte 11 | the end at byte 10 | expected 0 bytes here" + hint,
          name + ": byte -1 | the end at byte 10 | expected 1 bytes here" + hint,
          name + ": byte 9223372036854775807 | the end at byte 10 | expected 1 bytes here" + hint};
}

TEST(MemorySource, ReadsRangesWithinAndNoOthers) {
  const std::string_view digits = "0123456789";
  const MemorySource source("memory", std::as_bytes(std::span(digits)));
  EXPECT_EQ(source.Size(), 10);
  EXPECT_EQ(RangesWithin(source), (std::vector<std::string>{"0123456789", "34", ""}));
  EXPECT_EQ(RangesBeside(source), RefusalsBeside("memory"));
}

TEST(SliceSource, ReadsRangesWithinAndNoOthers) {
  const std::string_view text = "ab0123456789cd";
  const MemorySource whole("memory", std::as_bytes(std::span(text)));
  const Result<SliceSource> source = SliceSource::Of(whole, 2, 10);
  ASSERT_TRUE(source);
  EXPECT_EQ(source->Size(), 10);
  EXPECT_EQ(RangesWithin(*source), (std::vector<std::string>{"0123456789", "34", ""}));
  EXPECT_EQ(RangesBeside(*source), RefusalsBeside("memory from byte 2"));
}

TEST(SliceSource, LiesWithinItsSource) {
  const std::string_view text = "0123456789";
  const MemorySource whole("memory", std::as_bytes(std::span(text)));
  EXPECT_TRUE(SliceSource::Of(whole, 10, 0));
  for (const auto& [offset, size] : {std::pair<std::int64_t, std::int64_t>{0, 11},
                                     {10, 1},
                                     {-1, 2},
                                     {2, -1},
                                     {INT64_MAX, 1},
                                     {1, INT64_MAX}}) {
    EXPECT_FALSE(SliceSource::Of(whole, offset, size)) << offset << " " << size;
  }
}

TEST_F(ByteSourceTest, FileReadsRangesWithinAndNoOthers) {
  Result<FileSource> opened = FileSource::Open(MakeFile("digits", "0123456789"));
  ASSERT_TRUE(opened);
  const FileSource source = *std::move(opened);
  EXPECT_EQ(source.Name(), PathTo("digits"));
  EXPECT_EQ(source.Size(), 10);
  EXPECT_EQ(RangesWithin(source), (std::vector<std::string>{"0123456789", "34", ""}));
  EXPECT_EQ(RangesBeside(source), RefusalsBeside(PathTo("digits")));
}

TEST_F(ByteSourceTest, RefusesAFileThatShrinks) {
  const std::string path = MakeFile("digits", "0123456789");
  const Result<FileSource> source = FileSource::Open(path);
  ASSERT_TRUE(source);
  std::filesystem::resize_file(path, 4);
  std::array<std::byte, 10> bytes = {};
  EXPECT_EQ(ErrorLine(source->ReadAt(0, bytes)),
            PathTo("") +
                "digits: byte 4 | the end of the file | expected 10 bytes in all | "
                "the file may have been changed while it was read; try again");
}

TEST_F(ByteSourceTest, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(FileSource::Open(PathTo("absent")).error().kind, ErrorKind::kInput);
  ASSERT_EQ(mkfifo(PathTo("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ErrorLine(FileSource::Open(PathTo("absent"))),
            PathTo("") + "absent | no such file |  | check the spelling of the path");
  EXPECT_EQ(ErrorLine(FileSource::Open("")), " | no such file |  | check the spelling of the path");
  EXPECT_EQ(ErrorLine(FileSource::Open(PathTo("."))),
            PathTo("") + ". | a folder | expected a regular file | ");
  EXPECT_EQ(ErrorLine(FileSource::Open(PathTo("pipe"))),
            PathTo("") +
                "pipe | a pipe or device | expected a regular file | copy its content to a file");
  EXPECT_EQ(ErrorLine(FileSource::Open("/dev/zero")),
            "/dev/zero | a pipe or device | expected a regular file | copy its content to a file");
  EXPECT_EQ(ErrorLine(FileSource::Open(MakeFile("digits", "") + "/x")),
            PathTo("") + "digits/x | Not a directory | expected a file to read | ");
  EXPECT_EQ(ErrorLine(FileSource::Open(std::string("a\0b", 3))),
            std::string("a\0b", 3) + " | a NUL byte in the path |  | ");
}

// What `act` returns when it may not read as root may; nothing when it cannot be kept from it.
std::optional<std::string> WithoutRoot(const std::function<std::string()>& act) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) {
    return act();
  }
  if (seteuid(kNobody) != 0) {
    return std::nullopt;
  }
  const std::string result = act();
  CHECK(seteuid(0) == 0);
  return result;
}

TEST_F(ByteSourceTest, RefusesAFileWithoutPermission) {
  const std::string path = MakeFile("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ASSERT_EQ(chmod(Folder().c_str(), 0755), 0);
  const auto line = WithoutRoot([&path] { return ErrorLine(FileSource::Open(path)); });
  if (!line) {
    GTEST_SKIP() << "cannot act as another user";
  }
  EXPECT_EQ(*line, path + " | Permission denied | expected a file to read | ");
}

TEST_F(ByteSourceTest, ReadsAWholeFileUpToALimit) {
  const std::string path = MakeFile("digits", "0123456789");
  EXPECT_EQ(ReadWholeFile(path, 10), "0123456789");
  EXPECT_EQ(ReadWholeFile(MakeFile("empty", ""), 10), "");
  EXPECT_EQ(ErrorLine(ReadWholeFile(path, 9)),
            PathTo("") + "digits | 10 bytes | expected at most 9 | ");
  EXPECT_EQ(ErrorLine(ReadWholeFile(PathTo("absent"), 9)),
            PathTo("") + "absent | no such file |  | check the spelling of the path");
}

TEST_F(ByteSourceTest, OpensWithinAFolderAndNowhereElse) {
  std::filesystem::create_directories(PathTo("model/part"));
  MakeFile("model/a", "a");
  MakeFile("model/part/b", "b");
  MakeFile("secret", "secret");
  std::filesystem::create_symlink("../secret", PathTo("model/link"));
  std::filesystem::create_directory_symlink("..", PathTo("model/up"));
  const auto content = [this](std::string_view name) {
    const auto file = FileSource::OpenWithin(PathTo("model"), name);
    return file ? *ReadWholeFile(*file, 10) : "refused: " + file.error().text.found;
  };
  EXPECT_EQ(content("a"), "a");
  EXPECT_EQ(content("part/b"), "b");
  for (const std::string& name :
       {std::string("../secret"), PathTo("secret"), std::string("part/../../secret"), std::string(),
        std::string("."), std::string("..\\secret"), std::string("a\0", 2)}) {
    EXPECT_EQ(content(name), "refused: the file name \"" + name + "\"");
  }
  EXPECT_EQ(content("link"), "refused: a symbolic link");
  EXPECT_EQ(content("up/secret"), "refused: Not a directory");
  EXPECT_EQ(content("nothing"), "refused: no such file");
  EXPECT_EQ(content("nothing/at/all"), "refused: no such file");
  EXPECT_EQ(content("part"), "refused: a folder");
}

// The layout of huggingface_hub's cache: snapshots/REVISION/FILE → ../../blobs/HASH.
TEST_F(ByteSourceTest, FollowsTheLinksOfTheHuggingFaceCache) {
  std::filesystem::create_directories(PathTo("hub/blobs"));
  std::filesystem::create_directories(PathTo("hub/snapshots/1a2b/unet"));
  MakeFile("hub/blobs/77", "weights");
  MakeFile("secret", "secret");
  const std::string snapshot = PathTo("hub/snapshots/1a2b");
  std::filesystem::create_symlink("../../blobs/77", snapshot + "/a");
  std::filesystem::create_symlink("../../../blobs/77", snapshot + "/unet/b");
  std::filesystem::create_symlink("../../../secret", snapshot + "/c");
  std::filesystem::create_symlink("../../blobs/../../secret", snapshot + "/d");
  EXPECT_TRUE(FileSource::OpenWithin(snapshot, "a").has_value());
  EXPECT_TRUE(FileSource::OpenWithin(snapshot, "unet/b").has_value());
  EXPECT_FALSE(FileSource::OpenWithin(snapshot, "c").has_value());
  EXPECT_FALSE(FileSource::OpenWithin(snapshot, "d").has_value());
}

}  // namespace
}  // namespace fourpiles
