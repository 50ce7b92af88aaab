// Lines of vLLM, of both engines (V0 and V1). Workers name themselves in front of their lines.

#include "plan/log_engine.h"

namespace fourpiles {
namespace {

constexpr std::string_view kConfig[] = {"Initializing an LLM engine", "LLM engine (v",
                                        "with config:"};
constexpr std::string_view kArguments[] = {"non-default args", "Namespace(", "engine args"};

constexpr LinePattern kRows[] = {
    // The run.
    {"vLLM API server version {version}", {}, {}, LineRole::kStart},
    {"LLM engine (v{version}) with config:", {}, {}, LineRole::kModel},
    {"model={path}", {}, kConfig},
    {"dtype={setting dtype}", {}, kConfig},
    {"max_seq_len={setting context-length}", {}, kConfig},
    {"tensor_parallel_size={setting tensor-parallel}", {}, kConfig},
    {"pipeline_parallel_size={setting pipeline-parallel}", {}, kConfig},
    {"quantization={setting weights-format}", {}, kConfig},
    {"kv_cache_dtype={setting kv-format}", {}, kConfig},
    {"model{is} {path}", {}, kArguments},
    {"model_tag{is} {path}", {}, kArguments},
    {"max_model_len{is} {setting context-length}", {}, kArguments},
    {"tensor_parallel_size{is} {setting tensor-parallel}", {}, kArguments},
    {"pipeline_parallel_size{is} {setting pipeline-parallel}", {}, kArguments},
    {"gpu_memory_utilization{is} {setting memory-utilization}", {}, kArguments},
    {"max_num_seqs{is} {setting concurrency}", {}, kArguments},
    {"max_num_batched_tokens{is} {setting ubatch}", {}, kArguments},
    {"block_size{is} {setting page}", {}, kArguments},
    {"quantization{is} {setting weights-format}", {}, kArguments},
    {"kv_cache_dtype{is} {setting kv-format}", {}, kArguments},
    {"Resolved architecture: {model arch}"},
    {"Using max model len {count context-length}"},
    {"Chunked prefill is enabled with max_num_batched_tokens={count ubatch}"},
    {"Setting attention block size to {count page} tokens"},
    // Weights.
    {"Checkpoint size: {figure file_bytes}"},
    {"Model loading took {figure weights_bytes}"},
    {"Loading model weights took {figure weights_bytes}"},
    {"weights memory: {figure weights_bytes}"},
    {"model weights take {figure weights_bytes}"},
    {"Actual usage is {figure weights_bytes} for weight, {figure activation_bytes} for peak "
     "activation, {figure non_torch_bytes} for non-torch memory"},
    {"Actual usage: {figure weights_bytes} for weights, {figure activation_bytes} for peak "
     "activation, {figure non_torch_bytes} for non-torch memory"},
    // The profile of memory.
    {"Free memory on device ({figure free_before_bytes GiB}/{figure total_bytes})"},
    {"Desired GPU memory utilization is ({setting memory-utilization}, {figure requested_bytes}"},
    {"total_gpu_memory ({figure total_bytes}) x gpu_memory_utilization "
     "({setting memory-utilization}) = {figure requested_bytes}"},
    {"non_torch_memory takes {figure non_torch_bytes}"},
    {"PyTorch activation peak memory takes {figure activation_bytes}"},
    {"rest of the memory reserved for KV Cache is {figure available_bytes}"},
    {"Memory profiling results: {any}total_gpu_memory={figure total_bytes}"},
    {"Memory profiling results: {any}peak_torch_memory={figure peak_torch_bytes}"},
    {"Memory profiling results: {any}non_torch_memory={figure non_torch_bytes}"},
    {"Memory profiling results: {any}kv_cache_size={figure available_bytes}"},
    {"Memory profiling results: {any}gpu_memory_utilization={setting memory-utilization}"},
    {"Total non KV cache memory: {figure non_kv_bytes}"},
    {"torch peak memory increase: {figure activation_bytes}"},
    {"torch forward increase memory: {figure non_torch_bytes}"},
    // Caches.
    {"Available KV cache memory: {figure available_bytes}"},
    {"GPU KV cache size: {figure cache_tokens} tokens"},
    {"GPU blocks: {figure blocks}"},
    {"GPU blocks: {any}, # CPU blocks: {figure cpu_blocks}"},
    {"CUDA blocks: {figure blocks}, # CPU blocks: {figure cpu_blocks}"},
    {"cuda blocks: {figure blocks}, # CPU blocks: {figure cpu_blocks}"},
    {"rocm blocks: {figure blocks}, # CPU blocks: {figure cpu_blocks}"},
    {"npu blocks: {figure blocks}, # CPU blocks: {figure cpu_blocks}"},
    {"Maximum concurrency for {count context-length} tokens per request: "
     "{figure max_concurrency}x"},
    {"Current kv cache memory in use is {figure kv_bytes bytes}"},
    {"Replace gpu_memory_utilization config with `--kv-cache-memory="
     "{figure suggested_bytes bytes}"},
    {"Replace gpu_memory_utilization with `--kv-cache-memory={figure suggested_bytes bytes}"},
    // Graphs.
    {"Graph capturing finished in {any}secs, took {figure graph_bytes}"},
    {"CUDA graph pool memory: {figure graph_bytes} (actual), "
     "{figure graph_estimate_bytes} (estimated)"},
    {"Estimated CUDA graph memory: {figure graph_estimate_bytes}"},
};

constexpr NeededFigures kNeeds[] = {
    {"the size of the weights", {"weights_bytes"}},
    {"the size of the KV cache", {"available_bytes", "blocks", "cache_tokens", "kv_bytes"}},
};

// "(Worker_TP0 pid=447)" is TP0, "(VllmWorker rank=1 pid=9)" is rank=1; a process of another name
// speaks for all.
std::string_view RankOf(std::string_view line) {
  for (const std::string_view name : {"(Worker_", "(VllmWorker "}) {
    const std::size_t at = line.substr(0, 256).find(name);
    if (at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + name.size(), 40);
      return rest.substr(0, rest.find_first_of(" )"));
    }
  }
  return {};
}

}  // namespace

EngineLines VllmLines() {
  return {.engine = LogEngine::kVllm, .rows = kRows, .needs = kNeeds, .rank_of = RankOf};
}

}  // namespace fourpiles
