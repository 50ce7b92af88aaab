#include "tensors/open_distributed.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "tensors/checkpoint_files.h"
#include "tensors/distributed.h"
#include "tensors/file_formats.h"
#include "tensors/torch.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLongestValue = 1000;  // of an object that is a text

// One range of a file: a chunk of a tensor, or an object.
struct Task {
  DistributedPlace place = {};
  bool is_object = false;
  std::size_t number = 0;  // of the tensor or object
  std::size_t chunk = 0;
};

// Those of all files, in the order of their bytes.
std::vector<Task> TasksOf(const DistributedContents& contents) {
  std::vector<Task> tasks;
  tasks.reserve(contents.tensors.size() + contents.objects.size());
  for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
    const auto& places = contents.tensors[i].places;
    for (std::size_t chunk = 0; chunk < places.size(); ++chunk) {
      tasks.push_back({.place = places[chunk], .number = i, .chunk = chunk});
    }
  }
  for (std::size_t i = 0; i < contents.objects.size(); ++i) {
    tasks.push_back({.place = contents.objects[i].place, .is_object = true, .number = i});
  }
  std::ranges::sort(tasks, {}, [](const Task& task) {
    return std::tuple(task.place.file, task.place.offset, task.place.bytes);
  });
  return tasks;
}

// "a", "b" and 3 more
std::string FirstNames(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 6;
  const std::size_t shown = std::min(names.size(), kMostNamed);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", names[i]);
  }
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

bool IsZip(const ByteSource& source) {
  std::array<std::byte, 2> bytes = {};
  return source.Size() >= 2 && source.ReadAt(0, bytes) && bytes[0] == std::byte{'P'} &&
         bytes[1] == std::byte{'K'};
}

// A number, text or bool that torch.save has written by itself; of other objects null.
Json ValueOf(const ByteSource& source) {
  const Result<Pickle> pickle = ReadTorchPickle(source);
  if (!pickle) {
    return {};
  }
  const PickleRef root = pickle->Root();
  switch (pickle->Kind(root)) {
    case PickleKind::kBool:
      return pickle->Integer(root) != 0;
    case PickleKind::kInteger:
      return pickle->Integer(root);
    case PickleKind::kFloat:
      return pickle->Real(root);
    case PickleKind::kText:
      return pickle->Text(root).size() > kLongestValue ? Json()
                                                       : Json(std::string(pickle->Text(root)));
    default:
      return {};
  }
}

// Where a chunk lies, once it is found to be the one that the metadata says.
struct Found {
  bool is_good = false;
  TensorPiece piece = {};
  bool big_endian = false;
};

class DistributedFiles {
 public:
  DistributedFiles(std::string folder, const DistributedContents& contents, Checkpoint& checkpoint)
      : folder_(std::move(folder)), contents_(contents), checkpoint_(checkpoint) {
    for (const DistributedTensor& tensor : contents.tensors) {
      found_.emplace_back(tensor.chunks.size());
    }
    values_.resize(contents.objects.size());
  }

  void Read() {
    const std::vector<Task> tasks = TasksOf(contents_);
    auto begin = tasks.begin();
    for (std::size_t file = 0; file < contents_.files.size(); ++file) {
      const auto end = std::find_if(begin, tasks.end(), [&](const Task& task) {
        return task.place.file != static_cast<std::int32_t>(file);
      });
      ReadFile(contents_.files[file], std::span(begin, end));
      begin = end;
    }
    TellMissing();
    AddTensors();
    AddObjects();
  }

 private:
  void ReadFile(const std::string& name, std::span<const Task> tasks) {
    if (IsMissing(folder_, name)) {
      checkpoint_.files.push_back({.name = name, .format = kMissingFile});
      missing_files_.push_back(name);
      missing_tasks_.insert(missing_tasks_.end(), tasks.begin(), tasks.end());
      return;
    }
    Result<FileSource> opened = FileSource::OpenWithin(folder_, name);
    if (!opened) {
      checkpoint_.files.push_back({.name = name, .findings = {Refusal(opened.error().text)}});
      return;
    }
    const auto source = std::make_shared<FileSource>(*std::move(opened));
    FileFindings findings(source->Name());
    for (const Task& task : tasks) {
      ReadTask(*source, task, findings);
    }
    checkpoint_.files.push_back({.name = name,
                                 .format = "distcp",
                                 .bytes = source->Size(),
                                 .findings = std::move(findings).Take(),
                                 .source = source,
                                 .folder = folder_});
    CloseLastOfMany(checkpoint_);
  }

