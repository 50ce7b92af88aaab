#include "tensors/tar.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "tensors/tar_testing.h"
#include "tensors/test_cases.h"

namespace fourpiles {
namespace {

// "name:type:offset:bytes …", or the error.
std::string Told(const std::string& bytes) {
  const auto directory = ReadTar(MemorySource("x", std::as_bytes(std::span(bytes))));
  if (!directory) {
    return ErrorLine(directory.error());
  }
  std::string text;
  for (const TarMember& member : directory->members) {
    text += fmt::format("{}:{}:{}:{} ", member.name, member.type, member.offset, member.bytes);
  }
  return text + fmt::format("end:{}", directory->end);
}

// Written by Python's tarfile in its pax format, whose headers hold the times; names, places and
// sizes are those that tarfile gives (TarInfo.offset_data, TarInfo.size).
TEST(Tar, TellsTheMembersThatTarfileTells) {
  EXPECT_EQ(Told(*ReadWholeFile(CasePath("torch/tar_ok.pt"), 1 << 20)),
            "sys_info:0:1536:116 pickle:0:3584:198 tensors:0:5632:401 storages:0:7680:276 "
            "end:8192");
}

TEST(Tar, TellsLinksAndFoldersWithoutBytes) {
  EXPECT_EQ(Told(MakeTar({{"a", "", '5'}, {"b", "", '2'}, {"c", "xyz", '\0'}})),
            "a:5:512:0 b:2:1024:0 c:0:1536:3 end:2048");
}

TEST(Tar, TakesNamesAndSizesFromExtendedHeaders) {
  EXPECT_EQ(Told(MakeTar({{"x", "15 path=a/long\n10 size=2\n", 'x'}, {"b", "xyz"}, {"c", "d"}})),
            "a/long:0:1536:2 c:0:2560:1 end:3072");
  EXPECT_EQ(Told(MakeTar({{"x", "30 mtime=1484000000.25\n", 'x'}, {"b", "xyz"}})),
            "x: byte 512 | a broken extended header | expected records of \"LENGTH KEY=VALUE\" | ");
}

TEST(Tar, RefusesWhatProgramsReadDifferently) {
  const std::vector<MadeTarMember> rest = {{"b", "xyz"}};
  const auto told = [&](MadeTarMember first) { return Told(MakeTar({std::move(first), rest[0]})); };
  const std::string types = " | expected files, folders, links, and headers of pax | ";
  EXPECT_EQ(told({"a", "name", 'L'}), "x: byte 512 | a header of type 0x4c" + types);
  EXPECT_EQ(told({"a", "", 'g'}), "x: byte 512 | a header of type 0x67" + types);
  EXPECT_EQ(told({"a", "19 GNU.sparse.map=\n", 'x'}),
            "x: byte 512 | an extended header that is not read here | expected path, size, times "
            "and owners | ");
  EXPECT_EQ(told({"a", "12 size=-12\n", 'x'}),
            "x: byte 512 | an extended header that is not read here | expected path, size, times "
            "and owners | ");
  EXPECT_EQ(Told(MakeTar({{"a", "9 path=b\n", 'x'}, {"a", "9 path=c\n", 'x'}, {"a", "x"}})),
            "x: byte 1536 | a second extended header | expected one, of at most 1048576 bytes | ");
  EXPECT_EQ(Told(MakeTar({{"a", "9 path=b\n", 'x'}})),
            "x: byte 1024 | an extended header without a member | expected a member behind it | ");
}

TEST(Tar, RefusesWhatIsCutShortOrBroken) {
  const std::string cut = " | the file may have been cut short; fetch it again";
  EXPECT_EQ(Told(MakeTar({{"a", "xyz"}}).substr(0, 1024)),
            "x: byte 1024 | the end of the file | expected a header, or the zeros that end a tar "
            "archive" +
                cut);
  std::string turned = MakeTar({{"a", "xyz"}});
  turned[0] = 'b';
  EXPECT_EQ(Told(turned),
            "x: byte 0 | a tar header with another checksum than its bytes have | expected its own "
            "| ");
  EXPECT_EQ(Told(MakeTar({{"x", "17 size=99999999\n", 'x'}, {"b", "xyz"}})),
            "x: byte 1536 | a member of 99999999 bytes | the file ends after 1536" + cut);
  EXPECT_EQ(Told(MakeTar(std::vector<MadeTarMember>(1001, {"a", ""}))),
            "x: byte 512512 | more than 1000 members | expected fewer | ");
}

}  // namespace
}  // namespace fourpiles
