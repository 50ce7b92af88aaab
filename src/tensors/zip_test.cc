#include "tensors/zip.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "tensors/test_cases.h"
#include "tensors/zip_rules.h"
#include "tensors/zip_testing.h"

namespace fourpiles {
namespace {

MemorySource SourceOf(std::string_view text) {
  return MemorySource("x", std::as_bytes(std::span(text)));
}

std::string CaseText(std::string_view name) {
  return ReadWholeFile(CasePath(name), 1 << 20).value();
}

std::string NamesOf(const ZipDirectory& directory) {
  std::string names;
  for (const ZipMember& member : directory.members) {
    names += member.name + " ";
  }
  return names;
}

// The names, the verdict and the first finding; or the error.
std::string Told(const std::string& text) {
  const Result<ZipDirectory> directory = ReadZip(SourceOf(text));
  if (!directory) {
    return "error: " + ErrorLine(directory);
  }
  EXPECT_EQ(BrokenZipRule(*directory, std::ssize(text)), "");
  const auto& findings = directory->findings;
  return NamesOf(*directory) + std::string(Name(WorstOf(findings))) +
         (findings.empty() ? "" : ": " + ErrorLine(Error{.text = findings.front().text}));
}

// Every member's content, or the error of reading it.
std::vector<std::string> ContentsOf(const ByteSource& source, const ZipDirectory& directory) {
  std::vector<std::string> contents;
  for (const ZipMember& member : directory.members) {
    const Result<std::string> content = ReadZipMember(source, member, 1 << 20);
    contents.push_back(content ? *content : ErrorLine(content));
  }
  return contents;
}

std::string MethodName(ZipMethod method) {
  return method == ZipMethod::kStored ? "stored" : "deflated";
}

// Archives that Python's zipfile, Info-ZIP and PyTorch wrote, with members as Python's zipfile
// tells them.
TEST(Zip, ReadsTheArchivesOfOthers) {
  for (const Json& row : ReadCases("zip.jsonl")) {
    SCOPED_TRACE(TextOf(row, "file"));
    const std::string text = CaseText("zip/" + TextOf(row, "file"));
    const MemorySource source = SourceOf(text);
    const Result<ZipDirectory> directory = ReadZip(source);
    ASSERT_TRUE(directory) << ErrorLine(directory);
    EXPECT_EQ(Told(text), NamesOf(*directory) + "accept");
    const Json::Array& expected = *row.Find("members")->AsArray();
    ASSERT_EQ(directory->members.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const ZipMember& member = directory->members[i];
      EXPECT_EQ(member.name, TextOf(expected[i], "name"));
      EXPECT_EQ(MethodName(member.method), TextOf(expected[i], "method"));
      EXPECT_EQ(member.offset, *expected[i].Find("offset")->AsInteger());
      EXPECT_EQ(member.packed_bytes, *expected[i].Find("packed_bytes")->AsInteger());
      EXPECT_EQ(member.bytes, *expected[i].Find("bytes")->AsInteger());
      EXPECT_EQ(member.crc, *expected[i].Find("crc")->AsInteger());
      const Result<std::string> content = ReadZipMember(source, member, 1000);  // checks the CRC
      ASSERT_TRUE(content) << ErrorLine(content);
      EXPECT_EQ(std::ssize(*content), member.bytes);
    }
  }
}

TEST(Zip, ReadsContent) {
  const std::string text = CaseText("zip/streamed.zip");
  std::string beta;
  for (int i = 0; i < 30; ++i) {
    beta += "beta ";
  }
  const MemorySource source = SourceOf(text);
  const ZipDirectory directory = ReadZip(source).value();
  EXPECT_EQ(ContentsOf(source, directory), (std::vector<std::string>{"alpha", beta, "gamma"}));
  EXPECT_EQ(ReadZipBeginning(source, directory.members[0], 2).value(), "al");
  EXPECT_EQ(ReadZipBeginning(source, directory.members[1], 7).value(), "beta be");
  EXPECT_EQ(ReadZipBeginning(source, directory.members[1], 1'000'000).value(), beta);
  EXPECT_EQ(
      ErrorLine(ReadZipMember(source, directory.members[1], 149)),
      "x: member \"b\" | 150 bytes from 10 | expected at most 149, and at most 200 from one | ");
}

// As a shard of a distributed checkpoint holds it.
TEST(Zip, ReadsAnArchiveWithinAFile) {
  const std::string zip = MakeZip({MakeMember("a", "alpha"), MakeMember("b", "bbbb", true)});
  const std::string text = "before" + zip + "behind";
  const MemorySource whole = SourceOf(text);
  const SliceSource slice = SliceSource::Of(whole, 6, std::ssize(zip)).value();
  const ZipDirectory directory = ReadZip(slice).value();
  EXPECT_EQ(directory.findings.size(), 0U);
  EXPECT_EQ(ContentsOf(slice, directory), (std::vector<std::string>{"alpha", "bbbb"}));
  EXPECT_EQ(text.substr(6 + static_cast<std::size_t>(directory.members[0].offset), 5), "alpha");
}

TEST(Zip, ReadsEveryFormOfSizes) {
  for (const bool deflated : {false, true}) {
    for (const bool zip64 : {false, true}) {
      MadeMember plain = MakeMember("plain", "alpha", deflated);
      if (zip64) {
        UseZip64(plain.local);
        UseZip64(plain.central);
      }
      EXPECT_EQ(Told(MakeZip({plain, MakeMember("b", "")}, {.zip64 = zip64})), "plain b accept");
      for (const bool has_signature : {false, true}) {
        for (const int size_bytes : {4, 8}) {
          MadeMember streamed = MakeMember("streamed", "alpha", deflated);
          UseDescriptor(streamed, has_signature, size_bytes);
          if (zip64) {
            UseZip64(streamed.local);
          }
          EXPECT_EQ(Told(MakeZip({streamed, MakeMember("b", "")}, {.zip64 = zip64})),
                    "streamed b accept");
        }
      }
    }
  }
}

// Bytes at a few places of a file that is zero elsewhere.
class SparseSource final : public ByteSource {
 public:
  explicit SparseSource(std::map<std::int64_t, std::string> pieces) : pieces_(std::move(pieces)) {}
  std::string_view Name() const override { return "x"; }
  std::int64_t Size() const override {
    return pieces_.rbegin()->first + std::ssize(pieces_.rbegin()->second);
  }
  Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const override {
    for (std::byte& byte : bytes) {
      const auto behind = pieces_.upper_bound(offset);
      byte = {};
      if (behind != pieces_.begin()) {
        const auto& [place, piece] = *std::prev(behind);
        const std::int64_t at = offset - place;
        byte = at < std::ssize(piece) ? static_cast<std::byte>(piece[static_cast<std::size_t>(at)])
                                      : std::byte();
      }
      ++offset;
    }
    return {};
  }

