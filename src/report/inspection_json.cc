#include <fmt/format.h>

#include "base/error_text.h"
#include "report/file_text.h"
#include "report/inspection.h"

namespace fourpiles {
namespace {

Json ShapeJson(const std::vector<std::int64_t>& shape) {
  return Json::Array(shape.begin(), shape.end());
}

Json::Object TotalJson(const TensorTotal& total) {
  return {{"tensors", total.tensors}, {"parameters", total.parameters}, {"bytes", total.bytes}};
}

std::string_view RoleWord(TensorRole role) {
  switch (role) {
    case TensorRole::kCodes:
      return "codes";
    case TensorRole::kScales:
      return "scales";
    case TensorRole::kZeroPoints:
      return "zero_points";
    case TensorRole::kOther:
      return "other";
    case TensorRole::kPlain:
      break;
  }
  return "plain";
}

Json::Array PiecesJson(const FileTensor& tensor, const Checkpoint& checkpoint) {
  Json::Array pieces;
  for (const TensorPiece& piece : tensor.pieces) {
    Json::Object json = {
        {"file", checkpoint.files[static_cast<std::size_t>(piece.file)].name},
        {"offset", piece.offset},
        {"bytes", piece.bytes},
        {"start", ShapeJson(piece.start)},
        {"shape", ShapeJson(piece.shape)},
    };
    if (!piece.strides.empty()) {
      json.emplace_back("strides", ShapeJson(piece.strides));
    }
    pieces.emplace_back(std::move(json));
  }
  return pieces;
}

// How the elements lie, where it is not plainly.
void AddPlace(const FileTensor& tensor, const Checkpoint& checkpoint, Json::Object& json) {
  if (tensor.big_endian) {
    json.emplace_back("big_endian", true);
  }
  if (tensor.packed) {
    json.emplace_back("packed", true);
  }
  if (!tensor.strides.empty()) {
    json.emplace_back("strides", ShapeJson(tensor.strides));
  }
  if (tensor.storage >= 0) {
    json.emplace_back("storage", tensor.storage);
  }
  if (!tensor.pieces.empty()) {
    json.emplace_back("pieces", PiecesJson(tensor, checkpoint));
  }
}

// Of a trainer's checkpoint: the pile, and of what the optimizer keeps which moment it is, of which
// parameter.
void AddPile(const PiledTensor& piled, const Checkpoint& checkpoint, Json::Object& json) {
  json.emplace_back("pile", Name(piled.pile));
  if (!piled.moment.empty()) {
    json.emplace_back("moment", piled.moment);
  }
  if (piled.weight >= 0) {
    json.emplace_back("parameter", checkpoint.tensors[static_cast<std::size_t>(piled.weight)].name);
  }
}

Json::Array TensorsJson(const Inspection& inspection) {
  const auto& [checkpoint, weights, inventory] = inspection;
  const std::vector<PiledTensor> piles =
      inventory.piles.empty() ? std::vector<PiledTensor>() : TensorPilesOf(checkpoint.tensors);
  Json::Array tensors;
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    if (!inventory.chosen[i]) {
      continue;
    }
    const FileTensor& tensor = checkpoint.tensors[i];
    const TensorMeaning& meaning = weights.tensors[i];
    Json::Object json = {
        {"name", tensor.name},
        {"format", tensor.type ? Json(tensor.type->name) : Json()},
        {"shape", ShapeJson(tensor.shape)},
        {"parameters", meaning.parameters},
        {"bytes", tensor.bytes},
        {"file", checkpoint.files[static_cast<std::size_t>(tensor.file)].name},
        {"dtype", tensor.dtype},
        {"elements", tensor.elements},
        {"offset", tensor.offset},
    };
    AddPlace(tensor, checkpoint, json);
    if (!piles.empty()) {
      AddPile(piles[i], checkpoint, json);
    }
    if (meaning.weight >= 0) {
      json.emplace_back("role", RoleWord(meaning.role));
      json.emplace_back("weight", weights.weights[static_cast<std::size_t>(meaning.weight)].name);
    }
    tensors.emplace_back(std::move(json));
  }
  return tensors;
}

Json::Array WeightsJson(const Inventory& inventory) {
  Json::Array array;
  for (const InventoryRow& row : inventory.rows) {
    if (row.weight == nullptr) {
      continue;
    }
    const StoredWeight& weight = *row.weight;
    array.emplace_back(Json::Object{
        {"name", weight.name},
        {"scheme", weight.scheme},
        {"format", weight.format},
        {"group_size", weight.group_size},
        {"group_rows", weight.group_rows},
        {"shape", ShapeJson(weight.shape)},
        {"parameters", weight.parameters},
        {"code_bytes", weight.code_bytes},
        {"scale_bytes", weight.scale_bytes},
        {"zero_point_bytes", weight.zero_point_bytes},
        {"other_bytes", weight.other_bytes},
        {"evidence", weight.evidence},
    });
  }
  return array;
}

Json FindingJson(const Finding& finding) {
  Json error = ErrorJson({.text = finding.text});
  Json::Object json = {{"verdict", Name(finding.verdict)}};
  for (const auto& member : *error.AsObject()) {
    json.push_back(member);
  }
  return json;
}

Json::Array FindingsJson(const Checkpoint& checkpoint) {
  Json::Array findings;
  for (const Finding& finding : AllFindings(checkpoint)) {
    findings.push_back(FindingJson(finding));
  }
  return findings;
}

Json::Array MetadataJson(const std::vector<MetadataEntry>& metadata) {
  Json::Array array;
  for (const MetadataEntry& entry : metadata) {
    Json::Object json = {{"key", entry.key}, {"value", entry.value}};
    if (entry.array_length >= 0) {
      json.emplace_back("array_length", entry.array_length);
    }
    array.emplace_back(std::move(json));
  }
  return array;
}

Json::Array FilesJson(const Inspection& inspection) {
  Json::Array files;
  for (std::size_t i = 0; i < inspection.checkpoint.files.size(); ++i) {
    const CheckpointFile& file = inspection.checkpoint.files[i];
    const TensorTotal& total = inspection.inventory.files[i].total;
    Json::Object json = {
        {"name", file.name},
        {"format", file.format.empty() ? Json() : Json(file.format)},
        {"file_bytes", file.bytes},
        {"verdict", file.format == "missing" ? Json() : Json(Name(WorstOf(file.findings)))},
        {"tensors", total.tensors},
        {"parameters", total.parameters},
        {"bytes", total.bytes},
    };
    json.insert(json.end(), file.facts.begin(), file.facts.end());
    json.emplace_back("metadata", MetadataJson(file.metadata));
    files.emplace_back(std::move(json));
  }
  return files;
}

Json::Object FormatsJson(const Inventory& inventory) {
  Json::Object formats;
  for (const FormatTotal& format : inventory.formats) {
    Json::Object json = TotalJson(format.total);
    if (format.packed) {
      json.emplace_back("code_bytes", format.parts.codes);
      json.emplace_back("scale_bytes", format.parts.scales);
      json.emplace_back("zero_point_bytes", format.parts.zero_points);
      json.emplace_back("other_bytes", format.parts.other);
    }
    formats.emplace_back(format.name, std::move(json));
  }
  return formats;
}

Json::Array NamedJson(const std::vector<NamedTotal>& totals) {
  Json::Array array;
  for (const NamedTotal& each : totals) {
    Json::Object json = {{"name", each.name}};
    for (auto& member : TotalJson(each.total)) {
      json.push_back(std::move(member));
    }
    array.emplace_back(std::move(json));
  }
  return array;
}

Json::Array PilesJson(const Inventory& inventory) {
  Json::Array array;
  for (const PileTotal& pile : inventory.piles) {
    Json::Object json = {{"name", Name(pile.pile)}};
    for (auto& member : TotalJson(pile.total)) {
      json.push_back(std::move(member));
    }
    json.emplace_back("formats", Json::Object(pile.formats.begin(), pile.formats.end()));
    array.emplace_back(std::move(json));
  }
  return array;
}

Json::Object GroupJson(const InventoryGroup& group, const Inventory& inventory) {
  return {{"name", group.name},
          {"format", inventory.formats[static_cast<std::size_t>(group.label)].name},
          {"shape", ShapeJson(*group.shape)},
          {"count", group.count},
          {"parameters", group.total.parameters},
          {"bytes", group.total.bytes}};
}

Json::Array GroupsJson(const std::vector<InventoryGroup>& groups, const Inventory& inventory) {
  Json::Array array;
  for (const InventoryGroup& group : groups) {
    array.emplace_back(GroupJson(group, inventory));
  }
  return array;
}

}  // namespace

