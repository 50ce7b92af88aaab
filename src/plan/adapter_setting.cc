#include "plan/adapter_setting.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "model/frozen.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::string_view kNone = "none";
constexpr std::string_view kExample = "lora:rank=16,targets=all-linear,dropout=0.05";
// Of fine-tuning where nothing is said: as the examples of peft and TRL have it.
constexpr std::string_view kDefault = "lora:rank=16";
constexpr Range kRanks = {1, 1 << 20};   // no layer is wider
constexpr Range kTokens = {1, 1 << 20};  // no sequence is longer
constexpr std::int64_t kVeraRank = 256;  // peft, VeraConfig

std::vector<std::string_view> SplitAt(char separator, std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

// One KEY=VALUE and where it stands.
struct KeyValue {
  std::string_view key;
  std::string_view value;
  std::string where;
};

bool AnyKindHas(std::string_view key) {
  return std::ranges::any_of(AdapterRecords(), [&](const AdapterRecord& record) {
    return std::ranges::find(record.keys, key) != record.keys.end();
  });
}

Result<KeyValue> ReadKeyValue(const AdapterRecord& record, std::string_view text,
                              const std::string& where) {
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  if (std::ranges::find(record.keys, key) == record.keys.end()) {
    const std::string known = fmt::format("known: {}", fmt::join(record.keys, ", "));
    return AnyKindHas(key) ? WrongUsage({.where = where,
                                         .found = fmt::format("{} has no {}", record.word, key),
                                         .expected = "expected what it has",
                                         .hint = known})
                           : WrongUsage({.where = where,
                                         .found = fmt::format("unknown key \"{}\"", key),
                                         .expected = DidYouMean(key, record.keys),
                                         .hint = known});
  }
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    return WrongUsage({.where = where,
                       .found = fmt::format("{} has no value", key),
                       .expected = fmt::format("expected {}=VALUE", key),
                       .hint = fmt::format("as in {}", kExample)});
  }
  return KeyValue{key, text.substr(equals + 1), fmt::format("{}: {}", where, key)};
}

Result<double> ReadNumber(const KeyValue& part, std::string_view expected) {
  double number = 0;
  const char* const end = part.value.data() + part.value.size();
  const auto [stopped, error] = std::from_chars(part.value.data(), end, number);
  const bool is_number = error == std::errc() && stopped == end;
  const bool is_in_range = number >= 0 && (part.key != "dropout" || number < 1);
  if (!is_number || !is_in_range) {  // a NaN compares false
    return WrongUsage(
        {.where = part.where,
         .found = fmt::format("\"{}\" is {}", part.value, is_number ? "out of range" : "no number"),
         .expected = std::string(expected),
         .hint = fmt::format("as in {}", kExample)});
  }
  return number;
}

Result<std::vector<std::string>> ReadNames(std::string_view text, const std::string& where,
                                           std::string_view expected, std::string_view hint) {
  std::vector<std::string> names;
  for (const std::string_view name : SplitAt('+', text)) {
    if (name.empty()) {
      return WrongUsage({.where = where,
                         .found = fmt::format("an empty name in \"{}\"", text),
                         .expected = std::string(expected),
                         .hint = std::string(hint)});
    }
    names.emplace_back(name);
  }
  return names;
}

// A kind of low rank has all linear layers where it names none.
Result<std::vector<std::string>> ReadTargets(const Adapter& adapter, const KeyValue& part) {
  if (part.value == kAllLinear && adapter.kind != AdapterKind::kIa3) {
    return std::vector<std::string>();
  }
  return ReadNames(part.value, part.where, "expected all-linear or names joined by +",
                   "as in targets=q_proj+v_proj");
}

Result<std::vector<std::string>> ReadModules(const KeyValue& part) {
  return ReadNames(part.value, part.where, "expected names joined by +",
                   fmt::format("as in {}=embed_tokens+lm_head", part.key));
}

// Float32, or that of the weights.
Result<bool> ReadIsFloat32(const KeyValue& part) {
  if (part.value != "float32" && part.value != "fp32" && part.value != "weights") {
    return WrongUsage({.where = part.where,
                       .found = fmt::format("unknown word \"{}\"", part.value),
                       .expected = "expected float32 or weights",
                       .hint = "format=weights keeps the adapter in the format of the weights"});
  }
  return part.value != "weights";
}

Result<void> ReadInto(Adapter& adapter, const KeyValue& part) {
  if (part.key == "rank") {
    TRY(adapter.rank, ParseCount(part.value, part.where, kRanks));
  } else if (part.key == "tokens") {
    TRY(adapter.tokens, ParseCount(part.value, part.where, kTokens));
  } else if (part.key == "targets") {
    TRY(adapter.targets, ReadTargets(adapter, part));
  } else if (part.key == "feedforward") {
    TRY(adapter.feedforward, ReadModules(part));
  } else if (part.key == "modules") {
    TRY(adapter.modules, ReadModules(part));
  } else if (part.key == "format") {
    TRY(adapter.float32, ReadIsFloat32(part));
    adapter.format_is_chosen = true;
  } else if (part.key == "dropout") {
    TRY(adapter.dropout, ReadNumber(part, "expected a probability from 0 to below 1"));
  } else {
    TRY(const double alpha, ReadNumber(part, "expected a number of at least 0"));
    static_cast<void>(alpha);
  }
  return {};
}

