// ReadNpy and ReadNpz over any bytes, and ReadNpz over an archive of the bytes, so that headers are
// reached without a CRC to guess: what is listed obeys npy_rules.h.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tensors/npy.h"
#include "tensors/npy_rules.h"
#include "tensors/zip_testing.h"

namespace fourpiles {
namespace {

void CheckReading(FileReading (*read)(const ByteSource&), std::string_view bytes) {
  const MemorySource source("x", std::as_bytes(std::span(bytes)));
  CHECK(BrokenNpyRule(read(source), source.Size()).empty());
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fourpiles;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckReading(ReadNpy, bytes);
  CheckReading(ReadNpz, bytes);
  // The same array alone, stored and deflated, is told alike.
  const auto verdict = [](FileReading (*read)(const ByteSource&), std::string_view text) {
    return WorstOf(read(MemorySource("x", std::as_bytes(std::span(text)))).findings);
  };
  const FileVerdict alone = verdict(ReadNpy, bytes);
  for (const bool deflated : {false, true}) {
    const std::string archive = MakeZip({MakeMember("a.npy", bytes, deflated)});
    CheckReading(ReadNpz, archive);
    const FileVerdict within = verdict(ReadNpz, archive);
    // A warning that it unpacks to very much may come on top.
    CHECK(within == alone ||
          (deflated && alone == FileVerdict::kAccept && within == FileVerdict::kAcceptWithWarning));
  }
  return 0;
}