Json::Object InspectionJson(const Inspection& inspection) {
  const auto& [checkpoint, weights, inventory] = inspection;
  Checked elements = 0;
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    elements = elements + (inventory.chosen[i] ? checkpoint.tensors[i].elements : 0);
  }
  Json::Object json = {
      {"files", FilesJson(inspection)},
      {"tensors", TensorsJson(inspection)},
      {"weights", WeightsJson(inventory)},
      {"groups", GroupsJson(inventory.groups, inventory)},
      {"by_format", FormatsJson(inventory)},
      {"by_module", NamedJson(inventory.modules)},
      {"by_pile", PilesJson(inventory)},
      {"parameters", inventory.total.parameters},
      {"weight_parameters", WeightParameters(inventory)},
      {"elements", OrLargest(elements)},
      {"bytes", inventory.total.bytes},
      {"unique_storage_bytes", inventory.unique_storage_bytes},
      {"quantization", QuantisationFactsOf(checkpoint.configs)},
      {"verdict", Name(VerdictOf(checkpoint))},
      {"findings", FindingsJson(checkpoint)},
      {"warnings", TextsJson(InspectionWarnings(inspection))},
  };
  json.insert(json.end(), checkpoint.facts.begin(), checkpoint.facts.end());
  return json;
}

std::string InspectionCsv(const Inspection& inspection) {
  const Checkpoint& checkpoint = inspection.checkpoint;
  std::string text = "name,dtype,format,shape,parameters,bytes,offset,file\n";
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    if (!inspection.inventory.chosen[i]) {
      continue;
    }
    const FileTensor& tensor = checkpoint.tensors[i];
    text += fmt::format("{},{},{},{},{},{},{},{}\n", CsvCell(tensor.name), CsvCell(tensor.dtype),
                        tensor.type ? tensor.type->name : "", fmt::join(tensor.shape, " "),
                        inspection.weights.tensors[i].parameters, tensor.bytes, tensor.offset,
                        CsvCell(checkpoint.files[static_cast<std::size_t>(tensor.file)].name));
  }
  return text;
}

