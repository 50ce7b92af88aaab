// Predictors of engines whose cache is a pool: vLLM, SGLang, TensorRT-LLM; and of weights outside
// GGUF, and overheads.
//
// Where a log printed the memory and the pool follows from it, the prediction has a band: what the
// pool is at half a printed unit less and more.

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/ascii.h"
#include "base/try.h"
#include "plan/engine_record.h"
#include "plan/sglang.h"
#include "plan/tensorrt_llm.h"
#include "plan/validate.h"
#include "plan/validate_fields.h"
#include "plan/validate_weights.h"
#include "plan/vllm.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kVllmBlockTokens = 16;  // vllm/config/cache.py, on CUDA

double ValueOf(Checked amount) {
  return static_cast<double>(OrLargest(amount));
}

Checked WholeBytes(double bytes) {
  const double most = static_cast<double>(kLargestAmount);
  return static_cast<std::int64_t>(std::floor(std::clamp(bytes, -most, most)));
}

// `amount` of what was printed, and at both ends of what it may stand for.
Prediction OfPrinted(const Printed& gib, const std::string& unit,
                     const std::function<double(double)>& amount) {
  return {.value = amount(gib.value * kGib),
          .unit = unit,
          .band = PrintedRange{amount((gib.value - gib.half) * kGib),
                               amount((gib.value + gib.half) * kGib)}};
}

// Bytes of the pool: exact, or as printed.
Result<Printed> AvailableOfRun(const Fields& row) {
  if (const auto bytes =
          RunNumber(row, {"available_kv_bytes", "available_bytes", "kv_cache_bytes"})) {
    return Printed{*bytes / kGib, 0};
  }
  // Ranks do not have the same memory, and the least decides: a log that prints another's does not
  // say what there is.
  if (CountOr(row, {"tp"}, 1) > 1 &&
      LowerCase(RunText(row, "notes")).find("one rank") != std::string::npos) {
    return NotExpressible("available_kv_gib is one rank's, the least of all ranks decides");
  }
  return NeededGib(row, {"available_kv_gib"});
}

// The pool without what is available: all layers in one group.
Result<VllmPool> PoolOfRun(const Fields& row) {
  TRY(const double token_bytes, TokenBytesOfRun(row));
  return VllmPool{.token_bytes = WholeBytes(token_bytes),
                  .block_tokens = CountOr(row, {"block_size"}, kVllmBlockTokens)};
}

Prediction PoolPrediction(const Fields& row, VllmPool pool, const Printed& available) {
  const bool blocks = RunText(row, "unit") == "blocks";
  return OfPrinted(available, blocks ? "blocks" : "tokens", [&](double bytes) {
    pool.available = WholeBytes(bytes);
    return ValueOf(blocks ? VllmBlocks(pool) : VllmTokens(pool));
  });
}

Result<Prediction> PredictVllmTokens(const Fields& row) {
  TRY(const Printed available, AvailableOfRun(row));
  TRY(const VllmPool pool, PoolOfRun(row));
  return PoolPrediction(row, pool, available);
}

// State of a layer on one rank.
Result<Checked> StatePageOfRun(const Fields& row) {
  if (const auto given = RunNumber(row, {"mamba_page_bytes", "mamba_page", "mamba_page_size"})) {
    return WholeBytes(*given);
  }
  PagedState state = {.tensor_parallel = CountOr(row, {"tp"}, 1)};
  if (RunNumber(row, {"kda_heads"})) {  // Kimi's delta attention: queries, keys and values alike
    TRY(const std::int64_t heads, NeededCount(row, {"kda_heads"}));
    TRY(const std::int64_t size, NeededCount(row, {"kda_head_dim"}));
    const std::int64_t kernel = CountOr(row, {"kda_conv", "d_conv"}, 4);
    state.convolution_elements = OrLargest(Checked(kernel - 1) * 3 * heads * size);
    state.recurrent_elements = OrLargest(Checked(heads) * size * size);
    return StateBytes(state);
  }
  if (RunNumber(row, {"linear_num_value_heads"})) {  // gated delta net, as Qwen's config names it
    TRY(const std::int64_t key_heads, NeededCount(row, {"linear_num_key_heads"}));
    TRY(const std::int64_t value_heads, NeededCount(row, {"linear_num_value_heads"}));
    const std::int64_t key_size = CountOr(row, {"linear_key_head_dim"}, 128);
    const std::int64_t value_size = CountOr(row, {"linear_value_head_dim"}, 128);
    const std::int64_t kernel = CountOr(row, {"linear_conv_kernel_dim"}, 4);
    const Checked width = Checked(2) * key_heads * key_size + Checked(value_heads) * value_size;
    state.convolution_elements = OrLargest(Checked(kernel - 1) * width);
    state.recurrent_elements = OrLargest(Checked(value_heads) * key_size * value_size);
    return StateBytes(state);
  }
  TRY(const std::int64_t inner, NeededCount(row, {"ssm_d_inner", "d_inner"}));
  TRY(const std::int64_t size, NeededCount(row, {"ssm_d_state", "d_state"}));
  const std::int64_t kernel = CountOr(row, {"ssm_d_conv", "d_conv"}, 4);
  const std::int64_t groups = CountOr(row, {"ssm_n_group", "n_group"}, 1);
  state.convolution_elements =
      OrLargest(Checked(kernel - 1) * (Checked(inner) + Checked(2) * groups * size));
  state.recurrent_elements = OrLargest(Checked(inner) * size);
  return StateBytes(state);
}

