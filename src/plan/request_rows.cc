#include "plan/request_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/csv_reader.h"
#include "base/json.h"
#include "base/json_scanner.h"
#include "base/nearest_name.h"
#include "base/range.h"
#include "base/try.h"

namespace fourpiles {
namespace {

constexpr Range kTokens = {0, kLargestAmount};
constexpr std::size_t kLongestShown = 100;
constexpr std::size_t kLongestText = std::size_t{16} << 20;  // of a prompt that stands in the file

// One of the numbers of a row, and its names in lower case, the first of them ours.
struct Column {
  std::int64_t RequestLength::*number;
  bool needed;
  std::span<const std::string_view> names;
};

// Names that traces and logs use: OpenAI's usage (prompt_tokens, completion_tokens), Azure's traces
// (ContextTokens, GeneratedTokens), BurstGPT (Request tokens, Response tokens), Mooncake
// (input_length, output_length), Vidur (num_prefill_tokens, num_decode_tokens).
constexpr std::string_view kPromptNames[] = {
    "prompt_tokens", "input_tokens",   "num_prompt_tokens", "num_input_tokens",
    "prompt_length", "input_length",   "prompt_len",        "input_len",
    "contexttokens", "context_tokens", "request_tokens",    "num_prefill_tokens"};
constexpr std::string_view kOutputNames[] = {
    "output_tokens",    "completion_tokens", "num_output_tokens", "num_completion_tokens",
    "output_length",    "completion_length", "output_len",        "generatedtokens",
    "generated_tokens", "response_tokens",   "num_decode_tokens"};
constexpr std::string_view kCountNames[] = {"count", "request_count", "requests", "num_requests"};

constexpr std::array<Column, 3> kColumns = {{{&RequestLength::prompt, true, kPromptNames},
                                             {&RequestLength::output, true, kOutputNames},
                                             {&RequestLength::count, false, kCountNames}}};

// "Request tokens" is request_tokens.
std::string Normalized(std::string_view name) {
  std::string text = LowerCase(name.substr(0, kLongestShown));
  std::ranges::replace(text, ' ', '_');
  std::ranges::replace(text, '-', '_');
  return text;
}

// The index of the column of that name, if it is one of ours.
std::optional<std::size_t> FindColumn(std::string_view name) {
  const std::string text = Normalized(name);
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    if (std::ranges::find(kColumns[i].names, text) != kColumns[i].names.end()) {
      return i;
    }
  }
  return std::nullopt;
}

// The error of a header, or of an object, that lacks a column among the names it has.
tl::unexpected<Error> Lacks(std::string where, const Column& column,
                            std::span<const std::string> given) {
  const std::string_view wanted = column.names.front();
  ErrorText text = {
      .where = std::move(where),
      .found = fmt::format("no {}", wanted),
      .expected = fmt::format("expected it, or another name such as {}", column.names[1]),
      .hint = "docs/REQUESTS.md lists the names that are known"};
  for (const std::string& name : given) {
    const std::string nearest = DidYouMean(Normalized(name), column.names);
    if (!nearest.empty() && !FindColumn(name)) {
      text.found = fmt::format("no {}, but \"{}\"", wanted, name);
      text.expected = nearest;
    }
  }
  return BadInput(std::move(text));
}

tl::unexpected<Error> Twice(std::string where, const Column& column) {
  return BadInput({.where = std::move(where),
                   .found = fmt::format("{} twice, perhaps under two names", column.names.front()),
                   .expected = "expected it once",
                   .hint = "take the other column out"});
}

tl::unexpected<Error> NoNumber(std::string where, std::string found, std::string hint = {}) {
  return BadInput({.where = std::move(where),
                   .found = std::move(found),
                   .expected = ExpectedWholeNumber(kTokens),
                   .hint = std::move(hint)});
}

class CsvRows final : public RequestRows {
 public:
  static Result<std::unique_ptr<RequestRows>> Open(const ByteSource& source, std::int64_t begin) {
    auto rows = std::make_unique<CsvRows>(source, begin);
    TRY_VOID(rows->ReadHeader());
    return rows;
  }

