// ReadSampleLengths: whatever the bytes, an error with a place, or lengths that are sorted, stand
// once each, and add up; and what is asked of them stays within its bounds.

#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/checked.h"
#include "plan/sample_lengths.h"

namespace fourpiles {
namespace {

void CheckRows(const SampleLengths& lengths) {
  Checked samples = 0;
  Checked tokens = 0;
  for (std::size_t i = 0; i < lengths.rows.size(); ++i) {
    const LengthCount& row = lengths.rows[i];
    CHECK(row.length >= 1 && row.samples >= 1);
    CHECK(i == 0 || lengths.rows[i - 1].length < row.length);
    samples = samples + row.samples;
    tokens = tokens + Checked(row.length) * row.samples;
  }
  CHECK(samples.value() == lengths.samples && tokens.value() == lengths.tokens);
}

void CheckAnswers(const SampleLengths& lengths) {
  const std::int64_t median = Percentile(lengths, 500);
  CHECK(lengths.rows.front().length <= median && median <= lengths.Longest());
  CHECK(Percentile(lengths, 1000) == lengths.Longest());
  CHECK(SharesAt(lengths, median).samples_whole >= 0.5);
  const LimitShares all = SharesAt(lengths, lengths.Longest());
  CHECK(all.samples_whole == 1 && all.tokens_whole == 1 && all.tokens_cut == 0);
  const double longest = MeanLongest(lengths, lengths.Longest(), 8);
  CHECK(longest <= static_cast<double>(lengths.Longest()) * (1 + 1e-9));
  CHECK(longest >= MeanLength(lengths, lengths.Longest()) * (1 - 1e-9));
}

void Read(std::span<const std::byte> bytes) {
  const auto lengths = ReadSampleLengths(MemorySource("x", bytes));
  if (lengths) {
    CheckRows(*lengths);
    CheckAnswers(*lengths);
  } else {
    CHECK(lengths.error().kind == ErrorKind::kInput);
    CHECK(lengths.error().text.where.starts_with("x") && !lengths.error().text.found.empty());
  }
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::Read(std::as_bytes(std::span(data, size)));
  return 0;
}