  // All files that the folder lacks at once, for a whole rank may have kept its own.
  void TellMissing() {
    if (missing_files_.empty()) {
      return;
    }
    std::vector<std::string> names;
    names.reserve(missing_tasks_.size());
    for (const Task& task : missing_tasks_) {
      names.push_back(NameOf(task));
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    checkpoint_.findings.push_back(
        Refusal({folder_,
                 fmt::format("{} of {} files are missing: {}; they hold all or part of {}",
                             missing_files_.size(), contents_.files.size(),
                             FirstNames(missing_files_), FirstNames(names)),
                 "expected the files that .metadata names",
                 "each rank writes files of its own, perhaps on its own disk: copy all of them "
                 "into this folder"}));
  }

  const std::string& NameOf(const Task& task) const {
    return task.is_object ? contents_.objects[task.number].name
                          : contents_.tensors[task.number].name;
  }

  void ReadTask(const ByteSource& source, const Task& task, FileFindings& findings) {
    const auto slice = SliceSource::Of(source, task.place.offset, task.place.bytes);
    if (!slice) {
      return findings.Refuse(
          fmt::format("\"{}\"", NameOf(task)),
          fmt::format("bytes {} to {}", task.place.offset, task.place.offset + task.place.bytes),
          fmt::format("the file has {}", source.Size()),
          "the file may have been cut short; fetch it again");
    }
    if (task.is_object) {
      ReadObject(*slice, task, findings);
    } else {
      ReadChunk(*slice, task, findings);
    }
  }

  // Loading the checkpoint loads its objects too, so what they would import is told.
  void ReadObject(const ByteSource& slice, const Task& task, FileFindings& findings) {
    FileReading reading;
    if (IsZip(slice)) {
      reading = ReadTorchZip(slice);
      values_[task.number] = ValueOf(slice);
    } else if (const FileFormat* format = FormatOf(slice);
               format != nullptr && format->name == "pickle") {
      reading = ReadPickleFile(slice);
    }
    findings.Add(std::move(reading.findings));
  }

  void ReadChunk(const ByteSource& slice, const Task& task, FileFindings& findings) {
    const std::string where = fmt::format("chunk of \"{}\"", NameOf(task));
    if (!IsZip(slice)) {
      const FileFormat* format = FormatOf(slice);
      return findings.Refuse(
          where,
          format == nullptr ? "bytes of no known kind" : fmt::format("a chunk in {}", format->name),
          "this version reads what torch.save writes");
    }
    FileReading reading = ReadTorchZip(slice);
    findings.Add(std::move(reading.findings));
    if (reading.tensors.size() != 1) {
      return findings.Refuse(where, fmt::format("{} tensors", reading.tensors.size()),
                             "expected one");
    }
    if (const std::string& name = reading.tensors.front().name; !name.empty()) {
      return findings.Refuse(where, fmt::format("a tensor within a container, as \"{}\"", name),
                             "expected the tensor alone");
    }
    Take(reading.tensors.front(), task, where, findings);
  }

  void Take(FileTensor& chunk, const Task& task, const std::string& where, FileFindings& findings) {
    const DistributedTensor& tensor = contents_.tensors[task.number];
    const TensorBox& box = tensor.chunks[task.chunk];
    if (chunk.dtype != tensor.type->dtype || chunk.shape != box.shape) {
      return findings.Refuse(
          where, fmt::format("{} of shape {}", chunk.dtype, ShapeText(chunk.shape)),
          fmt::format(".metadata says {} of shape {}", tensor.type->dtype, ShapeText(box.shape)));
    }
    if (chunk.packed) {
      return findings.Refuse(where, "a deflated chunk", "torch.save never wrote one");
    }
    // The first file of the checkpoint is .metadata.
    found_[task.number][task.chunk] = {.is_good = true,
                                       .piece = {.file = task.place.file + 1,
                                                 .offset = task.place.offset + chunk.offset,
                                                 .bytes = chunk.bytes,
                                                 .start = box.start,
                                                 .shape = box.shape,
                                                 .strides = std::move(chunk.strides)},
                                       .big_endian = chunk.big_endian};
  }

  void AddTensors() {
    FileFindings findings(kDistributedMetadata);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const DistributedTensor& tensor = contents_.tensors[i];
      if (!std::ranges::all_of(found_[i], &Found::is_good)) {
        continue;  // which was told where it was found
      }
      const auto is_other = [&](const Found& found) {
        return found.big_endian != found_[i].front().big_endian;
      };
      if (std::ranges::any_of(found_[i], is_other)) {
        findings.Refuse(fmt::format("tensor \"{}\"", tensor.name), "chunks in both orders of bytes",
                        "expected one");
      } else {
        checkpoint_.tensors.push_back(JoinedTensor(tensor, found_[i]));
      }
    }
    std::ranges::move(std::move(findings).Take(), std::back_inserter(checkpoint_.findings));
  }

