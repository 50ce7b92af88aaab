#pragma once

// The tensors that a pickle of PyTorch describes. The pickle has their names, types, shapes and
// strides; their bytes lie beside it, in storages that it names (torch/_utils.py,
// torch/serialization.py).

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.h"
#include "tensors/checkpoint.h"
#include "tensors/finding_list.h"
#include "tensors/pickle.h"
#include "tensors/torch_types.h"

namespace fourpiles {

// The findings of one file, each with the file's name.
class FileFindings {
 public:
  explicit FileFindings(std::string_view file) : file_(file) {}

  void Add(FileVerdict verdict, std::string_view where, std::string found, std::string expected,
           std::string_view hint = {});
  void Refuse(std::string_view where, std::string found, std::string expected,
              std::string_view hint = {}) {
    Add(FileVerdict::kRefuse, where, std::move(found), std::move(expected), hint);
  }
  // As they are, for such as name the file.
  void Add(Finding finding) { list_.Add(std::move(finding)); }
  void Add(std::vector<Finding> findings) {
    for (Finding& finding : findings) {
      list_.Add(std::move(finding));
    }
  }
  bool HasRefusals() const { return list_.HasRefusals(); }
  std::vector<Finding> Take() && { return std::move(list_).Take(file_); }

 private:
  std::string file_;
  FindingList list_ = {};
};

// What a pickle says of one storage.
struct TorchStorage {
  std::string key = {};
  const TorchType* type = nullptr;
  std::int64_t elements = 0;  // of the type; bytes of an untyped one
  std::int64_t bytes = 0;
};

struct TorchTensor {
  std::string name = {};
  const TorchType* type = nullptr;
  std::int32_t storage = 0;  // -1: none, of the device "meta"
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in elements
  std::int64_t offset = 0;                 // of its first element in the storage, in elements
};

struct TorchContents {
  std::vector<TorchStorage> storages = {};  // each key once
  std::vector<TorchTensor> tensors = {};
};

// What persistent ids may be: storages alone, or classes with their source too.
enum class TorchForm { kZip, kStream };

// The tensors in dicts, lists and the states of objects, from the value that the pickle makes;
// names are the keys on the way, joined by ".". A dict that stands in several places is listed in
// each; an object of a class in one. A sparse tensor counts as its parts, "name.<sparse0>" and so
// on. `file_bytes`: that the pickle takes in the file, fewer than it has where it is packed. What
// would grow far beyond them is refused.
TorchContents TorchContentsOf(const Pickle& pickle, TorchForm form, FileFindings& findings,
                              std::int64_t file_bytes = INT64_MAX);

// Part of a storage: all of it, or a view that begins within.
struct StorageView {
  std::int32_t storage = -1;
  std::int64_t offset = 0;  // in elements
};

// What the tar form describes beside the pickle, which then has numbers alone in its persistent
// ids.
struct TorchObjects {
  std::vector<TorchStorage> storages = {};
  std::unordered_map<std::string, StorageView, KeyedHash> views = {};    // by their numbers
  std::unordered_map<std::string, TorchTensor, KeyedHash> tensors = {};  // by theirs, without names
};

// The same of a pickle of the tar form.
TorchContents TorchContentsOf(const Pickle& pickle, const TorchObjects& objects,
                              FileFindings& findings);

// Where the bytes of a storage lie.
struct StoragePlace {
  std::int64_t offset = 0;
  std::int64_t bytes = -1;  // that are there; -1: none are
  bool packed = false;
};

struct StoragePlaces {
  std::vector<StoragePlace> places = {};  // of each storage
  bool big_endian = false;
};

// The tensors that lie within their storages, and the storages. Those that reach beyond are
// findings.
void PlaceTensors(const TorchContents& contents, const StoragePlaces& places,
                  FileFindings& findings, FileReading& reading);

// What a pickle would import beyond what a state dict needs: facts and a finding (report), and that
// it is broken (refuse).
void TellGlobals(const Pickle& pickle, std::string_view where, FileFindings& findings,
                 FileReading& reading, PickleUse use = PickleUse::kStateDict);

// The numbers of a torch.Size, a tuple or a list, behind those that `counts` has; false: it is none
// of these, has more than kMostDimensions, or something else in it.
bool ReadCounts(const Pickle& pickle, PickleRef value, std::vector<std::int64_t>& counts);

}  // namespace fourpiles
