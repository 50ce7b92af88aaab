#include "model/open_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error_text.h"
#include "base/try.h"
#include "model/compare_tensors.h"
#include "model/from_config.h"
#include "model/from_tensors.h"
#include "model/gguf_config.h"
#include "model/gguf_names.h"
#include "model/text_file.h"
#include "tensors/folder.h"
#include "tensors/inventory.h"
#include "tensors/open_checkpoint.h"
#include "tensors/piles.h"
#include "tensors/quantised.h"
#include "tensors/quantised_config.h"

namespace fourpiles {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFindings = 3;  // in the warnings

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The config.json of a folder, of the folder of a file, or the file itself; empty: none.
std::string ConfigOf(const std::string& path) {
  if (path.ends_with(".json") && !path.ends_with(".index.json")) {
    return path;
  }
  const fs::path folder = IsFolder(path) ? fs::path(path) : fs::path(path).parent_path();
  const fs::path config = folder / "config.json";
  return IsFile(config) && !path.ends_with(".gguf") ? config.string() : std::string();
}

// A file that was named itself is read wherever it leads; one that was found in a folder lies
// there.
Result<std::string> ReadConfigText(const std::string& path, const std::string& config) {
  if (config == path) {
    return ReadTextFile(config);
  }
  const fs::path place(config);
  TRY(const FileSource source,
      FileSource::OpenWithin(place.parent_path().empty() ? "." : place.parent_path().string(),
                             place.filename().string()));
  return ReadWholeFile(source, kConfigLimits.bytes);
}

Result<Model> FromConfig(const Json& json, const std::string& path, const std::string& config) {
  TRY(Network network, NetworkFromConfig(json, config));
  const Json* id = json.Find("id");
  const std::string* name = id == nullptr ? nullptr : id->AsString();
  return Model{.name = name == nullptr ? path : *name,
               .source = config,
               .network = std::move(network),
               .quantisation = DeclaredQuantisationOf({.config = json})};
}

Result<Model> FromConfigFile(const std::string& path, const std::string& config) {
  TRY(const std::string text, ReadConfigText(path, config));
  TRY(const Json json, ReadJson(text, config, kConfigLimits));
  return FromConfig(json, path, config);
}

// What is odd about the files themselves.
std::vector<std::string> FileWarnings(const Checkpoint& checkpoint) {
  const std::vector<Finding> findings = AllFindings(checkpoint);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(findings.size(), kMostFindings); ++i) {
    lines.push_back(SentenceOf(findings[i].text));
  }
  if (findings.size() > kMostFindings) {
    lines.push_back(fmt::format("{} more findings: \"fourpiles inspect\" lists them",
                                findings.size() - kMostFindings));
  }
  return lines;
}

tl::unexpected<Error> FirstRefusal(const Checkpoint& checkpoint) {
  const std::vector<Finding> findings = AllFindings(checkpoint);
  const auto refusal = std::ranges::find(findings, FileVerdict::kRefuse, &Finding::verdict);
  ErrorText text = refusal == findings.end() ? ErrorText{.found = "damaged"} : refusal->text;
  if (text.where.empty()) {
    text.where = checkpoint.path;
  }
  return BadInput(std::move(text));
}

bool IsGguf(const Checkpoint& checkpoint) {
  return !checkpoint.files.empty() && checkpoint.files.front().format == "gguf";
}

