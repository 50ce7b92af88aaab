#include "model/network.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"

namespace fourpiles {
namespace {

Checked CheckedElements(const Parameter& parameter) {
  Checked elements = parameter.copies;
  for (const std::int64_t length : parameter.shape) {
    elements = elements * length;
  }
  return elements;
}

Checked CheckedElements(const Block& block) {
  Checked elements = 0;
  for (const Parameter& parameter : block.parameters) {
    elements = elements + CheckedElements(parameter);
  }
  return elements * block.repeat;
}

std::string TensorName(const std::string& block, const std::string& parameter) {
  return block.empty() ? parameter : block + "." + parameter;
}

}  // namespace

std::string WithNumber(const std::string& pattern, std::int64_t number) {
  const std::size_t place = pattern.find("{}");
  return place == std::string::npos
             ? pattern
             : pattern.substr(0, place) + std::to_string(number) + pattern.substr(place + 2);
}

void ForEachTensor(const Network& network, const std::function<void(const NamedTensor&)>& use) {
  for (const Block& block : network.blocks) {
    for (std::int64_t layer = 0; layer < block.repeat; ++layer) {
      const std::string block_name = WithNumber(block.name, block.first + layer);
      for (const Parameter& parameter : block.parameters) {
        for (std::int64_t copy = 0; copy < parameter.copies; ++copy) {
          use({TensorName(block_name, WithNumber(parameter.name, copy)), &parameter});
        }
      }
    }
  }
}

std::int64_t ElementsOf(const Parameter& parameter) {
  return CheckedElements(parameter).value();
}

std::int64_t ElementsOf(const Block& block) {
  return CheckedElements(block).value();
}

std::int64_t ParameterCount(const Network& network) {
  std::int64_t elements = 0;
  for (const Block& block : network.blocks) {
    elements += ElementsOf(block);
  }
  return elements;
}

std::int64_t TrainableElementsOfLayer(const Block& block) {
  std::int64_t elements = 0;
  for (const Parameter& parameter : block.parameters) {
    elements += parameter.trainable ? ElementsOf(parameter) : 0;
  }
  return elements;
}

std::int64_t TrainableParameterCount(const Network& network) {
  std::int64_t elements = 0;
  for (const Block& block : network.blocks) {
    elements += block.repeat * TrainableElementsOfLayer(block);
  }
  return elements;
}

bool IsNumbered(const Block& block) {
  return block.name.find("{}") != std::string::npos;
}

bool OperatorsAreKnown(const Network& network) {
  return std::ranges::all_of(network.blocks, [](const Block& block) {
    return block.parameters.empty() || !block.operators.empty();
  });
}

std::int64_t TrainableTensorCount(const Network& network) {
  std::int64_t tensors = 0;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      tensors += parameter.trainable ? parameter.copies * block.repeat : 0;
    }
  }
  return tensors;
}

std::int64_t LargestTrainableTensor(const Network& network) {
  std::int64_t largest = 0;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      largest =
          std::max(largest, parameter.trainable ? ElementsOf(parameter) / parameter.copies : 0);
    }
  }
  return largest;
}

namespace {

struct Padding {
  std::int64_t from = 0;
  std::int64_t to = 0;

  void Apply(std::int64_t& length) const { length = length == from ? to : length; }
};

void PadOperator(Network& network, Block& block, Operator& op, const Padding& padding) {
  for (const ParameterUse& use : op.parameters) {
    Block& owner = use.block < 0 ? block : network.blocks[static_cast<std::size_t>(use.block)];
    padding.Apply(owner.parameters[static_cast<std::size_t>(use.parameter)].shape.front());
  }
  if (op.kind == OperatorKind::kLoss && !op.widths.empty()) {
    padding.Apply(op.widths.front());
  }
}

}  // namespace

void PadVocabulary(Network& network, std::int64_t multiple) {
  if (!network.vocab_size) {
    return;
  }
  const std::int64_t rows = *network.vocab_size;
  const Padding padding = {.from = rows, .to = (rows + multiple - 1) / multiple * multiple};
  for (Block& block : network.blocks) {
    for (Operator& op : block.operators) {
      if (op.kind == OperatorKind::kEmbedding || op.kind == OperatorKind::kLoss) {
        PadOperator(network, block, op, padding);
      }
    }
  }
  network.vocab_size = padding.to;
}

Result<void> CheckNetwork(const Network& network, std::string_view where) {
  Checked elements = 0;
  for (const Block& block : network.blocks) {
    elements = elements + CheckedElements(block);
    if (!elements.ok()) {
      return BadInput({.where = std::string(where),
                       .found = fmt::format("the tensors up to {} have more than 2^53 elements",
                                            WithNumber(block.name, block.first + block.repeat - 1)),
                       .expected = "expected at most 2^53",
                       .hint = "look for a number with too many digits"});
    }
  }
  Checked cached = 0;
  for (const Cache& cache : network.caches) {
    cached = cached + cache.key_elements_per_token + cache.value_elements_per_token +
             cache.index_elements_per_token + cache.convolution_elements_per_request +
             cache.recurrent_elements_per_request;
  }
  if (!cached.ok()) {
    return BadInput({.where = std::string(where),
                     .found = "the caches of one token have more than 2^53 elements",
                     .expected = "expected at most 2^53",
                     .hint = "look for a number with too many digits"});
  }
  return {};
}

Result<Network> NetworkFromCount(const BareCount& count) {
  Network network;
  network.blocks = {{.parameters = {{.name = "parameters", .shape = {count.parameters}}}}};
  network.num_hidden_layers = count.num_hidden_layers;
  network.hidden_size = count.hidden_size;
  if (count.num_hidden_layers) {
    network.blocks.push_back({.name = "layers.{}", .repeat = *count.num_hidden_layers});
  }
  if (count.parameters < 1 || !Checked(count.parameters).ok()) {
    return WrongUsage({.where = "MODEL",
                       .found = fmt::format("{} parameters", count.parameters),
                       .expected = "expected from 1 to 2^53"});
  }
  return network;
}

}  // namespace fourpiles
