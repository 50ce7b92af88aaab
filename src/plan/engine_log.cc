#include "plan/engine_log.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "base/try.h"
#include "base/utf8.h"
#include "plan/log_startup.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 16;
constexpr std::size_t kMostShown = 200;  // bytes of a line

// A row and what it is a row of.
struct IndexedRow {
  std::string_view first_word;
  const LinePattern* row = nullptr;
  std::size_t engine = 0;  // in LineIndex::engines
  CompiledPattern pattern = {};
};

// The rows of all engines by their first words.
struct LineIndex {
  std::vector<EngineLines> engines = {LlamacppLines(), VllmLines(), SglangLines()};
  std::vector<IndexedRow> rows = {};
};

LineIndex BuiltIndex() {
  LineIndex index;
  for (std::size_t engine = 0; engine < index.engines.size(); ++engine) {
    for (const LinePattern& row : index.engines[engine].rows) {
      CompiledPattern pattern = CompiledFrom(row.text);
      index.rows.push_back({pattern.first_word, &row, engine, std::move(pattern)});
    }
  }
  std::ranges::stable_sort(index.rows, {}, &IndexedRow::first_word);
  return index;
}

const LineIndex& Index() {
  static const LineIndex index = BuiltIndex();
  return index;
}

// Without colours and other escape sequences of terminals: ESC [ … letter.
std::string WithoutColours(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\x1b') {
      plain += line[at];
      continue;
    }
    at += at + 1 < line.size() && line[at + 1] == '[' ? 1 : 0;
    while (at + 1 < line.size() && !(line[at + 1] >= '@' && line[at + 1] <= '~')) {
      ++at;
    }
    ++at;
  }
  return plain;
}

