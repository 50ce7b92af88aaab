#pragma once

// Putting files into a checkpoint: their tensors, storages and findings, numbered.

#include <memory>
#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

// A file as its reader has read it.
void AddReading(Checkpoint& checkpoint, std::string name,
                const std::shared_ptr<const ByteSource>& source, FileReading reading);

// A file, read by the reader of its kind.
void AddFile(Checkpoint& checkpoint, std::string name,
             const std::shared_ptr<const ByteSource>& source);

// A file that another one names, read by `read`: ReadTensorFile() or another reader. One that
// cannot be opened is a finding. Of many files the later ones are closed again.
void AddFileOfFolder(Checkpoint& checkpoint, const std::string& folder, const std::string& name,
                     FileReading (*read)(const ByteSource&));

// The format of a file that another one names and the folder lacks.
inline constexpr std::string_view kMissingFile = "missing";
bool IsMissing(const std::string& folder, const std::string& name);

// Closes the last file again where many are open.
void CloseLastOfMany(Checkpoint& checkpoint);

// The file, opened again where it was closed; nullptr where it can no longer be opened.
std::shared_ptr<const ByteSource> SourceOf(const CheckpointFile& file);

// A refusal with that text.
Finding Refusal(ErrorText text);

}  // namespace fourpiles
