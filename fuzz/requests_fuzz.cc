// ReadRequestLengths: whatever the bytes, an error with a place, or rows that are sorted, stand
// once each, and add up.

#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/checked.h"
#include "plan/request_lengths.h"

namespace fourpiles {
namespace {

void CheckLengths(const RequestLengths& lengths) {
  Checked requests = 0;
  Checked tokens = 0;
  for (std::size_t i = 0; i < lengths.rows.size(); ++i) {
    const RequestLength& row = lengths.rows[i];
    CHECK(row.prompt >= 0 && row.output >= 0 && row.count >= 1);
    CHECK(i == 0 || lengths.rows[i - 1].Total() <= row.Total());
    requests = requests + row.count;
    tokens = tokens + Checked(row.Total()) * row.count;
  }
  CHECK(requests.value() == lengths.requests && tokens.ok());
  CHECK(lengths.p50 <= lengths.p95 && lengths.p95 <= lengths.p99 && lengths.p99 <= lengths.worst);
  CHECK(lengths.worst == lengths.rows.back().Total());
  CHECK(ShareWithin(lengths, lengths.p50) >= 0.5 && ShareWithin(lengths, lengths.worst) == 1);
  CHECK(MeanTokensInBlocks(lengths, 16) >= MeanTokensInBlocks(lengths, 1));
}

void Read(std::span<const std::byte> bytes) {
  const auto lengths = ReadRequestLengths(MemorySource("x", bytes));
  if (lengths) {
    CheckLengths(*lengths);
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
