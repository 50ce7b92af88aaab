#include "tensors/surprises.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace fourpiles {
namespace {

constexpr std::array<std::string_view, 2> kWide = {"float64", "float32"};
constexpr std::array<std::string_view, 2> kHalf = {"bfloat16", "float16"};

bool IsAnyOf(std::string_view word, const std::array<std::string_view, 2>& words) {
  return std::ranges::count(words, word) != 0;
}

// The plain 16- or 32-bit format that takes most bytes.
const FormatTotal* PlainFloats(const Inventory& inventory) {
  const auto found = std::ranges::find_if(inventory.formats, [](const FormatTotal& format) {
    return IsAnyOf(format.name, kWide) || IsAnyOf(format.name, kHalf);
  });
  return found == inventory.formats.end() ? nullptr : &*found;
}

// Norms and biases are often kept wide on purpose; matrices seldom are.
void WideMatrices(const Inventory& inventory, std::vector<std::string>& sentences) {
  const FormatTotal* plain = PlainFloats(inventory);
  if (plain == nullptr || !IsAnyOf(plain->name, kHalf)) {
    return;
  }
  TensorTotal wide;
  const InventoryRow* largest = nullptr;
  for (const InventoryRow& row : inventory.rows) {
    const std::string& format = inventory.formats[static_cast<std::size_t>(row.label)].name;
    if (IsAnyOf(format, kWide) && row.shape->size() > 1 && row.total.bytes > 0) {
      wide.Add(row.total);
      largest = largest == nullptr || row.total.bytes > largest->total.bytes ? &row : largest;
    }
  }
  if (largest != nullptr) {
    const std::string& format = inventory.formats[static_cast<std::size_t>(largest->label)].name;
    sentences.push_back(
        fmt::format("{} of more than one dimension in {} within a {} model: {} "
                    "bytes; the largest is \"{}\"",
                    wide.tensors == 1 ? "a tensor" : fmt::format("{} tensors", wide.tensors),
                    format, plain->name, wide.bytes, largest->name));
  }
}

const Json* Setting(const Checkpoint& checkpoint, std::string_view key) {
  const Json& config = checkpoint.configs.config;
  const Json* inner = config.Find("text_config");
  const Json* found = config.Find(key);
  return found != nullptr || inner == nullptr ? found : inner->Find(key);
}

void TiedTwice(const Checkpoint& checkpoint, const Inventory& inventory,
               std::vector<std::string>& sentences) {
  const Json* tied = Setting(checkpoint, "tie_word_embeddings");
  if (tied == nullptr || tied->AsBool() == nullptr || !*tied->AsBool()) {
    return;
  }
  const auto named = [&](std::string_view ending) {
    const auto row = std::ranges::find_if(
        inventory.rows, [&](const InventoryRow& each) { return each.name.ends_with(ending); });
    return row == inventory.rows.end() ? nullptr : &*row;
  };
  const InventoryRow* output = named("lm_head.weight");
  const InventoryRow* input = named("embed_tokens.weight");
  if (output != nullptr && input != nullptr && *output->shape == *input->shape) {
    sentences.push_back(
        fmt::format("\"{}\" and \"{}\" are tied by config.json and stored twice: {} "
                    "bytes too many",
                    input->name, output->name, output->total.bytes));
  }
}

void OtherFormatThanConfig(const Checkpoint& checkpoint, const Inventory& inventory,
                           std::vector<std::string>& sentences) {
  const Json* setting = Setting(checkpoint, "torch_dtype");
  setting = setting == nullptr ? Setting(checkpoint, "dtype") : setting;
  const std::string* declared = setting == nullptr ? nullptr : setting->AsString();
  const FormatTotal* plain = PlainFloats(inventory);
  const bool is_packed = std::ranges::any_of(inventory.formats, &FormatTotal::packed);
  if (declared == nullptr || plain == nullptr || is_packed) {
    return;
  }
  if (const StoredType* type = FindStoredType(*declared); type && type->name != plain->name) {
    sentences.push_back(
        fmt::format("config.json says {}, most weights are {}", type->name, plain->name));
  }
}

// Declared totals are often those of another state of the model (huggingface_hub, issue 4221).
void OtherCountThanIndex(const Checkpoint& checkpoint, const Inventory& inventory,
                         std::vector<std::string>& sentences) {
  const auto declared =
      std::ranges::find(checkpoint.facts, "total_parameters", &Json::Member::first);
  if (declared == checkpoint.facts.end() || checkpoint.tensors.empty()) {
    return;
  }
  Checked elements = 0;
  for (const FileTensor& tensor : checkpoint.tensors) {
    elements = elements + tensor.elements;
  }
  const std::int64_t count = *declared->second.AsInteger();
  if (count != inventory.total.parameters && count != OrLargest(elements)) {
    sentences.push_back(fmt::format("the index declares {} parameters, the tensors have {}", count,
                                    inventory.total.parameters));
  }
}

}  // namespace

std::vector<std::string> Surprises(const Checkpoint& checkpoint, const Inventory& inventory) {
  std::vector<std::string> sentences;
  WideMatrices(inventory, sentences);
  TiedTwice(checkpoint, inventory, sentences);
  OtherFormatThanConfig(checkpoint, inventory, sentences);
  OtherCountThanIndex(checkpoint, inventory, sentences);
  return sentences;
}

}  // namespace fourpiles