Json::Object DifferenceJson(const Inspection& first, const Inspection& second) {
  const CheckpointDifference difference = DifferenceOf(first.inventory, second.inventory);
  Json::Array changed;
  for (const ChangedGroup& group : difference.changed) {
    changed.emplace_back(Json::Object{
        {"name", group.name},
        {"count", group.count},
        {"formats", Json::Array{group.format[0], group.format[1]}},
        {"shapes", Json::Array{ShapeJson(group.shape[0]), ShapeJson(group.shape[1])}},
        {"bytes", Json::Array{group.total[0].bytes, group.total[1].bytes}},
    });
  }
  const bool same = difference.only[0].empty() && difference.only[1].empty() && changed.empty();
  Json::Array sides;
  for (const Inspection* side : {&first, &second}) {
    Json::Object json = {{"path", side->checkpoint.path}};
    for (auto& member : TotalJson(side->inventory.total)) {
      json.push_back(std::move(member));
    }
    json.emplace_back("verdict", Name(VerdictOf(side->checkpoint)));
    json.emplace_back("findings", FindingsJson(side->checkpoint));
    json.emplace_back("warnings", TextsJson(InspectionWarnings(*side)));
    sides.emplace_back(std::move(json));
  }
  return {{"compared", std::move(sides)},
          {"same", same},
          {"alike", difference.alike},
          {"only_first", GroupsJson(difference.only[0], first.inventory)},
          {"only_second", GroupsJson(difference.only[1], second.inventory)},
          {"changed", std::move(changed)}};
}

}  // namespace fourpiles
