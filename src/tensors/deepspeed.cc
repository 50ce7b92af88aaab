#include "tensors/deepspeed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tensors/checkpoint_files.h"
#include "tensors/deepspeed_join.h"
#include "tensors/deepspeed_ranks.h"
#include "tensors/file_formats.h"
#include "tensors/torch.h"

namespace fourpiles {
namespace {

// The files of one model rank, as indices of the checkpoint's files.
struct ModelRank {
  std::int32_t model = -1;                           // whose file has the shapes
  std::map<std::int64_t, std::int32_t> models = {};  // by data rank
  std::map<std::int64_t, std::int32_t> optimizers = {};
};

// The files of ranks name classes of DeepSpeed, which only hold numbers.
FileReading ReadRankFile(const ByteSource& source) {
  const FileFormat* format = FormatOf(source);
  return format != nullptr && format->read == ReadTorchZip
             ? ReadTorchZipFor(source, PickleUse::kDeepSpeed)
             : ReadTensorFile(source);
}

std::string RankText(std::int64_t model_rank) {
  return fmt::format("mp_rank_{:02}", model_rank);
}

class DeepSpeedFolder {
 public:
  DeepSpeedFolder(std::string folder, Checkpoint& checkpoint)
      : folder_(std::move(folder)), checkpoint_(checkpoint) {}

  void Read(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto number = static_cast<std::int32_t>(checkpoint_.files.size());
      AddFileOfFolder(checkpoint_, folder_, name, ReadRankFile);
      if (const auto rank = ParseRankName(name)) {
        AddRank(*rank, number);
      }
    }
    if (VerdictOf(checkpoint_) == FileVerdict::kRefuse) {
      return;  // a rank that cannot be read is told already
    }
    for (const auto& [number, rank] : ranks_) {
      Join(number, rank);
    }
    if (ranks_.size() > 1) {
      PrefixNames();
    }
  }

 private:
  void AddRank(const RankName& name, std::int32_t file) {
    ModelRank& rank = ranks_[name.model_rank];
    if (name.has_optimizer) {
      rank.optimizers[name.data_rank] = file;
    } else {
      rank.models[name.data_rank] = file;
      rank.model = rank.models.begin()->second;
    }
    model_rank_of_[file] = name.model_rank;
  }

  void Refuse(std::int64_t model_rank, std::string found, std::string expected,
              std::string hint = "") {
    checkpoint_.findings.push_back(
        Refusal({fmt::format("{}: {}", folder_, RankText(model_rank)), std::move(found),
                 std::move(expected), std::move(hint)}));
  }

  void Join(std::int64_t number, const ModelRank& rank) {
    if (rank.optimizers.empty()) {
      if (rank.models.begin()->first >= 0) {
        Refuse(number, "no states of the optimizer",
               "with ZeRO 3 they have the parameters, and the model's files none",
               "fetch the files …_optim_states.pt");
      }
      return;
    }
    const auto facts = FactsOf(number, rank);
    if (!facts) {
      return;
    }
    if (rank.model < 0) {
      return Refuse(number, "no states of the model beside those of the optimizer",
                    "its param_shapes say what the flat vectors hold",
                    "fetch the files …_model_states.pt");
    }
    const auto source = SourceOf(checkpoint_.files[static_cast<std::size_t>(rank.model)]);
    if (source == nullptr) {
      return Refuse(number, "a file that is gone", "expected it to stay");
    }
    const auto shapes = ReadParameterShapes(*source);
    const auto frozen = ReadFrozenShapes(*source);
    if (!shapes || !frozen) {
      checkpoint_.findings.push_back(Refusal((shapes ? frozen.error() : shapes.error()).text));
      return;
    }
    JoinVectors(number, rank, {.facts = *facts, .groups = *shapes}, *frozen);
  }

  // What all ranks agree on. Nothing: they do not, or some are missing, which is a finding.
  std::optional<ZeroFacts> FactsOf(std::int64_t number, const ModelRank& rank) {
    std::optional<ZeroFacts> first;
    for (const auto& [data_rank, file] : rank.optimizers) {
      const auto source = SourceOf(checkpoint_.files[static_cast<std::size_t>(file)]);
      const auto facts = source == nullptr
                             ? Result<ZeroFacts>(BadInput({folder_, "a file that is gone", "", ""}))
                             : ReadZeroFacts(*source);
      if (!facts) {
        checkpoint_.findings.push_back(Refusal(facts.error().text));
        return std::nullopt;
      }
      if (first && (first->stage != facts->stage || first->ranks != facts->ranks)) {
        Refuse(number,
               fmt::format("ZeRO {} of {} ranks in the file of data rank {}", facts->stage,
                           facts->ranks, data_rank),
               fmt::format("another one has ZeRO {} of {}", first->stage, first->ranks),
               "the files are of two checkpoints");
        return std::nullopt;
      }
      first = *facts;
    }
    return AllAreThere(number, rank, first->ranks) ? first : std::nullopt;
  }

  bool AllAreThere(std::int64_t number, const ModelRank& rank, std::int64_t ranks) {
    std::int64_t missing = 0;
    for (const auto& [data_rank, file] : rank.optimizers) {
      missing += data_rank == missing ? 1 : 0;
    }
    const auto count = static_cast<std::int64_t>(rank.optimizers.size());
    if (missing == ranks && count == ranks) {
      return true;
    }
    if (missing < ranks) {
      Refuse(number,
             fmt::format("states of the optimizer of {} ranks, and none of data rank {}", count,
                         missing),
             fmt::format("it is cut among {}", ranks), "fetch the missing files");
    } else {
      Refuse(number, fmt::format("states of the optimizer of {} ranks", count),
             fmt::format("it is cut among {}", ranks), "the files are of two checkpoints");
    }
    return false;
  }

