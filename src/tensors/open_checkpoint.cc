#include "tensors/open_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/huge_pages.h"
#include "base/try.h"
#include "tensors/checkpoint_files.h"
#include "tensors/deepspeed.h"
#include "tensors/file_formats.h"
#include "tensors/folder.h"
#include "tensors/gguf_split.h"
#include "tensors/open_distributed.h"
#include "tensors/safetensors_index.h"

namespace fourpiles {
namespace {

constexpr std::string_view kPointer = "Git LFS pointer";
constexpr std::int64_t kMostParts = 10'000;

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string NameOf(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// The document of the folder, or null when there is none. One that cannot be read is a finding.
Json ReadDocument(const std::string& folder, std::string_view name, FileVerdict when_bad,
                  std::vector<Finding>& findings) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return {};
  }
  const auto document = [&]() -> Result<Json> {
    TRY(const FileSource source, FileSource::OpenWithin(folder, name));
    TRY(const std::string text, ReadWholeFile(source, kConfigLimits.bytes));
    return ReadJson(text, path, kConfigLimits);
  }();
  if (!document) {
    findings.push_back({.verdict = when_bad, .text = document.error().text});
    return {};
  }
  return *document;
}

void ReadConfigs(Checkpoint& checkpoint, const std::string& folder, FileVerdict when_bad) {
  checkpoint.configs.config = ReadDocument(folder, "config.json", when_bad, checkpoint.findings);
  for (const char* name : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
    if (checkpoint.configs.quantization.IsNull()) {
      checkpoint.configs.quantization = ReadDocument(folder, name, when_bad, checkpoint.findings);
    }
  }
}

// "size 123" of a Git LFS pointer.
std::int64_t PointerBytes(const ByteSource& source) {
  constexpr std::int64_t kMostPointerBytes = 1024;  // git-lfs, docs/spec.md
  const auto text = ReadWholeFile(source, kMostPointerBytes);
  const std::size_t place = text ? text->find("\nsize ") : std::string::npos;
  std::int64_t bytes = 0;
  if (place != std::string::npos) {
    std::from_chars(text->data() + place + 6, text->data() + text->size(), bytes);
  }
  return std::clamp<std::int64_t>(bytes, 0, kLargestAmount);
}

// A folder whose shards were never fetched is told once, not shard by shard.
void TellPointersTogether(Checkpoint& checkpoint, const std::string& where) {
  std::int64_t pointers = 0;
  Checked bytes = 0;
  for (CheckpointFile& file : checkpoint.files) {
    if (file.format == kPointer) {
      ++pointers;
      const auto source = SourceOf(file);
      bytes = bytes + (source == nullptr ? 0 : PointerBytes(*source));
      file.findings.clear();
    }
  }
  if (pointers > 0) {
    checkpoint.facts.emplace_back("pointers", pointers);
    checkpoint.facts.emplace_back("pointer_bytes", OrLargest(bytes));
    checkpoint.findings.push_back(
        Refusal({where,
                 fmt::format("{} of {} files are Git LFS pointers, which stand for {} bytes",
                             pointers, checkpoint.files.size(), OrLargest(bytes)),
                 "expected the weights", "\"git lfs pull\" fetches them"}));
  }
}

// Files that the index names and the folder lacks.
void TellMissing(const std::vector<std::string>& missing, std::size_t shards,
                 const std::string& where, Checkpoint& checkpoint) {
  if (missing.size() == shards && shards > 0) {
    checkpoint.findings.push_back(
        {.verdict = FileVerdict::kReport,
         .text = {where, fmt::format("an index without its {} shards", shards),
                  "expected them in the same folder", "fetch the shards"}});
  } else if (!missing.empty()) {
    checkpoint.findings.push_back(
        Refusal({where,
                 fmt::format("{} of {} shards are missing, the first \"{}\"", missing.size(),
                             shards, missing.front()),
                 "expected them in the same folder", "fetch the missing shards"}));
  }
}

Checkpoint OpenIndex(const std::string& path, const ByteSource& source) {
  Checkpoint checkpoint = {.path = path};
  const std::string folder = FolderOf(path);
  const SafetensorsIndex index = ReadSafetensorsIndex(source);
  checkpoint.facts = index.facts;
  checkpoint.findings = index.findings;
  ReserveOnHugePages(checkpoint.tensors, index.entries.size());
  std::vector<std::string> missing;
  for (const std::string& shard : index.shards) {
    if (IsMissing(folder, shard)) {
      missing.push_back(shard);
      checkpoint.files.push_back({.name = shard, .format = kMissingFile});
    } else {
      AddFileOfFolder(checkpoint, folder, shard, ReadTensorFile);
    }
  }
  TellMissing(missing, index.shards.size(), path, checkpoint);
  TellPointersTogether(checkpoint, path);
  if (missing.empty() && VerdictOf(checkpoint) != FileVerdict::kRefuse) {
    std::ranges::move(CheckAgainstIndex(index, checkpoint.tensors, path),
                      std::back_inserter(checkpoint.findings));
  }
  return checkpoint;
}

// Files that are parts of one model: each part is there once, and no tensor in two of them.
void CheckParts(Checkpoint& checkpoint) {
  std::vector<std::int64_t> tensors(checkpoint.files.size());
  std::vector<std::string_view> names;
  for (const FileTensor& tensor : checkpoint.tensors) {
    ++tensors[static_cast<std::size_t>(tensor.file)];
    names.emplace_back(tensor.name);
  }
  std::vector<SplitPart> parts;
  for (std::size_t i = 0; i < checkpoint.files.size(); ++i) {
    const CheckpointFile& file = checkpoint.files[i];
    parts.push_back({.file_name = file.name, .facts = file.facts, .tensors = tensors[i]});
  }
  std::ranges::move(CheckSplit(parts), std::back_inserter(checkpoint.findings));
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    checkpoint.findings.push_back(
        Refusal({checkpoint.path, fmt::format("the tensor \"{}\" in two files", *twice),
                 "expected each tensor once", ""}));
  }
}