std::string Shown(std::string_view line) {
  constexpr std::string_view kBlanks(" \t\r\0", 4);
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  line = line.substr(begin, kMostShown);
  std::string shown = EscapeForTerminal(line.substr(0, line.find_last_not_of(kBlanks) + 1));
  if (shown.size() > kMostShown) {
    shown.resize(kMostShown);
    shown.resize(Utf8Prefix(shown));
  }
  return shown;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view where)
      : rest_(text), where_(where), tried_(Index().rows.size()) {}

  Result<EngineLog> Read() {
    const bool ends_in_line = !rest_.empty() && rest_.back() != '\n';
    while (!rest_.empty()) {
      TRY_VOID(ReadLine(TakeLine()));
    }
    if (!startup_) {
      return BadInput({.where = where_,
                       .found = number_ == 0
                                    ? "an empty file"
                                    : fmt::format("{} lines and none that is known", number_),
                       .expected = "what llama.cpp, vLLM or SGLang print while they start",
                       .hint = "keep both streams of the engine: COMMAND > run.log 2>&1"});
    }
    return startup_->Finish({.last_line = number_, .is_cut = ends_in_line});
  }

 private:
  std::string_view TakeLine() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    is_last_ = end == rest_.size();
    rest_.remove_prefix(is_last_ ? end : end + 1);
    ++number_;
    return line;
  }

  Result<void> ReadLine(std::string_view line) {
    const bool is_long = line.size() > kLongestLine;
    line = line.substr(0, kLongestLine);
    std::string plain;
    if (line.find('\x1b') != std::string_view::npos) {
      plain = WithoutColours(line);
      line = plain;
    }
    std::vector<std::pair<const IndexedRow*, LineMatch>> matches = MatchesOf(line);
    if (matches.empty()) {
      return {};
    }
    const std::string shown = Shown(line);
    for (const auto& [row, match] : matches) {
      TRY_VOID(MustBeOneEngine(row->engine, shown));
    }
    LogLine found = {.number = number_, .text = shown, .is_cut = is_last_ && !is_long};
    const EngineLines& engine = Index().engines[engine_];
    found.rank = engine.rank_of == nullptr ? std::string_view() : engine.rank_of(line);
    for (auto& [row, match] : matches) {
      found.matches.emplace_back(row->row, std::move(match));
    }
    startup_->Take(found);
    return {};
  }

  // Each row once, at the first place where its first words stand.
  std::vector<std::pair<const IndexedRow*, LineMatch>> MatchesOf(std::string_view line) {
    std::vector<std::pair<const IndexedRow*, LineMatch>> matches;
    const std::vector<IndexedRow>& rows = Index().rows;
    for (std::size_t at = 0; at < line.size();) {
      if (!IsWordCharacter(line[at])) {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < line.size() && IsWordCharacter(line[end])) {
        ++end;
      }
      const std::string_view word = line.substr(at, end - at);
      for (auto row = std::ranges::lower_bound(rows, word, {}, &IndexedRow::first_word);
           row != rows.end() && row->first_word == word; ++row) {
        TryRow(*row, line, at, matches);
      }
      at = end;
    }
    return matches;
  }

  void TryRow(const IndexedRow& row, std::string_view line, std::size_t at,
              std::vector<std::pair<const IndexedRow*, LineMatch>>& matches) {
    std::int64_t& tried = tried_[static_cast<std::size_t>(&row - Index().rows.data())];
    if (tried == number_) {
      return;
    }
    LineMatch match = MatchAt(*row.row, row.pattern, line, at);
    if (match.is_tried) {
      tried = number_;
    }
    if (match.is_found || !match.impossible.empty()) {
      matches.emplace_back(&row, std::move(match));
    }
  }

  Result<void> MustBeOneEngine(std::size_t engine, const std::string& shown) {
    if (!startup_) {
      engine_ = engine;
      first_ = fmt::format("line {} is of {} (\"{}\")", number_,
                           NameOf(Index().engines[engine].engine), shown.substr(0, 80));
      startup_.emplace(Index().engines[engine]);
    }
    if (engine == engine_) {
      return {};
    }
    return BadInput(
        {.where = where_,
         .found = fmt::format("{}, line {} of {} (\"{}\")", first_, number_,
                              NameOf(Index().engines[engine].engine), shown.substr(0, 80)),
         .expected = "the log of one engine",
         .hint = "cut the file: one start-up of one engine"});
  }

  std::string_view rest_;
  std::string where_;
  std::int64_t number_ = 0;
  bool is_last_ = false;
  std::size_t engine_ = 0;
  std::string first_;                // the first known line, for the error
  std::vector<std::int64_t> tried_;  // by row: the last line where its first words stood
  std::optional<LogStartup> startup_;
};

// PowerShell writes what it redirects in UTF-16.
bool IsUtf16(std::string_view text) {
  using namespace std::string_view_literals;
  const bool has_mark = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  const bool has_zeros =
      text.size() >= 4 && ((text[0] == '\0' && text[2] == '\0' && text[1] != '\0') ||
                           (text[1] == '\0' && text[3] == '\0' && text[0] != '\0'));
  return has_mark || has_zeros;
}

}  // namespace

std::string_view NameOf(LogEngine engine) {
  constexpr std::string_view kNames[] = {"llama.cpp", "vLLM", "SGLang"};
  return kNames[static_cast<std::size_t>(engine)];
}

bool IsHostBuffer(std::string_view device) {
  return device.starts_with("CPU") || device.ends_with("Host") || device == "AMX" ||
         device == "BLAS";
}

const LogFigure* FindFigure(const EngineLog& log, std::string_view id, std::string_view device) {
  const auto found = std::ranges::find_if(log.figures, [id, device](const LogFigure& figure) {
    return figure.id == id && (device == "*" || figure.device == device);
  });
  return found == log.figures.end() ? nullptr : &*found;
}

Result<EngineLog> ReadEngineLog(std::string_view text, std::string_view where) {
  if (IsUtf16(text)) {
    return BadInput({.where = std::string(where),
                     .found = "text in UTF-16",
                     .expected = "UTF-8",
                     .hint = "iconv -f UTF-16 -t UTF-8 FILE > run.log"});
  }
  return Reader(text, where).Read();
}

}  // namespace fourpiles
