#include "plan/engine_record.h"

#include <algorithm>

#include "base/checked.h"
#include "model/record.h"
#include "model/record_files.h"

namespace fourpiles {

std::span<const DataFile> EngineFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {
    "id",         "aliases", "summary", "memory_utilization", "page_tokens", "swap_bytes",
    "kv_formats", "terms",   "ratios",  "versions",           "source",      "checked"};
constexpr std::string_view kRatioKeys[] = {"id", "what", "low", "expected", "high", "source"};
constexpr std::string_view kVersionKeys[] = {"id",
                                             "what",
                                             "padding_without_flash",
                                             "sliding_caches",
                                             "key_rows_are_heads",
                                             "quantised_windows",
                                             "latent_values",
                                             "latent_cache",
                                             "output_last",
                                             "before_v1",
                                             "capacity_in_tokens",
                                             "source"};
constexpr std::string_view kTermKeys[] = {
    "id", "what", "figures", "low_bytes", "expected_bytes", "high_bytes", "source"};
constexpr Range kAmounts = {0, kLargestAmount};

Result<EngineTerm> TermOf(const Fields& fields) {
  TRY_VOID(fields.RefuseUnknown(kTermKeys));
  Record record(fields);
  EngineTerm term = {.id = record.Text("id"),
                     .what = record.Text("what"),
                     .figures = record.Texts("figures"),
                     .low_bytes = record.Count("low_bytes", kAmounts),
                     .expected_bytes = record.Count("expected_bytes", kAmounts),
                     .high_bytes = record.Count("high_bytes", kAmounts),
                     .source = record.Text("source")};
  if (term.low_bytes > term.expected_bytes || term.expected_bytes > term.high_bytes) {
    record.Refuse("expected_bytes", {.found = "outside low_bytes and high_bytes",
                                     .expected = "expected low ≤ expected ≤ high"});
  }
  TRY_VOID(record.Finish());
  return term;
}

Result<EngineRatio> RatioOf(const Fields& fields) {
  TRY_VOID(fields.RefuseUnknown(kRatioKeys));
  constexpr NumberRange kRatios = {0, 1000};
  Record record(fields);
  EngineRatio ratio = {.id = record.Text("id"),
                       .what = record.Text("what"),
                       .low = record.OptionalNumber("low", kRatios).value_or(1),
                       .expected = record.OptionalNumber("expected", kRatios).value_or(1),
                       .high = record.OptionalNumber("high", kRatios).value_or(1),
                       .source = record.Text("source")};
  if (ratio.low > ratio.expected || ratio.expected > ratio.high) {
    record.Refuse("expected",
                  {.found = "outside low and high", .expected = "expected low ≤ expected ≤ high"});
  }
  TRY_VOID(record.Finish());
  return ratio;
}

Result<EngineVersion> VersionOf(const Fields& fields) {
  TRY_VOID(fields.RefuseUnknown(kVersionKeys));
  Record record(fields);
  EngineVersion version = {
      .id = record.Text("id"),
      .what = record.Text("what"),
      .llamacpp = {.padding_without_flash = record.CountOr("padding_without_flash", 256),
                   .sliding_caches = record.Flag("sliding_caches", true),
                   .key_rows_are_heads = record.Flag("key_rows_are_heads", false),
                   .quantised_windows = record.Flag("quantised_windows", true),
                   .latent_values = record.Flag("latent_values", false),
                   .latent_cache = record.Flag("latent_cache", true),
                   .output_last = record.Flag("output_last", false)},
      .before_v1 = record.Flag("before_v1", false),
      .capacity_in_tokens = record.Flag("capacity_in_tokens", true),
      .source = record.Text("source")};
  TRY_VOID(record.Finish());
  return version;
}

template <class Item>
Result<std::vector<Item>> ItemsOf(const Fields& fields, std::string_view key,
                                  Result<Item> (*read)(const Fields&)) {
  std::vector<Item> items;
  TRY(const std::vector<Fields> objects, fields.Objects(key));
  for (const Fields& one : objects) {
    TRY(Item item, read(one));
    items.push_back(std::move(item));
  }
  return items;
}

// "auto" is the weights'.
void RefuseCaches(Record& record, const std::vector<std::string>& formats) {
  const auto unknown = std::ranges::find_if(formats, [](const std::string& format) {
    return format != "auto" && FindStoredType(format) == nullptr;
  });
  if (formats.empty() || unknown != formats.end()) {
    record.Refuse("kv_formats", {.found = formats.empty() ? "no format" : "\"" + *unknown + "\"",
                                 .expected = "expected formats that tensors are stored in",
                                 .hint = "auto is that of the weights"});
  }
}

}  // namespace

Result<EngineRecord> EngineFromJson(const Json& json, std::string_view where) {
  TRY(const Fields fields, Fields::Of(json, std::string(where)));
  TRY_VOID(fields.RefuseUnknown(kKeys));
  Record record(fields);
  EngineRecord engine = {
      .names = {.id = record.Text("id"), .aliases = record.Texts("aliases")},
      .summary = record.Text("summary"),
      .memory_utilization = record.OptionalNumber("memory_utilization", {0, 1}),
      .page_tokens = record.Count("page_tokens"),
      .swap_bytes = record.Count("swap_bytes", kAmounts),
      .kv_formats = record.Texts("kv_formats"),
      .source = record.Text("source"),
      .checked = record.Text("checked"),
  };
  RefuseCaches(record, engine.kv_formats);
  TRY_VOID(record.Finish());
  TRY(engine.terms, ItemsOf(fields, "terms", TermOf));
  TRY(engine.ratios, ItemsOf(fields, "ratios", RatioOf));
  TRY(engine.versions, ItemsOf(fields, "versions", VersionOf));
  if (engine.versions.empty()) {
    engine.versions.emplace_back();
  }
  return engine;
}

std::vector<EngineRecord> Engines() {
  return CompiledRecords(EngineFiles(), EngineFromJson);
}

Result<EngineRecord> FindEngine(std::string_view name, std::string_view where) {
  return FindRecord(name, Engines(), EngineFromJson,
                    {.kind = "engine",
                     .where = where,
                     .hint = "vllm, sglang, tensorrt-llm, llama.cpp, transformers"});
}

const EngineTerm* FindTerm(const EngineRecord& engine, std::string_view id) {
  const auto term = std::ranges::find(engine.terms, id, &EngineTerm::id);
  return term == engine.terms.end() ? nullptr : &*term;
}

const EngineRatio* FindRatio(const EngineRecord& engine, std::string_view id) {
  const auto ratio = std::ranges::find(engine.ratios, id, &EngineRatio::id);
  return ratio == engine.ratios.end() ? nullptr : &*ratio;
}

}  // namespace fourpiles