// Bytes of one token in one attention layer, on one rank.
Result<Checked> AttentionTokenBytes(const Fields& row) {
  if (const auto given = RunNumber(row, {"attn_bytes_per_token", "attn_token_bytes"})) {
    return WholeBytes(*given);
  }
  TRY(const PagedLayer layer, LayerOfRun(row));
  return TokenBytes(layer);
}

Result<Checked> AttentionBlockOfRun(const Fields& row) {
  TRY(const Checked token_bytes, AttentionTokenBytes(row));
  TRY(const Checked page, StatePageOfRun(row));
  const bool latent = RunNumber(row, {"kv_lora_rank"}).has_value();
  return VllmAttentionBlock(page, token_bytes,
                            CountOr(row, {"kernel_block_size", "alignment"}, latent ? 64 : 16));
}

Result<VllmGroups> GroupsOfRun(const Fields& row) {
  if (RunNumber(row, {"group_size"})) {
    VllmGroups groups;
    TRY(groups.group_size, NeededCount(row, {"group_size"}));
    TRY(groups.groups, NeededCount(row, {"groups"}));
    return groups;
  }
  TRY(const std::int64_t attention, NeededCount(row, {"mla_layers", "full_layers"}));
  const std::int64_t rest = CountOr(row, {"n_layer"}, 0) - attention;
  const std::int64_t other = CountOr(
      row, {"kda_layers", "linear_layers", "rs_layers", "mamba_layers", "swa_layers"}, rest);
  if (other < 1) {
    return NotExpressible("no field n_layer or rs_layers");
  }
  const std::int64_t counts[] = {attention, other};
  return VllmGroupsOf(counts);
}

Result<Prediction> PredictVllmHybrid(const Fields& row) {
  TRY(const Printed available, AvailableOfRun(row));
  TRY(const Checked token_bytes, AttentionTokenBytes(row));
  TRY(const VllmGroups groups, GroupsOfRun(row));
  VllmPool pool = {
      .token_bytes = token_bytes, .group_size = groups.group_size, .groups = groups.groups};
  if (RunNumber(row, {"block_size"})) {
    TRY(pool.block_tokens, NeededCount(row, {"block_size"}));
  } else {
    TRY(const Checked block, AttentionBlockOfRun(row));
    pool.block_tokens = OrLargest(block);
  }
  return PoolPrediction(row, pool, available);
}

Result<Prediction> PredictHybridBlock(const Fields& row) {
  TRY(const Checked block, AttentionBlockOfRun(row));
  const std::string unit = RunText(row, "unit");
  if (unit != "%" && unit != "percent") {
    return Prediction{.value = ValueOf(block), .unit = "tokens"};
  }
  TRY(const Checked token_bytes, AttentionTokenBytes(row));
  TRY(const Checked page, StatePageOfRun(row));
  const double share = ValueOf(block * token_bytes) / ValueOf(page) - 1;
  return Prediction{.value = 100 * share, .unit = unit};
}

Result<Prediction> PredictVllmDerived(const Fields& row) {
  TRY(const double concurrency, NeededNumber(row, {"max_concurrency", "concurrency"}));
  TRY(const std::int64_t length, NeededCount(row, {"ctx", "max_model_len"}));
  const double half = HalfUnit(concurrency, 2);
  return Prediction{.value = ValueOf(VllmDerivedTokens(concurrency, length)),
                    .unit = "tokens",
                    .band = PrintedRange{ValueOf(VllmDerivedTokens(concurrency - half, length)),
                                         ValueOf(VllmDerivedTokens(concurrency + half, length))}};
}

// "H100 79.22GiB" says what the driver reports; "48 GB" is a class of devices.
std::optional<Printed> TotalOfRun(const Fields& row) {
  if (const auto total = PrintedGib(row, {"total_gib"})) {
    return total;
  }
  const std::string device = LowerCase(RunText(row, "device"));
  const std::size_t end = device.find("gib");
  const std::size_t begin =
      end == std::string::npos ? end : device.find_last_not_of(".0123456789", end - 1);
  if (end == std::string::npos || end == 0 || begin == std::string::npos) {
    return std::nullopt;
  }
  const double total = std::strtod(device.c_str() + begin + 1, nullptr);
  return total > 0 ? std::optional(Printed{total, HalfUnit(total, 2)}) : std::nullopt;
}

