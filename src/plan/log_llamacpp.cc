// Lines of llama.cpp, of its older builds and of ik_llama.cpp. The function that prints a line
// stands before it with a colon; what it is called has changed with almost every year.

#include "plan/log_engine.h"

namespace fourpiles {
namespace {

constexpr std::string_view kContext[] = {"llama_context", "llama_new_context_with_model",
                                         "llama_init_from_model", "llama_context_base"};
constexpr std::string_view kInfo[] = {"print_info", "llm_load_print_meta"};
constexpr std::string_view kTensors[] = {"load_tensors", "llm_load_tensors"};
constexpr std::string_view kCaches[] = {"llama_kv_cache", "llama_kv_cache_unified"};
constexpr std::string_view kCacheStarts[] = {"llama_kv_cache_init", "llama_kv_cache_unified",
                                             "init"};
constexpr std::string_view kSelf[] = {
    "llama_new_context_with_model", "llama_init_from_model",  "llama_context", "llama_context_base",
    "llama_context_kv_self",        "llama_kv_cache_unified", "init"};
constexpr std::string_view kRecurrent[] = {"llama_memory_recurrent", "llama_kv_cache_recurrent"};
constexpr std::string_view kRecurrentSelf[] = {"llama_kv_cache_recurrent"};
constexpr std::string_view kLoader[] = {"llama_model_loader"};
constexpr std::string_view kSlots[] = {"n_slots"};

constexpr LinePattern kRows[] = {
    // The program.
    {"build: {version} (", {}, {}, LineRole::kStart},
    {"main: build = {version} ", {}, {}, LineRole::kStart},
    {"build_info: {version}", {}, {}, LineRole::kStart},
    {"INFO [ main] build info | {any}build={version}", {}, {}, LineRole::kStart},
    // The file.
    {"loaded meta data with {any} tensors from {path} (version", kLoader, {}, LineRole::kModel},
    {"general.architecture str = {model arch}", {}, kLoader},
    {"general.name str = {rest name}", {}, kLoader},
    {"arch = {model arch}", kInfo},
    {"general.name = {rest name}", kInfo},
    {"n_layer = {model n_layer}", kInfo},
    {"n_embd = {model n_embd}", kInfo},
    {"n_head = {model n_head}", kInfo},
    {"n_head_kv = {model n_head_kv}", kInfo},
    {"n_swa = {model n_swa}", kInfo},
    {"n_vocab = {model n_vocab}", kInfo},
    {"n_ctx_train = {model n_ctx_train}", kInfo},
    {"n_embd_head_k = {model n_embd_head_k}", kInfo},
    {"n_embd_head_v = {model n_embd_head_v}", kInfo},
    {"n_embd_k_gqa = {model n_embd_k_gqa}", kInfo},
    {"n_embd_v_gqa = {model n_embd_v_gqa}", kInfo},
    {"n_ff = {model n_ff}", kInfo},
    {"n_expert = {model n_expert}", kInfo},
    {"file type = {rest file_type}", kInfo},
    {"model ftype = {rest file_type}", kInfo},
    {"model type = {rest model_type}", kInfo},
    {"model params = {rest model_params}", kInfo},
    {"file size = {figure file_bytes}", kInfo},
    {"file size = {any}({model bits_per_weight} BPW", kInfo},
    {"model size = {figure file_bytes}", kInfo},
    {"model size = {any}({model bits_per_weight} BPW", kInfo},
    // Weights: a buffer for each file where they are mapped.
    {"offloaded {count gpu-layers}/{model offloadable_layers} layers to GPU", kTensors},
    {"{device} model buffer size = {figure weights_*_bytes}", kTensors, {}, LineRole::kPart},
    {"{device} buffer size = {figure weights_*_bytes}", kTensors, {}, LineRole::kPart},
    // The context.
    {"n_ctx = {count context-length}", kContext},
    {"n_ctx_per_seq = {count context-per-slot}", kContext},
    {"n_ctx_seq = {count context-per-slot}", kContext},
    {"n_seq_max = {count concurrency}", kContext},
    {"n_ubatch = {count ubatch}", kContext},
    {"flash_attn = {setting flash-attention}", kContext},
    {"kv_unified = {setting kv-unified}", kContext},
    {"Flash Attention was auto, set to {anew flash-attention}"},
    {"n_parallel = {count concurrency} and kv_unified = {setting kv-unified}"},
    {"n_slots = {count concurrency}"},
    {"n_ctx_slot = {count context-per-slot}", {}, kSlots},
    {"kv_unified = {setting kv-unified}", {}, kSlots},
    // Caches.
    {"using full-size SWA cache", {}, {}, LineRole::kPlain, "swa-full=true"},
    {"creating non-SWA KV cache, size = {figure cells} cells", {}, {}, LineRole::kFullCache},
    {"creating SWA KV cache, size = {figure swa_cells} cells", {}, {}, LineRole::kWindowCache},
    {"{device} KV buffer size = {figure kv_device_bytes}", {}, {}, LineRole::kCache},
    {"size = {figure kv_bytes} ({figure cells} cells, {model kv_layers} layers, {any}seqs), "
     "K ({setting kv-format-k}): {figure kv_key_bytes}, "
     "V ({setting kv-format-v}): {figure kv_value_bytes}",
     kCaches,
     {},
     LineRole::kCache},
    {"size = {figure kv_bytes} ({any} layers, {count concurrency}/{figure streams} seqs)",
     kCaches,
     {},
     LineRole::kCache},
    {"kv_size = {figure cells}, {any}type_k = {setting kv-format-k}, "
     "type_v = {setting kv-format-v}",
     kCacheStarts,
     {},
     LineRole::kCache},
    {"KV self size = {figure kv_bytes}, K ({setting kv-format-k}): {figure kv_key_bytes}, "
     "V ({setting kv-format-v}): {figure kv_value_bytes}",
     kSelf},
    {"KV self size = {figure kv_bytes}, c^KV ({setting kv-format-k}): {figure kv_key_bytes}",
     kSelf},
    {"KV self size = {any}, kv^T ({setting kv-format-v}): {figure kv_value_bytes}", kSelf},
    {"KV self size = {figure recurrent_bytes}, K ({any}): {figure recurrent_conv_bytes}, "
     "V ({any}): {figure recurrent_state_bytes}",
     kRecurrentSelf},
    {"{device} RS buffer size = {figure recurrent_device_bytes}"},
    {"size = {figure recurrent_bytes} ({figure recurrent_cells} cells, "
     "{model recurrent_layers} layers, {any}), R ({any}): {figure recurrent_conv_bytes}, "
     "S ({any}): {figure recurrent_state_bytes}",
     kRecurrent},
    // Buffers.
    {"{device} compute buffer size = {figure compute_*_bytes}"},
    {"{device} output buffer size = {figure output_bytes}"},
    // The table of devices, in MiB: total = free + (self = model + context + compute) + rest.
    {"common_memory_breakdown_print: | - {device} ({any}) | {figure breakdown_total_bytes MiB} = "
     "{any}({figure breakdown_self_bytes MiB} = {figure breakdown_model_bytes MiB} + "
     "{figure breakdown_context_bytes MiB} + {figure breakdown_compute_bytes MiB})",
     {},
     {},
     LineRole::kLatest},
    {"llama_memory_breakdown_print: | - {device} ({any}) | {figure breakdown_total_bytes MiB} = "
     "{any}({figure breakdown_self_bytes MiB} = {figure breakdown_model_bytes MiB} + "
     "{figure breakdown_context_bytes MiB} + {figure breakdown_compute_bytes MiB})",
     {},
     {},
     LineRole::kLatest},
    {"llama_print_memory_breakdown: - {device} ({any}): {figure breakdown_total_bytes MiB} = "
     "{any}({figure breakdown_self_bytes MiB} = {figure breakdown_model_bytes MiB} + "
     "{figure breakdown_context_bytes MiB} + {figure breakdown_compute_bytes MiB})",
     {},
     {},
     LineRole::kLatest},
    {"common_memory_breakdown_print: | - {device} | {figure breakdown_self_bytes MiB} = "
     "{figure breakdown_model_bytes MiB} + {figure breakdown_context_bytes MiB} + "
     "{figure breakdown_compute_bytes MiB}",
     {},
     {},
     LineRole::kLatest},
    {"llama_memory_breakdown_print: | - {device} | {figure breakdown_self_bytes MiB} = "
     "{figure breakdown_model_bytes MiB} + {figure breakdown_context_bytes MiB} + "
     "{figure breakdown_compute_bytes MiB}",
     {},
     {},
     LineRole::kLatest},
};

constexpr NeededFigures kNeeds[] = {
    {"the size of the weights",
     {"weights_device_bytes", "weights_host_bytes", "breakdown_model_bytes"}},
    {"the compute buffers",
     {"compute_device_bytes", "compute_host_bytes", "breakdown_compute_bytes"}},
    {"the size of the KV cache",
     {"kv_bytes", "kv_device_bytes", "recurrent_bytes", "recurrent_device_bytes",
      "breakdown_context_bytes"}},
};

}  // namespace

EngineLines LlamacppLines() {
  return {.engine = LogEngine::kLlamacpp, .rows = kRows, .needs = kNeeds};
}

}  // namespace fourpiles
