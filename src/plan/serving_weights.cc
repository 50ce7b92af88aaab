#include "plan/serving_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/try.h"
#include "formats/storage.h"
#include "plan/gguf_tensors.h"
#include "step/state.h"

namespace fourpiles {
namespace {

// A string view that outlives the job.
std::string_view FormatName(std::string_view name) {
  // A packed weight is named by what its values are: "int4" of "int4, gptq, groups of 128".
  const StoredType* type = FindStoredType(name.substr(0, name.find(',')));
  return type != nullptr ? type->name : name == "scales" ? "scales" : "packed";
}

tl::unexpected<Error> WeightsTooLarge() {
  return WrongUsage({.where = "budget",
                     .found = "the weights pass 2^53 bytes",
                     .expected = "expected less",
                     .hint = "check the model"});
}

struct Amount {
  Checked elements = 0;
  Checked bytes = 0;
};

Result<void> Add(Resident& resident, std::string_view format, const Amount& amount,
                 StorageText text) {
  if (!amount.bytes.ok() || !amount.elements.ok()) {
    return WeightsTooLarge();
  }
  resident.Add({.pile = Pile::kWeights,
                .format = FormatName(format),
                .elements = Elements(amount.elements.value()),
                .bytes = Exactly(Bytes(amount.bytes.value()))},
               std::move(text));
  return {};
}

Result<Resident> OfMixture(const WeightsOfRank& of, const Mixture& mixture) {
  TRY(const GgufTensors gguf, TensorsOfNetwork(*of.network, mixture.name));
  std::map<std::string_view, Amount> formats;
  for (const PlacedTensor& placed : gguf.tensors) {
    Amount& amount = formats[placed.type->name];
    amount.elements = amount.elements + Checked(placed.tensor.ne0) * placed.tensor.rows;
    amount.bytes = amount.bytes + TensorBytes(placed);
  }
  Resident resident;
  for (const auto& [name, amount] : formats) {
    TRY_VOID(Add(resident, name, amount,
                 {.what = fmt::format("tensors in {}", name),
                  .formula = fmt::format("the mixture {} of llama-quantize", mixture.name),
                  .source = "llama.cpp src/llama-quant.cpp"}));
  }
  return resident;
}

// The whole file, by format.
Result<Resident> OfFile(const CheckpointTotals& checkpoint) {
  Resident resident;
  for (const CheckpointTotals::Format& format : checkpoint.formats) {
    TRY_VOID(Add(resident, format.name, {format.parameters, format.bytes},
                 {.what = "tensors in " + format.name,
                  .formula = "as they lie in the file, scales and the like included",
                  .source = "the file's header"}));
  }
  return resident;
}

// "model.layers.{}.mlp" of "model.layers.7.mlp.down_proj.qweight" would be ambiguous, so the last
// part alone is taken off: a packed weight's tensors stand beside each other under one name.
std::string ModulePattern(std::string_view name) {
  std::string pattern;
  std::string_view rest = name.substr(0, name.rfind('.'));
  while (!rest.empty()) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    const bool number = std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    pattern += pattern.empty() ? "" : ".";
    pattern += number ? "{}" : part;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return pattern;
}

// How much of each tensor of the file a rank holds, by the network's parameter of its module.
class FileShares {
 public:
  explicit FileShares(const WeightsOfRank& of) : of_(of) {
    Note(of.model->network, whole_);
    Note(*of.network, rank_);
  }

  // Bytes of the tensor that this rank holds: in proportion to its parameter's elements here and in
  // the whole network. A tensor that no parameter is named as is held whole by the first stage.
  Checked Of(const FileTensor& tensor) const {
    const std::string pattern = ModulePattern(tensor.name);
    const auto whole = whole_.find(pattern);
    if (whole == whole_.end()) {
      return of_.stage.begins ? tensor.bytes : 0;
    }
    const auto rank = rank_.find(pattern);
    if (rank == rank_.end()) {
      return 0;
    }
    const double share = static_cast<double>(rank->second) / static_cast<double>(whole->second);
    return std::llround(static_cast<double>(tensor.bytes) * share);
  }

 private:
  // Elements of a module in all layers together.
  using ElementsOfModule = std::map<std::string, std::int64_t, std::less<>>;
  static void Note(const Network& network, ElementsOfModule& modules) {
    for (const Block& block : network.blocks) {
      for (const Parameter& parameter : block.parameters) {
        const std::string name =
            block.name.empty() ? parameter.name : block.name + "." + parameter.name;
        modules[ModulePattern(name)] += ElementsOf(parameter) * block.repeat;
      }
    }
  }

