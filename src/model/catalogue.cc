#include "model/catalogue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "model/data_file.h"
#include "model/from_config.h"
#include "model/record.h"
#include "model/text_file.h"

namespace fourpiles {
namespace {

Result<ModelRecord> ReadRecord(std::string_view text, std::string_view where) {
  TRY(const Json json, ReadJson(text, where));
  return ModelRecordFromJson(json, where);
}

// What is compiled in has passed its tests.
ModelRecord CompiledIn(const DataFile& file) {
  Result<ModelRecord> record = ReadRecord(file.text, file.name);
  CHECK(record.has_value());
  return *std::move(record);
}

Result<Model> ModelOf(const ModelRecord& record) {
  TRY(Network network, NetworkFromConfig(record.config, record.names.id));
  return Model{.name = record.names.id, .source = record.source, .network = std::move(network)};
}

}  // namespace

Result<ModelRecord> ModelRecordFromJson(const Json& json, std::string_view where) {
  TRY(const Fields fields, Fields::Of(json, std::string(where)));
  Record reader(fields);
  ModelRecord record = {
      .names = {.id = reader.Text("id"), .aliases = reader.Texts("aliases")},
      .config = json,
      .parameters = reader.OptionalCount("parameters", {1, kLargestAmount}),
      .parameters_verified = reader.Flag("parameters_verified", false),
      .unverified = reader.Texts("unverified"),
      .source = reader.Text("source"),
      .checked = reader.Text("checked"),
  };
  TRY_VOID(reader.Finish());
  return record;
}

std::vector<ModelRecord> ModelRecords() {
  std::vector<ModelRecord> records;
  for (const DataFile& file : ModelFiles()) {
    records.push_back(CompiledIn(file));
  }
  return records;
}

Result<Model> FindModel(std::string_view name, std::string_view where) {
  // The id is the name of the file: most searches read one record.
  for (const DataFile& file : ModelFiles()) {
    if (SameName(file.name, name)) {
      return ModelOf(CompiledIn(file));
    }
  }
  const std::vector<ModelRecord> records = ModelRecords();
  std::vector<Names> names;
  for (const ModelRecord& record : records) {
    names.push_back(record.names);
  }
  TRY(const std::size_t index,
      FindName(name, names,
               {.kind = "model", .where = where, .hint = "\"fourpiles models\" lists them all"}));
  return ModelOf(records[index]);
}

Result<Model> OpenModel(const std::string& path) {
  TRY(const std::string file, ConfigPath(path));
  TRY(const std::string text, ReadTextFile(file));
  TRY(const Json json, ReadJson(text, file));
  TRY(Network network, NetworkFromConfig(json, file));
  const Json* id = json.Find("id");
  const std::string* name = id == nullptr ? nullptr : id->AsString();
  return Model{
      .name = name == nullptr ? path : *name, .source = file, .network = std::move(network)};
}

}  // namespace fourpiles