  static FileTensor JoinedTensor(const DistributedTensor& tensor, std::vector<Found>& found) {
    const std::int64_t elements = ElementsOf(tensor.shape).value();
    FileTensor joined = {
        .name = tensor.name,
        .dtype = std::string(tensor.type->dtype),
        .type = FindStoredType(tensor.type->stored),
        .shape = tensor.shape,
        .elements = elements,
        .bytes = DivideRoundingUp(Checked(elements) * tensor.type->bits, 8).value()};
    if (!found.empty()) {
      joined.offset = found.front().piece.offset;
      joined.file = found.front().piece.file;
      joined.big_endian = found.front().big_endian;
    }
    if (found.size() == 1) {
      joined.strides = std::move(found.front().piece.strides);
      return joined;
    }
    joined.pieces.reserve(found.size());
    for (Found& each : found) {
      joined.pieces.push_back(std::move(each.piece));
    }
    return joined;
  }

  void AddObjects() {
    CheckpointFile& metadata = checkpoint_.files.front();
    Checked bytes = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      bytes = bytes + contents_.objects[i].place.bytes;
      metadata.metadata.push_back(
          {.key = contents_.objects[i].name, .value = std::move(values_[i])});
    }
    std::int64_t chunks = 0;
    for (const DistributedTensor& tensor : contents_.tensors) {
      chunks += static_cast<std::int64_t>(tensor.chunks.size());
    }
    metadata.facts.emplace_back("chunks", chunks);
    metadata.facts.emplace_back("objects", static_cast<std::int64_t>(values_.size()));
    metadata.facts.emplace_back("object_bytes", OrLargest(bytes));
  }

  std::string folder_;
  const DistributedContents& contents_;
  Checkpoint& checkpoint_;
  std::vector<std::vector<Found>> found_ = {};  // of each chunk of each tensor
  std::vector<Json> values_ = {};               // of each object
  std::vector<std::string> missing_files_ = {};
  std::vector<Task> missing_tasks_ = {};  // what lies in them
};

// What the pickle says, as far as it can be trusted.
DistributedContents ContentsOf(const ByteSource& source, FileFindings& findings,
                               FileReading& reading) {
  const Pickle pickle = ReadPickle(source, 0);
  TellGlobals(pickle, "", findings, reading, PickleUse::kDistributed);
  if (const auto& fault = pickle.Fault()) {
    findings.Refuse(fmt::format("byte {}", fault->byte), fault->found, fault->expected);
    return {};
  }
  if (pickle.End() < source.Size()) {
    findings.Add(FileVerdict::kReport, fmt::format("byte {}", pickle.End()),
                 fmt::format("{} bytes behind the pickle", source.Size() - pickle.End()),
                 "expected its end", "another program may read on there");
  }
  if (!IsDistributed(pickle)) {
    findings.Refuse("", "no metadata of a distributed checkpoint",
                    "expected that of torch.distributed.checkpoint");
    return {};
  }
  return DistributedContentsOf(pickle, findings);
}

}  // namespace

Result<Checkpoint> OpenDistributed(const std::string& folder) {
  TRY(FileSource opened, FileSource::OpenWithin(folder, kDistributedMetadata));
  const auto source = std::make_shared<FileSource>(std::move(opened));
  FileReading reading = {.format = "torch-distributed"};
  FileFindings findings(source->Name());
  const DistributedContents contents = ContentsOf(*source, findings, reading);
  reading.findings = std::move(findings).Take();
  Checkpoint checkpoint;
  AddReading(checkpoint, std::string(kDistributedMetadata), source, std::move(reading));
  checkpoint.files.front().folder = folder;
  DistributedFiles(folder, contents, checkpoint).Read();
  return checkpoint;
}

}  // namespace fourpiles
