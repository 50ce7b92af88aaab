#include "tensors/quantised_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/ascii.h"

namespace fourpiles {
namespace {

// An object that may declare a quantisation, and the file it stands in.
struct Section {
  const Json* json;
  std::string_view file;
};
using Sections = std::vector<Section>;

constexpr std::string_view kConfig = "config.json";
// Lists of modules that stay as they are: of transformers, compressed-tensors, ModelOpt, vLLM.
constexpr std::array<std::string_view, 4> kPlainLists = {"modules_to_not_convert", "ignore",
                                                         "exclude_modules", "ignored_layers"};
// Wider numbers and larger groups are declared by nobody.
constexpr std::int64_t kMostBits = 16;
constexpr std::int64_t kMostGroup = 1 << 20;

void AddObject(const Json* json, std::string_view file, Sections& sections) {
  if (json != nullptr && json->AsObject() != nullptr) {
    sections.push_back({json, file});
  }
}

// "quantization_config" of a part of the model: of text_config, llm_config, thinker_config.
void AddParts(const Json& config, Sections& sections) {
  AddObject(config.Find("text_config") == nullptr
                ? nullptr
                : config.Find("text_config")->Find("quantization_config"),
            kConfig, sections);
  const Json::Object* members = config.AsObject();
  if (members == nullptr) {
    return;
  }
  for (const auto& [key, value] : *members) {
    if (key != "text_config" && key.ends_with("_config")) {
      AddObject(value.Find("quantization_config"), kConfig, sections);
    }
  }
}

// quantize_config.json (AutoGPTQ) and quant_config.json (llm-awq) have no section of their own.
void AddBareDocument(const Json& document, Sections& sections) {
  constexpr std::array<std::string_view, 5> kMembers = {"bits", "w_bit", "quant_method",
                                                        "quant_algo", "q_group_size"};
  if (std::any_of(kMembers.begin(), kMembers.end(),
                  [&](std::string_view key) { return document.Find(key) != nullptr; })) {
    const bool awq = document.Find("w_bit") != nullptr;
    AddObject(&document, awq ? "quant_config.json" : "quantize_config.json", sections);
  }
}

// Those that count for more first.
Sections SectionsOf(const CheckpointConfigs& configs) {
  Sections sections;
  AddObject(configs.config.Find("quantization_config"), kConfig, sections);
  AddParts(configs.config, sections);
  AddObject(configs.config.Find("compression_config"), kConfig, sections);
  AddObject(configs.config.Find("quantization"), kConfig, sections);
  AddObject(configs.quantization.Find("quantization"), "hf_quant_config.json", sections);
  AddBareDocument(configs.quantization, sections);
  return sections;
}

// Reads members, and notes those of a wrong kind.
class Reader {
 public:
  Reader(std::string_view file, std::vector<std::string>& notes) : file_(file), notes_(&notes) {}

  std::string Text(const Json& object, std::string_view key) {
    const Json* value = object.Find(key);
    if (value == nullptr || value->IsNull()) {
      return {};
    }
    if (value->AsString() == nullptr || value->AsString()->size() > kLongestText) {
      Note(key, "a short string");
      return {};
    }
    return *value->AsString();
  }

  // 0 when it is absent; also when it is -1, which stands for "all of a row".
  std::int64_t Count(const Json& object, std::string_view key, std::int64_t most) {
    const Json* value = object.Find(key);
    if (value == nullptr || value->IsNull()) {
      return 0;
    }
    const std::int64_t* count = value->AsInteger();
    if (count == nullptr || *count < -1 || *count > most) {
      Note(key, "a whole number from 1 to " + std::to_string(most));
      return 0;
    }
    return std::max<std::int64_t>(*count, 0);
  }

 private:
  static constexpr std::size_t kLongestText = 256;
  static constexpr std::size_t kMostNotes = 16;  // one for each of 22,422 layers would help nobody

  void Note(std::string_view key, const std::string& expected) {
    if (notes_->size() < kMostNotes) {
      notes_->push_back(std::string(file_) + ": " + std::string(key) + ": expected " + expected +
                        "; left out");
    }
  }

