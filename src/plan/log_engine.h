#pragma once

// What the reader knows of each engine, and the figures that there are.

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "plan/engine_log.h"
#include "plan/log_pattern.h"

namespace fourpiles {

// Figures of which a whole start-up has one at least.
struct NeededFigures {
  std::string_view what = {};  // "the size of the KV cache"
  std::array<std::string_view, 5> ids = {};
};

struct EngineLines {
  LogEngine engine = LogEngine::kLlamacpp;
  std::span<const LinePattern> rows = {};
  std::span<const NeededFigures> needs = {};  // the last is of the caches
  // The process that wrote the line, "TP0", where lines say so.
  std::string_view (*rank_of)(std::string_view line) = nullptr;
  // What only the whole log tells.
  void (*finish)(EngineLog& log) = nullptr;
};

EngineLines LlamacppLines();
EngineLines VllmLines();
EngineLines SglangLines();

struct FigureKind {
  std::string_view id = {};
  std::string_view unit = {};
  std::string_view what = {};
};

// The kind of an id; one with "swa_" in front that has no row of its own is that of the rest of
// the id. Every id of a row has a kind.
FigureKind KindOfFigure(std::string_view id);
// "CUDA0 KV buffer"; of windows "CUDA0 KV buffer (sliding window)".
std::string WhatOfFigure(std::string_view id, std::string_view device);

}  // namespace fourpiles
