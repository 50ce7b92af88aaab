// ReadZip over any bytes, and over a good archive that the bytes describe, of which some bits are
// turned: what is listed obeys zip_rules.h and can be read or is refused; a good archive is read as
// it was made; and after one turned bit a content that differs is told.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tensors/zip.h"
#include "tensors/zip_rules.h"
#include "tensors/zip_testing.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
using Contents = std::map<std::string, std::string>;

// The bytes of the input, one after the other; zeros where they end.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  bool IsEmpty() const { return bytes_.empty(); }
  std::uint8_t Byte() {
    const std::string byte = Text(1);
    return byte.empty() ? 0 : static_cast<std::uint8_t>(byte[0]);
  }
  std::string Text(std::size_t most) {
    const std::size_t count = std::min(most, bytes_.size());
    std::string text(bytes_.substr(0, count));
    bytes_.remove_prefix(count);
    return text;
  }

 private:
  std::string_view bytes_;
};

struct Made {
  std::string archive = {};
  Contents contents = {};
};

MadeMember MakeOne(Input& input, const std::string& name, const std::string& content) {
  const std::uint8_t form = input.Byte();
  MadeMember member = MakeMember(name, content, (form & 1U) != 0);
  if ((form & 2U) != 0) {
    UseDescriptor(member, (form & 4U) != 0, (form & 8U) != 0 ? 8 : 4);
  }
  if ((form & 16U) != 0) {
    UseZip64(member.local);
  }
  if ((form & 32U) != 0) {
    UseZip64(member.central);
  }
  return member;
}

Made MakeArchive(Input& input) {
  Made made;
  std::vector<MadeMember> members;
  const std::uint8_t count = input.Byte() % 5;
  const bool zip64 = input.Byte() % 2 != 0;
  for (std::uint8_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + input.Text(input.Byte() % 8);
    std::string content = input.Text(input.Byte() % 64);
    content.append(input.Byte(), 'z');
    members.push_back(MakeOne(input, name, content));
    made.contents[name] = content;
  }
  made.archive = MakeZip(members, {.zip64 = zip64});
  return made;
}

// What can be read of the archive, which obeys the rules.
struct Seen {
  Contents contents = {};
  bool has_members = true;  // all that there were, each of them readable, and nothing told
};
Seen See(std::string_view archive) {
  const MemorySource source("x", std::as_bytes(std::span(archive)));
  const Result<ZipDirectory> directory = ReadZip(source);
  if (!directory) {
    return {.has_members = false};
  }
  CHECK(BrokenZipRule(*directory, source.Size()).empty());
  Seen seen = {.has_members = directory->findings.empty()};
  for (const ZipMember& member : directory->members) {
    const Result<std::string> content = ReadZipMember(source, member, kMostBytes);
    const Result<std::string> beginning = ReadZipBeginning(source, member, 3);
    CHECK(!content || std::ssize(*content) == member.bytes);
    CHECK(!content || (beginning && content->starts_with(*beginning)));
    seen.has_members = seen.has_members && content.has_value();
    if (content) {
      seen.contents[member.name] = *content;
    }
  }
  return seen;
}

void CheckMade(std::string_view bytes) {
  Input input(bytes);
  Made made = MakeArchive(input);
  const Seen whole = See(made.archive);
  CHECK(whole.contents == made.contents);
  std::size_t turned = 0;
  for (; !input.IsEmpty(); ++turned) {
    const std::size_t place = input.Byte() + 256U * input.Byte();
    char& byte = made.archive[place % made.archive.size()];
    const auto mask = static_cast<char>(1U << input.Byte() % 8);
    byte = static_cast<char>(byte ^ mask);
  }
  const Seen after = See(made.archive);
  CHECK(turned != 1 || !after.has_members || after.contents == made.contents);
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fourpiles::See(bytes);
  fourpiles::CheckMade(bytes);
  return 0;
}
