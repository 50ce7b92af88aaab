#include "tensors/folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/byte_source.h"
#include "base/try.h"
#include "tensors/deepspeed_ranks.h"
#include "tensors/gguf_split.h"
#include "tensors/open_distributed.h"

namespace fourpiles {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 100'000;
constexpr std::size_t kMostNamed = 6;  // in a message

// What transformers called the weights before safetensors. The optimizer may lie beside them.
constexpr std::string_view kPyTorchModel = "pytorch_model.bin";
// Model files of other kinds, the usual names first.
constexpr std::array<std::string_view, 9> kOtherEndings = {
    ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".tflite", ".h5", ".npz", ".npy"};
constexpr std::array<std::string_view, 6> kPickleEndings = {".bin",  ".pt",  ".pth",
                                                            ".ckpt", ".pkl", ".pickle"};
// What DeepSpeed and Megatron-LM write beside the folders of their checkpoints.
constexpr std::array<std::string_view, 2> kPointers = {"latest",
                                                       "latest_checkpointed_iteration.txt"};

// Names of the files, sorted; folders are left out.
Result<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) {
      names.push_back(entry->path().filename().string());
    }
    if (names.size() > kMostEntries) {
      return BadInput({path, fmt::format("more than {} files", kMostEntries),
                       "expected the folder of a model", "name one of its files"});
    }
  }
  if (error) {
    return BadInput({path, error.message(), "expected a folder that can be read", ""});
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> WithEnding(const std::vector<std::string>& names,
                                    std::string_view ending) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const std::string& name) { return name.ends_with(ending); });
  return found;
}

tl::unexpected<Error> SeveralModels(const std::string& path,
                                    const std::vector<std::string>& names) {
  const std::vector<std::string> first(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostNamed)));
  return WrongUsage({.where = path,
                     .found = fmt::format("several models: {}{}", fmt::join(first, ", "),
                                          names.size() > kMostNamed ? ", …" : ""),
                     .expected = "expected one",
                     .hint = "name one of the files"});
}

// A folder without a model of its own: its subfolders may have one each, as those of diffusers do.
tl::unexpected<Error> NoModel(const std::string& path) {
  std::error_code error;
  std::vector<std::string> folders;
  for (fs::directory_iterator entry(path, error);
       !error && entry != fs::directory_iterator() && folders.size() < kMostNamed;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_directory(ignored)) {
      continue;
    }
    const auto files = FilesOf(entry->path().string());
    if (files &&
        (!WithEnding(*files, ".safetensors").empty() || !WithEnding(*files, ".gguf").empty())) {
      folders.push_back((fs::path(path) / entry->path().filename()).string());
    }
  }
  std::ranges::sort(folders);
  return BadInput(
      {.where = path,
       .found = "no model in this folder",
       .expected = "expected safetensors, GGUF, files of PyTorch or NumPy, a checkpoint of "
                   "several ranks, or a config.json",
       .hint = folders.empty()
                   ? std::string("name the folder that holds the model's files")
                   : fmt::format("these folders have one: {}", fmt::join(folders, ", "))});
}

// The index whose name is shortest: "model.safetensors.index.json" before that of a variant.
std::string IndexOf(const std::vector<std::string>& names, std::string_view ending) {
  const std::vector<std::string> indexes = WithEnding(names, ending);
  const auto shortest = std::ranges::min_element(indexes, {}, &std::string::size);
  return shortest == indexes.end() ? std::string() : *shortest;
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::binary_search(names, name);
}

// What models are published as. Empty: neither.
std::vector<std::string> SafetensorsOrGguf(const std::vector<std::string>& names) {
  std::vector<std::string> files = WithEnding(names, ".safetensors");
  if (Has(files, "model.safetensors")) {
    return {"model.safetensors"};
  }
  if (files.empty()) {
    files = WithEnding(names, ".gguf");
    // The projector of a model that sees images stands beside it.
    std::erase_if(files, [](const std::string& name) { return name.starts_with("mmproj"); });
  }
  return files;
}

// The files of DeepSpeed's ranks, and those of single layers beside them. Empty: there are none.
std::vector<std::string> RankFiles(const std::vector<std::string>& names) {
  std::vector<std::string> files = WithEnding(names, "_states.pt");
  const bool has_ranks = std::ranges::any_of(
      files, [](const std::string& name) { return ParseRankName(name).has_value(); });
  return has_ranks ? files : std::vector<std::string>();
}

