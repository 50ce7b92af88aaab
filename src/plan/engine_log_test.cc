// What holds for the logs of all engines: several start-ups, logs that end early, hostile text.

#include "plan/engine_log.h"

#include <gtest/gtest.h>

#include "plan/log_testing.h"

namespace fourpiles {
namespace {

using Warnings = std::vector<std::string>;

std::string ErrorOf(std::string_view text) {
  return ErrorLine(ReadEngineLog(text, "run.log"));
}

constexpr std::string_view kHint = "keep both streams of the engine: COMMAND > run.log 2>&1";

TEST(EngineLog, RefusesLogsOfOtherPrograms) {
  EXPECT_EQ(ErrorOf("a\nb\n"),
            "run.log | 2 lines and none that is known | what llama.cpp, vLLM or SGLang print while "
            "they start | " +
                std::string(kHint));
  EXPECT_EQ(ErrorOf(""),
            "run.log | an empty file | what llama.cpp, vLLM or SGLang print while they start | " +
                std::string(kHint));
  EXPECT_EQ(ReadEngineLog("x", "y").error().kind, ErrorKind::kInput);
}

// vllm-project/vllm #21348 compares two engines.
TEST(EngineLog, RefusesTheLogsOfTwoEngines) {
  EXPECT_EQ(
      ErrorOf("Available KV cache memory: 8.11 GiB\n"
              "GPU KV cache size: 178,880 tokens\n"
              "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB\n"),
      "run.log | line 1 is of vLLM (\"Available KV cache memory: 8.11 GiB\"), line 3 of SGLang "
      "(\"KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB\") | the "
      "log of one engine | cut the file: one start-up of one engine");
}

TEST(EngineLog, RefusesUtf16) {
  const std::string expected =
      "run.log | text in UTF-16 | UTF-8 | iconv -f UTF-16 -t UTF-8 FILE > "
      "run.log";
  EXPECT_EQ(ErrorOf("\xff\xfel"), expected);
  EXPECT_EQ(ErrorOf(std::string_view("l\0l\0a\0", 6)), expected);
  EXPECT_EQ(ErrorOf(std::string_view("\0l\0l\0a", 6)), expected);
}

TEST(EngineLog, SaysWhatIsMissingWhereTheLogEnds) {
  const EngineLog log = LogOf(
      "load_tensors: CUDA0 model buffer size = 9.00 MiB\n"
      "llama_kv_cache: CUDA0 KV buffer size = 10");
  EXPECT_EQ(Mib(log, "weights_device_bytes"), "9±0.005");
  EXPECT_EQ(log.warnings,
            Warnings{"the log ends within line 2 without the compute buffers, the size of the KV "
                     "cache"});
}

TEST(EngineLog, LeavesOutANumberThatTheEndOfTheFileMayCut) {
  EXPECT_EQ(LogOf("INFO # GPU blocks: 1952\nINFO # GPU blocks: 19").warnings,
            (Warnings{"line 2: the file ends within \"19\"; it is left out",
                      "the log ends within line 2 without the size of the weights"}));
  const EngineLog whole = LogOf("Available KV cache memory: 26.43 GiB");
  EXPECT_EQ(Gib(whole, "available_bytes"), "26.43±0.005");
}

TEST(EngineLog, ReadsTheLastOfSeveralStartups) {
  const std::string start =
      "[2025-10-02 21:34:32] server_args=ServerArgs(tp_size=2)\n"
      "Load weight end. type=A, avail mem=9.00 GB, mem usage=1.00 GB.\n"
      "KV Cache is allocated. #tokens: 100, K size: 1.00 GB, V size: 1.00 GB\n";
  const EngineLog log = LogOf(start + start +
                              "[2025-10-02 21:34:32] server_args=ServerArgs(page_size=4)\n"
                              "Load weight end. type=B, avail mem=9.00 GB, mem usage=2.00 GB.\n"
                              "KV Cache is allocated. #tokens: 200, KV size: 3.00 GB\n");
  EXPECT_EQ(Plain(log, "cache_tokens"), 200);
  EXPECT_EQ(SettingOf(log, "tensor-parallel"), "none");
  EXPECT_EQ(SettingOf(log, "page"), "4");
  EXPECT_EQ(log.warnings, Warnings{"3 start-ups in the file; the last, from line 7, is read"});
}

TEST(EngineLog, TakesModelsForStartupsWhereTheProgramDoesNotSayThatItStarts) {
  const std::string loaded =
      "llama_model_loader: loaded meta data with 9 key-value pairs and 9 tensors from a.gguf "
      "(version GGUF V3)\n"
      "load_tensors: CUDA0 model buffer size = 9.00 MiB\n"
      "llama_kv_cache: CUDA0 KV buffer size = 1.00 MiB\n"
      "sched_reserve: CUDA0 compute buffer size = 3.00 MiB\n";
  EXPECT_EQ(LogOf(loaded + loaded).warnings,
            Warnings{"2 start-ups in the file; the last, from line 5, is read"});
}

TEST(EngineLog, SkipsImpossibleNumbers) {
  std::string text = "Model loading took 1.00 GiB\nAvailable KV cache memory: 1.00 GiB\n";
  for (const char* amount :
       {"1e400 GiB", "-3 GiB", "9007199254740993 GiB", "1e99 GiB", "-1 GiB", "-2 GiB"}) {
    text += std::string("Available KV cache memory: ") + amount + "\n";
  }
  const EngineLog log = LogOf(text);
  EXPECT_EQ(log.figures.size(), 2u);
  EXPECT_EQ(log.warnings,
            (Warnings{"line 3: 1e400 GiB is impossible; the line is left out",
                      "line 4: -3 GiB is impossible; the line is left out",
                      "line 5: 9007199254740993 GiB is impossible; the line is left out",
                      "line 6: 1e99 GiB is impossible; the line is left out",
                      "2 more lines hold impossible numbers"}));
}

TEST(EngineLog, EscapesWhatCouldSteerATerminal) {
  const EngineLog log = LogOf("llama_kv_cache: \x07\xe2\x80\xae KV buffer size = 1.00 MiB\x01\n");
  EXPECT_EQ(log.figures.front().device, "\\x07\\u202e");
  EXPECT_EQ(log.figures.front().text,
            "llama_kv_cache: \\x07\\u202e KV buffer size = 1.00 MiB\\x01");
}

TEST(EngineLog, KeepsShortTextsOfLongLines) {
  const std::string known = "Available KV cache memory: 1.00 GiB";
  const EngineLog log = LogOf(known + std::string(100'000'000, 'x') + "\n" + known + "\n");
  EXPECT_EQ(log.figures.size(), 1u);
  EXPECT_EQ(log.figures.front().text.size(), 200u);
  EXPECT_EQ(LogOf(known + std::string(1000, '\0') + "\n").figures.front().text, known);
}

TEST(EngineLog, BoundsWhatItKeeps) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format("llama_kv_cache: D{} KV buffer size = 1.00 MiB\n", i);
    text += fmt::format("llama_kv_cache: CUDA0 KV buffer size = {}.00 MiB\n", i);
  }
  const EngineLog log = LogOf(text);
  EXPECT_EQ(log.figures.size(), 4096u);
  EXPECT_EQ(log.warnings.size(), 3u);
}

// Each of these would take hours if a line were gone through from each of its places.
TEST(EngineLog, ReadsLinesFullOfFirstWords) {
  for (const std::string line :
       {"GPU KV cache size: ", "KV Cache is allocated. ", "size = ( , K (",
        "model_path= 'tp_size='", "n_ctx   ", "Load weight end. [",
        "Memory profiling results: ", "-1 1e9 KV self size = c^KV 1 MiB, K "}) {
    std::string text;
    while (text.size() < 1'000'000) {
      text += line;
      text += text.size() % 3 == 0 ? "     " : "";
    }
    EXPECT_EQ(ErrorOf(text + "\n" + text).substr(0, 19), "run.log | 2 lines a") << line;
  }
}

}  // namespace
}  // namespace fourpiles
