#include "model/catalogue.h"

#include <utility>

#include "base/try.h"
#include "model/from_config.h"
#include "model/record.h"
#include "model/record_files.h"

namespace fourpiles {
namespace {

Result<Model> ModelOf(const ModelRecord& record) {
  TRY(Network network, NetworkFromConfig(record.config, record.names.id));
  return Model{.name = record.names.id,
               .source = record.source,
               .network = std::move(network),
               .quantisation = DeclaredQuantisationOf({.config = record.config})};
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

}  // namespace fourpiles