Result<Printed> RequestedOfRun(const Fields& row) {
  const std::optional<Printed> total = TotalOfRun(row);
  if (!total) {
    return NotExpressible("no field total_gib");
  }
  TRY(const double utilization, NeededNumber(row, {"gpu_memory_utilization"}));
  const Checked total_bytes = WholeBytes(total->value * kGib);
  return Printed{ValueOf(VllmRequestedBytes(total_bytes, utilization)) / kGib,
                 total->half * utilization};
}

Result<VllmUse> UseOfRun(const Fields& row, double& half) {
  VllmUse use;
  TRY(const Printed peak, NeededGib(row, {"activation_gib"}));
  use.peak_activation = WholeBytes(peak.value * kGib);
  half += peak.half;
  if (const auto consumed =
          PrintedGib(row, {"consumed_gib"})) {  // weights and what is not PyTorch's
    use.weights = WholeBytes(consumed->value * kGib);
    half += consumed->half;
    return use;
  }
  TRY(const Printed weights, NeededGib(row, {"weights_gib"}));
  TRY(const Printed non_torch, NeededGib(row, {"non_torch_gib"}));
  use.weights = WholeBytes(weights.value * kGib);
  use.non_torch = WholeBytes(non_torch.value * kGib);
  half += weights.half + non_torch.half;
  return use;
}

Prediction InBytes(double bytes, double half_gib) {
  return {.value = bytes,
          .unit = "bytes",
          .band = PrintedRange{bytes - half_gib * kGib, bytes + half_gib * kGib}};
}

Result<Printed> AvailableFromTerms(const Fields& row) {
  Printed requested;
  if (const auto budget = PrintedGib(row, {"budget_gib"})) {
    requested = *budget;
  } else {
    TRY(requested, RequestedOfRun(row));
  }
  double half = requested.half;
  TRY(const VllmUse use, UseOfRun(row, half));
  const Checked bytes = VllmAvailableBytes(WholeBytes(requested.value * kGib), use);
  return Printed{ValueOf(bytes) / kGib, half};
}

Result<Prediction> PredictVllmAvailable(const Fields& row) {
  const std::string figure = RunText(row, "figure_name");
  if (figure == "budget") {
    TRY(const Printed requested, RequestedOfRun(row));
    return InBytes(requested.value * kGib, requested.half);
  }
  if (figure == "kv_cache_memory_suggestion") {
    TRY(const Printed graphs, NeededGib(row, {"cuda_graph_gib"}));
    TRY(const Printed available,
        RunNumber(row, {"available_kv_gib"}) ? AvailableOfRun(row) : AvailableFromTerms(row));
    const Checked bytes = VllmSuggestedCacheBytes(WholeBytes(available.value * kGib),
                                                  WholeBytes(graphs.value * kGib));
    return InBytes(ValueOf(bytes), available.half + graphs.half);
  }
  TRY(const Printed available, AvailableFromTerms(row));
  return InBytes(available.value * kGib, available.half);
}

Result<Prediction> PredictVllmConcurrency(const Fields& row) {
  TRY(const std::int64_t length, NeededCount(row, {"ctx", "max_model_len"}));
  const std::int64_t block = CountOr(row, {"block_size"}, kVllmBlockTokens);
  if (RunNumber(row, {"num_gpu_blocks"})) {
    TRY(const std::int64_t blocks, NeededCount(row, {"num_gpu_blocks"}));
    return Prediction{.value = VllmConcurrencyOfTokens(Checked(blocks) * block, length),
                      .unit = "x"};
  }
  if (RunNumber(row, {"kv_tokens"})) {
    TRY(const std::int64_t tokens, NeededCount(row, {"kv_tokens"}));
    return Prediction{.value = VllmConcurrencyOfTokens(tokens, length), .unit = "x"};
  }
  const auto available = AvailableOfRun(row);
  if (!available) {
    return NotExpressible("no field num_gpu_blocks, kv_tokens or available_kv_gib");
  }
  TRY(VllmPool pool, PoolOfRun(row));
  return OfPrinted(*available, "x", [&](double bytes) {
    pool.available = WholeBytes(bytes);
    return VllmConcurrencyOfTokens(VllmTokens(pool), length);
  });
}

Result<Prediction> PredictVllmCpuBlocks(const Fields& row) {
  constexpr double kSwapGib = 4;  // vllm/config/cache.py, swap_space
  TRY(const VllmPool pool, PoolOfRun(row));
  const double swap = RunNumber(row, {"swap_space_gib"}).value_or(kSwapGib);
  return Prediction{.value = ValueOf(VllmCpuBlocks(WholeBytes(swap * kGib),
                                                   pool.token_bytes * pool.block_tokens)),
                    .unit = "blocks"};
}