  std::string_view file_;
  std::vector<std::string>* notes_;
};

DeclaredWeights ReadWeights(const Json& object, Reader& reader) {
  DeclaredWeights weights;
  for (const std::string_view key : {"bits", "w_bit", "num_bits", "nbits"}) {
    weights.bits = weights.bits != 0 ? weights.bits : reader.Count(object, key, kMostBits);
  }
  for (const std::string_view key : {"group_size", "q_group_size"}) {
    weights.group_size =
        weights.group_size != 0 ? weights.group_size : reader.Count(object, key, kMostGroup);
  }
  for (const std::string_view key : {"type", "quant_algo", "mode"}) {
    weights.type = !weights.type.empty() ? weights.type : reader.Text(object, key);
  }
  return weights;
}

bool SaysAnything(const DeclaredWeights& weights) {
  return weights.bits != 0 || weights.group_size != 0 || !weights.type.empty();
}

void AddWeights(const Json* object, Reader& reader, DeclaredQuantisation& declared) {
  if (object == nullptr) {
    return;
  }
  DeclaredWeights weights = ReadWeights(*object, reader);
  if (SaysAnything(weights)) {
    declared.weights.push_back(std::move(weights));
  }
}

// config_groups of compressed-tensors: {"group_0": {"targets": […], "weights": {"num_bits": 4}}}.
void AddGroups(const Json* groups, Reader& reader, DeclaredQuantisation& declared) {
  const Json::Object* members = groups == nullptr ? nullptr : groups->AsObject();
  if (members == nullptr) {
    return;
  }
  for (const auto& [name, group] : *members) {
    AddWeights(group.Find("weights"), reader, declared);
  }
}

void AddLayers(const Json* map, Reader& reader, DeclaredQuantisation& declared) {
  const Json::Object* members = map == nullptr ? nullptr : map->AsObject();
  if (members == nullptr) {
    return;
  }
  for (const auto& [layer, value] : *members) {
    // The overrides of MLX stand among its other members: each that is an object is a layer.
    if (value.AsObject() != nullptr) {
      declared.layers.try_emplace(layer, ReadWeights(value, reader));
    }
  }
}

void ReadBlock(const Json* block, DeclaredQuantisation& declared) {
  const Json::Array* sizes = block == nullptr ? nullptr : block->AsArray();
  if (sizes == nullptr || sizes->size() != 2 || declared.block_rows != 0) {
    return;
  }
  const std::int64_t* rows = sizes->front().AsInteger();
  const std::int64_t* columns = sizes->back().AsInteger();
  const auto fits = [](const std::int64_t* size) {
    return size != nullptr && *size >= 1 && *size <= kMostGroup;
  };
  if (fits(rows) && fits(columns)) {
    declared.block_rows = *rows;
    declared.block_columns = *columns;
  }
}

bool IsTrue(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  const bool* flag = value == nullptr ? nullptr : value->AsBool();
  return flag != nullptr && *flag;
}

// Names of modules that stay as they are; what is no text is left out.
void ReadPlain(const Json* list, DeclaredQuantisation& declared) {
  const Json::Array* modules = list == nullptr ? nullptr : list->AsArray();
  if (modules == nullptr || !declared.plain.empty()) {
    return;
  }
  for (const Json& module : *modules) {
    if (module.AsString() != nullptr) {
      declared.plain.push_back(*module.AsString());
    }
  }
}

void ReadSection(const Section& section, DeclaredQuantisation& declared) {
  Reader reader(section.file, declared.notes);
  const Json& json = *section.json;
  const auto fill = [](std::string& to, std::string from) {
    if (to.empty()) {
      to = std::move(from);
    }
  };
  if (declared.source.empty()) {
    declared.source = section.file;
  }
  fill(declared.method, LowerCase(reader.Text(json, "quant_method")));
  fill(declared.algo, reader.Text(json, "quant_algo"));
  for (const std::string_view key : {"format", "packing_format", "version"}) {
    fill(declared.format, LowerCase(reader.Text(json, key)));
  }
  if (declared.weights.empty()) {
    AddGroups(json.Find("config_groups"), reader, declared);
    AddWeights(&json, reader, declared);
    if (const Json* hqq = json.Find("quant_config"); hqq != nullptr) {
      AddWeights(hqq->Find("weight_quant_params"), reader, declared);
    }
  }
  ReadBlock(json.Find("weight_block_size"), declared);
  for (const std::string_view key : kPlainLists) {
    ReadPlain(json.Find(key), declared);
  }
  declared.four_bits = declared.four_bits || IsTrue(json, "load_in_4bit");
  declared.double_scales = declared.double_scales || IsTrue(json, "bnb_4bit_use_double_quant");
  AddLayers(json.Find("quantized_layers"), reader, declared);
}

// MLX names no method: config.json has "quantization" with a group size and bits (mlx-lm,
// mlx_lm/utils.py).
void ReadMlx(const Json* quantization, DeclaredQuantisation& declared) {
  if (quantization == nullptr || quantization->Find("group_size") == nullptr ||
      quantization->Find("quant_method") != nullptr || !declared.method.empty() ||
      !declared.algo.empty()) {
    return;
  }
  declared.method = "mlx";
  Reader reader(kConfig, declared.notes);
  AddLayers(quantization, reader, declared);
}

// ModelOpt and AutoGPTQ may name no method either.
std::string MethodByMembers(const DeclaredQuantisation& declared) {
  if (!declared.algo.empty()) {
    return "modelopt";
  }
  if (declared.source == "quant_config.json") {
    return "awq";
  }
  return declared.source == "quantize_config.json" ? "gptq" : "";
}

std::string ExpertDtype(const Json& config, Reader& reader) {
  std::string dtype = reader.Text(config, "expert_dtype");
  const Json* text = config.Find("text_config");
  return dtype.empty() && text != nullptr ? reader.Text(*text, "expert_dtype") : dtype;
}

// The first of the sections that has one of the members as `size` wants it.
template <class Size>
std::optional<std::int64_t> FirstSize(const Sections& sections,
                                      std::initializer_list<std::string_view> keys, Size size) {
  for (const Section& section : sections) {
    for (const std::string_view key : keys) {
      const Json* value = section.json->Find(key);
      const std::optional<std::int64_t> found = value == nullptr ? std::nullopt : size(*value);
      if (found) {
        return found;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> ObjectSize(const Json& value) {
  return value.AsObject() == nullptr
             ? std::nullopt
             : std::optional(static_cast<std::int64_t>(value.AsObject()->size()));
}

std::optional<std::int64_t> ArraySize(const Json& value) {
  return value.AsArray() == nullptr
             ? std::nullopt
             : std::optional(static_cast<std::int64_t>(value.AsArray()->size()));
}

std::string FirstText(const Sections& sections, std::string_view key) {
  std::vector<std::string> notes;
  for (const Section& section : sections) {
    std::string text = Reader(section.file, notes).Text(*section.json, key);
    if (!text.empty()) {
      return text;
    }
  }
  return {};
}

}  // namespace

DeclaredQuantisation DeclaredQuantisationOf(const CheckpointConfigs& configs) {
  DeclaredQuantisation declared;
  for (const Section& section : SectionsOf(configs)) {
    ReadSection(section, declared);
  }
  Reader reader(kConfig, declared.notes);
  declared.expert_dtype = LowerCase(ExpertDtype(configs.config, reader));
  ReadMlx(configs.config.Find("quantization"), declared);
  ReadMlx(configs.config.Find("quantization_config"), declared);
  if (declared.method.empty()) {
    declared.method = MethodByMembers(declared);
  }
  return declared;
}

const DeclaredWeights* FindDeclaredLayer(const DeclaredQuantisation& declared,
                                         std::string_view layer) {
  constexpr int kMostSteps = 4;  // a hostile name may have any number of them
  for (int step = 0; step < kMostSteps && !declared.layers.empty(); ++step) {
    const auto found = declared.layers.find(std::string(layer));
    if (found != declared.layers.end()) {
      return &found->second;
    }
    const std::size_t dot = layer.rfind('.');
    if (dot == std::string_view::npos) {
      break;
    }
    layer = layer.substr(0, dot);
  }
  return nullptr;
}

Json::Object QuantisationFactsOf(const CheckpointConfigs& configs) {
  const Sections sections = SectionsOf(configs);
  Json::Object facts;
  for (const std::string_view key : {"quant_method", "quant_algo"}) {
    if (std::string text = FirstText(sections, key); !text.empty()) {
      facts.emplace_back(key, std::move(text));
    }
  }
  std::vector<std::string> notes;
  Reader reader(kConfig, notes);
  if (std::string dtype = ExpertDtype(configs.config, reader); !dtype.empty()) {
    facts.emplace_back("expert_dtype", std::move(dtype));
  }
  if (const auto layers = FirstSize(sections, {"quantized_layers"}, ObjectSize)) {
    facts.emplace_back("quantized_layers", *layers);
  }
  if (const auto exclude =
          FirstSize(sections, {"modules_to_not_convert", "ignore", "exclude_modules"}, ArraySize)) {
    facts.emplace_back("exclude", *exclude);
  }
  return facts;
}

}  // namespace fourpiles
