#pragma once

// The largest magnitude of each channel of a tensor: a slice along its first dimension.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "audit/losses.h"

namespace fourpiles {

class ChannelMaxima {
 public:
  // None are kept of tensors of fewer than two dimensions or two channels, of channels of fewer
  // than 16 elements, and of more than 2^20 channels.
  explicit ChannelMaxima(const std::vector<std::int64_t>& shape);

  bool AreKept() const { return row_ > 0; }

  // Elements from `first` on, `count` of them. largest(place, count) gives the largest finite
  // magnitude of some of them. Any threads.
  template <class Largest>
  void Take(std::int64_t first, std::int64_t count, const Largest& largest) {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t channel = (first + done) / row_;
      const std::int64_t piece = std::min(count - done, (channel + 1) * row_ - (first + done));
      Raise(channel, largest(done, piece));
      done += piece;
    }
  }

  std::optional<ChannelFacts> Facts() const;

 private:
  void Raise(std::int64_t channel, double largest);

  std::int64_t row_ = 0;  // elements of a channel
  std::vector<double> maxima_;
};

}  // namespace fourpiles
