#pragma once

// What an audit asks of every tensor, made ready once.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "audit/audit_format.h"
#include "fourpiles/number_format.h"
#include "kernels/code_counts.h"

namespace fourpiles {

// Of a format of at most 16 bits that tensors are stored in: what its codes are worth.
struct CodeTable {
  NumberFormat format = {};
  std::vector<double> values = {};
};

class AuditPlan {
 public:
  AuditPlan(std::vector<AuditFormat> formats, Overflow overflow)
      : formats_(std::move(formats)), overflow_(overflow) {}

  const std::vector<AuditFormat>& Formats() const { return formats_; }
  Overflow OverflowPolicy() const { return overflow_; }
  // Stays where it is. May be called from several threads.
  const CodeTable& TableOf(const NumberFormat& format);
  // Empty counts, which are given back empty: fresh memory would cost more than counting.
  std::unique_ptr<CodeCounts> TakeCounts();
  void GiveBack(std::unique_ptr<CodeCounts> counts);

 private:
  std::vector<AuditFormat> formats_;
  Overflow overflow_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CodeTable>> tables_;
  std::vector<std::unique_ptr<CodeCounts>> free_counts_;
};

}  // namespace fourpiles
