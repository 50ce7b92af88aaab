#include "plan/surroundings.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "model/record.h"
#include "model/record_files.h"
#include "plan/device.h"
#include "plan/reserved.h"
#include "step/allocator_run.h"

namespace fourpiles {

std::span<const DataFile> SurroundingFiles();  // made from data/ by data/embed.cmake

namespace {

constexpr std::string_view kKeys[] = {"id",
                                      "aliases",
                                      "what",
                                      "kept_by",
                                      "architectures",
                                      "except_architectures",
                                      "vendors",
                                      "implementations",
                                      "once",
                                      "least_devices",
                                      "each",
                                      "low_bytes",
                                      "expected_bytes",
                                      "high_bytes",
                                      "source",
                                      "unverified",
                                      "checked"};

constexpr const char* kSource = "pytorch c10/cuda/CUDACachingAllocator.cpp, replayed";

bool Applies(const Surrounding& surrounding, const Job& job) {
  const std::string& architecture = job.device->architecture;
  const auto names = [&](const std::vector<std::string>& list) {
    return std::ranges::find(list, architecture) != list.end();
  };
  const std::vector<std::string>& vendors = surrounding.vendors;
  const bool is_sold = std::ranges::find(vendors, job.device->vendor) != vendors.end();
  const std::string_view implementation = job.training.profile.name;
  const bool is_of = surrounding.implementations.empty() ||
                     std::ranges::any_of(surrounding.implementations, [&](const std::string& name) {
                       return implementation.starts_with(name);
                     });
  return is_sold && is_of && job.devices >= surrounding.least_devices &&
         !names(surrounding.except_architectures) &&
         (surrounding.architectures.empty() || names(surrounding.architectures));
}

// How often the job takes it. The forward pass runs in one thread, the backward pass in another.
std::int64_t CopiesOf(const Surrounding& surrounding, const Job& job) {
  switch (surrounding.each) {
    case SurroundingEach::kFurtherCommunicator:
      return std::max<std::int64_t>(0, CommunicatorsOf(job.training.layout) - 1);
    case SurroundingEach::kAllToAll:
      return job.training.layout.expert > 1 ? 1 : 0;
    case SurroundingEach::kProcess:
      break;
  }
  const bool of_each_thread = surrounding.is_allocated && !surrounding.once;
  return of_each_thread && !job.training.evaluates ? 2 : 1;
}

std::string FormulaOf(const Surrounding& surrounding, std::int64_t copies) {
  if (surrounding.is_allocated) {
    return surrounding.once ? "one for all" : "one for each thread";
  }
  return copies > 1 ? fmt::format("{} × measured", copies) : "measured";
}

Band Beyond(const Band& reserved, Bytes held) {
  const auto beyond = [&](Bytes bytes) { return std::max(Bytes(0), bytes - held); };
  return {beyond(reserved.low), beyond(reserved.expected), beyond(reserved.high)};
}

}  // namespace

Result<Surrounding> SurroundingFromJson(const Json& json, std::string_view where) {
  TRY(const Fields fields, Fields::Of(json, std::string(where)));
  TRY_VOID(fields.RefuseUnknown(kKeys));
  Record record(fields);
  const Range amounts = {0, kLargestAmount};
  Surrounding surrounding = {
      .names = {.id = record.Text("id"), .aliases = record.Texts("aliases")},
      .what = record.Text("what"),
      .is_allocated = record.IsText("kept_by", "allocator"),
      .architectures = record.Texts("architectures"),
      .except_architectures = record.Texts("except_architectures"),
      .implementations = record.Texts("implementations"),
      .once = record.Flag("once", false),
      .least_devices = record.CountOr("least_devices", 1),
      .each = record.IsText("each", "further communicator") ? SurroundingEach::kFurtherCommunicator
              : record.IsText("each", "all-to-all")         ? SurroundingEach::kAllToAll
                                                            : SurroundingEach::kProcess,
      .bytes = {.low = Bytes(record.Count("low_bytes", amounts)),
                .expected = Bytes(record.Count("expected_bytes", amounts)),
                .high = Bytes(record.Count("high_bytes", amounts))},
      .source = record.Text("source"),
  };
  if (std::vector<std::string> vendors = record.Texts("vendors"); !vendors.empty()) {
    surrounding.vendors = std::move(vendors);
  }
  TRY_VOID(record.Finish());
  return surrounding;
}

std::int64_t CommunicatorsOf(const Layout& layout) {
  std::int64_t groups = 0;
  for (const std::int64_t ranks :
       {DataRanks(layout), layout.tensor, layout.context, layout.pipeline, layout.expert}) {
    groups += ranks > 1 ? 1 : 0;
  }
  return groups;
}

const std::vector<Surrounding>& SurroundingRecords() {
  static const std::vector<Surrounding> all =
      CompiledRecords(SurroundingFiles(), SurroundingFromJson);
  return all;
}

bool KnowsSurroundings(const Job& job) {
  return job.device && !IsSize(*job.device) &&
         (job.device->vendor == "NVIDIA" || (job.device->vendor == "AMD" && job.devices > 1));
}

Bytes LibraryBytes(const Job& job) {
  Bytes sum(0);
  if (!KnowsSurroundings(job) || job.training.profile.allocates_once) {
    return sum;
  }
  for (const Surrounding& surrounding : SurroundingRecords()) {
    if (surrounding.is_allocated && Applies(surrounding, job)) {
      sum += Bytes(surrounding.bytes.expected.value() * CopiesOf(surrounding, job));
    }
  }
  return sum;
}

Band DriverBand(const Job& job) {
  Band sum;
  if (!KnowsSurroundings(job)) {
    return sum;
  }
  for (const Surrounding& surrounding : SurroundingRecords()) {
    const bool counts = !surrounding.is_allocated && Applies(surrounding, job);
    for (std::int64_t copy = 0; counts && copy < CopiesOf(surrounding, job); ++copy) {
      sum.low += surrounding.bytes.low;
      sum.expected += surrounding.bytes.expected;
      sum.high += surrounding.bytes.high;
    }
  }
  return sum;
}

Band ReservedOf(const Job& job, const Band& total) {
  const Band driver = DriverBand(job);
  return {total.low - driver.low, total.expected - driver.expected, total.high - driver.high};
}

Band WithSurroundings(Bytes peak, const Resident& around) {
  Band total = Exactly(peak);
  for (const Storage& storage : around.storages) {
    for (std::int64_t copy = 0; copy < storage.copies; ++copy) {
      total.low += storage.bytes.low;
      total.expected += storage.bytes.expected;
      total.high += storage.bytes.high;
    }
  }
  return total;
}

AllocatorRun AllocatorRunOn(const Job& job, const Tape& whole) {
  std::vector<Bytes> libraries;
  for (const Surrounding& surrounding : SurroundingRecords()) {
    if (surrounding.is_allocated && Applies(surrounding, job)) {
      libraries.insert(libraries.end(), static_cast<std::size_t>(CopiesOf(surrounding, job)),
                       surrounding.bytes.expected);
    }
  }
  return AllocatorRunOf(whole, libraries, job.training.first_step ? 1 : kStepsUntilNothingChanges);
}

Resident SurroundingStorages(const Job& job, std::span<const AllocatorRun> runs, Bytes peak,
                             std::optional<Bytes> enough) {
  const bool has_allocator = !job.training.profile.allocates_once;
  Resident resident;
  for (const Surrounding& surrounding : SurroundingRecords()) {
    if (!Applies(surrounding, job) || (surrounding.is_allocated && !has_allocator)) {
      continue;
    }
    const std::int64_t copies = CopiesOf(surrounding, job);
    if (copies == 0) {
      continue;
    }
    resident.Add({.pile = Pile::kOverhead, .bytes = surrounding.bytes, .copies = copies},
                 {.what = surrounding.what,
                  .formula = FormulaOf(surrounding, copies),
                  .source = surrounding.source});
  }
  if (has_allocator) {
    const Bytes driver = DriverBand(job).expected;
    AllocatorSettings settings = {.expandable_segments = job.training.expandable_segments,
                                  .memory = job.device->memory - driver};
    if (enough) {
      settings.enough = *enough - driver;
    }
    const Band reserved = ReservedBand(runs, settings);
    resident.Add({.pile = Pile::kOverhead, .bytes = Beyond(reserved, peak + LibraryBytes(job))},
                 {.what = "reserved by the allocator beyond what is asked for",
                  .formula = runs.size() == 1
                                 ? "reserved − peak − workspaces"
                                 : fmt::format("reserved − peak − workspaces; steps of {} lengths, "
                                               "the median of {} orders",
                                               runs.size(), kOrdersOfSteps),
                  .source = kSource});
  }
  return resident;
}

}  // namespace fourpiles
