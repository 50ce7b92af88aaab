#include "cli/other_names.h"

#include <algorithm>
#include <iterator>

namespace fourpiles::cli {
namespace {

struct OtherName {
  std::string_view other;
  std::string_view own;
};

// In the order of the tools: vLLM, llama.cpp, SGLang, the Trainer of transformers.
constexpr OtherName kOtherNames[] = {
    {"--max-model-len", "--context-length"},
    {"--gpu-memory-utilization", "--memory-utilization"},
    {"--kv-cache-dtype", "--kv-format"},
    {"--max-num-batched-tokens", "--ubatch"},
    {"--quantization", "--weights-format"},
    {"--dtype", "--weights-format"},
    {"--tensor-parallel-size", "--tensor-parallel"},
    {"-tp", "--tensor-parallel"},
    {"--pipeline-parallel-size", "--pipeline-parallel"},
    {"-pp", "--pipeline-parallel"},
    {"--data-parallel-size", "--devices"},
    {"--enable-expert-parallel", "--expert-parallel"},
    {"--speculative-model", "--draft"},
    {"--ctx-size", "--context-length"},
    {"-c", "--context-length"},
    {"--n-gpu-layers", "--gpu-layers"},
    {"-ngl", "--gpu-layers"},
    {"--parallel", "--concurrency"},
    {"-np", "--concurrency"},
    {"--cache-type-k", "--kv-format-k"},
    {"-ctk", "--kv-format-k"},
    {"--cache-type-v", "--kv-format-v"},
    {"-ctv", "--kv-format-v"},
    {"--ubatch-size", "--ubatch"},
    {"-ub", "--ubatch"},
    {"--flash-attn", "--flash-attention"},
    {"-fa", "--flash-attention"},
    {"--cpu-moe", "--experts-on-host"},
    {"-cmoe", "--experts-on-host"},
    {"--model-draft", "--draft"},
    {"-md", "--draft"},
    {"--mem-fraction-static", "--memory-utilization"},
    {"--chunked-prefill-size", "--ubatch"},
    {"--max-running-requests", "--concurrency"},
    {"--tp-size", "--tensor-parallel"},
    {"--pp-size", "--pipeline-parallel"},
    {"--ep-size", "--expert-parallel"},
    {"--per-device-train-batch-size", "--micro-batch-size"},
    {"--max-seq-length", "--sequence-length"},
    {"--gradient-accumulation-steps", "--gradient-accumulation"},
    {"--gradient-checkpointing", "--recompute"},
};

}  // namespace

std::string_view NameOfOther(std::string_view name) {
  const auto* const found = std::ranges::find(kOtherNames, name, &OtherName::other);
  return found == std::end(kOtherNames) ? std::string_view() : found->own;
}

}  // namespace fourpiles::cli
