#include "plan/log_pattern.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "plan/log_amount.h"

namespace fourpiles {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;
constexpr std::size_t kMostTaken = 200;  // bytes of a word, a name, a path

struct KindName {
  std::string_view name;
  PartKind kind;
};

constexpr KindName kKinds[] = {
    {"figure", PartKind::kFigure}, {"setting", PartKind::kSetting}, {"count", PartKind::kCount},
    {"anew", PartKind::kAnew},     {"model", PartKind::kModel},     {"rest", PartKind::kRest},
    {"path", PartKind::kPath},     {"version", PartKind::kVersion}, {"device", PartKind::kDevice},
    {"is", PartKind::kIs},         {"any", PartKind::kAny},
};

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

std::size_t SkipBlanks(std::string_view text, std::size_t at) {
  while (at < text.size() && IsBlank(text[at])) {
    ++at;
  }
  return at;
}

std::string_view TrimmedRight(std::string_view text) {
  while (!text.empty() && IsBlank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// Where the words end that begin at `at`, or kNowhere when others stand there.
std::size_t EndOfWords(std::string_view line, std::size_t at, std::string_view words) {
  for (const char c : words) {
    if (c == ' ') {
      at = SkipBlanks(line, at);
    } else if (at < line.size() && line[at] == c) {
      ++at;
    } else {
      return kNowhere;
    }
  }
  return at;
}

struct Place {
  std::size_t begin = kNowhere;
  std::size_t end = kNowhere;
};

// The words at `at` or behind. They are looked for without the blanks before them, so that a long
// run of blanks is not gone through from each of its places.
Place FindWords(std::string_view line, std::size_t at, std::string_view words) {
  words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
  if (words.empty()) {
    return {at, at};
  }
  for (at = line.find(words.front(), at); at != kNowhere; at = line.find(words.front(), at + 1)) {
    if (const std::size_t end = EndOfWords(line, at, words); end != kNowhere) {
      return {at, end};
    }
  }
  return {};
}

PatternPart PartIn(std::string_view braces) {
  const std::string_view word = braces.substr(0, braces.find(' '));
  const auto* const kind = std::ranges::find(kKinds, word, &KindName::name);
  CHECK(kind != std::end(kKinds));
  PatternPart part = {.kind = kind->kind};
  if (word.size() < braces.size()) {
    const std::string_view name = braces.substr(word.size() + 1);
    part.name = name.substr(0, name.find(' '));
    part.unit = part.name.size() < name.size() ? name.substr(part.name.size() + 1) : "";
  }
  return part;
}

bool EndsWithOneOf(std::string_view text, std::span<const std::string_view> names) {
  text = TrimmedRight(text);
  if (!text.ends_with(':')) {
    return false;
  }
  text.remove_suffix(1);
  return std::ranges::any_of(names, [text](std::string_view name) {
    return text.ends_with(name) &&
           (text.size() == name.size() || !IsWordCharacter(text[text.size() - name.size() - 1]));
  });
}

bool HoldsOneOf(std::string_view text, std::span<const std::string_view> guards) {
  return std::ranges::any_of(
      guards, [text](std::string_view guard) { return text.find(guard) != kNowhere; });
}

// The word that ends before `end`.
std::string_view WordBefore(std::string_view line, std::size_t end) {
  const std::string_view before = TrimmedRight(line.substr(0, end));
  const std::size_t blank = before.find_last_of(" \t");
  return before.substr(blank == kNowhere ? 0 : blank + 1);
}

Place WordAt(std::string_view line, std::size_t at) {
  at = SkipBlanks(line, at);
  if (at >= line.size()) {
    return {};
  }
  const char first = line[at];
  if (first == '\'' || first == '"') {
    return {at + 1, line.find(first, at + 1)};
  }
  if (first == '[') {
    const std::size_t end = line.find(']', at);
    return {at, end == kNowhere ? end : end + 1};
  }
  const std::size_t behind = line.find_first_of(std::string_view(" \t\r\0,;)}]|'\"", 12), at);
  const std::size_t end = std::min(behind, line.size());
  return {at, end - (end - at > 1 && line[end - 1] == '.' ? 1 : 0)};
}

// Takes the parts of one row from one line, from left to right, without going back.
class Matcher {
 public:
  Matcher(std::string_view line, std::size_t at, LineMatch& match)
      : line_(line), at_(at), match_(match) {}

  // False when the line goes on otherwise; `next` are the words that follow the part.
  bool Take(const PatternPart& part, std::string_view next) {
    switch (part.kind) {
      case PartKind::kWords:
        return TakeWords(part.name);
      case PartKind::kIs:
        return TakeOneOf({"=", "':", "\":"});
      case PartKind::kFigure:
        return TakeAmount(part, part.unit.empty() && part.name.find("_bytes") != kNowhere
                                    ? std::string_view("?")
                                    : part.unit);
      case PartKind::kCount:
        return TakeAmount(part, "");
      case PartKind::kAny:
        return TakeUpTo(part, next);
      case PartKind::kPath:
        return TakePath(part, next);
      case PartKind::kRest:
        return TakeUntil(part, SkipBlanks(line_, at_), TrimmedRight(line_).size());
      default:
        return TakeWord(part);
    }
  }

 private:
  bool TakeWords(std::string_view words) {
    at_ = EndOfWords(line_, at_, words);
    return at_ != kNowhere;
  }
  bool TakeOneOf(std::initializer_list<std::string_view> choices) {
    for (const std::string_view choice : choices) {
      if (line_.substr(at_).starts_with(choice)) {
        at_ += choice.size();
        return true;
      }
    }
    return false;
  }
  bool TakeAmount(const PatternPart& part, std::string_view unit) {
    const LoggedAmount read = ReadAmount(line_, SkipBlanks(line_, at_), unit);
    if (read.state == LoggedAmount::State::kAbsent) {
      return false;
    }
    const std::size_t begin = SkipBlanks(line_, at_);
    const std::string_view text = line_.substr(begin, read.end - begin);
    if (read.state == LoggedAmount::State::kImpossible) {
      match_.impossible = text.substr(0, kMostTaken);
      return false;
    }
    match_.findings.push_back(
        {.kind = part.kind,
         .name = part.name,
         .text = text,
         .amount = read.amount,
         .at_end = read.end == line_.size() && text.back() >= '0' && text.back() <= '9'});
    at_ = read.end;
    return true;
  }
  bool TakeUpTo(const PatternPart& part, std::string_view next) {
    const Place words = FindWords(line_, at_, next);
    if (words.begin == kNowhere) {
      return false;
    }
    if (part.kind != PartKind::kAny) {
      return TakeUntil(part, at_, words.begin);
    }
    at_ = words.begin;
    return true;
  }
  bool TakePath(const PatternPart& part, std::string_view next) {
    const std::size_t begin = SkipBlanks(line_, at_);
    const bool is_quoted = begin < line_.size() && (line_[begin] == '\'' || line_[begin] == '"');
    return is_quoted || next.empty() ? TakeWord(part) : TakeUpTo(part, next);
  }
  bool TakeWord(const PatternPart& part) {
    const Place word = WordAt(line_, at_);
    if (word.begin == kNowhere || word.end == kNowhere) {
      return false;
    }
    const bool is_quoted = word.end < line_.size() && word.begin > 0 &&
                           line_[word.begin - 1] == line_[word.end] &&
                           (line_[word.end] == '\'' || line_[word.end] == '"');
    return TakeUntil(part, word.begin, word.end) && (at_ += is_quoted ? 1 : 0, true);
  }
  bool TakeUntil(const PatternPart& part, std::size_t begin, std::size_t end) {
    if (begin >= end) {
      return false;
    }
    const std::string_view text = TrimmedRight(line_.substr(begin, end - begin));
    match_.findings.push_back(
        {.kind = part.kind,
         .name = part.name,
         .text = part.kind == PartKind::kPath
                     ? text.substr(text.size() - std::min(text.size(), 4 * kMostTaken))
                     : text.substr(0, kMostTaken),
         .at_end = end == line_.size()});
    at_ = end;
    return true;
  }

  std::string_view line_;
  std::size_t at_;
  LineMatch& match_;
};

}  // namespace

CompiledPattern CompiledFrom(std::string_view pattern) {
  CompiledPattern compiled;
  while (!pattern.empty()) {
    if (pattern.front() == '{') {
      const std::size_t end = pattern.find('}');
      CHECK(end != kNowhere);
      compiled.parts.push_back(PartIn(pattern.substr(1, end - 1)));
      pattern.remove_prefix(end + 1);
      continue;
    }
    const std::string_view words = pattern.substr(0, pattern.find('{'));
    compiled.parts.push_back({.kind = PartKind::kWords, .name = words});
    pattern.remove_prefix(words.size());
  }
  const auto words = std::ranges::find(compiled.parts, PartKind::kWords, &PatternPart::kind);
  CHECK(words != compiled.parts.end() && words - compiled.parts.begin() <= 1);
  const std::size_t begin = words->name.find_first_not_of(' ');
  words->name.remove_prefix(begin);
  const auto end = std::ranges::find_if_not(words->name, IsWordCharacter);
  compiled.first_word = words->name.substr(0, static_cast<std::size_t>(end - words->name.begin()));
  CHECK(!compiled.first_word.empty());
  return compiled;
}

LineMatch MatchAt(const LinePattern& row, const CompiledPattern& pattern, std::string_view line,
                  std::size_t place) {
  LineMatch match;
  const std::vector<PatternPart>& parts = pattern.parts;
  const std::size_t first = parts.front().kind == PartKind::kDevice ? 1 : 0;
  if (EndOfWords(line, place, parts[first].name) == kNowhere) {
    return match;
  }
  match.is_tried = true;
  std::size_t begin = place;
  if (first == 1) {
    const std::string_view word = WordBefore(line, place);
    if (word.empty()) {
      return match;
    }
    begin = static_cast<std::size_t>(word.data() - line.data());
    match.findings.push_back({.kind = PartKind::kDevice, .text = word.substr(0, kMostTaken)});
  }
  const std::string_view before = line.substr(0, begin);
  if ((!row.after.empty() && !EndsWithOneOf(before, row.after)) ||
      (!row.within.empty() && !HoldsOneOf(before, row.within))) {
    return match;
  }
  Matcher matcher(line, place, match);
  for (std::size_t i = first; i < parts.size(); ++i) {
    const bool has_words = i + 1 < parts.size() && parts[i + 1].kind == PartKind::kWords;
    if (!matcher.Take(parts[i], has_words ? parts[i + 1].name : std::string_view())) {
      return match;
    }
  }
  match.is_found = true;
  return match;
}

}  // namespace fourpiles