// Files of NumPy and PyTorch. A listing of one looks at that file alone, so their config.json is
// looked for only where they are taken for a model.
bool MayHaveConfig(const CheckpointFile& file) {
  return file.format == "npz" || file.format.starts_with("torch");
}

Checkpoint WithPath(Checkpoint checkpoint, const std::string& path) {
  checkpoint.path = path;
  return checkpoint;
}

// The checkpoint of trainers that write a folder, by what the folder has; needs such a content.
Result<Checkpoint> OpenRanks(const std::string& path, const FolderContent& content) {
  return content.kind == FolderKind::kDistributed
             ? OpenDistributed(path)
             : Result<Checkpoint>(OpenDeepSpeed(path, content.files));
}

// Pickles that lie beside the model and were not read: nobody has judged them.
void TellNotRead(const std::vector<std::string>& pickles, Checkpoint& checkpoint) {
  std::set<std::string_view> read;
  for (const CheckpointFile& file : checkpoint.files) {
    read.insert(file.name);
  }
  Json::Array not_read;
  for (const std::string& name : pickles) {
    if (!read.contains(name)) {
      not_read.emplace_back(name);
    }
  }
  if (!not_read.empty()) {
    checkpoint.facts.emplace_back("not_read", std::move(not_read));
  }
}

// The folder that a file like "latest" names, one step down from its own.
Result<Checkpoint> OpenLatest(const std::string& path, const std::string& pointer) {
  constexpr std::int64_t kLongest = 255;  // of a folder's name, and a line feed
  TRY(const FileSource source, FileSource::OpenWithin(path, pointer));
  TRY(const std::string text, ReadWholeFile(source, kLongest + 1));
  const std::string name = LatestFolder(text);
  const std::string folder = (std::filesystem::path(path) / name).string();
  std::error_code error;
  const bool is_there = !name.empty() && std::filesystem::symlink_status(folder, error).type() ==
                                             std::filesystem::file_type::directory;
  const Result<FolderContent> content =
      is_there ? ModelFilesOf(folder) : Result<FolderContent>(FolderContent());
  if (!content ||
      (content->kind != FolderKind::kDistributed && content->kind != FolderKind::kDeepSpeed)) {
    return BadInput({std::string(source.Name()),
                     fmt::format("the name of the folder \"{}\"", name.empty() ? text : name),
                     "expected one beside it with a checkpoint of several ranks",
                     "name the folder that holds the checkpoint"});
  }
  TRY(Checkpoint checkpoint, OpenRanks(folder, *content));
  checkpoint.facts.emplace_back("folder", name);
  TellNotRead(content->pickles, checkpoint);
  return checkpoint;
}

