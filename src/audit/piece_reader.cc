#include "audit/piece_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "audit/storage_cache.h"
#include "base/checked.h"
#include "base/try.h"

namespace fourpiles {
namespace {

// Whether the piece lies within a tensor of that shape, and has the bytes of its own.
bool Fits(const TensorPiece& piece, const std::vector<std::int64_t>& shape,
          std::int64_t code_bytes) {
  if (piece.start.size() != shape.size() || piece.shape.size() != shape.size() ||
      !piece.strides.empty()) {
    return false;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (piece.start[i] < 0 || piece.shape[i] < 0 || piece.start[i] > shape[i] ||
        piece.shape[i] > shape[i] - piece.start[i]) {
      return false;
    }
  }
  const Checked bytes = ElementsOf(piece.shape) * code_bytes;
  return bytes.ok() && bytes.value() == piece.bytes;
}

}  // namespace

std::int64_t PieceReader::Piece::BeginOf(std::int64_t number) const {
  std::int64_t place = begin;
  for (std::size_t i = counts.size(); i-- > 0;) {
    place += number % counts[i] * steps[i];
    number /= counts[i];
  }
  return place;
}

// The first run that ends behind the element; runs lie in the order of the tensor.
std::int64_t PieceReader::Piece::FirstRunBehind(std::int64_t element) const {
  std::int64_t low = 0;
  std::int64_t high = runs;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (BeginOf(middle) + run > element) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Result<PieceReader::Piece> PieceReader::PieceOf(const TensorPiece& piece,
                                                const std::vector<std::int64_t>& shape,
                                                std::int64_t code_bytes, const std::string& where) {
  if (!Fits(piece, shape, code_bytes)) {
    return BadInput(
        {.where = where,
         .found = fmt::format("a piece [{}] of {} bytes from [{}] on", fmt::join(piece.shape, ", "),
                              piece.bytes, fmt::join(piece.start, ", ")),
         .expected = fmt::format("expected one within [{}] whose elements of {} bytes "
                                 "lie in order",
                                 fmt::join(shape, ", "), code_bytes)});
  }
  Piece reading = {.offset = piece.offset};
  std::int64_t step = 1;
  bool is_whole = true;  // the piece has all of the dimensions behind
  for (std::size_t i = shape.size(); i-- > 0;) {
    reading.begin += piece.start[i] * step;
    if (is_whole) {
      reading.run *= piece.shape[i];
    } else {
      reading.runs *= piece.shape[i];
      reading.counts.insert(reading.counts.begin(), piece.shape[i]);
      reading.steps.insert(reading.steps.begin(), step);
    }
    is_whole = is_whole && piece.shape[i] == shape[i];
    step *= shape[i];
  }
  return reading;
}

Result<PieceReader> PieceReader::Of(const Checkpoint& checkpoint, const FileTensor& tensor,
                                    std::int64_t code_bytes) {
  PieceReader reader;
  reader.code_bytes_ = code_bytes;
  reader.pieces_.reserve(tensor.pieces.size());
  std::map<std::int32_t, std::shared_ptr<const ByteSource>> sources;
  for (const TensorPiece& piece : tensor.pieces) {
    auto& source = sources[piece.file];
    if (source == nullptr) {
      TRY(source, SourceOf(checkpoint, piece.file));
    }
    const bool is_flat = piece.start.size() == 1;
    const std::vector<std::int64_t> flat = {tensor.elements};
    const std::string where = fmt::format("{}: tensor \"{}\"", source->Name(), tensor.name);
    TRY(Piece reading, PieceOf(piece, is_flat ? flat : tensor.shape, code_bytes, where));
    reading.source = source;
    if (reading.run > 0 && reading.runs > 0) {
      reader.pieces_.push_back(std::move(reading));
    }
  }
  return reader;
}

Result<void> PieceReader::ReadPiece(const Piece& piece, std::int64_t first,
                                    std::span<std::byte> codes) const {
  const std::int64_t end = first + std::ssize(codes) / code_bytes_;
  for (std::int64_t number = piece.FirstRunBehind(first); number < piece.runs; ++number) {
    const std::int64_t begin = piece.BeginOf(number);
    if (begin >= end) {
      break;
    }
    const std::int64_t from = std::max(first, begin);
    const std::int64_t to = std::min(end, begin + piece.run);
    const std::int64_t place = number * piece.run + (from - begin);
    TRY_VOID(
        piece.source->ReadAt(piece.offset + place * code_bytes_,
                             codes.subspan(static_cast<std::size_t>((from - first) * code_bytes_),
                                           static_cast<std::size_t>((to - from) * code_bytes_))));
  }
  return {};
}

Result<void> PieceReader::Read(std::int64_t first, std::span<std::byte> codes) const {
  for (const Piece& piece : pieces_) {
    TRY_VOID(ReadPiece(piece, first, codes));
  }
  return {};
}

}  // namespace fourpiles
