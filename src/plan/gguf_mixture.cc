// The rules are those of ggml-org/llama.cpp@6b4875fe, src/llama-quant.cpp: the default types
// (llama_ftype_get_default_type), what stays float32 (tensor_allows_quantization), the choice by
// part and layer (llama_tensor_get_type_impl), and what is taken where a row is no multiple of the
// block (tensor_type_fallback). A type that nothing below changes is the mixture's base.

#include "plan/gguf_mixture.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"
#include "model/names.h"

namespace fourpiles {
namespace {

struct Row {
  std::string_view name;
  std::string_view base;
  bool needs_imatrix = false;  // tensor_requires_imatrix() of the base
};

constexpr Row kMixtures[] = {
    {"F32", "float32"},
    {"F16", "float16"},
    {"BF16", "bfloat16"},
    {"Q4_0", "q4_0"},
    {"Q4_1", "q4_1"},
    {"Q5_0", "q5_0"},
    {"Q5_1", "q5_1"},
    {"Q8_0", "q8_0"},
    {"Q2_K", "q2_k"},
    {"Q2_K_S", "q2_k", true},
    {"Q3_K_S", "q3_k"},
    {"Q3_K_M", "q3_k"},
    {"Q3_K_L", "q3_k"},
    {"Q4_K_S", "q4_k"},
    {"Q4_K_M", "q4_k"},
    {"Q5_K_S", "q5_k"},
    {"Q5_K_M", "q5_k"},
    {"Q6_K", "q6_k"},
    {"IQ1_S", "iq1_s", true},
    {"IQ1_M", "iq1_m", true},
    {"IQ2_XXS", "iq2_xxs", true},
    {"IQ2_XS", "iq2_xs", true},
    {"IQ2_S", "iq2_xs", true},
    {"IQ2_M", "iq2_s", true},
    {"IQ3_XXS", "iq3_xxs", true},
    {"IQ3_XS", "iq3_s"},
    {"IQ3_S", "iq3_s"},
    {"IQ3_M", "iq3_s"},
    {"IQ4_NL", "iq4_nl"},
    {"IQ4_XS", "iq4_xs"},
    {"TQ1_0", "tq1_0"},
    {"TQ2_0", "tq2_0"},
    {"MXFP4_MOE", "mxfp4"},
};

struct Alias {
  std::string_view name;
  std::string_view means;
};
constexpr Alias kAliases[] = {{"Q3_K", "Q3_K_M"},   {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"},
                              {"bfloat16", "BF16"}, {"float16", "F16"}, {"float32", "F32"}};

enum class Part {
  kOutput,
  kEmbedding,
  kFused,
  kLatent,
  kValue,
  kKey,
  kQuery,
  kAttentionOutput,
  kUp,
  kGate,
  kDown,
  kOther
};

struct PartName {
  std::string_view in_name;
  Part part;
};
// tensor_get_category(): the first that stands in the name. Fused layers and latent attention's
// kv_b are counted with the values, but not treated so (the newest builds do, where a fused layer
// grows by a few MiB).
constexpr PartName kParts[] = {
    {"attn_qkv.weight", Part::kFused},
    {"attn_kv_b.weight", Part::kLatent},
    {"attn_v.weight", Part::kValue},
    {"attn_k.weight", Part::kKey},
    {"attn_q.weight", Part::kQuery},
    {"attn_output.weight", Part::kAttentionOutput},
    {"ffn_up", Part::kUp},
    {"ffn_gate", Part::kGate},
    {"ffn_down", Part::kDown},
};

Part PartOf(std::string_view name) {
  if (name == "output.weight") {
    return Part::kOutput;
  }
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") {
    return Part::kEmbedding;
  }
  const auto* row = std::ranges::find_if(
      kParts, [&](const PartName& part) { return name.find(part.in_name) != std::string::npos; });
  return row == std::end(kParts) ? Part::kOther : row->part;
}

bool StaysFloat(const GgufTensor& tensor) {
  constexpr std::string_view kSmall[] = {
      "_norm.weight",   "ffn_gate_inp.weight",  "position_embd",     "token_types", "ssm_conv1d",
      "shortconv.conv", "per_layer_model_proj", "attn_rel_b.weight", "attn_sinks",
  };
  return tensor.dimensions < 2 || !tensor.name.ends_with("weight") ||
         std::ranges::any_of(kSmall, [&](std::string_view part) {
           return tensor.name.find(part) != std::string::npos;
         });
}

// Values, where four heads or more share them, and where not.
struct ValueRow {
  std::string_view mixture;
  std::string_view shared;
  std::string_view alone = {};
};
constexpr ValueRow kValues[] = {
    {"Q2_K", "q4_k", "q3_k"},  {"Q2_K_S", "q4_k"}, {"IQ3_XS", "q4_k"}, {"IQ3_S", "q4_k"},
    {"IQ3_M", "q4_k", "q4_k"}, {"IQ4_NL", "q5_k"}, {"IQ4_XS", "q5_k"}, {"Q3_K_L", "q5_k", "q5_k"},
};

// The second half of the feed-forward part, in the first layers and in the others.
constexpr std::int64_t kMoreBits = 0;  // instead of a share: the layers of use_more_bits()
struct DownRow {
  std::string_view mixture;
  std::int64_t share = 1;  // the first of so many equal shares; 1: all layers
  std::string_view here;
  std::string_view elsewhere = {};
  std::optional<bool> imatrix = {};  // only with, or only without
};
constexpr DownRow kDowns[] = {
    {"Q2_K", 1, "q3_k"},
    {"Q3_K_L", 1, "q5_k"},
    {"Q3_K_M", 16, "q5_k", "q4_k"},
    {"Q4_K_M", kMoreBits, "q6_k"},
    {"Q5_K_M", kMoreBits, "q6_k"},
    {"IQ3_M", 8, "q4_k"},
    {"Q2_K_S", 8, "q4_k"},
    {"Q4_K_S", 8, "q5_k"},
    {"IQ3_XXS", 8, "q4_k", "q3_k", false},
    {"IQ4_NL", 8, "q5_k", "", false},
    {"IQ4_XS", 8, "q5_k", "", false},
    {"Q4_0", 8, "q4_1", "", true},
    {"Q5_0", 8, "q5_1", "", true},
};

// One quantisation: the mixture's rules, asked in the order of the tensors. A rule answers the name
// of a type, or "" for the base.
class Quantisation {
 public:
  Quantisation(const Mixture& mixture, bool imatrix, const MixtureModel& model,
               std::span<const GgufTensor> tensors)
      : mixture_(mixture), imatrix_(imatrix), model_(model) {
    for (const GgufTensor& tensor : tensors) {
      const Part part = PartOf(tensor.name);
      const bool counted = part == Part::kValue || part == Part::kFused || part == Part::kLatent;
      values_ += counted ? 1 : 0;
      tied_ = tied_ && part != Part::kOutput;
    }
  }

