#include "plan/surroundings.h"

#include <gtest/gtest.h>

#include "plan/budget.h"
#include "step/lines.h"

namespace fourpiles {
namespace {

Budget BudgetOn(std::string_view device, std::map<std::string, std::string> typed = {}) {
  typed.emplace("recipe", "bf16");
  typed.emplace("sequence-length", "256");
  typed.emplace("device", device);
  const Settings settings = TypedSettings(typed);
  return PlayedBudget(MakeJob(JobKind::kTrain, "gpt2", settings).value()).value();
}

Bytes OverheadOf(const Budget& budget, std::string_view what) {
  for (const Line& line : LinesAt(budget.tape, Place::kDevice, budget.peak.moment)) {
    if (line.pile == Pile::kOverhead && line.what.starts_with(what)) {
      return line.bytes;
    }
  }
  return Bytes(0);
}

TEST(Surroundings, RecordsAreBandsWithSources) {
  for (const Surrounding& surrounding : SurroundingRecords()) {
    EXPECT_LE(surrounding.bytes.low, surrounding.bytes.expected) << surrounding.names.id;
    EXPECT_LE(surrounding.bytes.expected, surrounding.bytes.high) << surrounding.names.id;
    EXPECT_FALSE(surrounding.source.empty()) << surrounding.names.id;
  }
}

TEST(Surroundings, RefusesUnknownKeys) {
  const Json json = ReadJson(R"({"id": "x", "bytes": 1})", "x.json").value();
  EXPECT_FALSE(SurroundingFromJson(json, "x.json"));
}

// The default of CUBLAS_WORKSPACE_CONFIG is :4096:2:16:8, that is 2 × 4096 + 8 × 16 KiB (cuBLAS
// documentation, cublasSetWorkspace: Hopper needs 32 MiB); one workspace for the thread of the
// forward pass, one for that of the backward pass.
TEST(Surroundings, CublasHasTwoWorkspaces) {
  EXPECT_EQ(OverheadOf(BudgetOn("h100-sxm-80gb"), "cuBLAS").value(), 2 * 32 << 20);
  EXPECT_EQ(OverheadOf(BudgetOn("a100-40gb"), "cuBLAS").value(), 2 * (2 * 4096 + 8 * 16) << 10);
}

TEST(Surroundings, CommunicatorsNeedSeveralDevices) {
  EXPECT_EQ(OverheadOf(BudgetOn("a100-40gb"), "communicators").value(), 0);
  const Budget budget = BudgetOn("a100-40gb", {{"devices", "2"}, {"zero", "1"}});
  EXPECT_GE(OverheadOf(budget, "communicators").value(), 1 << 30);
}

TEST(Surroundings, TheTotalIsThePeakAndAllOverhead) {
  const Budget budget = BudgetOn("a100-40gb");
  EXPECT_EQ(budget.total.expected, budget.peak.bytes + budget.piles.at(Pile::kOverhead));
  EXPECT_LT(budget.total.low, budget.total.expected);
  EXPECT_LT(budget.total.expected, budget.total.high);
}

// Every tensor takes a multiple of 512 bytes, so that reserved is more than the peak.
TEST(Surroundings, TheAllocatorReservesMoreThanThePeak) {
  EXPECT_GT(OverheadOf(BudgetOn("a100-40gb"), "reserved").value(), 0);
}

// llm.c asks the driver once (llmc/cuda_common.h, train_gpt2.cu: malloc_and_point).
TEST(Surroundings, AnImplementationThatAllocatesOnceHasTheContextAlone) {
  const Budget budget = BudgetOn("a100-40gb", {{"implementation", "llm.c"}});
  EXPECT_EQ(OverheadOf(budget, "reserved").value(), 0);
  EXPECT_EQ(OverheadOf(budget, "cuBLAS").value(), 0);
  EXPECT_GT(OverheadOf(budget, "CUDA context").value(), 0);
}

TEST(Surroundings, OthersThanNvidiasDevicesAndSizesHaveNoBand) {
  for (const char* const device : {"mi300x-192gb", "80GB"}) {
    const Budget budget = BudgetOn(device);
    EXPECT_EQ(budget.total.low, budget.peak.bytes);
    EXPECT_EQ(budget.total.high, budget.peak.bytes);
  }
}

}  // namespace
}  // namespace fourpiles
