#include "plan/engine_record.h"

#include <algorithm>

#include "base/checked.h"
#include "model/record.h"
#include "model/record_files.h"

namespace fourpiles {

std::span<const DataFile> EngineFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {"id",          "aliases",    "summary", "memory_utilization",
                                      "page_tokens", "swap_bytes", "terms",   "source",
                                      "checked"};
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
      .source = record.Text("source"),
      .checked = record.Text("checked"),
  };
  TRY_VOID(record.Finish());
  TRY(const std::vector<Fields> terms, fields.Objects("terms"));
  for (const Fields& one : terms) {
    TRY(EngineTerm term, TermOf(one));
    engine.terms.push_back(std::move(term));
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

}  // namespace fourpiles
