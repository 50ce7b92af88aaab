#pragma once

// The findings of one file as its reader makes them. A hostile file has millions of faults: the
// first ones of each verdict are kept, the others counted.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensors/checkpoint.h"

namespace fourpiles {

class FindingList {
 public:
  static constexpr std::int64_t kMostKept = 20;  // of each verdict

  void Refuse(ErrorText text) { Add({FileVerdict::kRefuse, std::move(text)}); }
  void Warn(ErrorText text) { Add({FileVerdict::kAcceptWithWarning, std::move(text)}); }
  void Add(Finding finding) {
    if (++CountOf(finding.verdict) <= kMostKept) {
      findings_.push_back(std::move(finding));
    }
  }

  bool HasRefusals() const { return counts_[static_cast<std::size_t>(FileVerdict::kRefuse)] > 0; }

  // What was found, and how much was left out. `where` names the file.
  std::vector<Finding> Take(std::string_view where) && {
    for (const FileVerdict verdict :
         {FileVerdict::kAcceptWithWarning, FileVerdict::kReport, FileVerdict::kRefuse}) {
      const std::int64_t more = CountOf(verdict) - kMostKept;
      if (more > 0) {
        const std::string found =
            std::to_string(more) + " more findings of this kind: " + std::string(Name(verdict));
        findings_.push_back({verdict, {.where = std::string(where), .found = found}});
      }
    }
    return std::move(findings_);
  }

 private:
  std::int64_t& CountOf(FileVerdict verdict) { return counts_[static_cast<std::size_t>(verdict)]; }

  std::vector<Finding> findings_ = {};
  std::array<std::int64_t, 4> counts_ = {};
};

}  // namespace fourpiles