Result<void> ReadParts(Adapter& adapter, std::string_view text, const std::string& where) {
  std::vector<std::string_view> seen;
  for (const std::string_view piece : SplitAt(',', text)) {
    TRY(const KeyValue part, ReadKeyValue(RecordOf(adapter.kind), piece, where));
    if (std::ranges::find(seen, part.key) != seen.end()) {
      return WrongUsage({.where = where,
                         .found = fmt::format("{} stands twice", part.key),
                         .expected = "expected it once",
                         .hint = "leave one out"});
    }
    seen.push_back(part.key);
    TRY_VOID(ReadInto(adapter, part));
  }
  return {};
}

// LitGPT's adapters have the format of the weights (litgpt/lora.py).
bool AreFloat32(const SettingReader& reader) {
  const SetValue* implementation = reader.Find("implementation");
  return implementation == nullptr ||
         (implementation->text != "litgpt" && !implementation->text.starts_with("torchtune"));
}

Result<Adapter> ParseAdapter(const SettingReader& reader, const SetValue& set) {
  const std::string_view text = set.text;
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const auto record = std::ranges::find(AdapterRecords(), word, &AdapterRecord::word);
  if (record == AdapterRecords().end()) {
    std::vector<std::string_view> words;
    for (const AdapterRecord& known : AdapterRecords()) {
      words.push_back(known.word);
    }
    words.push_back(kNone);
    return WrongUsage(
        {.where = set.where,
         .found = fmt::format("unknown adapter \"{}\"", word),
         .expected = DidYouMean(word, words),
         .hint = fmt::format("one of {}, as in {}", fmt::join(words, ", "), kExample)});
  }
  Adapter adapter = {.kind = record->kind, .float32 = AreFloat32(reader)};
  adapter.rank = adapter.kind == AdapterKind::kVera ? kVeraRank : adapter.rank;
  if (colon != std::string_view::npos) {
    TRY_VOID(ReadParts(adapter, text.substr(colon + 1), set.where));
  }
  return adapter;
}

}  // namespace

Result<std::optional<Adapter>> ReadAdapter(const SettingReader& reader) {
  const SetValue* set = reader.Find(kAdapterSetting);
  if (set == nullptr || set->text == kNone) {
    return std::nullopt;
  }
  TRY(Adapter adapter, ParseAdapter(reader, *set));
  return adapter;
}

std::string AdapterSpec(const Adapter& adapter) {
  std::vector<std::string> parts;
  const auto add_names = [&](std::string_view key, const std::vector<std::string>& names) {
    if (!names.empty()) {
      parts.push_back(fmt::format("{}={}", key, fmt::join(names, "+")));
    }
  };
  const AdapterRecord& record = RecordOf(adapter.kind);
  for (const std::string_view key : record.keys) {
    if (key == "rank") {
      parts.push_back(fmt::format("rank={}", adapter.rank));
    } else if (key == "tokens") {
      parts.push_back(fmt::format("tokens={}", adapter.tokens));
    } else if (key == "targets" && adapter.targets.empty() && adapter.kind != AdapterKind::kIa3) {
      parts.push_back(fmt::format("targets={}", kAllLinear));
    }
    if (key == "targets") {
      add_names(key, adapter.targets);
    }
  }
  add_names("feedforward", adapter.feedforward);
  add_names("modules", adapter.modules);
  if (adapter.dropout != 0) {
    parts.push_back(fmt::format("dropout={}", adapter.dropout));
  }
  if (adapter.format_is_chosen) {
    parts.push_back(fmt::format("format={}", adapter.float32 ? "float32" : "weights"));
  }
  return parts.empty() ? std::string(record.word)
                       : fmt::format("{}:{}", record.word, fmt::join(parts, ","));
}