Result<Checkpoint> OpenIndexOfFolder(const std::string& path, const std::string& index) {
  TRY(const FileSource source, FileSource::OpenWithin(path, index));
  return OpenIndex((std::filesystem::path(path) / index).string(), source);
}

Checkpoint OpenFiles(const std::string& path, const std::vector<std::string>& files) {
  Checkpoint checkpoint = {.path = path};
  for (const std::string& file : files) {
    AddFileOfFolder(checkpoint, path, file, ReadTensorFile);
  }
  TellPointersTogether(checkpoint, path);
  if (!files.empty() && ParseSplitName(files.front()) &&
      VerdictOf(checkpoint) != FileVerdict::kRefuse) {
    CheckParts(checkpoint);
  }
  return checkpoint;
}

Result<Checkpoint> OpenContent(const std::string& path, const FolderContent& content) {
  switch (content.kind) {
    case FolderKind::kIndex:
      return OpenIndexOfFolder(path, content.name);
    case FolderKind::kDistributed:
    case FolderKind::kDeepSpeed:
      return OpenRanks(path, content);
    case FolderKind::kPointer:
      return OpenLatest(path, content.name);
    case FolderKind::kFiles:
      break;
  }
  return OpenFiles(path, content.files);
}

Result<Checkpoint> OpenFolder(const std::string& path) {
  TRY(const FolderContent content, ModelFilesOf(path));
  TRY(Checkpoint checkpoint, OpenContent(path, content));
  if (content.kind != FolderKind::kPointer) {
    TellNotRead(content.pickles, checkpoint);
  }
  ReadConfigs(checkpoint, path, FileVerdict::kRefuse);
  return WithPath(std::move(checkpoint), path);
}

// config.json, hf_quant_config.json and the like: no tensors, but what they say of them.
Checkpoint OpenJson(const std::string& path, Json document) {
  Checkpoint checkpoint = {.path = path};
  CheckpointFile file = {.name = NameOf(path), .format = "JSON document"};
  if (document.AsArray() != nullptr || document.Find("weightsManifest") != nullptr) {
    file.findings.push_back(
        Refusal({path, "a TensorFlow.js model, which this version does not read",
                 std::string(kExpectedFile), ""}));
  }
  checkpoint.files.push_back(std::move(file));
  const bool is_quantization =
      document.Find("quantization") != nullptr && document.Find("model_type") == nullptr;
  (is_quantization ? checkpoint.configs.quantization : checkpoint.configs.config) =
      std::move(document);
  return checkpoint;
}

Result<Checkpoint> OpenDocument(const std::string& path, const ByteSource& source) {
  if (path.ends_with(".index.json")) {
    Checkpoint checkpoint = OpenIndex(path, source);
    ReadConfigs(checkpoint, FolderOf(path), FileVerdict::kAcceptWithWarning);
    return checkpoint;
  }
  TRY(const std::string text, ReadWholeFile(source, kConfigLimits.bytes));
  TRY(Json document, ReadJson(text, path, kConfigLimits));
  return document.Find("weight_map") != nullptr ? OpenIndex(path, source)
                                                : OpenJson(path, std::move(document));
}

}  // namespace

FileVerdict VerdictOf(const Checkpoint& checkpoint) {
  FileVerdict worst = WorstOf(checkpoint.findings);
  for (const CheckpointFile& file : checkpoint.files) {
    worst = std::max(worst, WorstOf(file.findings));
  }
  return worst;
}

