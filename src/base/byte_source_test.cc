#include "base/byte_source.h"

#include <array>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

using ByteSourceTest = FolderTest;

std::string TextAt(const ByteSource& source, std::int64_t offset, std::size_t count) {
  std::string text(count, '?');
  const Result<void> result = source.ReadAt(offset, std::as_writable_bytes(std::span(text)));
  return result ? text : ErrorLine(result);
}

constexpr std::string_view kCutShort =
    " | the file may be cut short; compare its size with the source";

void ExpectReadsTenDigits(const ByteSource& source) {
  EXPECT_EQ(source.Size(), 10);
  EXPECT_EQ(TextAt(source, 0, 10), "0123456789");
  EXPECT_EQ(TextAt(source, 3, 2), "34");
  EXPECT_EQ(TextAt(source, 10, 0), "");
}

// Ranges that lie beside the ten bytes, however the numbers are chosen.
void ExpectRefusesOtherRanges(const ByteSource& source) {
  const std::string name(source.Name());
  EXPECT_EQ(TextAt(source, 8, 3), name + ": byte 8 | the end at byte 10 | expected 3 bytes here" +
                                      std::string(kCutShort));
  EXPECT_EQ(TextAt(source, 11, 0), name + ": byte 11 | the end at byte 10 | expected 0 bytes here" +
                                       std::string(kCutShort));
  EXPECT_EQ(TextAt(source, -1, 1), name + ": byte -1 | the end at byte 10 | expected 1 bytes here" +
                                       std::string(kCutShort));
  EXPECT_EQ(TextAt(source, INT64_MAX, 1),
            name + ": byte 9223372036854775807 | the end at byte 10 | expected 1 bytes here" +
                std::string(kCutShort));
}

TEST(MemorySource, ReadsRangesWithinAndNoOthers) {
  const std::string_view digits = "0123456789";
  const MemorySource source("memory", std::as_bytes(std::span(digits)));
  ExpectReadsTenDigits(source);
  ExpectRefusesOtherRanges(source);
}

TEST_F(ByteSourceTest, FileReadsRangesWithinAndNoOthers) {
  Result<FileSource> opened = FileSource::Open(MakeFile("digits", "0123456789"));
  ASSERT_TRUE(opened);
  const FileSource source = *std::move(opened);
  EXPECT_EQ(source.Name(), PathTo("digits"));
  ExpectReadsTenDigits(source);
  ExpectRefusesOtherRanges(source);
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

TEST_F(ByteSourceTest, RefusesAFileWithoutPermission) {
  const std::string path = MakeFile("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ASSERT_EQ(chmod(Folder().c_str(), 0755), 0);
  const uid_t self = geteuid();
  constexpr uid_t kNobody = 65534;
  if (self == 0 && seteuid(kNobody) != 0) {  // root may read anything
    GTEST_SKIP() << "cannot act as another user";
  }
  const Result<FileSource> source = FileSource::Open(path);
  if (self == 0) {
    ASSERT_EQ(seteuid(self), 0);
  }
  ASSERT_FALSE(source);
  EXPECT_EQ(ErrorLine(source),
            PathTo("") + "secret | Permission denied | expected a file to read | ");
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

}  // namespace
}  // namespace fourpiles
