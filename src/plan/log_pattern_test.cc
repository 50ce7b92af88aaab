#include "plan/log_pattern.h"

#include <string>

#include <gtest/gtest.h>

#include "plan/log_engine.h"

namespace fourpiles {
namespace {

// What a row finds in a line: "NAME=TEXT NAME=TEXT", "-" when the line is another.
std::string Found(const LinePattern& row, std::string_view line) {
  const CompiledPattern pattern = CompiledFrom(row.text);
  const std::size_t place = line.find(pattern.first_word);
  if (place == std::string_view::npos) {
    return "-";
  }
  const LineMatch match = MatchAt(row, pattern, line, place);
  if (!match.impossible.empty()) {
    return "impossible " + std::string(match.impossible);
  }
  std::string found = match.is_found ? "" : "-";
  for (const LineFinding& one : match.findings) {
    found += match.is_found ? std::string(one.name) + "=" + std::string(one.text) + " " : "";
  }
  return found;
}

TEST(LogPattern, TakesAmountsAndTheWordBefore) {
  const LinePattern row = {.text = "{device} KV buffer size = {figure kv_bytes}"};
  EXPECT_EQ(Found(row, "f:      CUDA0 KV buffer size =   448.00 MiB"),
            "=CUDA0 kv_bytes=448.00 MiB ");
  EXPECT_EQ(Found(row, "f: CUDA0 KV buffer size = many MiB"), "-");
  EXPECT_EQ(Found(row, "f: CUDA0 KV buffer size = -1 MiB"), "impossible -1 MiB");
}

TEST(LogPattern, TakesBlanksAsTheyCome) {
  const LinePattern row = {.text = "size = {figure a_bytes} ( {figure cells} cells"};
  EXPECT_EQ(Found(row, "size =  1.00 MiB (  8192 cells, "), "a_bytes=1.00 MiB cells=8192 ");
  EXPECT_EQ(Found(row, "size=1.00MiB(8192cells)"), "a_bytes=1.00MiB cells=8192 ");
}

TEST(LogPattern, TakesWordsQuotedOrNot) {
  const LinePattern row = {.text = "dtype{is} {setting d}"};
  for (const char* line : {"dtype=auto, x", "'dtype': 'auto', x", "\"dtype\": \"auto\"}",
                           "dtype=auto)", "dtype=auto"}) {
    EXPECT_EQ(Found(row, line), "d=auto ") << line;
  }
  EXPECT_EQ(Found(row, "dtype='auto"), "-");
  EXPECT_EQ(Found(row, "dtype"), "-");
}

TEST(LogPattern, TakesPathsWithBlanks) {
  const LinePattern row = {.text = "loaded from {path} (version"};
  EXPECT_EQ(Found(row, "loaded from /my models/a.gguf (version 3)"), "=/my models/a.gguf ");
}

TEST(LogPattern, AsksForWhatStandsBefore) {
  constexpr std::string_view kNames[] = {"llama_context"};
  const LinePattern after = {.text = "n_ctx = {count n}", .after = kNames};
  EXPECT_EQ(Found(after, "llama_context: n_ctx   = 512"), "n=512 ");
  EXPECT_EQ(Found(after, "slot: n_ctx = 512"), "-");
  const LinePattern within = {.text = "n_ctx = {count n}", .within = kNames};
  EXPECT_EQ(Found(within, "llama_context( x, n_ctx = 512"), "n=512 ");
  EXPECT_EQ(Found(within, "n_ctx = 512 llama_context"), "-");
}

TEST(LogPattern, EveryFigureOfARowIsKnown) {
  for (const EngineLines& engine : {LlamacppLines(), VllmLines(), SglangLines()}) {
    for (const LinePattern& row : engine.rows) {
      for (const PatternPart& part : CompiledFrom(row.text).parts) {
        if (part.kind != PartKind::kFigure) {
          continue;
        }
        std::string id(part.name);
        if (const std::size_t star = id.find('*'); star != std::string::npos) {
          id.replace(star, 1, "host");
        }
        const FigureKind kind = KindOfFigure(id);
        EXPECT_EQ(kind.unit == "bytes", id.ends_with("_bytes")) << id;
      }
    }
    for (const NeededFigures& needed : engine.needs) {
      for (const std::string_view id : needed.ids) {
        EXPECT_TRUE(id.empty() || KindOfFigure(id).id == id);
      }
    }
  }
}

}  // namespace
}  // namespace fourpiles
