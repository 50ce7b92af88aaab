#include "plan/sample_lengths.h"

#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

Result<SampleLengths> Read(std::string_view text) {
  return ReadSampleLengths(MemorySource("l", std::as_bytes(std::span(text))));
}

// "LENGTH×SAMPLES …", or the error.
std::string RowsOf(std::string_view text) {
  const auto lengths = Read(text);
  if (!lengths) {
    return ErrorLine(lengths.error());
  }
  std::string rows;
  for (const LengthCount& row : lengths->rows) {
    rows += std::to_string(row.length) + "×" + std::to_string(row.samples) + " ";
  }
  return rows;
}

TEST(SampleLengths, AreReadInEveryForm) {
  for (const char* text :
       {"512\n7\n512\n", "512\r\n\r\n  7  \r\n512", "\xEF\xBB\xBFlength\n512\n512\n7\n",
        "512,2\n7,1\n", "7;1\n512;2\n", "512\t1\n512\t1\n7\t1\n", "length,count\n512,2\n9,0\n7,1\n",
        "name,Samples,note,num_tokens\na,2,\"x,\ny\",512\nb,1,,7\n"}) {
    EXPECT_EQ(RowsOf(text), "7×1 512×2 ") << text;
  }
}

struct BadCase {
  std::string text;
  std::string error;
};

TEST(SampleLengths, RefuseWhatIsNoLength) {
  const std::string length = "expected a whole number from 1 to 2^53 | ";
  const std::string rest =
      " | expected at most 2^53 in all | check the columns, or give a sample of the samples";
  const BadCase cases[] = {
      {"", "l | an empty file | expected a length a line | docs/LENGTHS.md shows the forms"},
      {" \n\n", "l | an empty file | expected a length a line | docs/LENGTHS.md shows the forms"},
      {"length,count\n", "l | no sample | expected at least one | a row of count 0 is none"},
      {"5,0\n", "l | no sample | expected at least one | a row of count 0 is none"},
      {"5\n\n-3\n", "l: line 3: length | \"-3\" | " + length},
      {"5\n0\n", "l: line 2: length | \"0\" | " + length},
      {"5\nmany\n", "l: line 2: length | \"many\" | " + length},
      {"5\n1.5\n", "l: line 2: length | \"1.5\" | " + length},
      {"5\n1e3\n", "l: line 2: length | \"1e3\" | " + length},
      {"9007199254740993\n", "l: line 1: length | \"9007199254740993\" | " + length},
      {"5,1\n5,-1\n", "l: line 2: count | \"-1\" | expected a whole number from 0 to 2^53 | "},
      {"length,count\n5\n",
       "l: line 2: count | nothing | expected a whole number from 0 to 2^53 | "},
      {"   3 512\n", "l: line 1: length | \"3 512\" | " + length +
                         "write a length and its count with a comma: 512,3"},
      {"5\n5,2\n",
       "l: line 2 | 2 fields | expected 1, as in the first line | a length a line, or a "
       "length and its count: 512,3"},
      {"1,2,3\n",
       "l: line 1 | 3 numbers and no header | expected a length, or a length and its "
       "count | a header names the columns: length,count"},
      {"lenght\n5\n",
       "l: line 1 | \"lenght\" | did you mean \"length\"? | docs/LENGTHS.md shows "
       "the forms"},
      {"text\n5\n",
       "l: line 1 | \"text\" | expected a length, or the name length | "
       "docs/LENGTHS.md shows the forms"},
      {"length,tokens\n5,5\n",
       "l: line 1 | length twice, perhaps under two names | expected it "
       "once | take the other column out"},
      {"1,9007199254740992\n1,1\n", "l: line 2 | too many samples up to here" + rest},
      {"4503599627370496,3\n", "l: line 1 | too many tokens up to here" + rest},
  };
  for (const BadCase& bad : cases) {
    EXPECT_EQ(RowsOf(bad.text), bad.error);
  }
}

TEST(SampleLengths, RefuseALineWithoutAnEnd) {
  const std::string text(std::size_t{8} << 20, '7');
  EXPECT_EQ(RowsOf(text),
            "l: line 1 | a line of more than 1048576 bytes | expected a shorter one | ");
}

// 1,000 samples, by hand: 200 × 600 + 900 × 300 + 2,100 × 80 + 5,000 × 15 + 16,000 × 5 = 713,000.
SampleLengths Thousand() {
  return Read("200,600\n900,300\n2100,80\n5000,15\n16000,5\n").value();
}