namespace {

// What says which parameters are trained; at most one of them may.
constexpr std::string_view kTrainedSettings[] = {kAdapterSetting, "freeze", "train-only"};

Result<void> RefuseTwo(const SettingReader& reader) {
  const SetValue* first = nullptr;
  for (const std::string_view name : kTrainedSettings) {
    const SetValue* set = reader.Find(name);
    if (set == nullptr || (name == kAdapterSetting && set->text == kNone)) {
      continue;
    }
    if (first != nullptr) {
      const bool adapter = reader.Find(kAdapterSetting) == first;
      return WrongUsage({.where = set->where,
                         .found = fmt::format("{} says already what is trained", first->where),
                         .expected = "expected one of them",
                         .hint = adapter
                                     ? "an adapter freezes the rest; to train modules beside it: "
                                       "lora:modules=lm_head"
                                     : "leave one out"});
    }
    first = set;
  }
  return {};
}

bool SaysWhatIsTrained(const SettingReader& reader) {
  return std::ranges::any_of(kTrainedSettings,
                             [&](std::string_view name) { return reader.Find(name) != nullptr; });
}

// Fine-tuning trains low-rank adapters where nothing else was said and the model has places for
// them; llm.c has none.
std::optional<Adapter> UseDefault(SettingReader& reader, Job& job) {
  const SetValue* implementation = reader.Find("implementation");
  const bool has_none = implementation != nullptr && implementation->text.starts_with("llm.c");
  if (job.kind != JobKind::kFinetune || job.bare_count || has_none || SaysWhatIsTrained(reader)) {
    return std::nullopt;
  }
  const Result<Adapter> adapter = ParseAdapter(reader, {std::string(kDefault), ""});
  Result<Network> network = WithAdapter(job.model.network, adapter.value(), "");
  if (!network) {
    return std::nullopt;
  }
  job.model.network = *std::move(network);
  reader.NoteDefault(kAdapterSetting, AdapterSpec(*adapter));
  return *adapter;
}

}  // namespace

Result<TrainedParts> ReadTrainedParts(SettingReader& reader, Job& job) {
  TRY_VOID(RefuseTwo(reader));
  TrainedParts parts;
  TRY(parts.adapter, ReadAdapter(reader));
  Network& network = job.model.network;
  if (parts.adapter) {
    TRY(network,
        WithAdapter(std::move(network), *parts.adapter, reader.Find(kAdapterSetting)->where));
  }
  constexpr std::string_view kExpected = "expected parts joined by +";
  if (const SetValue* set = reader.Find("freeze")) {
    TRY(const std::vector<std::string> names,
        ReadNames(set->text, set->where, kExpected, "as in embeddings+layers.0.*"));
    TRY(network, WithFrozen(std::move(network), names, set->where));
    parts.freeze = set->text;
  }
  if (const SetValue* set = reader.Find("train-only")) {
    TRY(const std::vector<std::string> names,
        ReadNames(set->text, set->where, kExpected, "as in last:2+head"));
    TRY(network, WithTrainedOnly(std::move(network), names, set->where));
    parts.train_only = set->text;
  }
  if (!parts.adapter) {
    parts.adapter = UseDefault(reader, job);
  }
  return parts;
}

namespace {

// Trained tokens have positions too, of which a table of learned ones has only so many.
Result<void> CheckPositions(const Job& job, const Adapter& adapter) {
  const Network& network = job.model.network;
  const bool learned = std::ranges::any_of(network.blocks, [](const Block& block) {
    return std::ranges::find(block.operators, OperatorKind::kPositions, &Operator::kind) !=
           block.operators.end();
  });
  const std::int64_t tokens = job.training.sequence_length + adapter.tokens;
  const std::int64_t longest = network.max_position_embeddings.value_or(tokens);
  if (!learned || tokens <= longest) {
    return {};
  }
  return WrongUsage(
      {.where = job.settings.find(kAdapterSetting)->second.where,
       .found = fmt::format("{} trained tokens and {} of a sample", adapter.tokens,
                            job.training.sequence_length),
       .expected =
           fmt::format("expected at most {} in all, the positions that are learned", longest),
       .hint = longest > adapter.tokens
                   ? fmt::format("--sequence-length {} leaves room", longest - adapter.tokens)
                   : "take fewer trained tokens"});
}

}  // namespace

Result<void> CheckAdapter(const Job& job) {
  const std::optional<Adapter>& adapter = job.training.adapter;
  const bool trains_tokens =
      adapter && (adapter->kind == AdapterKind::kPrompt || adapter->kind == AdapterKind::kPrefix);
  if (!trains_tokens) {
    return {};
  }
  const std::string_view word = RecordOf(adapter->kind).word;
  const std::string& implementation = job.training.implementation;
  if (!implementation.starts_with("pytorch") && implementation != "liger") {
    return WrongUsage({.where = job.settings.find("implementation")->second.where,
                       .found = fmt::format("{} has no {} tuning", implementation, word),
                       .expected = "expected another implementation",
                       .hint = "--implementation pytorch has it"});
  }
  TRY_VOID(CheckPositions(job, *adapter));
  // A layer that runs again has no cache to find its keys and values in (peft/peft_model.py).
  if (adapter->kind == AdapterKind::kPrefix &&
      job.training.recompute.kind != RecomputeKind::kNone) {
    return WrongUsage({.where = job.settings.find("recompute")->second.where,
                       .found = "prefix tuning does not work with layers that run again",
                       .expected = "expected none",
                       .hint = "prompt tuning does: --adapter prompt:tokens=20"});
  }
  return {};
}

}  // namespace fourpiles
