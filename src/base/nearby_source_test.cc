#include "base/nearby_source.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// Counts what is asked of it.
class CountingSource final : public ByteSource {
 public:
  explicit CountingSource(std::int64_t size) : bytes_(static_cast<std::size_t>(size), '\0') {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i] = static_cast<char>(i * 7 + i / 251);
    }
  }

  std::string_view Name() const override { return "x"; }
  std::int64_t Size() const override { return std::ssize(bytes_); }
  Result<void> ReadAt(std::int64_t offset, std::span<std::byte> bytes) const override {
    ++reads;
    read_bytes += std::ssize(bytes);
    if (is_broken) {
      return BadInput({.where = "x", .found = "broken"});
    }
    return MemorySource("x", std::as_bytes(std::span(bytes_))).ReadAt(offset, bytes);
  }

  mutable std::int64_t reads = 0;
  mutable std::int64_t read_bytes = 0;
  bool is_broken = false;

 private:
  std::string bytes_;
};

// Each byte is that of the source, whatever the order of the reads.
TEST(NearbySource, GivesTheBytesOfItsSource) {
  const CountingSource source(200'000);
  const NearbySource nearby(source);
  std::uint64_t random = 1;
  for (int i = 0; i < 5'000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const auto count = static_cast<std::size_t>(random >> 33U) % (i % 50 == 0 ? 100'000 : 100);
    const auto offset = static_cast<std::int64_t>((random >> 20U) % (i % 3 == 0 ? 1'000 : 100'000));
    std::string expected(count, '\0');
    std::string found(count, '\0');
    ASSERT_TRUE(source.ReadAt(offset, std::as_writable_bytes(std::span(expected))));
    ASSERT_TRUE(nearby.ReadAt(offset, std::as_writable_bytes(std::span(found))));
    ASSERT_EQ(found, expected) << offset;
  }
}

TEST(NearbySource, ReadsRecordsInARowInFewPieces) {
  const CountingSource source(1'000'000);
  const NearbySource nearby(source);
  std::array<std::byte, 30> record = {};
  for (std::int64_t place = 0; place + 30 <= source.Size(); place += 100) {
    ASSERT_TRUE(nearby.ReadAt(place, record));
  }
  EXPECT_LT(source.reads, 40);
  EXPECT_LT(source.read_bytes, 1'100'000);
}

TEST(NearbySource, ReadsLittleMoreOfRecordsFarApart) {
  const CountingSource source(1'000'000);
  const NearbySource nearby(source);
  std::array<std::byte, 30> record = {};
  for (std::int64_t place = 0; place + 30 <= source.Size(); place += 10'000) {
    ASSERT_TRUE(nearby.ReadAt(place, record));
  }
  EXPECT_EQ(source.reads, 100);
  EXPECT_LE(source.read_bytes, 100 * 512);
}

TEST(NearbySource, PassesErrorsOn) {
  CountingSource source(1'000);
  const NearbySource nearby(source);
  std::array<std::byte, 30> record = {};
  for (const std::int64_t offset : {std::int64_t{-1}, std::int64_t{971}, INT64_MAX}) {
    EXPECT_FALSE(nearby.ReadAt(offset, record)) << offset;
  }
  EXPECT_TRUE(nearby.ReadAt(970, record));
  source.is_broken = true;
  EXPECT_FALSE(nearby.ReadAt(0, record));
  EXPECT_FALSE(nearby.ReadAt(0, record));  // nothing is kept of what could not be read
}

}  // namespace
}  // namespace fourpiles