 private:
  std::map<std::int64_t, std::string> pieces_;
};

// 5 GB of zeros, whose CRC is what Python's zlib.crc32 says, and a member behind them.
TEST(Zip, ReadsMembersBeyondFourGigabytes) {
  constexpr std::int64_t kBytes = 5'000'000'000;
  ZipSide big = {.name = "a", .crc = 0x5C316F50, .packed = 0xFFFF'FFFF, .unpacked = 0xFFFF'FFFF};
  big.extra = Zip64Extra(kBytes, kBytes);
  std::string header = "PK\x03\x04";
  big.Append(header);
  header += big.name + big.extra;
  const std::int64_t second = std::ssize(header) + kBytes;
  const MadeMember small = MakeMember("b", "beta");
  std::string tail = "PK\x03\x04";
  small.local.Append(tail);
  tail += "bbeta";
  const std::int64_t directory = second + std::ssize(tail);
  tail += std::string("PK\x01\x02\x14\0", 6);
  big.Append(tail);
  tail += std::string(14, '\0') + big.name + big.extra + std::string("PK\x01\x02\x14\0", 6);
  ZipSide central = small.central;
  central.extra = std::string("\1\0\x08\0", 4);
  AppendNumber(central.extra, static_cast<std::uint64_t>(second), 8);
  central.Append(tail);
  tail += std::string(10, '\0') + "\xFF\xFF\xFF\xFF" + central.name + central.extra;
  const std::int64_t end64 = second + std::ssize(tail);
  tail += "PK\x06\x06";
  AppendNumber(tail, 44, 8);
  tail += std::string(12, '\0');
  for (const std::int64_t number :
       {std::int64_t{2}, std::int64_t{2}, end64 - directory, directory}) {
    AppendNumber(tail, static_cast<std::uint64_t>(number), 8);
  }
  tail += std::string("PK\x06\x07\0\0\0\0", 8);
  AppendNumber(tail, static_cast<std::uint64_t>(end64), 8);
  tail += std::string("\1\0\0\0PK\x05\x06\0\0\0\0\2\0\2\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0", 26);

  const SparseSource source({{0, header}, {second, tail}});
  const Result<ZipDirectory> read = ReadZip(source);
  ASSERT_TRUE(read) << ErrorLine(read);
  EXPECT_TRUE(read->findings.empty()) << ErrorLine(Error{.text = read->findings.front().text});
  ASSERT_EQ(read->members.size(), 2U);
  EXPECT_EQ(read->members[0].bytes, kBytes);
  EXPECT_EQ(read->members[1].offset, second + 31);
  EXPECT_EQ(ReadZipMember(source, read->members[1], 10).value(), "beta");
}

TEST(Zip, RefusesWhatHasNoDirectory) {
  const std::string hint =
      " | the file may be cut short, or hold something else beside the archive";
  const std::string zip = MakeZip({MakeMember("a", "alpha")});  // 36 + 47 + 22 bytes
  EXPECT_EQ(Told(""),
            "error: x | a zip archive without the directory at its end | "
            "expected an end record" +
                hint);
  EXPECT_EQ(Told(zip.substr(0, 104)), Told(""));
  EXPECT_EQ(Told(zip + "more"),
            "error: x: byte 83 | an end record with a comment of 0 bytes | "
            "the file has 4 behind it" +
                hint);
  EXPECT_EQ(Told("before" + zip),
            "error: x: byte 89 | a directory of 47 bytes from byte 36 on | "
            "expected one that ends at byte 89" +
                hint);
  EXPECT_EQ(Told(MakeZip({MakeMember("a", "alpha")}, {.part = 1})),
            "error: x: byte 83 | one part of an archive of several | expected all of it | "
            "join the parts first");
  EXPECT_EQ(Told(MakeZip({MakeMember("a", "alpha")}, {.members = 2})),
            "error: x: byte 83 | 2 members in a directory of 47 bytes | "
            "expected at most 1 in at most 100000000 bytes | ");
  EXPECT_EQ(Told(MakeZip({MakeMember("a", ""), MakeMember("b", "")}, {.members = 1})),
            "error: x: byte 62 | a directory of 2 members | the end record says 1 | ");
}

TEST(Zip, RefusesEndRecordsThatDisagree) {
  std::string zip = MakeZip({MakeMember("a", "alpha")}, {.zip64 = true});
  EXPECT_EQ(Told(zip), "a accept");
  const std::size_t end = zip.size() - 22;
  std::string other = zip;
  other.replace(end + 8, 4, std::string("\2\0\2\0", 4));
  EXPECT_EQ(Told(other),
            "error: x: byte 159 | members of this part 2 in the end record | "
            "that of zip64 says 1 | ");
  other = zip;
  other[end - 20 + 8] = '\1';  // where the locator leads
  EXPECT_EQ(Told(other),
            "error: x: byte 139 | a zip64 locator that leads to no end record | "
            "expected one that ends here, of an archive of one part | "
            "the file may be cut short, or hold something else beside the archive");
  // A comment that holds an end record of its own: programs take the one or the other.
  EXPECT_NE(Told(MakeZip({MakeMember("a", "alpha")}, {.comment = MakeZip({})})), "a accept");
  EXPECT_EQ(Told(MakeZip({MakeMember("a", "alpha")}, {.comment = MakeZip({})})).substr(0, 6),
            "error:");
}

// A member of "a" and "alpha" with one change, between two that are fine.
struct Change {
  void (*make)(MadeMember& member);
  std::string told;  // behind the where of the member
};
void ExpectTold(const std::vector<Change>& changes) {
  for (const auto& [make, told] : changes) {
    MadeMember member = MakeMember("a", "alpha");
    make(member);
    const std::string is = Told(MakeZip({MakeMember("0", "0"), member, MakeMember("z", "z")}));
    EXPECT_EQ(is, told);
  }
}

TEST(Zip, RefusesMembersOnWhichDirectoryAndLocalHeaderDisagree) {
  ExpectTold({
      {[](MadeMember& m) { m.central.name = "b"; },
       "0 z refuse: x: member \"b\" at byte 32 | another name in its local header | "
       "expected that of the directory | "},
      {[](MadeMember& m) { m.local.method = 8; },
       "0 z refuse: x: member \"a\" at byte 32 | the method 8 in its local header | "
       "the directory says 0 | "},
      {[](MadeMember& m) { m.local.crc = 7; },
       "0 z refuse: x: member \"a\" at byte 32 | CRC 7 in its local header | "
       "the directory says 3504355690 | "},
      {[](MadeMember& m) { m.local.packed = 4; },
       "0 z refuse: x: member \"a\" at byte 32 | packed bytes 4 in its local header | "
       "the directory says 5 | "},
      {[](MadeMember& m) { m.local.unpacked = 0; },
       "0 z refuse: x: member \"a\" at byte 32 | bytes 0 in its local header | "
       "the directory says 5 | "},
      {[](MadeMember& m) { m.place = 31; },
       "0 z refuse: x: member \"a\" at byte 31 | no local header | "
       "expected the bytes \"PK\\x03\\x04\" | "},
      {[](MadeMember& m) { m.place = 90; },
       "0 z refuse: x: member \"a\" at byte 90 | a place behind the members, which end at byte 100 "
       "| "
       "expected its local header there | "},
      {[](MadeMember& m) {
         UseDescriptor(m);
         m.behind[5] ^= 1;
       },
       "0 z refuse: x: member \"a\" at byte 32 | no data descriptor behind its data | "
       "expected one with the CRC and sizes of the directory | "},
      {[](MadeMember& m) { m.local.flags = 2; },
       "0 a z report: x: member \"a\" at byte 32 | the flags 0x2 in its local header | "
       "the directory says 0x0 | "},
  });
}

TEST(Zip, RefusesMembersThatCannotBe) {
  ExpectTold({
      {[](MadeMember& m) { m.local.method = m.central.method = 14; },
       "0 z refuse: x: member \"a\" at byte 32 | the method 14 | "
       "expected 0, stored, or 8, deflated | "},
      {[](MadeMember& m) { m.local.unpacked = m.central.unpacked = 6; },
       "0 z refuse: x: member \"a\" at byte 32 | 6 bytes stored as 5 | expected the same | "},
      {[](MadeMember& m) {
         m = MakeMember("a", "alpha", true);
         m.local.unpacked = m.central.unpacked = 100'000;
       },
       "0 z refuse: x: member \"a\" at byte 32 | 100000 bytes deflated to 7 | "
       "deflate makes at most 1032 of one | "},
      {[](MadeMember& m) {
         m.local.packed = m.central.packed = m.local.unpacked = m.central.unpacked = 5000;
       },
       "0 z refuse: x: member \"a\" at byte 32 | 5000 bytes from byte 63 | "
       "the members end at byte 100 | "},
      {[](MadeMember& m) {
         m.local.packed = m.central.packed = m.local.unpacked = m.central.unpacked = 6;
       },
       "0 a refuse: x: member \"z\" at byte 68 | the member before it reaches to byte 69 | "
       "expected members that do not overlap | "},
      {[](MadeMember& m) { m.central.extra = m.local.extra = "\1"; },
       "0 z refuse: x: member \"a\" at byte 32 | extra fields that are cut short | "
       "expected fields of the format | "},
      {[](MadeMember& m) { m.local.extra = std::string("\1\0\x10\0", 4); },
       "0 z refuse: x: member \"a\" at byte 32 | extra fields in its local header that are cut "
       "short | "
       "expected both sizes of zip64 | "},
      {[](MadeMember& m) {
         m.central.extra = std::string("\1\0\0\0", 4);
         m.central.unpacked = 0xFFFF'FFFF;
       },
       "0 z refuse: x: member \"a\" at byte 32 | a zip64 field that is cut short | "
       "expected fields of the format | "},
      {[](MadeMember& m) { m.central.name = m.local.name = "0"; },
       "0 z refuse: x: member \"0\" at byte 32 | a duplicate: the name stands before | "
       "expected each name once | only the first one is listed"},
  });
}

TEST(Zip, ReportsWhatProgramsReadInTwoWays) {
  ExpectTold({
      {[](MadeMember& m) { m.central.flags = m.local.flags = 1; },
       "0 a z report: x: member \"a\" at byte 32 | the flags 0x1 | "
       "some programs stop here, where others read on | "},
      {[](MadeMember& m) { m.central.flags = m.local.flags = 0x20; },
       "0 a z report: x: member \"a\" at byte 32 | the flags 0x20 | "
       "some programs stop here, where others read on | "},
      {[](MadeMember& m) {
         m = MakeMember("a", "alpha", true);
         m.central.flags = m.local.flags = 1;
       },
       "0 z report: x: member \"a\" at byte 32 | an encrypted member | it cannot be read | "},
      {[](MadeMember& m) { m.central.name = m.local.name = "../a"; },
       "0 ../a z report: x: member \"../a\" at byte 32 | a name that is no path within a folder | "
       "expected no \"..\", root or \"\\\" | "},
      {[](MadeMember& m) { m.central.extra = std::string("\x75\x70\1\0b", 5); },
       "0 a z report: x: member \"a\" at byte 32 | a second name in its extra fields | "
       "programs take one or the other | "},
      {[](MadeMember& m) { m.behind = MakeZip({MakeMember("b", "b")}).substr(0, 32); },
       "0 a z report: x: byte 68 | 32 bytes that belong to no member, and begin as one | "
       "expected the next member or the directory | "},
      {[](MadeMember& m) { m.behind = "??"; },
       "0 a z accept-with-warning: x: byte 68 | 2 bytes that belong to no member | "
       "expected the next member or the directory | "},
  });
  EXPECT_EQ(Told(MakeZip({MakeMember("a", "")}, {.comment = "new"})),
            "a accept-with-warning: x: byte 100 | a comment of 3 bytes | "
            "expected the end of the file | ");
}

TEST(Zip, ListsAndDoesNotUnpackABomb) {
  const std::string content(2 << 20, '\0');
  const std::string zip = MakeZip({MakeMember("a", content, true)});
  const MemorySource source = SourceOf(zip);
  const ZipMember member = ReadZip(source).value().members.front();
  EXPECT_EQ(Told(zip),
            fmt::format("a accept-with-warning: x: member \"a\" at byte 0 | 2097152 bytes "
                        "deflated to {} | expected at most 200 of one | "
                        "its values will not be unpacked",
                        member.packed_bytes));
  EXPECT_FALSE(ReadZipMember(source, member, 1 << 30));
  EXPECT_EQ(ReadZipBeginning(source, member, 10).value(), std::string(10, '\0'));
}

TEST(Zip, ChecksWhatItUnpacks) {
  const std::string hint = " | the file is damaged; fetch it again";
  const auto read = [](MadeMember member) {
    const std::string zip = MakeZip({std::move(member)});
    const MemorySource source = SourceOf(zip);
    return ErrorLine(ReadZipMember(source, ReadZip(source).value().members.front(), 100));
  };
  MadeMember stored = MakeMember("a", "alpha");
  stored.data[0] = 'A';
  EXPECT_EQ(read(stored),
            "x: member \"a\" | bytes of the CRC 1121166e | "
            "the directory says d0e0396a" +
                hint);
  MadeMember longer = MakeMember("a", "alpha", true);
  longer.local.unpacked = longer.central.unpacked = 4;
  EXPECT_EQ(read(longer),
            "x: member \"a\" | more than 4 bytes unpacked, or packed | "
            "the directory says no more" +
                hint);
  MadeMember shorter = MakeMember("a", "alpha", true);
  shorter.local.unpacked = shorter.central.unpacked = 6;
  EXPECT_EQ(read(shorter), "x: member \"a\" | 5 bytes unpacked | the directory says 6" + hint);
  MadeMember padded = MakeMember("a", "alpha", true);
  padded.data += "?";
  ++padded.local.packed;
  ++padded.central.packed;
  EXPECT_EQ(read(padded),
            "x: member \"a\" | more than 5 bytes unpacked, or packed | "
            "the directory says no more" +
                hint);
  MadeMember cut = MakeMember("a", "alpha", true);
  cut.data.pop_back();
  --cut.local.packed;
  --cut.central.packed;
  EXPECT_EQ(read(cut),
            "x: member \"a\" | a deflate stream that is cut short | "
            "expected 5 bytes unpacked" +
                hint);
  MadeMember noise = MakeMember("a", "alpha", true);
  noise.data[0] = '\7';
  EXPECT_EQ(read(noise),
            "x: member \"a\" | bytes that are no deflate stream | "
            "expected 5 bytes unpacked" +
                hint);
}

// A cut archive is refused; and what a turned bit changes is told: in the directory, or when the
// member is read.
TEST(Zip, StandsEveryCutAndEveryTurnedBit) {
  for (const Json& row : ReadCases("zip.jsonl")) {
    SCOPED_TRACE(TextOf(row, "file"));
    std::string text = CaseText("zip/" + TextOf(row, "file"));
    for (std::size_t size = 0; size < text.size(); ++size) {
      EXPECT_EQ(Told(text.substr(0, size)).substr(0, 6), "error:") << size;
    }
    const MemorySource source = SourceOf(text);
    const ZipDirectory whole = ReadZip(source).value();
    const std::vector<std::string> contents = ContentsOf(source, whole);
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
      const auto mask = static_cast<char>(1U << bit % 8);
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
      if (Told(text) == NamesOf(whole) + "accept") {
        const std::vector<std::string> turned = ContentsOf(source, ReadZip(source).value());
        for (std::size_t i = 0; i < contents.size(); ++i) {
          EXPECT_TRUE(turned[i] == contents[i] || turned[i].starts_with("x: member")) << bit;
        }
      } else {
        EXPECT_NE(Told(text).find(": "), std::string::npos) << bit;  // it is told
      }
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    }
  }
}

}  // namespace
}  // namespace fourpiles
