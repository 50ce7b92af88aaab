#pragma once

// What an inference engine printed while it started: the sizes it allocated and the settings it
// ran with, so that a prediction can stand beside each of them.
//
// Engines change the wording of their logs from version to version, so a line is recognised by the
// words that stayed (the rows of log_llamacpp.cc, log_vllm.cc, log_sglang.cc), wherever it begins:
// time stamps, names of processes and colours in front do not matter. docs/LOGS.md lists the lines.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

enum class LogEngine { kLlamacpp, kVllm, kSglang };

// "llama.cpp", "vLLM", "SGLang"
std::string_view NameOf(LogEngine engine);

// One figure that the engine printed. Engines that write MB and GB mean 2^20 and 2^30 bytes.
struct LogFigure {
  std::string id = {};      // "kv_device_bytes"; log_figures.cc lists them
  std::string what = {};    // as a user reads it: "CUDA0 KV buffer"
  std::string device = {};  // llama.cpp: the buffer's, "CUDA0"; else the rank, "TP0"; or ""
  double value = 0;         // in `unit`
  double half = 0;          // half a unit of the last digit printed: the true value lies within
  std::string unit = {};    // "bytes", "tokens", "blocks", "cells", "x" …
  std::int64_t line = 0;    // its number in the file, from 1
  std::string text = {};    // the line as printed, trimmed, without colours; at most 200 bytes
};

struct EngineLog {
  LogEngine engine = LogEngine::kLlamacpp;
  std::string version = {};  // "0.6.4"; "" where the log does not say
  // By the names of serve's options: "context-length" → "8192". Besides: "kv-unified", "swa-full",
  // "flash-attention" ("true", "false", "auto"), "gpu-layers", "page", "context-per-slot", "dtype".
  // llama.cpp's context-length is that of all slots together.
  std::map<std::string, std::string> settings = {};
  // What the log says of the model, by the log's own words: "n_layer" → "32", "file_type" →
  // "Q4_K - Medium"; "path" is the last part of the path.
  std::map<std::string, std::string> model = {};
  // In the order of the file. Where an id and a device come again with another value (a draft
  // model, a second context), the first is the one of the model that is served.
  std::vector<LogFigure> figures = {};
  std::vector<std::string> warnings = {};
};

// The start-up of one engine; of several in the file, the last. `where` names the file in errors:
// no line that is known, lines of two engines, text in UTF-16. Takes time in proportion to the
// text, and memory for what is found only.
Result<EngineLog> ReadEngineLog(std::string_view text, std::string_view where);

// Whether llama.cpp's buffer of that name lies on the host: "CPU_Mapped", "CUDA_Host", "AMX".
bool IsHostBuffer(std::string_view device);

// The first figure of that id (and device, unless it is "*"), or nullptr.
const LogFigure* FindFigure(const EngineLog& log, std::string_view id,
                            std::string_view device = "*");

}  // namespace fourpiles
