#pragma once

// How a tensor is cut into spans that threads take in turn. Which they are depends on the tensor
// alone, so that sums do too.

#include <cstdint>
#include <vector>

namespace fourpiles {

// Elements of a tensor, in rows: the last dimension is a row.
struct Span {
  std::int64_t first = 0;
  std::int64_t rows = 1;
  std::int64_t columns = 0;  // fewer than the row has, where it is cut

  std::int64_t Elements() const { return rows * columns; }
};

// Spans of `elements`, whatever the rows.
inline constexpr std::int64_t kFlatSpan = std::int64_t{1} << 18;
inline constexpr std::int64_t kCodeSpan = std::int64_t{1} << 20;

// A row of more elements is cut into pieces of so many.
inline constexpr std::int64_t kLongestRow = std::int64_t{1} << 22;

// Cuts a tensor of so many elements, rows of `columns` each.
class Spans {
 public:
  static Spans Flat(std::int64_t elements, std::int64_t span);
  // Whole rows together up to kFlatSpan elements, where a row has at most kLongestRow; else pieces
  // of whole blocks.
  static Spans Rows(std::int64_t elements, std::int64_t columns, std::int64_t block);

  std::int64_t Count() const { return count_; }
  Span At(std::int64_t index) const;
  bool CutsRows() const { return per_row_ > 1; }
  std::int64_t RowLength() const { return columns_; }

 private:
  std::int64_t elements_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t rows_ = 0;     // of a span; with pieces of rows: 1
  std::int64_t per_row_ = 1;  // pieces of a row
  std::int64_t piece_ = 0;    // elements of one
  std::int64_t count_ = 0;
};

}  // namespace fourpiles