// Tokens × bytes of a token. Keys alone, or values alone, are half of a layer whose bytes come from
// its shapes.
Result<Prediction> PredictPoolBytes(const Fields& row) {
  TRY(const std::int64_t tokens, NeededCount(row, {"tokens"}));
  TRY(double token_bytes, TokenBytesOfRun(row));
  const std::string figure = RunText(row, "figure_name");
  if (!RunNumber(row, {"bytes_per_token"}) && (figure == "k_size" || figure == "v_size")) {
    token_bytes /= 2;
  }
  const Checked bytes =
      SglangPoolBytes(tokens, CountOr(row, {"page", "page_size"}, 0), WholeBytes(token_bytes));
  return Prediction{.value = ValueOf(bytes), .unit = "bytes"};
}

Result<Prediction> PredictSglangWindow(const Fields& row) {
  constexpr double kUsualRatio = 0.8;  // server_args.py, swa_full_tokens_ratio
  TRY(const std::int64_t full, NeededCount(row, {"full_tokens", "tokens", "max_total_num_tokens"}));
  const double ratio = RunNumber(row, {"swa_full_tokens_ratio"}).value_or(kUsualRatio);
  return Prediction{
      .value = ValueOf(SglangWindowTokens(full, ratio, CountOr(row, {"page", "page_size"}, 1))),
      .unit = "tokens"};
}

Result<Prediction> PredictTensorrtBlocks(const Fields& row) {
  TRY(const Printed free, NeededGib(row, {"free_gib", "free_memory_gib", "free_after_engine_gib"}));
  TRY(const double token_bytes, TokenBytesOfRun(row));
  TensorrtLlmPool pool = {
      .free_fraction = RunNumber(row, {"free_gpu_memory_fraction", "free_fraction", "kv_fraction"})
                           .value_or(0.9),
      .token_bytes = WholeBytes(token_bytes),
      .block_tokens = CountOr(row, {"tokens_per_block", "block_size"}, 64)};
  return OfPrinted(free, "blocks", [&](double bytes) {
    pool.free_bytes = WholeBytes(bytes);
    return ValueOf(TensorrtLlmBlocks(pool));
  });
}

Result<Prediction> PredictOverhead(const Fields& row) {
  const std::string figure = RunText(row, "figure_name");
  for (const EngineRecord& engine : Engines()) {
    for (const EngineTerm& term : engine.terms) {
      if (std::ranges::find(term.figures, figure) != term.figures.end()) {
        return Prediction{.value = static_cast<double>(term.expected_bytes),
                          .unit = "bytes",
                          .band = PrintedRange{static_cast<double>(term.low_bytes),
                                               static_cast<double>(term.high_bytes)}};
      }
    }
  }
  return NotExpressible("no record of the overhead \"" + figure + "\"");
}

constexpr RunKind kKinds[] = {
    {"vllm_kv_tokens", Closeness::kWithinPrint, PredictVllmTokens},
    {"vllm_kv_tokens_hybrid", Closeness::kWithinPrint, PredictVllmHybrid},
    {"vllm_kv_tokens_derived", Closeness::kWithinPrint, PredictVllmDerived},
    {"vllm_available", Closeness::kWithinPrint, PredictVllmAvailable},
    {"vllm_concurrency", Closeness::kWithinPrint, PredictVllmConcurrency},
    {"vllm_cpu_blocks", Closeness::kAsPrinted, PredictVllmCpuBlocks},
    {"hybrid_block", Closeness::kAsPrinted, PredictHybridBlock},
    {"vllm_hybrid_block", Closeness::kAsPrinted, PredictHybridBlock},
    {"vllm_weights", Closeness::kShown, PredictEngineWeights},
    {"sglang_kv", Closeness::kAsPrinted, PredictPoolBytes},
    {"sglang_swa_tokens", Closeness::kAsPrinted, PredictSglangWindow},
    {"sglang_weights", Closeness::kShown, PredictEngineWeights},
    {"trtllm_kv", Closeness::kAsPrinted, PredictPoolBytes},
    {"trtllm_blocks", Closeness::kWithinPrint, PredictTensorrtBlocks},
    {"safetensors_total", Closeness::kAsPrinted, PredictSafetensorsTotal},
    {"hf_load", Closeness::kShown, PredictHfLoad},
    {"diffusers", Closeness::kShown, PredictDiffusers},
    {"overhead", Closeness::kShown, PredictOverhead},
};

}  // namespace

std::span<const RunKind> PoolRunKinds() {
  return kKinds;
}

}  // namespace fourpiles