  CsvRows(const ByteSource& source, std::int64_t begin) : csv_(source, begin) {}

  Result<std::optional<RequestLength>> Next() override {
    TRY(const bool more, csv_.Next(fields_));
    if (!more) {
      return std::nullopt;
    }
    RequestLength row;
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      if (places_[i]) {
        TRY(row.*kColumns[i].number, ReadNumber(kColumns[i], *places_[i]));
      }
    }
    return row;
  }

  std::string Where() const override { return csv_.Where(); }

 private:
  Result<void> ReadHeader() {
    TRY_VOID(csv_.Next(fields_));
    for (std::size_t place = 0; place < fields_.size(); ++place) {
      const auto column = FindColumn(fields_[place]);
      if (column && places_[*column]) {
        return Twice(Where(), kColumns[*column]);
      }
      if (column) {
        places_[*column] = place;
      }
    }
    const std::vector<std::string> names(fields_.begin(), fields_.end());
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      if (kColumns[i].needed && !places_[i]) {
        return Lacks(Where(), kColumns[i], names);
      }
    }
    return {};
  }

  Result<std::int64_t> ReadNumber(const Column& column, std::size_t place) const {
    const std::string_view text = place < fields_.size() ? fields_[place] : std::string_view();
    std::int64_t number = 0;
    const char* const text_end = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), text_end, number);
    if (!text.empty() && error == std::errc() && end == text_end && kTokens.Holds(number)) {
      return number;
    }
    return NoNumber(
        fmt::format("{}: {}", Where(), column.names.front()),
        text.empty() ? "nothing" : fmt::format("\"{}\"", text.substr(0, kLongestShown)));
  }

  CsvReader csv_;
  std::vector<std::string_view> fields_ = {};
  std::array<std::optional<std::size_t>, kColumns.size()> places_ = {};  // in a record
};

// Objects one after the other, or in one array.
class JsonRows final : public RequestRows {
 public:
  JsonRows(const ByteSource& source, std::int64_t begin, bool in_array)
      : source_(source), begin_(begin), in_array_(in_array), json_(source, begin, source.Size()) {
    json_.LimitText(kLongestText);
    if (in_array_) {
      json_.EnterArray();
    }
  }

  Result<std::optional<RequestLength>> Next() override {
    if (in_array_ ? !json_.NextElement() : json_.AtEnd()) {
      json_.Finish();
      TRY_VOID(CheckFault());
      return std::nullopt;
    }
    json_.NextKind();  // skips the space before it
    row_place_ = json_.Place();
    auto row = ReadObject();
    TRY_VOID(CheckFault());  // it explains what may be missing
    return row;
  }

  std::string Where() const override { return LineOf(row_place_); }

