#include "model/gguf_source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"

namespace fourpiles {

GgufSource::GgufSource(Fields fields, std::string architecture, std::span<const FileTensor> tensors)
    : fields_(fields),
      record_(std::move(fields)),
      architecture_(std::move(architecture)),
      tensors_(tensors) {
  for (const FileTensor& tensor : tensors) {
    by_name_.push_back(&tensor);
  }
  std::sort(by_name_.begin(), by_name_.end(),
            [](const FileTensor* a, const FileTensor* b) { return a->name < b->name; });
  // block_count counts the layers that predict further tokens as well (llama-model.cpp).
  const std::int64_t all = Count("block_count", kLayers);
  prediction_layers_ = CountOr("nextn_predict_layers", 0, {0, std::max<std::int64_t>(all - 1, 0)});
  layers_ = all - prediction_layers_;
}

std::int64_t GgufSource::Count(std::string_view key, Range range) {
  return record_.Count(Key(key), range);
}

std::int64_t GgufSource::CountOr(std::string_view key, std::int64_t otherwise, Range range) {
  return record_.CountOr(Key(key), otherwise, range);
}

std::optional<std::int64_t> GgufSource::OptionalCount(std::string_view key) {
  const std::int64_t count = CountOr(key, 0, {0, kLargestCount});
  return count == 0 ? std::nullopt : std::optional(count);
}

std::optional<bool> GgufSource::OptionalFlag(std::string_view key) {
  return record_.OptionalFlag(Key(key));
}

std::vector<std::int64_t> GgufSource::PerLayer(std::string_view key) {
  constexpr Range kFromZero = {0, kLargestCount};
  const auto layers = static_cast<std::size_t>(layers_);
  const auto& members = fields_.Members();
  const std::string whole = Key(key);
  const auto member = std::ranges::find(members, whole, &Json::Member::first);
  if (member == members.end() || member->second.IsNull()) {
    return {};
  }
  const Json::Array* array = member->second.AsArray();
  if (array == nullptr) {
    return std::vector<std::int64_t>(layers, record_.Count(whole, kFromZero));
  }
  const bool flags = !array->empty() && array->front().AsBool() != nullptr;
  std::vector<std::int64_t> values;
  if (flags) {
    for (const Json& value : *array) {
      values.push_back(value.AsBool() != nullptr && *value.AsBool() ? 1 : 0);
    }
  } else {
    values = record_.Counts(whole, kFromZero);
  }
  if (array->size() < layers) {
    Refuse(key, {.found = fmt::format("{} layers", array->size()),
                 .expected = fmt::format("expected block_count, {}", layers)});
  }
  values.resize(layers);
  return values;
}

std::optional<std::int64_t> GgufSource::OfAllLayers(std::string_view key) {
  std::optional<std::int64_t> value;
  for (const std::int64_t one : PerLayer(key)) {
    if (one != 0 && value && one != *value) {
      Refuse(key, {.found = fmt::format("{} in some layers and {} in others", *value, one),
                   .expected = "expected the same in all layers of this architecture",
                   .hint = "give the folder with the model's config.json"});
      break;
    }
    value = one == 0 ? value : one;
  }
  return value;
}

const FileTensor* GgufSource::Tensor(std::string_view name) const {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [](const FileTensor* tensor, std::string_view sought) { return tensor->name < sought; });
  return place != by_name_.end() && (*place)->name == name ? *place : nullptr;
}

bool GgufSource::LayerHas(std::int64_t layer, std::string_view rest) const {
  return HasTensor(fmt::format("blk.{}.{}", layer, rest));
}

std::optional<std::int64_t> GgufSource::WidthOf(std::string_view rest) const {
  const std::string end = "." + std::string(rest);
  const auto tensor = std::ranges::find_if(tensors_, [&end](const FileTensor& one) {
    return one.name.starts_with("blk.") && one.name.ends_with(end) && !one.shape.empty();
  });
  return tensor == tensors_.end() ? std::nullopt : std::optional(tensor->shape.back());
}

void GgufSource::Put(std::string_view key, Json value) {
  const auto member = std::ranges::find(config_, key, &Json::Member::first);
  if (member != config_.end()) {
    member->second = std::move(value);
  } else {
    config_.emplace_back(std::string(key), std::move(value));
  }
}

void GgufSource::PutIfKnown(std::string_view key, std::optional<std::int64_t> value) {
  if (value) {
    Put(key, *value);
  }
}

Result<Json> GgufSource::Finish() && {
  TRY_VOID(record_.Finish());
  return Json(std::move(config_));
}

}  // namespace fourpiles
