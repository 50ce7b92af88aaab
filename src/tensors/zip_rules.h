#pragma once

// What holds for every reading of a zip archive, whatever its bytes: for tests and the fuzz target.

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "tensors/finding_list.h"
#include "tensors/zip.h"

namespace fourpiles {

// "" or the rule that the directory breaks.
inline std::string_view BrokenZipRule(const ZipDirectory& directory, std::int64_t source_bytes) {
  std::set<std::string_view> names;
  std::vector<const ZipMember*> order;
  for (const ZipMember& member : directory.members) {
    if (!names.insert(member.name).second) {
      return "each name stands once";
    }
    if (member.offset < 30 || member.packed_bytes < 0 || member.bytes < 0 ||
        member.packed_bytes > source_bytes - member.offset) {
      return "data lies within the source";
    }
    if (member.method == ZipMethod::kStored ? member.bytes != member.packed_bytes
                                            : member.bytes / 1032 > member.packed_bytes) {
      return "sizes are those that the method can have";
    }
    order.push_back(&member);
  }
  std::ranges::sort(order, {}, &ZipMember::offset);
  const auto overlap = [](const ZipMember* a, const ZipMember* b) {
    return b->offset < a->offset + a->packed_bytes + 30;
  };
  if (std::ranges::adjacent_find(order, overlap) != order.end()) {
    return "no two members overlap";
  }
  const auto is_empty = [](const Finding& finding) {
    return finding.text.where.empty() || finding.text.found.empty();
  };
  if (std::ranges::any_of(directory.findings, is_empty)) {
    return "findings say where and what";
  }
  const auto most = static_cast<std::size_t>(3 * (FindingList::kMostKept + 1) + 1);
  return directory.findings.size() > most ? "findings are few" : "";
}

}  // namespace fourpiles