 private:
  Result<RequestLength> ReadObject() {
    if (const JsonKind kind = json_.NextKind();
        kind != JsonKind::kObject && kind != JsonKind::kNone) {
      return BadInput({.where = Where(),
                       .found = json_.SkipValue(),
                       .expected = "expected an object of one request",
                       .hint = "{\"prompt_tokens\": 512, \"output_tokens\": 128}"});
    }
    RequestLength row;
    std::array<bool, kColumns.size()> read = {};
    names_.clear();
    json_.EnterObject();
    while (json_.NextKey(key_)) {
      const auto column = ColumnOfKey();
      if (!column) {
        KeepName();
        json_.SkipValue();
        continue;
      }
      if (std::exchange(read[*column], true)) {
        return Twice(Where(), kColumns[*column]);
      }
      TRY(row.*kColumns[*column].number, ReadNumber(kColumns[*column]));
    }
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      if (kColumns[i].needed && !read[i]) {
        return Lacks(Where(), kColumns[i], names_);
      }
    }
    return row;
  }

  Result<std::int64_t> ReadNumber(const Column& column) {
    const JsonKind kind = json_.NextKind();
    const std::int64_t place = json_.Place();
    if (kind == JsonKind::kNumber) {
      if (const auto number = json_.ReadNumber(); number && kTokens.Holds(*number)) {
        return *number;
      }
      return NoNumber(fmt::format("{}: {}", LineOf(place), column.names.front()),
                      TextFrom(place, json_.Place()));
    }
    const bool quoted = kind == JsonKind::kString;
    return NoNumber(fmt::format("{}: {}", LineOf(place), column.names.front()), json_.SkipValue(),
                    quoted ? "write the number without quotes" : "");
  }

  // Objects have the same few keys over and over.
  std::optional<std::size_t> ColumnOfKey() {
    constexpr std::size_t kMostSeen = 16;
    const auto seen = std::ranges::find(seen_, key_, &Seen::first);
    if (seen != seen_.end()) {
      return seen->second;
    }
    const auto column = FindColumn(key_);
    if (seen_.size() < kMostSeen && key_.size() <= kLongestShown) {
      seen_.emplace_back(key_, column);
    }
    return column;
  }

  // For a "did you mean"; a file may have any number of keys.
  void KeepName() {
    constexpr std::size_t kMostNames = 100;
    if (names_.size() < kMostNames) {
      names_.push_back(key_.substr(0, kLongestShown));
    }
  }

  Result<void> CheckFault() const {
    if (!json_.HasFault()) {
      return {};
    }
    const JsonFault& fault = json_.Fault();
    return BadInput({.where = LineOf(static_cast<std::int64_t>(fault.byte)),
                     .found = fault.found,
                     .expected = fault.expected,
                     .hint = "expected one JSON object a request"});
  }

  std::string TextFrom(std::int64_t place, std::int64_t end) const {
    std::string text(std::min(kLongestShown, static_cast<std::size_t>(end - place)), '\0');
    const auto read = source_.ReadAt(begin_ + place, std::as_writable_bytes(std::span(text)));
    return read ? text : "a number";
  }

  // Lines are counted only when there is an error to tell.
  std::string LineOf(std::int64_t place) const {
    std::vector<char> part(std::size_t{1} << 16);
    std::int64_t line = 1;
    for (std::int64_t at = 0; at < begin_ + place; at += std::ssize(part)) {
      part.resize(std::min(part.size(), static_cast<std::size_t>(begin_ + place - at)));
      if (!source_.ReadAt(at, std::as_writable_bytes(std::span(part)))) {
        break;
      }
      line += std::count(part.begin(), part.end(), '\n');
    }
    return fmt::format("{}: line {}", source_.Name(), line);
  }

  const ByteSource& source_;
  std::int64_t begin_;
  bool in_array_;
  JsonScanner json_;
  std::int64_t row_place_ = 0;  // from begin_
  std::string key_ = {};
  using Seen = std::pair<std::string, std::optional<std::size_t>>;
  std::vector<Seen> seen_ = {};          // keys and their columns
  std::vector<std::string> names_ = {};  // of the object's keys that are no column
};

}  // namespace

Result<std::unique_ptr<RequestRows>> OpenRequestRows(const ByteSource& source) {
  constexpr std::int64_t kHead = 4096;  // white space before the first letter: less than this
  std::string head(static_cast<std::size_t>(std::min(kHead, source.Size())), '\0');
  TRY_VOID(source.ReadAt(0, std::as_writable_bytes(std::span(head))));
  // Excel writes a byte order mark.
  const std::size_t begin = head.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  const std::size_t first = head.find_first_not_of(" \t\r\n", begin);
  if (first == std::string::npos) {
    return BadInput({.where = std::string(source.Name()),
                     .found = "an empty file",
                     .expected = "expected a line for each request",
                     .hint = "CSV with the header prompt_tokens,output_tokens, or JSON Lines"});
  }
  const auto place = static_cast<std::int64_t>(first);
  if (head[first] == '{' || head[first] == '[') {
    return std::make_unique<JsonRows>(source, place, head[first] == '[');
  }
  return CsvRows::Open(source, static_cast<std::int64_t>(begin));
}

}  // namespace fourpiles