Result<Checkpoint> OpenCheckpoint(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return OpenFolder(path);
  }
  if (NameOf(path) == kDistributedMetadata) {
    TRY(Checkpoint checkpoint, OpenDistributed(FolderOf(path)));
    return WithPath(std::move(checkpoint), path);
  }
  TRY(FileSource source, FileSource::Open(path));
  if (path.ends_with(".distcp")) {
    return BadInput({path, "a part of a distributed checkpoint", "expected the whole of it",
                     fmt::format("give its folder, {}", FolderOf(path))});
  }
  const FileFormat* format = FormatOf(source);
  if (path.ends_with(".json") && (format == nullptr || format->read == nullptr)) {
    return OpenDocument(path, source);
  }
  Checkpoint checkpoint = {.path = path};
  AddFile(checkpoint, NameOf(path), std::make_shared<FileSource>(std::move(source)));
  CheckpointFile& file = checkpoint.files.front();
  if (const std::optional<SplitName> part = ParseSplitName(file.name);
      part && file.format == "safetensors") {
    file.facts.emplace_back("split_no", part->number - 1);
    file.facts.emplace_back("split_count", part->count);
  }
  if (file.format == "safetensors") {
    ReadConfigs(checkpoint, FolderOf(path), FileVerdict::kAcceptWithWarning);
  }
  return checkpoint;
}

Result<Checkpoint> OpenCheckpointParts(const std::vector<std::string>& paths) {
  Checkpoint checkpoint = {.path = paths.front()};
  for (const std::string& path : paths) {
    TRY(FileSource source, FileSource::Open(path));
    AddFile(checkpoint, NameOf(path), std::make_shared<FileSource>(std::move(source)));
  }
  CheckParts(checkpoint);
  if (checkpoint.files.front().format == "safetensors") {
    ReadConfigs(checkpoint, FolderOf(paths.front()), FileVerdict::kAcceptWithWarning);
  }
  return checkpoint;
}

Result<Checkpoint> OpenWholeCheckpoint(const std::string& path) {
  std::error_code error;
  const std::optional<SplitName> part = ParseSplitName(NameOf(path));
  if (!part || part->count < 2 || part->count > kMostParts ||
      std::filesystem::is_directory(path, error)) {
    TRY(Checkpoint checkpoint, OpenCheckpoint(path));
    if (!std::filesystem::is_directory(path, error) && !checkpoint.files.empty() &&
        MayHaveConfig(checkpoint.files.front())) {
      ReadConfigs(checkpoint, FolderOf(path), FileVerdict::kAcceptWithWarning);
    }
    return checkpoint;
  }
  if (part->ending != ".gguf") {
    return OpenCheckpoint(FolderOf(path));  // an index there says what belongs together
  }
  Checkpoint checkpoint = {.path = path};
  for (std::int64_t number = 1; number <= part->count; ++number) {
    AddFileOfFolder(checkpoint, FolderOf(path), SplitFileName({part->stem, number, part->count}),
                    ReadTensorFile);
  }
  if (VerdictOf(checkpoint) != FileVerdict::kRefuse) {
    CheckParts(checkpoint);
  }
  return checkpoint;
}

std::vector<Finding> AllFindings(const Checkpoint& checkpoint) {
  std::vector<Finding> findings = checkpoint.findings;
  for (const CheckpointFile& file : checkpoint.files) {
    findings.insert(findings.end(), file.findings.begin(), file.findings.end());
  }
  return findings;
}

std::optional<std::string> TensorBytes(const Checkpoint& checkpoint, const FileTensor& tensor,
                                       std::int64_t limit) {
  const bool is_plain =
      !tensor.packed && !tensor.big_endian && tensor.strides.empty() && tensor.pieces.empty();
  if (!is_plain || tensor.bytes < 0 || tensor.bytes > limit) {
    return std::nullopt;
  }
  const auto source = SourceOf(checkpoint.files[static_cast<std::size_t>(tensor.file)]);
  std::string bytes(static_cast<std::size_t>(tensor.bytes), '\0');
  if (source == nullptr ||
      !source->ReadAt(tensor.offset, std::as_writable_bytes(std::span(bytes)))) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace fourpiles
