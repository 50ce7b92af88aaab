// The wording of real logs, from the threads named.

#include <gtest/gtest.h>

#include "plan/log_testing.h"

namespace fourpiles {
namespace {

// mozilla-ai/llamafile #552, and the model's lines of ggml-org/llama.cpp #10560.
constexpr std::string_view kOld =
    "llama_model_loader: loaded meta data with 29 key-value pairs and 293 tensors from "
    "/my models/tri lm.gguf (version GGUF V3 (latest))\n"
    "llm_load_print_meta: arch             = llama\n"
    "llm_load_print_meta: n_vocab          = 32768\n"
    "llm_load_print_meta: n_embd           = 12288\n"
    "llm_load_print_meta: n_layer          = 88\n"
    "llm_load_print_meta: n_head           = 96\n"
    "llm_load_print_meta: n_head_kv        = 8\n"
    "llm_load_print_meta: n_swa            = 0\n"
    "llm_load_print_meta: model ftype      = Q4_K - Medium\n"
    "llm_load_print_meta: model size       = 4.58 GiB (4.89 BPW) \n"
    "llm_load_tensors: ggml ctx size =    0.26 MiB\n"
    "llm_load_tensors: offloading 30 repeating layers to GPU\n"
    "llm_load_tensors: offloaded 31/31 layers to GPU\n"
    "llm_load_tensors:        CPU buffer size =   297.00 MiB\n"
    "llm_load_tensors:      CUDA0 buffer size =  7317.71 MiB\n"
    "....................\n"
    "llama_new_context_with_model: n_ctx      = 512\n"
    "llama_new_context_with_model: n_batch    = 512\n"
    "llama_new_context_with_model: n_ubatch   = 512\n"
    "llama_new_context_with_model: flash_attn = 0\n"
    "llama_kv_cache_init:      CUDA0 KV buffer size =   180.00 MiB\n"
    "llama_new_context_with_model: KV self size  =  180.00 MiB, K (f16):   90.00 MiB, V (f16):   "
    "90.00 MiB\n"
    "llama_new_context_with_model:  CUDA_Host  output buffer size =     0.19 MiB\n"
    "llama_new_context_with_model:      CUDA0 compute buffer size =   105.00 MiB\n"
    "llama_new_context_with_model:  CUDA_Host compute buffer size =     9.01 MiB\n"
    "llama_new_context_with_model: graph nodes  = 1319\n";

TEST(LogLlamacpp, ReadsAnOldBuild) {
  const EngineLog log = LogOf(kOld);
  EXPECT_EQ(log.engine, LogEngine::kLlamacpp);
  EXPECT_EQ(Mib(log, "weights_host_bytes", "CPU"), "297±0.005");
  EXPECT_EQ(Mib(log, "weights_device_bytes", "CUDA0"), "7317.71±0.005");
  EXPECT_EQ(Mib(log, "kv_device_bytes", "CUDA0"), "180±0.005");
  EXPECT_EQ(Mib(log, "kv_bytes"), "180±0.005");
  EXPECT_EQ(Mib(log, "kv_key_bytes"), "90±0.005");
  EXPECT_EQ(Mib(log, "kv_value_bytes"), "90±0.005");
  EXPECT_EQ(Mib(log, "output_bytes", "CUDA_Host"), "0.19±0.005");
  EXPECT_EQ(Mib(log, "compute_device_bytes", "CUDA0"), "105±0.005");
  EXPECT_EQ(Mib(log, "compute_host_bytes", "CUDA_Host"), "9.01±0.005");
  EXPECT_EQ(Gib(log, "file_bytes"), "4.58±0.005");
  EXPECT_EQ(log.figures.size(), 10u);
  EXPECT_TRUE(log.warnings.empty());
}

TEST(LogLlamacpp, ReadsSettingsAndTheModel) {
  const EngineLog log = LogOf(kOld);
  const std::map<std::string, std::string> settings = {
      {"context-length", "512"}, {"ubatch", "512"},      {"flash-attention", "false"},
      {"gpu-layers", "31"},      {"kv-format-k", "f16"}, {"kv-format-v", "f16"}};
  EXPECT_EQ(log.settings, settings);
  const std::map<std::string, std::string> model = {{"path", "tri lm.gguf"},
                                                    {"arch", "llama"},
                                                    {"n_vocab", "32768"},
                                                    {"n_embd", "12288"},
                                                    {"n_layer", "88"},
                                                    {"n_head", "96"},
                                                    {"n_head_kv", "8"},
                                                    {"n_swa", "0"},
                                                    {"file_type", "Q4_K - Medium"},
                                                    {"bits_per_weight", "4.89"},
                                                    {"offloadable_layers", "31"}};
  EXPECT_EQ(log.model, model);
}

TEST(LogLlamacpp, NamesFiguresAsAUserReadsThem) {
  const EngineLog log = LogOf(kOld);
  const LogFigure& buffer = *FindFigure(log, "kv_device_bytes");
  EXPECT_EQ(buffer.what, "CUDA0 KV buffer");
  EXPECT_EQ(buffer.unit, "bytes");
  EXPECT_EQ(buffer.line, 21);
  EXPECT_EQ(buffer.text, "llama_kv_cache_init:      CUDA0 KV buffer size =   180.00 MiB");
}

// ggml-org/llama.cpp #27680: colours and times before each line; DSV4 has no full layers here.
TEST(LogLlamacpp, ReadsColouredLinesOfANewBuild) {
  const EngineLog log = LogOf(
      "\x1b[34m1.14.608.511\x1b[0m \x1b[32mI \x1b[0mllama_context: n_ctx         = 64000\r\n"
      "\x1b[34m1.14.608.918\x1b[0m \x1b[32mI \x1b[0mllama_context:  CUDA_Host  output buffer size "
      "=     0.49 MiB\r\n"
      "\x1b[34m1.14.608.946\x1b[0m \x1b[32mI \x1b[0mllama_kv_cache_iswa: creating non-SWA KV "
      "cache, "
      "size = 64000 cells\r\n"
      "\x1b[34m1.14.609.487\x1b[0m \x1b[32mI \x1b[0mllama_kv_cache: size =    0.00 MiB ( 64000 "
      "cells,   0 layers,  1/1 seqs), K (bf16):    0.00 MiB, V (bf16):    0.00 MiB\r\n"
      "\x1b[34m1.14.609.492\x1b[0m \x1b[32mI \x1b[0mllama_kv_cache_iswa: creating     SWA KV "
      "cache, "
      "size = 4352 cells\r\n"
      "\x1b[34m1.14.610.021\x1b[0m \x1b[32mI \x1b[0mllama_kv_cache:      CUDA0 KV buffer size =   "
      "182.75 MiB\r\n");
  EXPECT_EQ(Mib(log, "output_bytes", "CUDA_Host"), "0.49±0.005");
  EXPECT_EQ(Plain(log, "cells"), 64000);
  EXPECT_EQ(Plain(log, "swa_cells"), 4352);
  EXPECT_EQ(Mib(log, "kv_bytes"), "0±0.005");
  EXPECT_EQ(Mib(log, "kv_device_bytes"), "none");
  EXPECT_EQ(Mib(log, "swa_kv_device_bytes", "CUDA0"), "182.75±0.005");
  EXPECT_EQ(FindFigure(log, "swa_kv_device_bytes")->what, "CUDA0 KV buffer (sliding window)");
  EXPECT_EQ(FindFigure(log, "output_bytes")->text,
            "1.14.608.918 I llama_context:  CUDA_Host  output buffer size =     0.49 MiB");
  EXPECT_EQ(SettingOf(log, "kv-format-k"), "bf16");
  EXPECT_EQ(SettingOf(log, "context-length"), "64000");
}

// A Gemma 2 in four slots, as llama-server prints it; then the same in one with --swa-full.
TEST(LogLlamacpp, TellsTheCacheOfWindowsFromTheOther) {
  const EngineLog log = LogOf(
      "llama_context: n_seq_max     = 4\n"
      "llama_context: flash_attn    = auto\n"
      "llama_context: kv_unified    = true\n"
      "llama_kv_cache_iswa: using full-size SWA cache (ref: https://github.com/x)\n"
      "llama_kv_cache_iswa: creating non-SWA KV cache, size = 8192 cells\n"
      "llama_kv_cache:        CPU KV buffer size =   416.00 MiB\n"
      "llama_kv_cache: size =  416.00 MiB (  8192 cells,  13 layers,  4/1 seqs), K (f16):  208.00 "
      "MiB, V (f16):  208.00 MiB\n"
      "llama_kv_cache_iswa: creating     SWA KV cache, size = 8192 cells\n"
      "llama_kv_cache:        CPU KV buffer size =   415.00 MiB\n"
      "llama_kv_cache: size =  415.00 MiB (  8192 cells,  12 layers,  4/1 seqs), K (f16):  207.50 "
      "MiB, V (f16):  207.50 MiB\n"
      "llama_context: Flash Attention was auto, set to enabled\n"
      "llama_context:        CPU compute buffer size =   509.00 MiB\n");
  EXPECT_EQ(Mib(log, "kv_bytes"), "416±0.005");
  EXPECT_EQ(Mib(log, "swa_kv_bytes"), "415±0.005");
  EXPECT_EQ(Mib(log, "swa_kv_key_bytes"), "207.5±0.005");
  EXPECT_EQ(Plain(log, "swa_cells"), 8192);
  EXPECT_EQ(Plain(log, "streams"), 1);
  EXPECT_EQ(ModelWord(log, "kv_layers"), "13");
  EXPECT_EQ(ModelWord(log, "swa_kv_layers"), "12");
  EXPECT_EQ(SettingOf(log, "concurrency"), "4");
  EXPECT_EQ(SettingOf(log, "kv-unified"), "true");
  EXPECT_EQ(SettingOf(log, "swa-full"), "true");
  EXPECT_EQ(SettingOf(log, "flash-attention"), "true");
  EXPECT_EQ(log.warnings,
            std::vector<std::string>{"the log ends after line 12 without the size of the weights"});
}

// ikawrakow/ik_llama.cpp #235 and #237.
TEST(LogLlamacpp, ReadsTheLatentCachesOfIkLlama) {
  const EngineLog log = LogOf(
      "llm_load_tensors:     CUDA14 buffer size = 12698.93 MiB\n"
      "llama_new_context_with_model: n_ctx      = 163840\n"
      "llama_new_context_with_model: n_ubatch   = 1024\n"
      "llama_kv_cache_init:     CUDA11 KV buffer size =   144.00 MiB\n"
      "llama_kv_cache_init:     CUDA14 KV buffer size =   180.00 MiB\n"
      "llama_new_context_with_model: KV self size  = 2196.00 MiB, c^KV (f16): 2196.00 MiB, kv^T: "
      "not used\n"
      "llama_new_context_with_model:      CUDA0 compute buffer size =   672.01 MiB\n");
  EXPECT_EQ(Mib(log, "kv_bytes"), "2196±0.005");
  EXPECT_EQ(Mib(log, "kv_key_bytes"), "2196±0.005");
  EXPECT_EQ(Mib(log, "kv_value_bytes"), "none");
  EXPECT_EQ(Mib(log, "kv_device_bytes", "CUDA14"), "180±0.005");
  EXPECT_EQ(SettingOf(log, "kv-format-k"), "f16");
  EXPECT_EQ(SettingOf(log, "kv-format-v"), "none");
  EXPECT_TRUE(log.warnings.empty());
  const EngineLog twice = LogOf(
      "llama_new_context_with_model: KV self size  = 2074.00 MiB, c^KV (f16): 1098.00 MiB, kv^T "
      "(f16):  976.00 MiB\n");
  EXPECT_EQ(Mib(twice, "kv_value_bytes"), "976±0.005");
}

// ggml-org/llama.cpp #23792, lines of one process of llama-server's router.
TEST(LogLlamacpp, ReadsRecurrentStates) {
  const EngineLog log = LogOf(
      "[53871] 0.09.036.819 I llama_memory_recurrent:     Meta() RS buffer size =   124.69 MiB\n"
      "[53871] 0.09.036.833 I llama_memory_recurrent: size =  299.25 MiB (     2 cells,  64 "
      "layers, "
      " 2 seqs  0 rs_seq), R (f32):   11.25 MiB, S (f32):  288.00 MiB\n");
  EXPECT_EQ(Mib(log, "recurrent_device_bytes", "Meta()"), "124.69±0.005");
  EXPECT_EQ(Mib(log, "recurrent_bytes"), "299.25±0.005");
  EXPECT_EQ(Mib(log, "recurrent_conv_bytes"), "11.25±0.005");
  EXPECT_EQ(Mib(log, "recurrent_state_bytes"), "288±0.005");
  EXPECT_EQ(Plain(log, "recurrent_cells"), 2);
  EXPECT_EQ(ModelWord(log, "recurrent_layers"), "64");
}

// ggml-org/llama.cpp #15860 and ollama/ollama #17482.
TEST(LogLlamacpp, ReadsTheTableOfDevices) {
  const EngineLog old = LogOf(
      "llama_print_memory_breakdown:   - CUDA0 (RTX 4090):  24080 = 9436 + (14193 = 13169 +      "
      "38 "
      "+     985) +         451\n");
  EXPECT_EQ(Mib(old, "breakdown_total_bytes", "CUDA0"), "24080±0.5");
  EXPECT_EQ(Mib(old, "breakdown_compute_bytes", "CUDA0"), "985±0.5");
  const EngineLog log = LogOf(
      "common_memory_breakdown_print: | memory breakdown [MiB] | total    free     self   model   "
      "context   compute    unaccounted |\n"
      "common_memory_breakdown_print: |   - CUDA0 (RTX 3090)   | 24124 = 23860 + (15946 = 15364 +  "
      " "
      "  411 +     170) +      -15681 |\n"
      "common_memory_breakdown_print: |   - Host               |                    804 =   682 +  "
      " "
      "    0 +     122                |\n"
      "common_memory_breakdown_print: |   - CUDA0 (RTX 3090)   | 24124 = 8000 + (15000 = 14364 +   "
      "  411 +     225) +      1124 |\n");
  EXPECT_EQ(Mib(log, "breakdown_model_bytes", "CUDA0"), "14364±0.5");  // the later table
  EXPECT_EQ(Mib(log, "breakdown_context_bytes", "CUDA0"), "411±0.5");
  EXPECT_EQ(Mib(log, "breakdown_self_bytes", "Host"), "804±0.5");
  EXPECT_EQ(Mib(log, "breakdown_compute_bytes", "Host"), "122±0.5");
  EXPECT_TRUE(log.warnings.empty());
}

// ollama/ollama #17482: the table of a trial comes before the model is loaded.
TEST(LogLlamacpp, TakesNoTrialForAStart) {
  const EngineLog log = LogOf(
      "common_memory_breakdown_print: |   - Host               |                    804 =   682 +  "
      " "
      "    0 +     122                |\n"
      "llama_model_loader: loaded meta data with 9 key-value pairs and 9 tensors from a.gguf "
      "(version GGUF V3)\n"
      "load_tensors: CUDA0 model buffer size = 9.00 MiB\n"
      "load_tensors: CUDA0 model buffer size = 1.00 MiB\n"
      "llama_kv_cache: CUDA0 KV buffer size = 1.00 MiB\n");
  EXPECT_EQ(Mib(log, "weights_device_bytes"), "10±0.01");
  EXPECT_TRUE(log.warnings.empty());
}

// ggml-org/llama.cpp builds of 2025 that name no function, and SciSharp/LLamaSharp #1099.
TEST(LogLlamacpp, ReadsLinesOfOtherFunctions) {
  const EngineLog log = LogOf(
      "build: 4701 (be3bbd62) with MSVC 19.41.34120.0 for x64\n"
      "0.01.461.470 I init: kv_size = 2048, offload = 1, type_k = 'q8_0', type_v = 'f16', n_layer "
      "= "
      "32, can_shift = 1\n"
      "0.01.472.521 I reserve:      CUDA0 compute buffer size =   162,00 MiB\n"
      "0.37.248.893 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 8192, kv_unified "
      "= "
      "'false'\n");
  EXPECT_EQ(log.version, "4701");
  EXPECT_EQ(Mib(log, "compute_device_bytes", "CUDA0"), "162±0.005");
  EXPECT_EQ(Plain(log, "cells"), 2048);
  EXPECT_EQ(SettingOf(log, "kv-format-k"), "q8_0");
  EXPECT_EQ(SettingOf(log, "concurrency"), "2");
  EXPECT_EQ(SettingOf(log, "context-per-slot"), "8192");
  EXPECT_EQ(SettingOf(log, "kv-unified"), "false");
}

// A file in parts, mapped: ggml-org/llama.cpp prints a line for each.
TEST(LogLlamacpp, AddsUpTheBuffersOfOneLoad) {
  const std::string loaded =
      "llama_model_loader: loaded meta data with 9 key-value pairs and 9 tensors from a.gguf "
      "(version GGUF V3)\n";
  const std::string buffers =
      "load_tensors:   CPU_Mapped model buffer size = 47011.44 MiB\n"
      "load_tensors:   CPU_Mapped model buffer size = 47011.44 MiB\n"
      "load_tensors:   CPU_Mapped model buffer size =     0.75 MiB\n";
  const EngineLog log = LogOf(loaded + buffers + loaded + buffers +
                              "llama_kv_cache: CUDA0 KV buffer size = 1.00 MiB\n"
                              "sched_reserve: CUDA0 compute buffer size = 3.00 MiB\n");
  EXPECT_EQ(Mib(log, "weights_host_bytes", "CPU_Mapped"), "94023.63±0.015");
  EXPECT_EQ(log.figures.size(), 3u);
  EXPECT_TRUE(log.warnings.empty());
}

TEST(LogLlamacpp, KeepsTheFirstModelWhereADraftFollows) {
  const std::string loaded =
      "llama_model_loader: loaded meta data with 9 key-value pairs and 9 tensors from a.gguf "
      "(version GGUF V3)\n";
  const std::string draft =
      "llama_model_loader: loaded meta data with 9 key-value pairs and 9 tensors from d.gguf "
      "(version GGUF V3)\n"
      "llama_context: n_ctx = 99\n"
      "llama_kv_cache: CUDA0 KV buffer size = 2.00 MiB\n";
  const EngineLog log = LogOf("build: 6000 (abc)\n" + loaded +
                              "load_tensors: CUDA0 model buffer size = 9.00 MiB\n"
                              "llama_context: n_ctx = 512\n"
                              "llama_kv_cache: CUDA0 KV buffer size = 1.00 MiB\n"
                              "sched_reserve: CUDA0 compute buffer size = 3.00 MiB\n" +
                              draft);
  EXPECT_EQ(Mib(log, "kv_device_bytes", "CUDA0"), "1±0.005");
  EXPECT_EQ(ModelWord(log, "path"), "a.gguf");
  EXPECT_EQ(SettingOf(log, "context-length"), "512");
  EXPECT_EQ(log.warnings, std::vector<std::string>{
                              "line 7: a second model is loaded; of figures that come twice, "
                              "the first are those of the first model"});
}

}  // namespace
}  // namespace fourpiles
