// Tensors of integers that share scales: several groups or rows at a time where they are short, one
// after another, piece by piece, where they are long.

#include "kernels/block_chunks.h"

namespace fourpiles {
namespace {

// Elements that share a scale; all runs are of one length.
std::size_t RunElements(const BlockTensor& tensor) {
  return RunLayoutOf(tensor.shape, tensor.format).count;
}

// A chunk holds four or more, which is how many the kernels look at together.
bool IsShort(std::size_t run) {
  return run <= kPiece / 4;
}

// Of short runs: chunks and the ranges of threads are whole ones.
std::size_t ChunkOf(std::size_t run) {
  return kPiece / run * run;
}

// Scales of runs, the first of which is run `first` of the tensor.
void StoreScales(const IntegerScales& scales, std::size_t first, std::size_t count,
                 BlockTensor& tensor) {
  for (std::size_t i = 0; i < count; ++i) {
    WriteIntegerScale({scales.codes, scales.scales[i], scales.zero_points[i]}, first + i, tensor);
  }
}

void LoadScales(const BlockTensor& tensor, std::size_t first, std::size_t count,
                IntegerScales& scales) {
  for (std::size_t i = 0; i < count; ++i) {
    const IntegerScale scale = ReadIntegerScale(tensor, first + i);
    scales.scales[i] = scale.scale;
    scales.zero_points[i] = scale.zero_point;
  }
}

void EncodeShortRuns(const ValueSource& source, Subnormals subnormals, BlockTensor& tensor,
                     int threads) {
  const std::size_t run = RunElements(tensor);
  const std::size_t step = ChunkOf(run);
  ForRanges(source.Size(), kRange / step * step, threads, [&](std::size_t begin, std::size_t end) {
    IntegerScales scales = {.codes = IntegerCodesOf(tensor.format)};
    EncodeChunks({begin, end, step}, source, tensor,
                 [&](const Chunk& chunk, const float* values, std::byte* codes) {
                   const IntegerRuns runs = {values, chunk.count / run, run, subnormals};
                   FindIntegerScales(runs, scales);
                   EncodeIntegerRuns(runs, scales, codes);
                   StoreScales(scales, chunk.first / run, runs.runs, tensor);
                 });
  });
}

ValueRange RangeOfRun(const ValueSource& source, const Run& run, Subnormals subnormals,
                      int threads) {
  std::vector<ValueRange> ranges((run.count + kRange - 1) / kRange);
  ForRanges(run.count, kRange, threads, [&](std::size_t begin, std::size_t end) {
    std::array<float, kPiece> room;
    for (std::size_t i = begin; i < end; i += kPiece) {
      const std::size_t count = std::min(kPiece, end - i);
      const float* const values = source.At(run.first + i, count, room.data());
      ValueRange& range = ranges[i / kRange];
      range = Union(range, FindRange(values, count, subnormals));
    }
  });
  ValueRange whole;
  for (const ValueRange& range : ranges) {
    whole = Union(whole, range);
  }
  return whole;
}

void EncodeLongRun(const ValueSource& source, const Run& run, Subnormals subnormals,
                   BlockTensor& tensor, int threads) {
  const IntegerScale scale =
      IntegerScaleOf(RangeOfRun(source, run, subnormals, threads), IntegerCodesOf(tensor.format));
  WriteIntegerScale(scale, run.scale, tensor);
  IntegerScales scales = {.codes = scale.codes};
  scales.scales[0] = scale.scale;
  scales.zero_points[0] = scale.zero_point;
  ForRanges(run.count, kRange, threads, [&](std::size_t begin, std::size_t end) {
    EncodeChunks({run.first + begin, run.first + end}, source, tensor,
                 [&](const Chunk& chunk, const float* values, std::byte* codes) {
                   EncodeIntegerRuns({values, 1, chunk.count, subnormals}, scales, codes);
                 });
  });
}

void DecodeShortRuns(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  const std::size_t run = RunElements(tensor);
  const std::size_t step = ChunkOf(run);
  ForRanges(sink.Size(), kRange / step * step, threads, [&](std::size_t begin, std::size_t end) {
    IntegerScales scales = {.codes = IntegerCodesOf(tensor.format)};
    DecodeChunks({begin, end, step}, tensor, sink,
                 [&](const Chunk& chunk, const std::byte* codes, float* values) {
                   const std::size_t runs = chunk.count / run;
                   LoadScales(tensor, chunk.first / run, runs, scales);
                   DecodeIntegerRuns({codes, runs, run, values, sink.Streams()}, scales);
                 });
  });
}

void DecodeLongRun(const BlockTensor& tensor, const Run& run, const ValueSink& sink, int threads) {
  IntegerScales scales = {.codes = IntegerCodesOf(tensor.format)};
  LoadScales(tensor, run.scale, 1, scales);
  ForRanges(run.count, kRange, threads, [&](std::size_t begin, std::size_t end) {
    DecodeChunks({run.first + begin, run.first + end}, tensor, sink,
                 [&](const Chunk& chunk, const std::byte* codes, float* values) {
                   DecodeIntegerRuns({codes, 1, chunk.count, values, sink.Streams()}, scales);
                 });
  });
}

// Calls do_run(run, threads) for long runs: each on a thread of its own where there are enough,
// else on all threads one after another.
template <class DoRun>
void ForLongRuns(const BlockTensor& tensor, int threads, const DoRun& do_run) {
  const RunLayout layout = RunLayoutOf(tensor.shape, tensor.format);
  const std::size_t runs = layout.elements / layout.count;
  const bool enough = runs >= static_cast<std::size_t>(std::max(threads, 1));
  ForRanges(runs, 1, enough ? threads : 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      do_run(Run{r, r * layout.count, layout.count}, enough ? 1 : threads);
    }
  });
}

}  // namespace

// Codes of 4 bits begin with a byte in every run.
bool HasIntegerKernels(const BlockTensor& tensor) {
  const RunLayout layout = RunLayoutOf(tensor.shape, tensor.format);
  return layout.count >= kShortestRun && layout.period % layout.count == 0 &&
         (tensor.format.element_bits == 8 || layout.count % 2 == 0);
}

void EncodeIntegerRows(const ValueSource& source, const Conversion& conversion, BlockTensor& tensor,
                       int threads) {
  const Subnormals subnormals = conversion.subnormals;
  if (IsShort(RunElements(tensor))) {
    return EncodeShortRuns(source, subnormals, tensor, threads);
  }
  ForLongRuns(tensor, threads, [&](const Run& run, int run_threads) {
    EncodeLongRun(source, run, subnormals, tensor, run_threads);
  });
}

void DecodeIntegerRows(const BlockTensor& tensor, const ValueSink& sink, int threads) {
  if (IsShort(RunElements(tensor))) {
    return DecodeShortRuns(tensor, sink, threads);
  }
  ForLongRuns(tensor, threads, [&](const Run& run, int run_threads) {
    DecodeLongRun(tensor, run, sink, run_threads);
  });
}

}  // namespace fourpiles