// PyTorch has gradients of floats and complex numbers alone: what counts batches or masks is a
// buffer (torch/csrc/autograd/variable.h, isDifferentiableType).
bool MayBeTrained(const FileTensor& tensor) {
  constexpr std::array kWhole = std::to_array<std::string_view>(
      {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"});
  return tensor.type == nullptr || std::ranges::find(kWhole, tensor.type->name) == kWhole.end();
}

// A packed weight once, under its own name; what belongs to it and is no weight not at all.
std::vector<LogicalTensor> LogicalTensors(const Checkpoint& checkpoint,
                                          const StoredWeights& stored) {
  std::vector<LogicalTensor> tensors;
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const FileTensor& tensor = checkpoint.tensors[i];
    if (i >= stored.tensors.size() || stored.tensors[i].role == TensorRole::kPlain) {
      tensors.push_back(
          {.name = tensor.name, .shape = tensor.shape, .trainable = MayBeTrained(tensor)});
    }
  }
  for (const StoredWeight& weight : stored.weights) {
    tensors.push_back({.name = weight.name,
                       .shape = weight.shape,
                       .shape_known = !weight.shape.empty(),
                       .packed = true});
  }
  return tensors;
}

std::vector<LogicalTensor> WithCheckpointNames(std::vector<LogicalTensor> tensors,
                                               std::string_view model_type) {
  std::erase_if(tensors,
                [](const LogicalTensor& tensor) { return IsMadeByConversion(tensor.name); });
  for (LogicalTensor& tensor : tensors) {
    if (auto name = CheckpointName(tensor.name, model_type)) {
      tensor.name = *std::move(name);
    }
  }
  return tensors;
}

CheckpointTotals TotalsOf(const Inventory& inventory) {
  CheckpointTotals totals = {.bytes = inventory.total.bytes,
                             .parameters = inventory.total.parameters};
  for (const FormatTotal& format : inventory.formats) {
    totals.formats.push_back(
        {.name = format.name, .bytes = format.total.bytes, .parameters = format.total.parameters});
  }
  return totals;
}

Result<Network> NetworkOfGguf(const Checkpoint& checkpoint, const std::string& path) {
  TRY(const Json config,
      ConfigFromGguf(checkpoint.files.front().metadata, checkpoint.tensors, path));
  return NetworkFromConfig(config, path);
}

// The tensors, checked against the config.json where there is one.
Result<Model> FromCheckpoint(Checkpoint checkpoint, const std::string& path,
                             const std::string& config) {
  KeepWeightsAlone(checkpoint);
  const StoredWeights stored = StoredWeightsOf(checkpoint);
  std::vector<LogicalTensor> tensors = LogicalTensors(checkpoint, stored);
  Model model = {.name = path, .source = path};
  const bool has_type = checkpoint.configs.config.Find("model_type") != nullptr;
  if (!config.empty() && has_type) {
    TRY(model, FromConfig(checkpoint.configs.config, path, config));
  } else if (IsGguf(checkpoint)) {
    TRY(model.network, NetworkOfGguf(checkpoint, path));
  } else {
    TRY(model.network, NetworkFromTensors(tensors, path));
    model.tensors_alone = true;
  }
  const Inventory inventory = InventoryOf(checkpoint, stored);
  model.checkpoint = TotalsOf(inventory);
  model.warnings = FileWarnings(checkpoint);
  if (!config.empty() && !has_type) {
    model.warnings.emplace_back("config.json names no model_type: the network is not known");
  }
  for (std::size_t i = 0; i < std::min(inventory.warnings.size(), kMostFindings); ++i) {
    model.warnings.push_back(inventory.warnings[i]);
  }
  if (!model.tensors_alone) {
    const bool gguf = IsGguf(checkpoint);
    if (gguf) {
      tensors = WithCheckpointNames(std::move(tensors), model.network.model_type);
    }
    for (std::string& line :
         DifferencesFrom(model.network, tensors, gguf ? ShapeRule::kElements : ShapeRule::kExact)) {
      model.warnings.push_back(std::move(line));
    }
  }
  model.checkpoint->gguf = IsGguf(checkpoint);
  model.checkpoint->tensors =
      std::make_shared<const std::vector<FileTensor>>(std::move(checkpoint.tensors));
  return model;
}

// Whether the folder has tensors that are read here; nothing where it has several models.
bool HasTensors(const Result<FolderContent>& content) {
  if (!content) {
    return false;
  }
  constexpr std::array kEndings = std::to_array<std::string_view>(
      {".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".npz", ".npy"});
  return content->kind != FolderKind::kFiles ||
         std::ranges::any_of(content->files, [&](const std::string& file) {
           return std::ranges::any_of(
               kEndings, [&](std::string_view ending) { return file.ends_with(ending); });
         });
}

// A file that lies beside a config.json may be none of a model: "training_args.bin".
bool IsOfNoModel(const Checkpoint& checkpoint) {
  const bool is_named = std::ranges::any_of(checkpoint.files, [](const CheckpointFile& file) {
    return file.name.find("model") != std::string::npos || file.name.ends_with(".safetensors");
  });
  return checkpoint.tensors.empty() && checkpoint.files.size() == 1 && !is_named;
}

// Shards that were not fetched: what is there says no less than a config.json alone.
bool IsNotFetched(const Checkpoint& checkpoint) {
  const bool pointers = std::ranges::any_of(
      checkpoint.facts, [](const Json::Member& fact) { return fact.first == "pointers"; });
  return checkpoint.tensors.empty() && (pointers || VerdictOf(checkpoint) != FileVerdict::kRefuse);
}

}  // namespace

Result<Model> OpenModel(const std::string& path) {
  const std::string config = ConfigOf(path);
  if (config == path) {
    return FromConfigFile(path, config);
  }
  if (IsFolder(path) && !config.empty()) {
    const Result<FolderContent> content = ModelFilesOf(path);
    if (!HasTensors(content)) {
      TRY(Model model, FromConfigFile(path, config));
      if (!content && content.error().kind == ErrorKind::kUsage) {
        model.warnings.push_back("the tensors were not looked at: " +
                                 SentenceOf(content.error().text));
      }
      return model;
    }
  }
  TRY(Checkpoint checkpoint, OpenWholeCheckpoint(path));
  const bool is_beside = IsFolder(path) && IsOfNoModel(checkpoint);
  if (!config.empty() && (IsNotFetched(checkpoint) || is_beside)) {
    TRY(Model model, FromConfigFile(path, config));
    model.warnings = FileWarnings(checkpoint);
    return model;
  }
  if (VerdictOf(checkpoint) == FileVerdict::kRefuse) {
    return FirstRefusal(checkpoint);
  }
  return FromCheckpoint(std::move(checkpoint), path, config);
}

}  // namespace fourpiles
