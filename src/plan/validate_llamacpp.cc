// Runs of llama.cpp and ik_llama.cpp. Caches are said by kv_layers, cells, k_dim and v_dim, or by
// what they follow from: arch, ctx, ubatch and parallel. kv_dtype_k and kv_dtype_v are ggml's
// types; latent attention without the second has no copy of the latent as values.

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/llamacpp.h"
#include "plan/run_row.h"
#include "plan/validate.h"

namespace fourpiles {
namespace {

Result<const StoredType*> TypeIn(const Fields& row, std::string_view key) {
  const std::string name = RunText(row, key);
  if (name.empty()) {
    return nullptr;
  }
  const StoredType* type = FindStoredType(name);
  if (type == nullptr) {
    return NotExpressible(fmt::format("{} \"{}\" is no type that is known", key, name));
  }
  return type;
}

Result<CacheTypes> TypesOf(const Fields& row) {
  TRY(const StoredType* const key, TypeIn(row, "kv_dtype_k"));
  TRY(const StoredType* const value, TypeIn(row, "kv_dtype_v"));
  if (key == nullptr) {
    return NotExpressible("no field kv_dtype_k");
  }
  return CacheTypes{key, value};
}

LlamacppVersion VersionOf(const Fields& row) {
  LlamacppVersion version;
  version.sliding_caches = !IsIkLlama(row);
  version.key_rows_are_heads = IsIkLlama(row);
  version.latent_values = row.Has("kv_dtype_v");
  return version;
}

// Slots are apart where their cells together are the context.
Result<CacheCells> CellsOf(const Fields& row) {
  const std::int64_t slots = std::max<std::int64_t>(1, RowCount(row, "parallel", 1));
  const std::int64_t context = RowCount(row, "ctx");
  if (const std::int64_t cells = RowCount(row, "cells"); cells > 0) {
    const bool apart = cells < context && OrLargest(Checked(cells) * slots) >= context;
    return CacheCells{.cells = cells, .streams = apart ? slots : 1};
  }
  if (context == 0) {
    return NotExpressible("no field ctx, and no cells");
  }
  return CellsFor({.context_length = context, .sequences = slots});
}

Result<CacheLayers> LayersOf(const Fields& row) {
  TRY(const Fields arch, RowArch(row));
  CacheLayers layers = {.layers = RowCount(row, "kv_layers", RowCount(arch, "kv_layers"))};
  if (layers.layers == 0) {
    TRY(layers.layers, RowNeeds(arch, "n_layer"));
  }
  if (row.Has("k_dim")) {
    layers.key_width = RowCount(row, "k_dim");
    layers.value_width = RowCount(row, "v_dim");
    return layers;
  }
  TRY(const std::int64_t heads, RowNeeds(arch, "n_head_kv"));
  TRY(const std::int64_t head, RowNeeds(arch, "head_dim"));
  layers.key_width = OrLargest(Checked(heads) * head);
  layers.value_width = layers.key_width;
  return layers;
}

Result<CacheLayers> LatentLayersOf(const Fields& row) {
  TRY(const Fields arch, RowArch(row));
  LatentAttention shape;
  TRY(shape.kv_lora_rank, RowNeeds(arch, "kv_lora_rank"));
  TRY(shape.qk_rope_head_dim, RowNeeds(arch, "qk_rope"));
  std::int64_t layers = RowCount(row, "kv_layers");
  if (layers == 0) {
    TRY(layers, RowNeeds(arch, "n_layer"));
  }
  return LatentCache(shape, layers, true, VersionOf(row));
}

// "k_size" and "v_size" are the two halves; every other figure is both.
Result<Prediction> CachePrediction(const Fields& row, const CacheLayers& layers,
                                   const CacheCells& cells) {
  TRY(const CacheTypes types, TypesOf(row));
  if (layers.value_width > 0 && types.value == nullptr) {
    return NotExpressible("no field kv_dtype_v");
  }
  const CacheBytes bytes = CacheBytesOf(layers, cells, types);
  const std::string figure = RunText(row, "figure_name");
  if (figure == "k_size") {
    return InUnitOf(row, bytes.key);
  }
  return InUnitOf(row, figure == "v_size" ? bytes.value : bytes.key + bytes.value);
}

Result<Prediction> PredictCache(const Fields& row) {
  TRY(const CacheLayers layers, LayersOf(row));
  TRY(const CacheCells cells, CellsOf(row));
  return CachePrediction(row, layers, cells);
}

Result<Prediction> PredictLatentCache(const Fields& row) {
  TRY(const CacheLayers layers, LatentLayersOf(row));
  TRY(const CacheCells cells, CellsOf(row));
  return CachePrediction(row, layers, cells);
}

Result<CacheCells> SlidingCellsOf(const Fields& row) {
  TRY(const Fields arch, RowArch(row));
  TRY(const std::int64_t window, RowNeeds(arch, "n_swa"));
  TRY(const std::int64_t context, RowNeeds(row, "ctx"));
  TRY(const std::int64_t micro_batch, RowNeeds(row, "ubatch"));
  const ContextRequest request = {.context_length = context,
                                  .sequences = RowCount(row, "parallel", 1),
                                  .micro_batch = micro_batch};
  LlamacppVersion version = VersionOf(row);
  version.sliding_caches = version.sliding_caches && !RowSays(row, "notes", "swa-full");
  return SlidingCellsFor(request, window, version);
}

// Cells follow from the window, though the row tells them.
Result<Prediction> PredictSlidingCache(const Fields& row) {
  TRY(const CacheLayers layers, LayersOf(row));
  const bool sliding = RunText(row, "figure_name") == "kv_swa_layers";
  TRY(const CacheCells cells, sliding ? SlidingCellsOf(row) : CellsOf(row));
  return CachePrediction(row, layers, cells);
}

Result<Prediction> PredictSlidingCells(const Fields& row) {
  TRY(const CacheCells cells, SlidingCellsOf(row));
  return Prediction{static_cast<double>(OrLargest(cells.cells)), "cells"};
}

// The cache in a buffer of one device: the first has all layers unless kv_layers says how many; of
// another it has to be said.
Result<Prediction> PredictDeviceCache(const Fields& row) {
  const std::string figure = RunText(row, "figure_name");
  if (!row.Has("kv_layers") && (figure.empty() || figure.back() != '0')) {
    return NotExpressible(fmt::format("which layers are in \"{}\" is not said", figure));
  }
  TRY(const Fields arch, RowArch(row));
  const bool latent = arch.Has("kv_lora_rank");
  TRY(const CacheLayers layers, latent ? LatentLayersOf(row) : LayersOf(row));
  TRY(const CacheCells cells, CellsOf(row));
  TRY(const CacheTypes types, TypesOf(row));
  const LlamacppVersion version = VersionOf(row);
  const std::int64_t head = RowCount(arch, "head_dim");
  const bool heads_apart = version.key_rows_are_heads && !latent && head > 0;
  return InUnitOf(
      row, CudaCacheBytes(layers, cells, types, heads_apart ? std::optional(head) : std::nullopt));
}

Result<Prediction> PredictRecurrent(const Fields& row) {
  RecurrentLayers layers;
  TRY(layers.layers, RowNeeds(row, "rs_layers"));
  TRY(layers.convolution, RowNeeds(row, "d_conv"));
  TRY(layers.inner, RowNeeds(row, "d_inner"));
  TRY(layers.state, RowNeeds(row, "d_state"));
  TRY(layers.groups, RowNeeds(row, "n_group"));
  const CacheBytes bytes =
      RecurrentBytes(layers, {.sequences = RowCount(row, "n_seq", RowCount(row, "parallel", 1)),
                              .snapshots = RowCount(row, "n_rs_seq")});
  const std::string figure = RunText(row, "figure_name");
  if (figure == "r_size" || figure == "rs_r") {
    return InUnitOf(row, bytes.key);
  }
  const bool memory = figure == "s_size" || figure == "rs_s";
  return InUnitOf(row, memory ? bytes.value : bytes.key + bytes.value);
}

constexpr std::array kKinds = {
    RunKind{"llamacpp_kv", Closeness::kAsPrinted, PredictCache},
    RunKind{"llamacpp_kv_mla", Closeness::kAsPrinted, PredictLatentCache},
    RunKind{"llamacpp_kv_swa", Closeness::kAsPrinted, PredictSlidingCache},
    RunKind{"llamacpp_swa_cells", Closeness::kAsPrinted, PredictSlidingCells},
    RunKind{"llamacpp_kv_dev", Closeness::kAsPrinted, PredictDeviceCache},
    RunKind{"llamacpp_recurrent", Closeness::kAsPrinted, PredictRecurrent},
    RunKind{"llamacpp_compute", Closeness::kBand, PredictLlamacppCompute},
    RunKind{"gguf_weights", Closeness::kAsPrinted, PredictGgufWeights},
    RunKind{"gguf_bpw", Closeness::kAsPrinted, PredictGgufBitsPerWeight},
};

}  // namespace

std::span<const RunKind> LlamacppRunKinds() {
  return kKinds;
}

}  // namespace fourpiles
