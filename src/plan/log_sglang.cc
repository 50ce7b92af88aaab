// Lines of SGLang. A rank stands in the brackets of the time: "[2025-10-16 09:06:22 TP5]".

#include <algorithm>

#include "plan/log_engine.h"

namespace fourpiles {
namespace {

constexpr std::string_view kArguments[] = {"server_args="};
constexpr std::string_view kTotals[] = {"max_total_num_tokens="};

constexpr LinePattern kRows[] = {
    // The run.
    {"server_args=ServerArgs(", {}, {}, LineRole::kStart},
    {"model_path{is} {path}", {}, kArguments},
    {"dtype{is} {setting dtype}", {}, kArguments},
    {"context_length{is} {setting context-length}", {}, kArguments},
    {"quantization{is} {setting weights-format}", {}, kArguments},
    {"kv_cache_dtype{is} {setting kv-format}", {}, kArguments},
    {"mem_fraction_static{is} {setting memory-utilization}", {}, kArguments},
    {"max_running_requests{is} {setting concurrency}", {}, kArguments},
    {"chunked_prefill_size{is} {setting ubatch}", {}, kArguments},
    {"page_size{is} {setting page}", {}, kArguments},
    {"swa_full_tokens_ratio{is} {setting swa-full-tokens-ratio}", {}, kArguments},
    {"tp_size{is} {setting tensor-parallel}", {}, kArguments},
    {"pp_size{is} {setting pipeline-parallel}", {}, kArguments},
    // Weights.
    {"Load weight begin. avail mem={figure free_before_bytes}"},
    {"Load weight end. {any}type={model arch}"},
    {"Load weight end. {any}avail mem={figure free_after_weights_bytes}"},
    {"Load weight end. {any}mem usage={figure weights_bytes}"},
    // Caches.
    {"Use sliding window memory pool. full_layer_tokens={figure full_tokens}, "
     "swa_layer_tokens={figure swa_tokens}"},
    {"SWAKVPool mem usage: {figure kv_bytes}, swa size: {figure swa_tokens}, "
     "full size: {figure full_tokens}"},
    {"KV Cache is allocated. dtype: {setting kv-format}", {}, {}, LineRole::kPool},
    {"KV Cache is allocated. {any}#tokens: {figure cache_tokens}", {}, {}, LineRole::kPool},
    {"KV Cache is allocated. {any}, K size: {figure kv_key_bytes}, V size: {figure kv_value_bytes}",
     {},
     {},
     LineRole::kPool},
    {"KV Cache is allocated. {any}, KV size: {figure kv_bytes}", {}, {}, LineRole::kPool},
    {"Mamba Cache is allocated. {any}conv_state size: {figure recurrent_conv_bytes}, "
     "ssm_state size: {figure recurrent_state_bytes}"},
    {"max_mamba_cache_size: {figure recurrent_cells}"},
    {"Memory pool end. avail mem={figure free_after_pool_bytes}"},
    // Graphs.
    {"Capture cuda graph end. {any}mem usage={figure graph_bytes}"},
    {"Capture target decode CUDA graph end. {any}mem usage={figure graph_bytes}"},
    {"Capture decode CUDA graph end. {any}mem usage={figure graph_bytes}"},
    // The sum.
    {"max_total_num_tokens={figure cache_tokens}, "},
    {"chunked_prefill_size={setting ubatch}", {}, kTotals},
    {"max_running_requests={figure max_running_requests}", {}, kTotals},
    {"context_len={setting context-length}", {}, kTotals},
    {"available_gpu_mem={figure free_bytes}", {}, kTotals},
};

constexpr NeededFigures kNeeds[] = {
    {"the size of the weights", {"weights_bytes"}},
    {"the tokens of the KV cache", {"cache_tokens"}},
    {"the size of the KV cache", {"kv_key_bytes", "kv_bytes", "recurrent_state_bytes"}},
};

std::string_view RankOf(std::string_view line) {
  if (line.starts_with("[gpu_id=")) {
    return line.substr(1, std::min(line.find(']'), std::size_t{40}) - 1);
  }
  // The bar of a progress may stand before the time.
  std::size_t open = line.find("[20");
  while (open != std::string_view::npos && line.substr(open, 6).find('-') != 5) {
    open = line.find("[20", open + 1);
  }
  if (open == std::string_view::npos) {
    return {};
  }
  std::string_view rank = line.substr(open + 1, 64);
  if (rank.find(']') == std::string_view::npos) {
    return {};
  }
  rank = rank.substr(0, rank.find(']'));
  for (int word = 0; word < 2; ++word) {  // the day and the time
    const std::size_t blank = rank.find(' ');
    rank = blank == std::string_view::npos ? std::string_view() : rank.substr(blank + 1);
  }
  return rank;
}

double ValueOf(const EngineLog& log, std::string_view id, std::string_view device) {
  const LogFigure* const figure = FindFigure(log, id, device);
  return figure == nullptr ? 0 : figure->value;
}

// A pool with the tokens of the windows is theirs, which its own line does not say.
void MarkWindowPools(EngineLog& log) {
  std::vector<std::int64_t> lines;
  for (const LogFigure& figure : log.figures) {
    const double window = ValueOf(log, "swa_tokens", figure.device);
    if (figure.id == "cache_tokens" && window > 0 && figure.value == window &&
        window != ValueOf(log, "full_tokens", figure.device)) {
      lines.push_back(figure.line);
    }
  }
  std::erase_if(log.figures, [&lines](const LogFigure& figure) {
    return figure.id == "cache_tokens" && std::ranges::binary_search(lines, figure.line);
  });
  for (LogFigure& figure : log.figures) {
    if (std::ranges::binary_search(lines, figure.line) && figure.id.starts_with("kv_")) {
      figure.id.insert(0, "swa_");
      figure.what = WhatOfFigure(figure.id, figure.device);
    }
  }
}

}  // namespace

EngineLines SglangLines() {
  return {.engine = LogEngine::kSglang,
          .rows = kRows,
          .needs = kNeeds,
          .rank_of = RankOf,
          .finish = MarkWindowPools};
}

}  // namespace fourpiles
