// Trained tokens. Prompt tuning puts embeddings before those of every sample, so all layers see a
// longer sequence; prefix tuning puts keys and values before those of every layer.

#include <string>

#include "base/try.h"
#include "model/adapter_kinds.h"

namespace fourpiles {
namespace {

Result<void> NoPlace(std::string_view found, std::string_view expected, std::string_view where) {
  return WrongUsage({.where = std::string(where),
                     .found = std::string(found),
                     .expected = std::string(expected),
                     .hint = "a model with a config.json of a described architecture"});
}

// Behind the embedding of the tokens: what it puts out is renamed, so that those after it read the
// longer sequence.
void Prepend(Block& block, std::size_t embedding, const ParameterUse& use, std::int64_t tokens) {
  Value values = 1;
  for (const Operator& op : block.operators) {
    values += static_cast<Value>(op.outputs.size());
  }
  const Value looked_up = values;
  const Value all = block.operators[embedding].outputs.front();
  block.operators[embedding].outputs.front() = looked_up;
  block.operators.insert(block.operators.begin() + static_cast<std::ptrdiff_t>(embedding) + 1,
                         {.kind = OperatorKind::kPrependToken,
                          .name = "prompt_embeddings",
                          .inputs = {looked_up},
                          .outputs = {all},
                          .parameters = {use},
                          .prefix_tokens = tokens});
}

}  // namespace

// peft keeps its own embedding in float32, whatever the model's format (peft/peft_model.py,
// _setup_prompt_encoder), and casts what it looks up.
Result<void> AddPrompt(Network& network, const Adapter& adapter, std::string_view where) {
  for (Block& block : network.blocks) {
    for (std::size_t i = 0; i < block.operators.size(); ++i) {
      const Operator& op = block.operators[i];
      if (op.kind == OperatorKind::kEmbedding) {
        const ParameterUse use = {.parameter = static_cast<std::int32_t>(block.parameters.size())};
        block.parameters.push_back(AdapterParameter(adapter, "", "prompt_embeddings",
                                                    {adapter.tokens, op.widths.front()}));
        Prepend(block, i, use, adapter.tokens);
        return {};
      }
    }
  }
  return NoPlace("the model has no embedding of tokens that is known", "expected a model of tokens",
                 where);
}

// One embedding holds the keys and values of all layers (peft/tuners/prefix_tuning/model.py,
// PrefixEncoder without a projection); here each layer has its part.
Result<void> AddPrefix(Network& network, const Adapter& adapter, std::string_view where) {
  bool found = false;
  for (Block& block : network.blocks) {
    for (Operator& op : block.operators) {
      if (op.kind == OperatorKind::kAttention && IsNumbered(block)) {
        const std::int64_t width = op.key_value_heads * (op.widths[0] + op.widths[1]);
        op.prefix_tokens = adapter.tokens;
        op.parameters.push_back({.parameter = static_cast<std::int32_t>(block.parameters.size())});
        block.parameters.push_back(
            AdapterParameter(adapter, op.name, "prefix_key_value", {adapter.tokens, width}));
        found = true;
      }
    }
  }
  return found ? Result<void>()
               : NoPlace("the model has no attention that is known",
                         "expected a model with attention", where);
}

}  // namespace fourpiles
