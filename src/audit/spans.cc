#include "audit/spans.h"

#include <algorithm>

namespace fourpiles {
namespace {

std::int64_t DividedUp(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

Spans Spans::Flat(std::int64_t elements, std::int64_t span) {
  Spans spans;
  spans.elements_ = elements;
  spans.columns_ = elements;
  spans.piece_ = span;
  spans.per_row_ = DividedUp(elements, span);
  spans.rows_ = 1;
  spans.count_ = spans.per_row_;
  return spans;
}

Spans Spans::Rows(std::int64_t elements, std::int64_t columns, std::int64_t block) {
  if (elements == 0) {
    return {};
  }
  if (columns > kLongestRow) {
    Spans spans = Flat(columns, kFlatSpan / block * block);
    spans.elements_ = elements;
    spans.count_ = spans.per_row_ * (elements / columns);
    return spans;
  }
  Spans spans;
  spans.elements_ = elements;
  spans.columns_ = columns;
  spans.piece_ = columns;
  spans.rows_ = std::max<std::int64_t>(1, kFlatSpan / columns);
  spans.count_ = DividedUp(elements / columns, spans.rows_);
  return spans;
}

Span Spans::At(std::int64_t index) const {
  if (per_row_ > 1) {
    const std::int64_t row = index / per_row_;
    const std::int64_t place = index % per_row_ * piece_;
    return {
        .first = row * columns_ + place, .rows = 1, .columns = std::min(piece_, columns_ - place)};
  }
  const std::int64_t first = index * rows_ * columns_;
  return {
      .first = first, .rows = std::min(rows_, (elements_ - first) / columns_), .columns = columns_};
}

}  // namespace fourpiles
