#pragma once

// What a training process takes on its device besides tensors: the driver's context, communicators,
// what libraries work in, and what PyTorch's allocator has in pieces. Storages without elements.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/result.h"
#include "model/names.h"
#include "plan/job.h"
#include "step/caching_allocator.h"
#include "step/play.h"

namespace fourpiles {

// What an amount is taken for, once each.
enum class SurroundingEach {
  kProcess,
  kFurtherCommunicator,  // after the first
  kAllToAll,             // where experts are spread over devices
};

// Groups of ranks that one rank communicates in: data, tensor, context and expert parallel, and the
// stages of a pipeline.
std::int64_t CommunicatorsOf(const Layout& layout);

// An amount that was measured, or that a library asks for whatever is computed.
struct Surrounding {
  Names names = {};
  std::string what = {};
  // PyTorch's allocator gives it to a library, once for each thread that computes; else the driver
  // does.
  bool is_allocated = false;
  std::vector<std::string> architectures = {};         // of devices that have it; none: all …
  std::vector<std::string> except_architectures = {};  // … but these
  std::vector<std::string> vendors = {"NVIDIA"};
  std::vector<std::string> implementations = {};  // that have it, with all variants; none: all
  bool once = false;                              // not for each thread
  std::int64_t least_devices = 1;
  SurroundingEach each = SurroundingEach::kProcess;
  Band bytes = {};
  std::string source = {};
};

Result<Surrounding> SurroundingFromJson(const Json& json, std::string_view where);

// Every record of data/surroundings.json.
const std::vector<Surrounding>& SurroundingRecords();

// The records are of NVIDIA's devices under PyTorch, and of AMD's where there are several, without
// their driver's context.
bool KnowsSurroundings(const Job& job);

// What the allocator gives to libraries, all threads together, and what the driver takes; nothing
// where they are not known. Of the process as a whole, what the allocator has reserved.
Bytes LibraryBytes(const Job& job);
Band DriverBand(const Job& job);
Band ReservedOf(const Job& job, const Band& total);

// A peak with what is around it.
Band WithSurroundings(Bytes peak, const Resident& around);

// What a step asks the allocator for; every layer of the tape is played for itself.
AllocatorRun AllocatorRunOn(const Job& job, const Tape& whole);

// Of a rank, with what it holds at its peak; its steps are alike, or of several lengths, one run
// each (reserved.h). Where all together take more than `enough`, it is not told how much more.
// KnowsSurroundings.
Resident SurroundingStorages(const Job& job, std::span<const AllocatorRun> runs, Bytes peak,
                             std::optional<Bytes> enough = {});

}  // namespace fourpiles