  const StoredType* TypeOf(const GgufTensor& tensor);

 private:
  bool Is(std::initializer_list<std::string_view> names) const {
    return std::ranges::find(names, mixture_.name) != names.end();
  }
  bool BaseIs(std::string_view name) const { return mixture_.base->name == name; }
  bool EightExperts() const { return model_.experts == 8; }
  bool Below3Bits() const { return Is({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M"}); }
  static bool UseMoreBits(std::int64_t i, std::int64_t n) {
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
  }

  std::string_view Choose(Part part, const GgufTensor& tensor);
  std::string_view OutputLayer(const GgufTensor& tensor) const;
  std::string_view Embedding() const;
  std::string_view Below3BitsRule(Part part);
  std::string_view OutputBelow3Bits() const;
  std::string_view Value();
  std::string_view ValueOfMixture(std::int64_t i) const;
  std::string_view ValueOfKMixture(std::int64_t i) const;
  std::string_view Fused() const;
  std::string_view KeyOrQuery(Part part) const;
  std::string_view Down(const GgufTensor& tensor);
  std::string_view DownOfMixture(std::int64_t i) const;
  std::string_view DownOfFalcon(std::int64_t i) const;
  std::string_view AttentionOutput() const;
  std::string_view GateOrUp(const GgufTensor& tensor) const;

  const Mixture& mixture_;
  bool imatrix_;
  const MixtureModel& model_;
  std::int64_t values_ = 0;       // tensors of values
  std::int64_t values_seen_ = 0;  // of which so many have their type
  std::int64_t downs_seen_ = 0;
  bool tied_ = true;  // no output layer of its own
};

std::string_view Quantisation::OutputLayer(const GgufTensor& tensor) const {
  if (Is({"MXFP4_MOE"}) || model_.falcon || tensor.ne0 % mixture_.base->block_elements != 0) {
    return "q8_0";
  }
  if (Below3Bits() || Is({"IQ3_XXS"})) {
    return "q5_k";
  }
  return BaseIs("q8_0") ? "" : "q6_k";
}

std::string_view Quantisation::Embedding() const {
  if (Is({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS"})) {
    return "q2_k";
  }
  if (Is({"IQ2_S", "IQ2_M", "IQ3_XXS"})) {
    return "iq3_s";
  }
  return Is({"TQ1_0", "TQ2_0"}) ? "q4_k" : "";
}

std::string_view Quantisation::OutputBelow3Bits() const {
  if (EightExperts()) {
    return "q5_k";
  }
  if (Is({"IQ1_S", "IQ1_M"})) {
    return "iq2_xxs";
  }
  return Is({"IQ2_S", "IQ2_M"}) ? "iq3_s" : "";
}

std::string_view Quantisation::Below3BitsRule(Part part) {
  const std::string_view more = Is({"IQ2_S", "IQ2_M"}) ? "iq3_s" : "q2_k";
  switch (part) {
    case Part::kValue:
      return model_.queries_per_value >= 4 || model_.experts >= 4 ? "q4_k" : more;
    case Part::kKey:
      return EightExperts() ? "q4_k" : "";
    case Part::kDown:
      return downs_seen_++ < model_.layers / 8 ? more : "";
    case Part::kAttentionOutput:
      return OutputBelow3Bits();
    default:
      return "";
  }
}

std::string_view Quantisation::ValueOfMixture(std::int64_t i) const {
  const auto* row = std::ranges::find(kValues, mixture_.name, &ValueRow::mixture);
  if (row != std::end(kValues)) {
    return model_.queries_per_value >= 4 ? row->shared : row->alone;
  }
  if (Is({"IQ3_XXS"})) {
    return model_.queries_per_value >= 4 ? "q4_k" : imatrix_ ? "" : "iq3_s";
  }
  return ValueOfKMixture(i);
}

std::string_view Quantisation::ValueOfKMixture(std::int64_t i) const {
  if (Is({"Q3_K_M"})) {
    return i < 2 ? "q5_k" : "q4_k";
  }
  if (Is({"Q4_K_M", "Q5_K_M"})) {
    return UseMoreBits(i, values_) ? "q6_k" : "";
  }
  return Is({"Q4_K_S"}) && i < 4 ? "q5_k" : "";
}

std::string_view Quantisation::Value() {
  const std::int64_t i = values_seen_++;
  std::string_view type = ValueOfMixture(i);
  const bool low =
      type.empty() ? BaseIs("q3_k") || BaseIs("q4_k") : type == "q3_k" || type == "q4_k";
  if (model_.size_70b && low) {
    type = "q5_k";
  }
  return EightExperts() ? "q8_0" : type;
}

std::string_view Quantisation::Fused() const {
  if (Is({"Q3_K_M", "Q3_K_L", "IQ3_M"})) {
    return "q4_k";
  }
  return Is({"Q4_K_M"}) ? "q5_k" : Is({"Q5_K_M"}) ? "q6_k" : "";
}

std::string_view Quantisation::KeyOrQuery(Part part) const {
  if (part == Part::kKey && EightExperts()) {
    return "q8_0";
  }
  return Is({"IQ3_XS"}) ? "iq3_xxs" : Is({"IQ3_XXS"}) ? "iq2_s" : "";
}

std::string_view Quantisation::DownOfMixture(std::int64_t i) const {
  const auto* row = std::ranges::find_if(kDowns, [&](const DownRow& down) {
    return down.mixture == mixture_.name && (!down.imatrix || *down.imatrix == imatrix_);
  });
  if (row == std::end(kDowns)) {
    return "";
  }
  const bool more = UseMoreBits(i, model_.layers);
  const bool here = (row->share > 0 && i < model_.layers / row->share) ||
                    (row->share == kMoreBits && more) || (EightExperts() && Is({"IQ3_M"}) && more);
  return here ? row->here : row->elsewhere;
}

// The first 16th, some layers of the rest, and the others.
std::string_view Quantisation::DownOfFalcon(std::int64_t i) const {
  struct Grades {
    std::string_view first;
    std::string_view more;
    std::string_view others;
  };
  const Grades grades =
      Is({"Q3_K_M"}) ? Grades{"q5_k", "q4_k", "q3_k"} : Grades{"q6_k", "q5_k", "q4_k"};
  const std::string_view rest = UseMoreBits(i, model_.layers) ? grades.more : grades.others;
  return i < model_.layers / 16 ? grades.first : rest;
}

// The number of a layer that has experts is the one in its name, else the count so far.
std::string_view Quantisation::Down(const GgufTensor& tensor) {
  const std::int64_t seen = downs_seen_++;
  const std::int64_t i = model_.experts > 1 ? tensor.layer : seen;
  if (model_.falcon && Is({"Q3_K_M", "Q4_K_M"})) {
    return DownOfFalcon(i);
  }
  if (model_.falcon && Is({"Q3_K_L", "Q4_K_S"})) {
    return Is({"Q3_K_L"}) ? "q4_k" : "";
  }
  return DownOfMixture(i);
}

std::string_view Quantisation::AttentionOutput() const {
  if (model_.falcon) {
    return Is({"Q3_K_L"}) ? "q4_k" : "";
  }
  if (EightExperts()) {
    return Is({"Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M",
               "IQ3_S", "IQ3_M", "IQ4_XS"})
               ? "q5_k"
               : "";
  }
  if (Is({"Q2_K"})) {
    return "q3_k";
  }
  if (Is({"IQ3_XXS"})) {
    return "iq3_s";
  }
  return Is({"Q3_K_M", "IQ3_M"}) ? "q4_k" : Is({"Q3_K_L"}) ? "q5_k" : "";
}

std::string_view Quantisation::GateOrUp(const GgufTensor& tensor) const {
  const std::int64_t n = model_.layers;
  const bool middle = tensor.layer >= n / 8 && tensor.layer < 7 * n / 8;
  return Is({"IQ3_XS"}) && middle ? "iq3_xxs" : "";
}

std::string_view Quantisation::Choose(Part part, const GgufTensor& tensor) {
  if (part == Part::kOutput || (part == Part::kEmbedding && tied_)) {
    return OutputLayer(tensor);
  }
  if (Is({"MXFP4_MOE"})) {
    return tensor.dimensions > 2 ? "" : "q8_0";
  }
  if (part == Part::kEmbedding) {
    return Embedding();
  }
  if (Below3Bits()) {
    return Below3BitsRule(part);
  }
  switch (part) {
    case Part::kValue:
      return Value();
    case Part::kFused:
      return Fused();
    case Part::kKey:
    case Part::kQuery:
      return KeyOrQuery(part);
    case Part::kDown:
      return Down(tensor);
    case Part::kAttentionOutput:
      return AttentionOutput();
    case Part::kGate:
    case Part::kUp:
      return GateOrUp(tensor);
    default:
      return "";
  }
}

const StoredType* Found(std::string_view name) {
  const StoredType* type = FindStoredType(name);
  CHECK(type != nullptr);
  return type;
}

// Where a row is no multiple of the block.
const StoredType* WithFallback(const StoredType* type, std::int64_t ne0) {
  if (ne0 % type->block_elements == 0) {
    return type;
  }
  struct Fallback {
    std::string_view name;
    std::string_view instead;
  };
  constexpr Fallback kFallbacks[] = {
      {"q2_k", "q4_0"}, {"q3_k", "q4_0"}, {"tq1_0", "q4_0"}, {"tq2_0", "q4_0"},
      {"q4_k", "q5_0"}, {"q5_k", "q5_1"}, {"q6_k", "q8_0"},
  };
  const auto* row = std::ranges::find(kFallbacks, type->name, &Fallback::name);
  const std::string_view instead = row != std::end(kFallbacks)
                                       ? row->instead
                                       : (type->block_elements == 256 ? "iq4_nl" : "float16");
  const StoredType* other = Found(instead);
  return ne0 % other->block_elements == 0 ? other : Found("float16");
}

const StoredType* Quantisation::TypeOf(const GgufTensor& tensor) {
  if (StaysFloat(tensor)) {
    return Found("float32");
  }
  if (mixture_.base->block_elements == 1) {
    return mixture_.base;
  }
  const std::string_view name = Choose(PartOf(tensor.name), tensor);
  return WithFallback(name.empty() ? mixture_.base : Found(name), tensor.ne0);
}

}  // namespace

Result<Mixture> FindMixture(std::string_view name, std::string_view where) {
  const auto* alias =
      std::ranges::find_if(kAliases, [&](const Alias& a) { return SameName(a.name, name); });
  const std::string_view sought = alias == std::end(kAliases) ? name : alias->means;
  const auto* row =
      std::ranges::find_if(kMixtures, [&](const Row& r) { return SameName(r.name, sought); });
  if (row == std::end(kMixtures)) {
    return WrongUsage({.where = std::string(where),
                       .found = fmt::format("unknown mixture \"{}\"", name),
                       .expected = "expected one that llama-quantize makes",
                       .hint = "for example Q4_K_M, IQ4_XS, Q8_0 or MXFP4_MOE"});
  }
  return Mixture{row->name, Found(row->base), row->needs_imatrix};
}

std::vector<const StoredType*> MixtureTypes(const Mixture& mixture, bool imatrix,
                                            const MixtureModel& model,
                                            std::span<const GgufTensor> tensors) {
  Quantisation quantisation(mixture, imatrix, model, tensors);
  std::vector<const StoredType*> types;
  types.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) {
    types.push_back(quantisation.TypeOf(tensor));
  }
  return types;
}

}  // namespace fourpiles