// The first file of another kind; none where there is none.
Result<std::vector<std::string>> OtherFile(const std::string& path,
                                           const std::vector<std::string>& names) {
  if (Has(names, kPyTorchModel)) {
    return {{std::string(kPyTorchModel)}};
  }
  for (const std::string_view ending : kOtherEndings) {
    const std::vector<std::string> others = WithEnding(names, ending);
    if (others.size() > 1 && ending.starts_with(".np")) {
      return SeveralModels(path, others);
    }
    if (!others.empty() && ParseSplitName(others.front()) && ArePartsOfOne(others)) {
      return others;
    }
    if (!others.empty()) {
      return {{others.front()}};
    }
  }
  return std::vector<std::string>();
}

// What models are published as, and what trainers on many devices write: each rank its own files.
Result<std::optional<FolderContent>> WholeModel(const std::string& path,
                                                const std::vector<std::string>& names) {
  if (std::string index = IndexOf(names, ".safetensors.index.json"); !index.empty()) {
    return FolderContent{.kind = FolderKind::kIndex, .name = std::move(index)};
  }
  if (std::vector<std::string> files = SafetensorsOrGguf(names); !files.empty()) {
    return ArePartsOfOne(files)
               ? Result<std::optional<FolderContent>>(FolderContent{.files = std::move(files)})
               : SeveralModels(path, files);
  }
  if (Has(names, kDistributedMetadata) && !WithEnding(names, ".distcp").empty()) {
    return FolderContent{.kind = FolderKind::kDistributed};
  }
  if (std::vector<std::string> files = RankFiles(names); !files.empty()) {
    return FolderContent{.kind = FolderKind::kDeepSpeed, .files = std::move(files)};
  }
  return std::nullopt;
}

Result<FolderContent> ContentOf(const std::string& path, const std::vector<std::string>& names) {
  TRY(const std::optional<FolderContent> whole, WholeModel(path, names));
  if (whole) {
    return *whole;
  }
  if (std::string index = IndexOf(names, ".bin.index.json"); !index.empty()) {
    return FolderContent{.kind = FolderKind::kIndex, .name = std::move(index)};
  }
  TRY(std::vector<std::string> others, OtherFile(path, names));
  if (!others.empty()) {
    return FolderContent{.files = std::move(others)};
  }
  if (Has(names, kDistributedMetadata)) {  // without its files, which will be told
    return FolderContent{.kind = FolderKind::kDistributed};
  }
  for (const std::string_view pointer : kPointers) {
    if (Has(names, pointer)) {
      return FolderContent{.kind = FolderKind::kPointer, .name = std::string(pointer)};
    }
  }
  return Has(names, "config.json") ? Result<FolderContent>(FolderContent()) : NoModel(path);
}

// By their names: what Python's programs of training and inference load.
std::vector<std::string> PicklesOf(const std::vector<std::string>& names) {
  std::vector<std::string> pickles;
  std::ranges::copy_if(names, std::back_inserter(pickles), [](const std::string& name) {
    return std::ranges::any_of(kPickleEndings,
                               [&](std::string_view ending) { return name.ends_with(ending); });
  });
  return pickles;
}

}  // namespace

Result<FolderContent> ModelFilesOf(const std::string& path) {
  TRY(const std::vector<std::string> names, FilesOf(path));
  TRY(FolderContent content, ContentOf(path, names));
  content.pickles = PicklesOf(names);
  return content;
}

// megatron/training/checkpointing.py, get_checkpoint_name(); deepspeed/runtime/engine.py.
std::string LatestFolder(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  const std::size_t first = std::min(text.find_first_not_of(kWhite), text.size());
  text.remove_prefix(first);
  text = text.substr(0, text.find_last_not_of(kWhite) + 1);
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && number >= 0) {
    return fmt::format("iter_{:07}", number);
  }
  const bool is_name = text.find('/') == std::string_view::npos && text != "." && StaysWithin(text);
  return is_name ? std::string(text) : "";
}

bool ArePartsOfOne(const std::vector<std::string>& names) {
  const std::optional<SplitName> first = ParseSplitName(names.front());
  return names.size() == 1 || std::ranges::all_of(names, [&](const std::string& name) {
           const std::optional<SplitName> part = ParseSplitName(name);
           return first && part && part->stem == first->stem && part->count == first->count &&
                  part->ending == first->ending;
         });
}

}  // namespace fourpiles
