#include "plan/length_report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/testing.h"
#include "plan/solve.h"
#include "plan/training_data.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

// A file that is gone with the test.
class LengthReports : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << "length,count\n200,600\n900,300\n2100,80\n5000,15\n16000,5\n";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<Job> Read(Typed typed) const {
    typed["length-histogram"] = path_;
    return MakeJob(JobKind::kFinetune, "1B", TypedSettings(typed));
  }

  // Tests run side by side.
  std::string path_ = testing::TempDir() + "fourpiles_lengths_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv";
};

// No step is longer than its longest sample, but for filling.
TEST_F(LengthReports, BoundTheLongestSequence) {
  const auto solved = [&](Typed typed) {
    typed.merge(Typed{{"layers", "2"}, {"width", "1024"}, {"device", "16.5GB"}});
    typed["solve"] = "sequence";
    return BudgetOf(Read(typed).value())->solution;
  };
  EXPECT_EQ(solved({}), 16000);
  EXPECT_EQ(solved({{"padding", "none"}}), 16000);
  // 0.5e9 ÷ (2 layers × 1,024 × 2 bytes) = 122,070.3
  EXPECT_EQ(solved({{"padding", "max"}}), 122'070);
  EXPECT_EQ(solved({{"packing", "true"}}), 122'070);
  EXPECT_EQ(solved({{"device", "16010240000"}}), 2500);
}

// The budget is that of the longest sample; a limit cuts it, and nothing is longer than the data
// but what is filled up.
TEST_F(LengthReports, SizeTheStepForTheWorstBatch) {
  const auto length = [&](const Typed& typed) {
    return Read(typed).value().training.sequence_length;
  };
  EXPECT_EQ(length({}), 16000);
  EXPECT_EQ(length({{"sequence-length", "4096"}}), 4096);
  EXPECT_EQ(length({{"sequence-length", "32768"}}), 16000);
  EXPECT_EQ(length({{"sequence-length", "32768"}, {"padding", "none"}}), 16000);
  EXPECT_EQ(length({{"sequence-length", "32768"}, {"padding", "max"}}), 32768);
  EXPECT_EQ(length({{"sequence-length", "32768"}, {"packing", "true"}}), 32768);
  EXPECT_EQ(length({{"packing", "true"}}), 16000);
}

// Without the samples of 2,100 tokens and more the longest has 900; 390,000 of 713,000 tokens are
// left, of 900 samples.
TEST_F(LengthReports, DropWhatIsLonger) {
  Typed typed = {{"sequence-length", "2048"}, {"excess-length", "drop"}};
  typed.merge(Typed{{"layers", "2"}, {"width", "1024"}, {"micro-batch-size", "2"}});
  const Job job = Read(typed).value();
  EXPECT_EQ(job.training.sequence_length, 900);
  EXPECT_EQ(MicroBatchLengths(job.training, 10).back(), 900);
  const LengthReport report = ReportLengths(job).value();
  EXPECT_DOUBLE_EQ(report.shares.samples_cut, 0.1);
  EXPECT_DOUBLE_EQ(report.shares.tokens_cut, 323.0 / 713);
  // Of two samples of 600 with 200 and 300 with 900 tokens: 200 × 4/9 + 900 × 5/9.
  EXPECT_NEAR(report.mean_longest, 200 * 4.0 / 9 + 900 * 5.0 / 9, 1e-9);
  EXPECT_NEAR(report.padding_share, 1 - (390'000.0 / 900) / report.mean_longest, 1e-12);
  typed["sequence-length"] = "199";
  EXPECT_EQ(Read(typed).error().kind, ErrorKind::kUsage);
}

// Batches that are all alike are those that are filled, and those without a file.
TEST_F(LengthReports, TellHowLongMicroBatchesAre) {
  const auto lengths = [&](const Typed& typed) {
    return MicroBatchLengths(Read(typed).value().training, 10);
  };
  EXPECT_EQ(lengths({}).size(), 10U);
  EXPECT_EQ(lengths({}).front(), 200);
  EXPECT_EQ(lengths({}).back(), 16000);
  EXPECT_EQ(lengths({{"sequence-length", "2048"}}).back(), 2048);
  EXPECT_EQ(lengths({{"sequence-length", "2048"}, {"packing", "true"}}).size(), 1U);
  EXPECT_EQ(lengths({{"sequence-length", "2048"}, {"padding", "max"}}).size(), 1U);
}

// A row of the limits is the job whose samples end there.
TEST_F(LengthReports, HaveTheBudgetOfEachLimit) {
  for (const char* const excess : {"truncate", "drop"}) {
    const auto read = [&](const std::string& limit) {
      Typed typed = {{"sequence-length", limit}, {"excess-length", excess}};
      typed.merge(Typed{{"layers", "2"}, {"width", "1024"}, {"device", "18GB"}});
      return Read(typed).value();
    };
    const LengthReport report = ReportLengths(read("4096")).value();
    for (const LengthLimit& row : report.limits) {
      if (row.limit < 200) {
        continue;  // no sample is as short
      }
      const Budget budget = PlayedBudget(read(std::to_string(row.limit))).value();
      EXPECT_EQ(budget.peak.bytes, row.peak) << excess << " " << row.limit;
      EXPECT_EQ(budget.verdict, row.verdict) << excess << " " << row.limit;
    }
  }
}

// Of llama-3.2-1b 32,768 = 16 × 2,048 is as many as the norms of its layers have: inputs of so many
// tokens are one tensor nevertheless.
TEST_F(LengthReports, PlayInputsAsLongAsAParameter) {
  std::ofstream(path_) << "1000,3\n20000,2\n32768,1\n";
  const Settings settings = TypedSettings({{"length-histogram", path_}, {"device", "h200"}});
  const Job job = MakeJob(JobKind::kTrain, "llama-3.2-1b", settings).value();
  const Budget budget = PlayedBudget(job).value();
  EXPECT_GE(budget.total.expected, budget.peak.bytes);
}

// A batch is filled up to whole pieces of the ranks that share it: 4,093 to 4,096.
TEST_F(LengthReports, FillBatchesUpToPieces) {
  std::ofstream(path_) << "4093,10\n300,50\n9000,1\n";
  const Settings settings = TypedSettings({{"length-histogram", path_},
                                           {"sequence-length", "4096"},
                                           {"excess-length", "drop"},
                                           {"devices", "8"},
                                           {"context-parallel", "4"}});
  const Job job = MakeJob(JobKind::kTrain, "llama-3.2-1b", settings).value();
  EXPECT_EQ(job.training.sequence_length, 4096);
  EXPECT_EQ(MicroBatchLengths(job.training, 10).front(), 304);
}

// A mean of 713 tokens, of which 594.8 are left at 2,048; the longest of two are 1,100.565 and
// 866.12 in the mean (sample_lengths_test.cc).
TEST_F(LengthReports, TellWhichShareIsPadding) {
  const auto share = [&](Typed typed) {
    typed["micro-batch-size"] = "2";
    return ReportLengths(Read(typed).value()).value().padding_share;
  };
  EXPECT_NEAR(share({}), 1 - 713 / 1100.565, 1e-12);
  EXPECT_NEAR(share({{"sequence-length", "2048"}}), 1 - 594.8 / 866.12, 1e-12);
  EXPECT_NEAR(share({{"sequence-length", "2048"}, {"padding", "max"}}), 1 - 594.8 / 2048, 1e-12);
  EXPECT_EQ(share({{"padding", "none"}}), 0);
  EXPECT_EQ(share({{"packing", "true"}}), 0);
}

// One output a layer in bfloat16: 2 layers × 1,024 × 2 bytes a token, beside 16 bytes of each of
// the 10^9 parameters. 4,096 bytes × 2,500 tokens are 10,240,000.
TEST_F(LengthReports, FindTheLargestLimitThatFits) {
  const Job job = Read({{"layers", "2"}, {"width", "1024"}, {"device", "16010240000"}}).value();
  const LengthReport report = ReportLengths(job).value();
  ASSERT_TRUE(report.largest);
  EXPECT_EQ(report.largest->limit, 2500);
  EXPECT_DOUBLE_EQ(report.largest->shares.samples_whole, 0.98);
  EXPECT_DOUBLE_EQ(report.largest->shares.tokens_whole, 558'000.0 / 713'000);
  std::vector<std::int64_t> limits;
  for (const LengthLimit& row : report.limits) {
    limits.push_back(row.limit);
    EXPECT_EQ(row.peak, Bytes(16'000'000'000 + 4096 * row.limit));
    EXPECT_EQ(row.verdict, row.limit <= 2500 ? Fit::kFits : Fit::kDoesNotFit);
  }
  EXPECT_EQ(limits, (std::vector<std::int64_t>{128, 200, 256, 512, 900, 1024, 2048, 2100, 4096,
                                               5000, 8192, 16000}));
  EXPECT_EQ(report.limits.back().percentiles, (std::vector<std::string>{"99.9", "100"}));
}

TEST_F(LengthReports, SayWhereNothingAndWhereAllFits) {
  const auto largest = [&](const char* memory) {
    return ReportLengths(Read({{"layers", "2"}, {"width", "1024"}, {"device", memory}}).value())
        .value()
        .largest;
  };
  EXPECT_FALSE(largest("16000000000"));
  EXPECT_EQ(largest("16000004096")->limit, 1);
  EXPECT_EQ(largest("80GB")->limit, 16000);
}

TEST_F(LengthReports, RefuseSettingsThatSayNothing) {
  const auto error = [&](const Typed& typed) { return ErrorLine(Read(typed).error()); };
  EXPECT_EQ(error({{"packing", "true"}, {"padding", "max"}}),
            "--padding | max with --packing, which fills nothing up | expected one of the two | ");
  EXPECT_EQ(
      error({{"padding", "longst"}}),
      "--padding | unknown word \"longst\" | did you mean \"longest\"? | one of longest, max, "
      "none");
  const Settings settings = TypedSettings({{"length-histogram", path_}});
  Job images = OpenJob(JobKind::kTrain, "1B", settings).value();
  images.model.network.tokens_per_sample = 197;  // ViT: 14 × 14 patches and one more
  EXPECT_EQ(
      ErrorLine(ReadJob(images, settings).error()),
      "--length-histogram | every sample of 1B has 197 tokens | expected a model of sequences "
      "| leave it out");
  EXPECT_EQ(ErrorLine(MakeJob(JobKind::kTrain, "1B", TypedSettings({{"packing", "true"}})).error()),
            "--packing | no lengths of samples | expected --length-histogram | docs/LENGTHS.md "
            "shows its forms");
}

}  // namespace
}  // namespace fourpiles
