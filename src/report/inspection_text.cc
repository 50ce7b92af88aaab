// A checkpoint on one screen: what it is, then its formats, files, modules and tensors, the largest
// first.

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error_text.h"
#include "report/columns.h"
#include "report/file_text.h"
#include "report/inspection.h"

namespace fourpiles {
namespace {

using TextRows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMostLines = 40;  // of the whole text, so that it fits a screen
constexpr std::size_t kLongestName = 100;
constexpr std::size_t kLongestValue = 200;

std::string Plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", PrintGrouped(count), noun, count == 1 ? "" : "s");
}

// Of what several ranks have saved: "4 chunks, 1 object", "ZeRO 2, 2 data ranks, folder
// global_step2".
void AddRankWords(const Json::Object& facts, std::vector<std::string>& words) {
  for (const auto& [key, value] : facts) {
    if (key == "chunks" || key == "objects") {
      words.push_back(Plural(*value.AsInteger(), key.substr(0, key.size() - 1)));
    } else if (key == "zero_stage") {
      words.push_back(fmt::format("ZeRO {}", *value.AsInteger()));
    } else if (key == "data_ranks") {
      words.push_back(Plural(*value.AsInteger(), "data rank"));
    } else if (key == "folder") {
      words.push_back("folder " + Shown(*value.AsString(), kLongestName));
    }
  }
}

// "18 storages", "112,107 unique storage bytes", "150,999 tensor by tensor"
void AddStorageWords(const Inventory& inventory, std::vector<std::string>& words) {
  if (inventory.storages > 0) {
    words.push_back(Plural(inventory.storages, "storage"));
    words.push_back(Plural(inventory.unique_storage_bytes, "unique storage byte"));
  }
  if (inventory.unique_storage_bytes != inventory.total.bytes) {
    words.push_back(fmt::format("{} tensor by tensor", PrintGrouped(inventory.total.bytes)));
  }
}

// nullptr: there is none of that name.
const Json* FactOf(const Json::Object& facts, std::string_view key) {
  const auto found = std::ranges::find(facts, key, &Json::Member::first);
  return found == facts.end() ? nullptr : &found->second;
}

// "llama, GGUF version 3, little-endian, 35 keys, vocabulary 128,256"
std::string FactsLine(const Checkpoint& checkpoint, const Inventory& inventory) {
  const Json::Object& facts =
      checkpoint.files.empty() ? checkpoint.facts : checkpoint.files.front().facts;
  const auto fact = [&](std::string_view key) { return FactOf(facts, key); };
  std::vector<std::string> words;
  if (const Json* architecture = fact("architecture"); architecture && architecture->AsString()) {
    words.push_back("architecture " + Shown(*architecture->AsString(), kLongestName));
  }
  if (const Json* part = fact("split_no"), *count = fact("split_count");
      part != nullptr && part->AsInteger() && count != nullptr && count->AsInteger() &&
      checkpoint.files.size() == 1) {
    words.push_back(fmt::format("part {} of {}", *part->AsInteger() + 1, *count->AsInteger()));
  }
  for (const auto& [key, word] :
       {std::pair("version", "version"), {"metadata_keys", "keys"}, {"vocabulary", "vocabulary"}}) {
    if (const Json* number = fact(key); number != nullptr && number->AsInteger() != nullptr) {
      words.push_back(fmt::format("{} {}", word, PrintGrouped(*number->AsInteger())));
    }
  }
  AddStorageWords(inventory, words);
  AddRankWords(facts, words);
  AddRankWords(checkpoint.facts, words);
  const Json::Object declared = QuantisationFactsOf(checkpoint.configs);
  for (const auto& [key, value] : declared) {
    words.push_back(fmt::format(
        "{} {}", key,
        value.AsString() != nullptr ? Shown(*value.AsString(), kLongestName) : Describe(value)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// "25 parameters", and of a trainer's checkpoint "25 parameters and 42 other numbers"
std::string ParameterWords(const Inventory& inventory) {
  const std::int64_t weights = WeightParameters(inventory);
  const std::string words = Plural(weights, "parameter");
  return weights == inventory.total.parameters
             ? words
             : fmt::format("{} and {}", words,
                           Plural(inventory.total.parameters - weights, "other number"));
}

// The members of a fact that is a list of texts.
std::vector<std::string> TextsOf(const Json::Object& facts, std::string_view key) {
  std::vector<std::string> texts;
  if (const Json* fact = FactOf(facts, key)) {
    for (const Json& text : *fact->AsArray()) {
      texts.push_back(ShownName(*text.AsString()));
    }
  }
  return texts;
}

// "not read: optimizer.pt, training_args.bin, which lie beside it …"
std::string NotReadLine(const Checkpoint& checkpoint, bool all) {
  constexpr std::size_t kMostNames = 6;
  std::vector<std::string> names = TextsOf(checkpoint.facts, "not_read");
  if (names.empty()) {
    return "";
  }
  const std::size_t shown = all ? names.size() : std::min(names.size(), kMostNames);
  const std::size_t more = names.size() - shown;
  names.resize(shown);
  return fmt::format("beside it, not read and not judged: {}{}\n", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

// What follows the head line, a line for each that there is.
std::string FactLines(const Inspection& inspection, bool all) {
  const Checkpoint& checkpoint = inspection.checkpoint;
  const std::string facts = FactsLine(checkpoint, inspection.inventory);
  return (facts.empty() ? "" : facts + "\n") + VerdictLine(VerdictOf(checkpoint)) +
         NotReadLine(checkpoint, all);
}

std::string HeadLine(const Inspection& inspection, ByteUnit unit) {
  const Checkpoint& checkpoint = inspection.checkpoint;
  const TensorTotal& total = inspection.inventory.total;
  std::string where;
  if (checkpoint.files.size() > 1) {
    where = fmt::format(" in {} files", checkpoint.files.size());
  } else if (!checkpoint.files.empty() && !checkpoint.files.front().format.empty()) {
    where = fmt::format(" in {}", checkpoint.files.front().format);
  }
  return fmt::format("{}: {}, {}, {}{}\n", Shown(checkpoint.path, kLongestName),
                     Plural(total.tensors, "tensor"), ParameterWords(inspection.inventory),
                     PrintBytes(Bytes(inspection.inventory.unique_storage_bytes), unit), where);
}

// A table that may be cut short.
struct Table {
  std::vector<std::string> heads = {};
  std::vector<std::size_t> right = {};
  std::size_t lines = 0;  // of the whole table
  std::function<std::vector<std::string>(std::size_t)> line = {};
};

std::string LeftOutLine(std::size_t lines) {
  return lines == 0 ? ""
                    : fmt::format("… and {} more; --all shows them\n",
                                  PrintGrouped(static_cast<std::int64_t>(lines)));
}

// `most` lines at most; the one behind them says how many are left out. A heading and an empty line
// come first.
std::string TableText(const Table& table, std::size_t most) {
  TextRows rows = {table.heads};
  const std::size_t shown = std::min(table.lines, most);
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(table.line(i));
  }
  std::string text = "\n" + InColumns(rows, {.right = table.right});
  return text + LeftOutLine(table.lines - shown);
}

class Tables {
 public:
  Tables(const Inspection& inspection, const InspectionView& view)
      : inventory_(inspection.inventory), unit_(view.unit) {}

  Table Formats() const {
    const bool packed = std::ranges::any_of(inventory_.formats, &FormatTotal::packed);
    Table table = {.heads = {"format", "tensors", "parameters", "bytes"},
                   .right = {1, 2, 3, 4, 5, 6, 7},
                   .lines = inventory_.formats.size()};
    if (packed) {
      table.heads.insert(table.heads.end(), {"codes", "scales", "zero points", "other"});
    }
    table.line = [this](std::size_t i) {
      const FormatTotal& format = inventory_.formats[i];
      std::vector<std::string> row = Line(ShownName(format.name), format.total);
      if (format.packed) {
        for (const std::int64_t part : {format.parts.codes, format.parts.scales,
                                        format.parts.zero_points, format.parts.other}) {
          row.push_back(part == 0 ? "–" : PrintBytes(Bytes(part), unit_));
        }
      }
      return row;
    };
    return table;
  }

  Table Named(std::string_view head, const std::vector<NamedTotal>& totals) const {
    return {.heads = {std::string(head), "tensors", "parameters", "bytes"},
            .right = {1, 2, 3},
            .lines = totals.size(),
            .line = [this, &totals](std::size_t i) {
              return Line(ShownName(totals[i].name), totals[i].total);
            }};
  }

  // "optimizer: float32, uint8"
  Table Piles() const {
    return {.heads = {"pile", "tensors", "parameters", "bytes"},
            .right = {1, 2, 3},
            .lines = inventory_.piles.size(),
            .line = [this](std::size_t i) {
              const PileTotal& pile = inventory_.piles[i];
              std::string formats;
              for (const auto& [format, bytes] : pile.formats) {
                formats += (formats.empty() ? "" : ", ") + ShownName(format);
              }
              return Line(fmt::format("{}: {}", Name(pile.pile), formats), pile.total);
            }};
  }

  template <class Lines>
  Table Tensors(const Lines& lines) const {
    return {.heads = {"tensor", "format", "shape", "parameters", "bytes"},
            .right = {3, 4},
            .lines = lines.size(),
            .line = [this, &lines](std::size_t i) {
              const auto& line = lines[i];
              return std::vector<std::string>{
                  ShownName(line.name) + Times(line),
                  ShownName(inventory_.formats[FormatIndex(line)].name), ShapeText(*line.shape),
                  PrintGrouped(line.total.parameters), PrintBytes(Bytes(line.total.bytes), unit_)};
            }};
  }

 private:
  template <class T>
  static std::size_t FormatIndex(const T& line) {
    return static_cast<std::size_t>(line.label);
  }
  static std::string Times(const InventoryRow&) { return {}; }
  static std::string Times(const InventoryGroup& group) {
    return group.count == 1 ? "" : fmt::format(" × {}", PrintGrouped(group.count));
  }
  std::vector<std::string> Line(std::string name, const TensorTotal& total) const {
    return {std::move(name), PrintGrouped(total.tensors), PrintGrouped(total.parameters),
            PrintBytes(Bytes(total.bytes), unit_)};
  }

  const Inventory& inventory_;
  ByteUnit unit_;
};

// Of each file what loading it would import beyond the needs of a state dict.
std::string ImportsText(const Checkpoint& checkpoint) {
  TextRows rows = {{"loading it would import", "file"}};
  for (const CheckpointFile& file : checkpoint.files) {
    for (std::string& name : TextsOf(file.facts, "unsafe_globals")) {
      rows.push_back({std::move(name), ShownName(file.name)});
    }
  }
  return rows.size() == 1 ? "" : "\n" + InColumns(rows, {});
}

std::string MetadataText(const Checkpoint& checkpoint) {
  std::string text;
  for (const CheckpointFile& file : checkpoint.files) {
    if (file.metadata.empty()) {
      continue;
    }
    TextRows rows = {{"key", "value"}};
    for (const MetadataEntry& entry : file.metadata) {
      const std::string value = entry.value.AsString() != nullptr
                                    ? Shown(*entry.value.AsString(), kLongestValue)
                                    : Describe(entry.value);
      rows.push_back({ShownName(entry.key),
                      entry.array_length < 0
                          ? value
                          : fmt::format("an array of {}", PrintGrouped(entry.array_length))});
    }
    text += fmt::format("\n{}\n{}", ShownName(file.name), InColumns(rows, {.indent = "  "}));
  }
  return text;
}

std::size_t LinesOf(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace

std::string VerdictLine(FileVerdict verdict) {
  switch (verdict) {
    case FileVerdict::kAccept:
      return "";
    case FileVerdict::kAcceptWithWarning:
      return "verdict: accept-with-warning, it can be used, something is odd\n";
    case FileVerdict::kReport:
      return "verdict: report, a person must look at it before it is used\n";
    case FileVerdict::kRefuse:
      break;
  }
  return "verdict: refuse, part of it cannot be trusted or read\n";
}

std::string InspectionText(const Inspection& inspection, const InspectionView& view) {
  const Inventory& inventory = inspection.inventory;
  const auto most = [&](std::size_t lines) { return view.all ? SIZE_MAX : lines; };
  std::string text = HeadLine(inspection, view.unit) + FactLines(inspection, view.all);
  const Tables tables(inspection, view);
  if (inventory.rows.empty() && !inspection.checkpoint.tensors.empty()) {
    text += "no tensor matches the filter\n";
  }
  if (!inventory.rows.empty()) {
    text += TableText(tables.Formats(), most(6));
  }
  if (inventory.files.size() > 1) {
    text += TableText(tables.Named("file", inventory.files), most(4));
  }
  if (inventory.modules.size() > 1) {
    text += TableText(tables.Named("module", inventory.modules), most(6));
  }
  if (!inventory.piles.empty()) {
    text += TableText(tables.Piles(), SIZE_MAX);
  }
  // The rest of the screen: an empty line, a heading, and the line of what is left out stand too.
  const std::size_t left = kMostLines - LinesOf(text) - 3;
  if (view.all) {
    text += inventory.rows.empty() ? "" : TableText(tables.Tensors(inventory.rows), SIZE_MAX);
    text += ImportsText(inspection.checkpoint);
  } else if (!inventory.groups.empty()) {
    text += TableText(tables.Tensors(inventory.groups), left);
  }
  return view.metadata ? text + MetadataText(inspection.checkpoint) : text;
}

std::vector<std::string> InspectionWarnings(const Inspection& inspection) {
  std::vector<std::string> warnings;
  for (const Finding& finding : AllFindings(inspection.checkpoint)) {
    if (finding.verdict == FileVerdict::kAcceptWithWarning) {
      warnings.push_back(SentenceOf(finding.text));
    }
  }
  std::ranges::copy(inspection.inventory.warnings, std::back_inserter(warnings));
  return warnings;
}

std::string DifferenceText(const Inspection& first, const Inspection& second,
                           const InspectionView& view) {
  constexpr std::size_t kMostGroups = 10;  // of each table, so that all of them fit a screen
  const std::size_t most = view.all ? SIZE_MAX : kMostGroups;
  const ByteUnit unit = view.unit;
  const CheckpointDifference difference = DifferenceOf(first.inventory, second.inventory);
  std::string text;
  for (const Inspection* side : {&first, &second}) {
    text += HeadLine(*side, unit) + VerdictLine(VerdictOf(side->checkpoint));
  }
  text += fmt::format("\n{} alike in name, shape and format\n", Plural(difference.alike, "tensor"));
  const Inspection* sides[] = {&first, &second};
  for (std::size_t side = 0; side < 2; ++side) {
    const Tables tables(*sides[side], {.unit = unit});
    if (!difference.only[side].empty()) {
      text += fmt::format("\nonly in {}:", Shown(sides[side]->checkpoint.path, kLongestName));
      text += TableText(tables.Tensors(difference.only[side]), most);
    }
  }
  if (!difference.changed.empty()) {
    TextRows rows = {{"tensor", "format", "shape", "bytes", "", "format", "shape", "bytes"}};
    const std::size_t shown = std::min(difference.changed.size(), most);
    for (std::size_t i = 0; i < shown; ++i) {
      const ChangedGroup& group = difference.changed[i];
      const std::string times =
          group.count == 1 ? "" : fmt::format(" × {}", PrintGrouped(group.count));
      rows.push_back({ShownName(group.name) + times, ShownName(group.format[0]),
                      ShapeText(group.shape[0]), PrintBytes(Bytes(group.total[0].bytes), unit), "→",
                      ShownName(group.format[1]), ShapeText(group.shape[1]),
                      PrintBytes(Bytes(group.total[1].bytes), unit)});
    }
    text += "\ndifferent in both:\n" + InColumns(rows, {.right = {3, 7}});
    text += LeftOutLine(difference.changed.size() - shown);
  }
  return text;
}

}  // namespace fourpiles
