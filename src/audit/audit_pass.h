#pragma once

// A pass over the values of one tensor, cut into spans that threads take in turn. A tensor needs
// one or more:
//
//   codes   of types of at most 16 bits: counts of codes answer all formats of one value at once
//   values  of others: each value is rounded into each of those formats and compared
//   blocks  one for each block format

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audit/audit.h"
#include "audit/audit_plan.h"
#include "audit/block_rounder.h"
#include "audit/running_totals.h"
#include "audit/spans.h"
#include "audit/tensor_values.h"
#include "audit/whole_tensor.h"
#include "kernels/code_counts.h"

namespace fourpiles {

// A tensor as the passes see it.
struct AuditedTensor {
  std::vector<std::int64_t> shape = {};
  TensorValues values;
  WholeTensor whole = {};

  std::int64_t Columns() const { return shape.empty() ? 1 : shape.back(); }
};

// What all passes over a tensor say together.
struct TensorOutcome {
  TensorAudit audit;
  RunningFacts facts;
  ErrorTotals* totals = nullptr;  // nullptr: the tensor is in them already, by another name

  // Adds relative errors of a format, each so many times, to the totals.
  void AddErrors(std::size_t format, const ErrorHistogram& errors, std::uint64_t times = 1) const {
    if (totals != nullptr) {
      totals->Add(format, errors, times);
    }
  }
};

// Memory that a thread uses again for each span: fresh pages would cost more than the work.
struct AuditScratch {
  std::vector<std::byte> bytes = {};
  std::vector<std::uint16_t> codes = {};
  CodeCounters counters = {};
  std::vector<float> floats = {};
  std::vector<float> rounded_floats = {};
  std::vector<double> doubles = {};
  std::vector<double> rounded_doubles = {};
  std::vector<ErrorHistogram> errors = {};
  ErrorHistogram code_errors = {};  // empty between formats
};

class AuditPass {
 public:
  AuditPass() = default;
  AuditPass(const AuditPass&) = delete;
  AuditPass& operator=(const AuditPass&) = delete;
  virtual ~AuditPass() = default;

  virtual std::int64_t Count() const = 0;  // of spans
  // Each span once, by any thread. Errors as TensorValues::Read.
  virtual Result<void> Run(std::int64_t index, AuditScratch& scratch) = 0;
  // When all spans were run.
  virtual Result<void> Finish(TensorOutcome& outcome, AuditScratch& scratch) = 0;
};

// The passes that a tensor needs. The tensor and the plan must outlive them.
std::vector<std::unique_ptr<AuditPass>> PassesOf(const AuditedTensor& tensor, AuditPlan& plan);

// How many elements of each kLossBlock make the quantile of the relative errors: 2^18 of a tensor
// together, spread over all of it.
std::size_t SampledOf(std::int64_t elements);

std::unique_ptr<AuditPass> MakeCodePass(const AuditedTensor& tensor, AuditPlan& plan);
std::unique_ptr<AuditPass> MakeValuePass(const AuditedTensor& tensor, const AuditPlan& plan);
// `format`: which of the plan's.
std::unique_ptr<AuditPass> MakeBlockPass(const AuditedTensor& tensor, const AuditPlan& plan,
                                         std::size_t format);

}  // namespace fourpiles
