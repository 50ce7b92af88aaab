#include "audit/channel_maxima.h"

#include <atomic>

namespace fourpiles {
namespace {

constexpr std::int64_t kShortestChannel = 16;
constexpr std::int64_t kMostChannels = std::int64_t{1} << 20;

}  // namespace

ChannelMaxima::ChannelMaxima(const std::vector<std::int64_t>& shape) {
  if (shape.size() < 2 || shape.front() < 2 || shape.front() > kMostChannels) {
    return;
  }
  std::int64_t row = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    row *= shape[i];  // of a tensor that was read, whose elements are known
  }
  if (row >= kShortestChannel) {
    row_ = row;
    maxima_.resize(static_cast<std::size_t>(shape.front()));
  }
}

void ChannelMaxima::Raise(std::int64_t channel, double largest) {
  const std::atomic_ref maximum(maxima_[static_cast<std::size_t>(channel)]);
  double seen = maximum.load(std::memory_order_relaxed);
  while (seen < largest &&
         !maximum.compare_exchange_weak(seen, largest, std::memory_order_relaxed)) {
  }
}

std::optional<ChannelFacts> ChannelMaxima::Facts() const {
  if (!AreKept()) {
    return std::nullopt;
  }
  const auto largest = std::ranges::max_element(maxima_);
  ChannelFacts facts = {.channels = static_cast<std::int64_t>(maxima_.size()),
                        .largest = *largest,
                        .largest_channel = largest - maxima_.begin()};
  std::vector<double> sorted = maxima_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  facts.median = *middle;
  facts.outliers = std::ranges::count_if(
      maxima_, [&](double maximum) { return maximum > kOutlierRatio * facts.median; });
  return facts;
}

}  // namespace fourpiles