  static std::vector<std::int32_t> FilesOf(const std::map<std::int64_t, std::int32_t>& ranks) {
    std::vector<std::int32_t> files;
    files.reserve(ranks.size());
    for (const auto& [data_rank, file] : ranks) {
      files.push_back(file);
    }
    return files;
  }

  void JoinVectors(std::int64_t number, const ModelRank& rank, const ZeroLayout& layout,
                   const std::vector<NamedShape>& frozen) {
    JoinedVectors joined = JoinFlatVectors(checkpoint_.tensors, FilesOf(rank.optimizers), layout);
    if (layout.facts.stage == 3 && !frozen.empty()) {
      Append(FrozenOf(rank, layout.facts.ranks, frozen), joined);
    }
    for (const JoinFault& fault : joined.faults) {
      if (fault.is_master) {
        return Refuse(number, fault.found, fault.expected);
      }
      checkpoint_.findings.push_back({.verdict = FileVerdict::kReport,
                                      .text = {fmt::format("{}: {}", folder_, RankText(number)),
                                               fault.found, fault.expected, ""}});
    }
    std::set<std::int32_t> copies;  // files whose modules are those of the first
    for (const auto& [data_rank, file] : rank.models) {
      if (file != rank.model) {
        copies.insert(file);
      }
    }
    Replace(joined, layout, copies);
    for (FileTensor& tensor : joined.tensors) {
      checkpoint_.tensors.push_back(std::move(tensor));
    }
    if (checkpoint_.facts.empty()) {
      checkpoint_.facts.emplace_back("zero_stage", layout.facts.stage);
      checkpoint_.facts.emplace_back("data_ranks", layout.facts.ranks);
    }
  }

  // Ranks are numbered from 0 on, so that their number and the last one say that all are there.
  JoinedVectors FrozenOf(const ModelRank& rank, std::int64_t ranks,
                         const std::vector<NamedShape>& frozen) const {
    const auto count = static_cast<std::int64_t>(rank.models.size());
    if (count != ranks || rank.models.begin()->first != 0 ||
        rank.models.rbegin()->first != ranks - 1) {
      return {.faults = {{.found = fmt::format("frozen parameters of {} ranks", count),
                          .expected = fmt::format("expected those of all {}", ranks)}}};
    }
    return JoinFragments(checkpoint_.tensors, FilesOf(rank.models), frozen);
  }

  static void Append(JoinedVectors more, JoinedVectors& joined) {
    std::ranges::move(more.tensors, std::back_inserter(joined.tensors));
    std::ranges::move(more.faults, std::back_inserter(joined.faults));
    joined.used.insert(joined.used.end(), more.used.begin(), more.used.end());
  }

  // Takes out the flat vectors that were joined; and with ZeRO 3 the empty tensors that stand for
  // parameters, and the buffers that every rank has again.
  void Replace(const JoinedVectors& joined, const ZeroLayout& layout,
               const std::set<std::int32_t>& copies) {
    constexpr std::string_view kModule = "module.";
    std::set<std::string> parameters;
    for (const FileTensor& tensor : joined.tensors) {
      parameters.insert(tensor.name);  // "module.NAME" of a frozen one
    }
    for (const auto& group : layout.groups) {
      for (const NamedShape& shape : group) {
        parameters.insert(std::string(kModule) + shape.name);
      }
    }
    std::vector<bool> is_gone(checkpoint_.tensors.size());
    for (const std::int32_t used : joined.used) {
      is_gone[static_cast<std::size_t>(used)] = true;
    }
    for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const FileTensor& tensor = checkpoint_.tensors[i];
      const bool is_copy = copies.contains(tensor.file);
      const bool is_empty = tensor.elements == 0 && parameters.contains(tensor.name);
      is_gone[i] = is_gone[i] || (layout.facts.stage == 3 && tensor.name.starts_with(kModule) &&
                                  (is_copy || is_empty));
    }
    std::vector<FileTensor> kept;
    kept.reserve(checkpoint_.tensors.size() + joined.tensors.size());
    for (std::size_t i = 0; i < is_gone.size(); ++i) {
      if (!is_gone[i]) {
        kept.push_back(std::move(checkpoint_.tensors[i]));
      }
    }
    checkpoint_.tensors = std::move(kept);
  }

  void PrefixNames() {
    for (FileTensor& tensor : checkpoint_.tensors) {
      if (const auto found = model_rank_of_.find(tensor.file); found != model_rank_of_.end()) {
        tensor.name = fmt::format("{}.{}", RankText(found->second), tensor.name);
      }
    }
  }

  std::string folder_;
  Checkpoint& checkpoint_;
  std::map<std::int64_t, ModelRank> ranks_ = {};
  std::map<std::int32_t, std::int64_t> model_rank_of_ = {};  // of a file
};

}  // namespace

Checkpoint OpenDeepSpeed(const std::string& folder, const std::vector<std::string>& names) {
  Checkpoint checkpoint = {.path = folder};
  DeepSpeedFolder(folder, checkpoint).Read(names);
  return checkpoint;
}

}  // namespace fourpiles
