#include "model/catalogue.h"

#include <utility>

#include "base/try.h"
#include "model/from_config.h"
#include "model/record.h"
#include "model/record_files.h"
#include "model/text_file.h"

namespace fourpiles {
namespace {

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
  return CompiledRecords(ModelFiles(), ModelRecordFromJson);
}

Result<Model> FindModel(std::string_view name, std::string_view where) {
  TRY(const ModelRecord record,
      FindRecord(name, ModelFiles(), ModelRecordFromJson,
                 {.kind = "model", .where = where, .hint = "\"fourpiles models\" lists them all"}));
  return ModelOf(record);
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