TEST(SampleLengths, HavePercentilesByNearestRank) {
  const SampleLengths lengths = Thousand();
  EXPECT_EQ(lengths.samples, 1000);
  EXPECT_EQ(lengths.tokens, 713'000);
  EXPECT_EQ(lengths.Longest(), 16000);
  for (const auto& [thousandths, length] : {std::pair<std::int64_t, std::int64_t>{500, 200},
                                            {600, 200},
                                            {601, 900},
                                            {900, 900},
                                            {950, 2100},
                                            {980, 2100},
                                            {990, 5000},
                                            {995, 5000},
                                            {999, 16000},
                                            {1000, 16000}}) {
    EXPECT_EQ(Percentile(lengths, thousandths), length) << thousandths;
  }
}

// At 2,048: 900 samples whole with 120,000 + 270,000 tokens; 52 × 80 + 2,952 × 15 + 13,952 × 5 =
// 118,200 tokens are cut.
TEST(SampleLengths, AreCutAtALimit) {
  const SampleLengths lengths = Thousand();
  const LimitShares shares = SharesAt(lengths, 2048);
  EXPECT_DOUBLE_EQ(shares.samples_whole, 0.9);
  EXPECT_DOUBLE_EQ(shares.samples_cut, 0.1);
  EXPECT_DOUBLE_EQ(shares.tokens_whole, 390'000.0 / 713'000);
  EXPECT_DOUBLE_EQ(shares.tokens_cut, 118'200.0 / 713'000);
  EXPECT_DOUBLE_EQ(MeanLength(lengths, 2048), 594.8);
  EXPECT_EQ(SharesAt(lengths, 16000).samples_cut, 0);
  EXPECT_EQ(SharesAt(lengths, 199).samples_whole, 0);
}

// The shares 0.6, 0.9, 0.98, 0.995 and 1, squared.
TEST(SampleLengths, HaveALongestOfABatch) {
  const SampleLengths lengths = Thousand();
  EXPECT_DOUBLE_EQ(MeanLongest(lengths, 16000, 1), 713);
  EXPECT_NEAR(MeanLongest(lengths, 16000, 2),
              200 * 0.36 + 900 * 0.45 + 2100 * 0.1504 + 5000 * 0.029625 + 16000 * 0.009975, 1e-9);
  EXPECT_NEAR(MeanLongest(lengths, 2048, 2), 200 * 0.36 + 900 * 0.45 + 2048 * 0.19, 1e-9);
  EXPECT_NEAR(MeanLongest(Read("100,3\n1000,1\n").value(), 1000, 2), 493.75, 1e-9);
  EXPECT_NEAR(MeanLongest(lengths, 16000, 1'000'000), 16000, 1e-9);
}

// The shares of at most 200, 900, 2,100 and 5,000 tokens are 0.6, 0.9, 0.98 and 0.995; squared
// 0.36, 0.81, 0.96 and 0.99. Of ten batches the middles are 0.05, 0.15, … 0.95; the last has the
// longest.
TEST(SampleLengths, HaveALongestInEachBatch) {
  const SampleLengths lengths = Thousand();
  EXPECT_EQ(LongestOfBatches(lengths, 16000, 1, 10),
            (std::vector<std::int64_t>{200, 200, 200, 200, 200, 200, 900, 900, 900, 16000}));
  EXPECT_EQ(LongestOfBatches(lengths, 2048, 2, 10),
            (std::vector<std::int64_t>{200, 200, 200, 200, 900, 900, 900, 900, 2048, 2048}));
  EXPECT_EQ(LongestOfBatches(Read("100,3\n1000,1\n").value(), 1000, 2, 4),
            (std::vector<std::int64_t>{100, 100, 1000, 1000}));
  EXPECT_EQ(LongestOfBatches(lengths, 16000, 1'000'000, 1), std::vector<std::int64_t>{16000});
}

// 900 samples of 120,000 + 270,000 tokens are left.
TEST(SampleLengths, AreDroppedBeyondALimit) {
  const SampleLengths kept = WithoutLonger(Thousand(), 2048).value();
  EXPECT_EQ(kept.samples, 900);
  EXPECT_EQ(kept.tokens, 390'000);
  EXPECT_EQ(kept.Longest(), 900);
  EXPECT_EQ(WithoutLonger(Thousand(), 900).value().samples, 900);
  EXPECT_FALSE(WithoutLonger(Thousand(), 199));
}

// Of a mean m and a deviation s the median is m ÷ √(1 + (s/m)²) = 2,540.3, and one deviation of the
// logarithm, √ln(1 + (s/m)²) = 0.6949, above it, where 84.1 % end, 5,089.6.
TEST(SampleLengths, AreMadeOfAMeanAndADeviation) {
  const SampleLengths lengths = LogNormalLengths(3234, 2548);
  EXPECT_EQ(lengths.samples, 1000);
  EXPECT_NEAR(static_cast<double>(Percentile(lengths, 500)), 2540.3, 5);
  EXPECT_NEAR(static_cast<double>(Percentile(lengths, 841)), 5089.6, 20);
  EXPECT_NEAR(MeanLength(lengths, lengths.Longest()), 3234, 10);
  EXPECT_EQ(LogNormalLengths(1, 1e-6).Longest(), 1);
}

}  // namespace
}  // namespace fourpiles