  const WeightsOfRank& of_;
  ElementsOfModule whole_;
  ElementsOfModule rank_;
};

Result<Resident> OfFileShares(const WeightsOfRank& of) {
  const FileShares shares(of);
  std::map<std::string_view, Amount> formats;
  for (const FileTensor& tensor : *of.model->checkpoint->tensors) {
    const std::string_view name = tensor.type != nullptr ? tensor.type->name : "packed";
    Amount& amount = formats[name];
    const Checked bytes = shares.Of(tensor);
    amount.bytes = amount.bytes + bytes;
    if (tensor.bytes > 0 && bytes.ok()) {
      amount.elements =
          amount.elements + static_cast<std::int64_t>(static_cast<double>(tensor.elements) *
                                                      static_cast<double>(bytes.value()) /
                                                      static_cast<double>(tensor.bytes));
    }
  }
  Resident resident;
  for (const auto& [name, amount] : formats) {
    TRY_VOID(Add(resident, name, amount,
                 {.what = fmt::format("tensors in {}, this rank's share", name),
                  .formula = "bytes in the file × the share of the module that this rank holds",
                  .source = "the file's header"}));
  }
  return resident;
}

// Where the operators do not say it, one.
std::int64_t ExpertsPerToken(const Block& block) {
  std::int64_t most = 1;
  for (const Operator& op : block.operators) {
    most = std::max(most, op.experts_per_token);
  }
  return most;
}

// Of the module of the layer that has the most, "mlp" or "self_attn": outputs of what reads the
// residual, inputs of what writes to it.
Checked LargestModuleElements(const Block& block, std::int64_t hidden) {
  std::map<std::string, Checked, std::less<>> modules;
  Checked most = 0;
  for (const Parameter& parameter : block.parameters) {
    const std::vector<std::int64_t>& shape = parameter.shape;
    if (shape.size() < 2) {
      continue;
    }
    const std::int64_t outputs = shape[shape.size() - 2];
    const std::int64_t inputs = shape[shape.size() - 1];
    const std::int64_t width = (inputs == hidden ? outputs : 0) + (outputs == hidden ? inputs : 0);
    const std::string module = parameter.name.substr(0, parameter.name.find('.'));
    Checked& values = modules.try_emplace(module, 0).first->second;
    values = values + Checked(parameter.routed ? ExpertsPerToken(block) : 1) * width;
    most = OrLargest(values) > OrLargest(most) ? values : most;
  }
  return most;
}

}  // namespace

Result<Resident> SchemeWeights(const Network& network, const WeightScheme& scheme,
                               std::string_view name) {
  if (scheme.coding == WeightCoding::kPlain) {
    return WeightStorages(network, scheme.plain);
  }
  Resident resident;
  for (const SchemeBytes::Part& part : WeightBytes(network, scheme, 1).parts) {
    TRY_VOID(Add(resident, part.format, {part.elements, part.bytes},
                 {.what = fmt::format("weights in {}", part.format),
                  .formula = fmt::format("matrices of the layers as {}, the rest in {}", name,
                                         scheme.plain.name),
                  .source = "shapes of the architecture; plan/weight_scheme.h"}));
  }
  return resident;
}

Result<Resident> RankWeights(const ServingJob& serving, const WeightsOfRank& of) {
  const ServedFormat& format = serving.weights;
  if (format.scheme) {
    return SchemeWeights(*of.network, *format.scheme, format.name);
  }
  if (format.mixture) {
    return OfMixture(of, *format.mixture);
  }
  const ServingLayout& layout = serving.layout;
  const bool whole = layout.tensor == 1 && layout.pipeline == 1 && layout.expert == 1;
  return whole ? OfFile(*of.model->checkpoint) : OfFileShares(of);
}

Result<Resident> AdapterWeights(const ServingJob& serving, const Network& network) {
  Resident resident;
  if (!serving.adapter) {
    return resident;
  }
  TRY(const Network adapted, WithAdapter(network, *serving.adapter, "--adapter"));
  const std::int64_t each = TrainableParameterCount(adapted);
  const Checked elements = Checked(each) * serving.adapters;
  TRY_VOID(Add(resident, serving.compute_format.name,
               {elements, StorageBytes(elements, serving.compute_format)},
               {.what = fmt::format("{} low-rank adapter{}", serving.adapters,
                                    serving.adapters == 1 ? "" : "s"),
                .formula = fmt::format("{} × rank {} × (inputs + outputs) of each target",
                                       serving.adapters, serving.adapter->rank),
                .source = "Hu et al. 2021, arXiv 2106.09685, section 4.1"}));
  return resident;
}

Checked LargestLayerElements(const Network& network) {
  Checked most = 0;
  for (const Block& block : network.blocks) {
    if (IsNumbered(block)) {
      const Checked values = LargestModuleElements(block, network.hidden_size.value_or(0));
      most = OrLargest(values) > OrLargest(most) ? values : most;
    }
  }
  return most + Checked(2) * network.hidden_size.value_or(0);
}

}  // namespace fourpiles
