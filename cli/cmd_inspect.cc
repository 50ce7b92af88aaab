// fourpiles inspect PATH...

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/try.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "report/inspection.h"
#include "tensors/folder.h"

namespace fourpiles::cli {
namespace {

constexpr Option kOptions[] = {
    {.name = "PATH",
     .value = "PATH",
     .help =
         "a file, folder or index (safetensors, GGUF, PyTorch, NumPy; distributed and DeepSpeed "
         "checkpoints); two models are compared, parts of one are joined",
     .count = Count::kMany,
     .required = true},
    {.name = "--all",
     .help = "every tensor for itself, every line of every table, every import of a pickle",
     .count = Count::kFlag},
    {.name = "--filter",
     .value = "NAME",
     .help = "only tensors with this in their name, or whose name matches it: \"*.mlp.*\"",
     .count = Count::kMany},
    {.name = "--sort",
     .value = "ORDER",
     .help = "the order: bytes (default), parameters, name, file"},
    {.name = "--metadata",
     .help = "the keys and values that the files have of themselves",
     .count = Count::kFlag},
    {.name = "--csv",
     .help = "a line for each tensor as it lies, comma-separated",
     .count = Count::kFlag},
};

Result<InventoryOrder> OrderOf(const Arguments& arguments) {
  constexpr std::pair<std::string_view, InventoryOrder> kOrders[] = {
      {"bytes", InventoryOrder::kBytes},
      {"parameters", InventoryOrder::kParameters},
      {"name", InventoryOrder::kName},
      {"file", InventoryOrder::kFile},
  };
  const std::string_view word = arguments.One("--sort", "bytes");
  for (const auto& [name, order] : kOrders) {
    if (name == word) {
      return order;
    }
  }
  return WrongUsage({.where = "--sort",
                     .found = "unknown order \"" + std::string(word) + "\"",
                     .expected = "expected bytes, parameters, name or file"});
}

int ExitStatusOf(FileVerdict verdict) {
  switch (verdict) {
    case FileVerdict::kAccept:
    case FileVerdict::kAcceptWithWarning:
      return 0;
    case FileVerdict::kReport:
      return 1;
    case FileVerdict::kRefuse:
      break;
  }
  return 3;
}

constexpr std::size_t kMostErrors = 20;  // for a person to read; --json has all

// Warnings and faults go to stderr, and the worst decides the exit status.
void AddFindings(const Inspection& inspection, Answer& answer) {
  for (std::string& warning : InspectionWarnings(inspection)) {
    answer.warnings.push_back(std::move(warning));
  }
  for (const Finding& finding : AllFindings(inspection.checkpoint)) {
    if (finding.verdict >= FileVerdict::kReport && answer.errors.size() < kMostErrors) {
      answer.errors.push_back(finding.text);
    }
  }
  answer.exit_status = std::max(answer.exit_status, ExitStatusOf(VerdictOf(inspection.checkpoint)));
}

Answer Compare(const Inspection& first, const Inspection& second, const Arguments& arguments) {
  Answer answer;
  if (arguments.Has("--json")) {
    answer.json = DifferenceJson(first, second);
  } else {
    answer.text =
        DifferenceText(first, second, {.all = arguments.Has("--all"), .unit = UnitOf(arguments)});
  }
  AddFindings(first, answer);
  AddFindings(second, answer);
  return answer;
}

// What a listing alone can show.
Result<void> RefuseForComparison(const Arguments& arguments) {
  for (const char* option : {"--csv", "--metadata"}) {
    if (arguments.Has(option)) {
      return WrongUsage({.where = option,
                         .found = "set for a comparison",
                         .expected = "expected one model to list",
                         .hint = "give one path"});
    }
  }
  return {};
}

Result<Answer> Run(const Arguments& arguments) {
  const auto paths = arguments.All("PATH");
  const auto filters = arguments.All("--filter");
  TRY(const InventoryOrder order, OrderOf(arguments));
  const InventoryChoice choice = {.filters = {filters.begin(), filters.end()},
                                  .order = order,
                                  .sort_rows = arguments.Has("--all")};
  const std::vector<std::string> given(paths.begin(), paths.end());
  if (given.size() == 2 && !ArePartsOfOne(given)) {
    TRY_VOID(RefuseForComparison(arguments));
    TRY(Checkpoint first, OpenCheckpoint(given[0]));
    TRY(Checkpoint second, OpenCheckpoint(given[1]));
    return Compare(Inspection(std::move(first), choice), Inspection(std::move(second), choice),
                   arguments);
  }
  if (given.size() > 2 && !ArePartsOfOne(given)) {
    return WrongUsage({.where = "PATH",
                       .found = fmt::format("{} paths of more than one model", given.size()),
                       .expected = "expected one model, two to compare, or the parts of one",
                       .hint = "give the folder"});
  }
  TRY(Checkpoint checkpoint,
      given.size() == 1 ? OpenCheckpoint(given[0]) : OpenCheckpointParts(given));
  const Inspection inspection(std::move(checkpoint), choice);
  Answer answer;
  AddFindings(inspection, answer);
  if (arguments.Has("--json")) {
    answer.json = InspectionJson(inspection);
  } else if (arguments.Has("--csv")) {
    answer.text = InspectionCsv(inspection);
  } else if (answer.exit_status == 0 || !inspection.inventory.rows.empty() ||
             arguments.Has("--all")) {
    answer.text = InspectionText(inspection, {.all = arguments.Has("--all"),
                                              .metadata = arguments.Has("--metadata"),
                                              .unit = UnitOf(arguments)});
  } else {
    answer.text = VerdictLine(VerdictOf(inspection.checkpoint));
  }
  return answer;
}

}  // namespace

constexpr Command kInspectCommand = {
    .name = "inspect",
    .summary = "every tensor of a file or folder: format, shape, parameters, bytes",
    .examples =
        "fourpiles inspect ./model.safetensors\n"
        "fourpiles inspect ./Llama-3.1-8B --filter mlp --sort parameters\n"
        "fourpiles inspect ./model-Q4_K_M.gguf --metadata\n"
        "fourpiles inspect ./checkpoint.pt\n"
        "fourpiles inspect ./before.safetensors ./after.safetensors",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
