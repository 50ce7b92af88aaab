#include "tensors/checkpoint_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tensors/file_formats.h"

namespace fourpiles {
namespace {

// A process may have a thousand; later ones are opened again.
constexpr std::size_t kMostOpenFiles = 200;

}  // namespace

Finding Refusal(ErrorText text) {
  return {.verdict = FileVerdict::kRefuse, .text = std::move(text)};
}

void AddReading(Checkpoint& checkpoint, std::string name,
                const std::shared_ptr<const ByteSource>& source, FileReading reading) {
  const auto number = static_cast<std::int32_t>(checkpoint.files.size());
  const auto first_storage = static_cast<std::int32_t>(checkpoint.storages.size());
  for (FileTensor& tensor : reading.tensors) {
    tensor.file = number;
    tensor.storage += tensor.storage < 0 ? 0 : first_storage;
  }
  for (TensorStorage& storage : reading.storages) {
    storage.file = number;
    checkpoint.storages.push_back(std::move(storage));
  }
  if (checkpoint.tensors.capacity() == 0) {
    checkpoint.tensors = std::move(reading.tensors);
  } else {
    std::ranges::move(reading.tensors, std::back_inserter(checkpoint.tensors));
  }
  checkpoint.files.push_back({.name = std::move(name),
                              .format = reading.format,
                              .bytes = source->Size(),
                              .metadata = std::move(reading.metadata),
                              .facts = std::move(reading.facts),
                              .findings = std::move(reading.findings),
                              .source = source});
}

void AddFile(Checkpoint& checkpoint, std::string name,
             const std::shared_ptr<const ByteSource>& source) {
  AddReading(checkpoint, std::move(name), source, ReadTensorFile(*source));
}

void AddFileOfFolder(Checkpoint& checkpoint, const std::string& folder, const std::string& name,
                     FileReading (*read)(const ByteSource&)) {
  Result<FileSource> source = FileSource::OpenWithin(folder, name);
  if (source) {
    const auto shared = std::make_shared<FileSource>(*std::move(source));
    AddReading(checkpoint, name, shared, read(*shared));
  } else {
    checkpoint.files.push_back({.name = name, .findings = {Refusal(source.error().text)}});
  }
  checkpoint.files.back().folder = folder;
  CloseLastOfMany(checkpoint);
}

bool IsMissing(const std::string& folder, const std::string& name) {
  std::error_code error;
  return StaysWithin(name) &&
         std::filesystem::symlink_status(std::filesystem::path(folder) / name, error).type() ==
             std::filesystem::file_type::not_found;
}

void CloseLastOfMany(Checkpoint& checkpoint) {
  if (checkpoint.files.size() > kMostOpenFiles) {
    checkpoint.files.back().source.reset();
  }
}

std::shared_ptr<const ByteSource> SourceOf(const CheckpointFile& file) {
  if (file.source != nullptr || file.folder.empty()) {
    return file.source;
  }
  Result<FileSource> source = FileSource::OpenWithin(file.folder, file.name);
  return source ? std::make_shared<FileSource>(*std::move(source)) : nullptr;
}

}  // namespace fourpiles
