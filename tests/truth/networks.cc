#include "tests/truth/networks.h"

#include <algorithm>
#include <regex>
#include <string>

#include "base/check.h"
#include "model/adapter.h"
#include "model/flow.h"
#include "model/parts.h"

namespace fourpiles::truth {

std::string Row::Text(std::string_view key) const {
  const Json* value = json.Find(key);
  const std::string* text = value == nullptr ? nullptr : value->AsString();
  return text == nullptr ? "" : *text;
}

std::int64_t Row::Number(std::string_view key) const {
  const Json* value = Config().Find(key);
  return value == nullptr || value->AsInteger() == nullptr ? 0 : *value->AsInteger();
}

std::string Row::Setting(std::string_view key) const {
  const Json* value = Config().Find(key);
  const std::string* text = value == nullptr ? nullptr : value->AsString();
  return text == nullptr ? "" : *text;
}

bool Row::Flag(std::string_view key) const {
  const Json* value = Config().Find(key);
  const bool* flag = value == nullptr ? nullptr : value->AsBool();
  return flag != nullptr && *flag;
}

bool Row::Positive(std::string_view key) const {
  const Json* value = Config().Find(key);
  const double* number = value == nullptr ? nullptr : value->AsDouble();
  return number != nullptr && *number > 0;
}

namespace {

struct Sizes {
  std::int64_t h;
  std::int64_t a;
  std::int64_t f;
  std::int64_t layers;
  std::int64_t classes;
};

Sizes SizesOf(const Row& row) {
  return {row.Number("h"), std::max<std::int64_t>(row.Number("a"), 1), row.Number("f"),
          row.Number("L"), row.Number("V")};
}

Activation ActivationOf(const Row& row) {
  const std::string name = row.Setting("act");
  if (name == "gelu_new") {
    return Activation::kGeluComposed;
  }
  if (name == "relu") {
    return Activation::kRelu;
  }
  if (name == "relu_") {
    return Activation::kReluInPlace;
  }
  return name == "silu" ? Activation::kSilu : Activation::kGelu;
}

Mask CausalMask(const Row& row) {
  return row.Setting("causal") == "masked_fill" ? Mask::kMaskedFill : Mask::kWhere;
}

// The measured modes of layer norms in float32 inside a bfloat16 model.
Parameters LayerNorm(const Row& row, std::int64_t width) {
  Parameters norm = Norm(width, true);
  for (Parameter& parameter : norm) {
    parameter.float32 = row.Text("mode") == "bf16_normfp32";
  }
  return norm;
}

// A parameter is frozen by a regular expression on its name.
void Freeze(const Row& row, const std::string& block, Parameters& parameters) {
  const std::string pattern = row.Text("freeze");
  for (Parameter& parameter : parameters) {
    const std::string name = block.empty() ? parameter.name : block + "." + parameter.name;
    parameter.trainable =
        pattern.empty() || !std::regex_search(name, std::regex("^(" + pattern + ")"));
  }
}

using LayerFlow = std::function<std::vector<Operator>(const Parameters& parameters)>;

void AddTruthBlock(Network& network, const Row& row, Parameters parameters, const LayerFlow& flow) {
  Freeze(row, "", parameters);
  std::vector<Operator> operators = flow(parameters);
  network.blocks.push_back(
      {.parameters = std::move(parameters), .operators = std::move(operators)});
}

void AddTruthLayers(Network& network, const Row& row, Parameters parameters,
                    const LayerFlow& flow) {
  AddLayers(network, "blocks.{}", row.Number("L"), [&](std::int64_t number) {
    Layer layer = {.parameters = parameters};
    Freeze(row, WithNumber("blocks.{}", number), layer.parameters);
    layer.operators = flow(layer.parameters);
    return layer;
  });
}

// The weight of the output layer, which may be that of the embedding, the first parameter of all.
struct Head {
  Parameters norm = {};
  std::string_view norm_name = {};
  bool shifted = false;
};
void AddHead(Network& network, const Row& row, Head head, const Sizes& sizes) {
  const bool tied = row.Flag("tied");
  Parameters parameters;
  Append(parameters, head.norm_name, std::move(head.norm));
  if (!tied) {
    Append(parameters, "head", Linear({sizes.classes, sizes.h}, Divide::kOutputs));
  }
  AddTruthBlock(network, row, std::move(parameters), [&](const Parameters& own) {
    Flow flow(own);
    const Value x = flow.Norm(head.norm_name, Flow::Input());
    flow.Loss("head", x, tied ? ParameterUse{.block = 0, .parameter = 0} : flow.Use("head.weight"),
              sizes.classes, head.shifted);
    std::vector<Operator> operators = flow.Take();
    operators.back().keeps_logits = row.Flag("keep_logits");
    return operators;
  });
}

void AddTokens(Network& network, const Row& row) {
  network.batch = {{.name = "ids", .per_token = true, .indices = true},
                   {.name = "labels", .per_token = true, .indices = true}};
  if (row.Text("arch") == "bert") {
    network.batch.push_back({.name = "mask", .per_token = true, .float32 = true});
  }
}

AttentionShape AttentionOf(const Row& row, const Sizes& sizes, Mask mask) {
  return {.heads = sizes.a,
          .key_value_heads = sizes.a,
          .head_dim = sizes.h / sizes.a,
          .mask = mask,
          .float32_softmax = row.Setting("attn") == "eager_fp32sm",
          .dropout = row.Positive("p_attn")};
}

Parameters SeparateAttention(const Sizes& sizes) {
  Parameters attention;
  for (const char* name : {"q", "k", "v"}) {
    Append(attention, name, Linear({sizes.h, sizes.h}, Divide::kOutputs, true));
  }
  Append(attention, "o", Linear({sizes.h, sizes.h}, Divide::kInputs, true));
  return attention;
}

// Queries, keys and values by layers of their own (BERT, ViT).
Value SeparateAttentionFlow(Flow& flow, Value x, const AttentionShape& shape) {
  const Value q = flow.Linear("attn.q", x);
  const Value k = flow.Linear("attn.k", x);
  const Value v = flow.Linear("attn.v", x);
  return flow.Linear("attn.o", flow.Attention("attn", q, k, v, shape));
}

Value MlpFlow(Flow& flow, Value x, const Row& row) {
  return flow.Linear("mlp.proj",
                     flow.Activation("mlp.act", flow.Linear("mlp.fc", x), ActivationOf(row)));
}

}  // namespace

Network Gpt2(const Row& row) {
  const Sizes sizes = SizesOf(row);
  const bool dropout = row.Positive("p");
  Network network;
  Parameters embeddings;
  Append(embeddings, "wte", Embedding(sizes.classes, sizes.h));
  Append(embeddings, "wpe", Embedding(row.Number("ctx"), sizes.h));
  AddTruthBlock(network, row, std::move(embeddings), [&](const Parameters& own) {
    Flow flow(own);
    const Value words = flow.Embedding("wte");
    flow.Dropout("drop", flow.Add(words, flow.Positions("wpe")), dropout);
    return flow.Take();
  });
  Parameters layer;
  Append(layer, "ln1", LayerNorm(row, sizes.h));
  Append(layer, "attn.qkv", Linear({3 * sizes.h, sizes.h}, Divide::kOutputs, true));
  Append(layer, "attn.o", Linear({sizes.h, sizes.h}, Divide::kInputs, true));
  Append(layer, "ln2", LayerNorm(row, sizes.h));
  Append(layer, "mlp", Mlp(sizes.h, sizes.f, true, "fc", "proj"));
  AddTruthLayers(network, row, std::move(layer), [&](const Parameters& own) {
    Flow flow(own);
    Value x = Flow::Input();
    const std::vector<Value> qkv =
        flow.Split(flow.Linear("attn.qkv", flow.Norm("ln1", x)), {sizes.h, sizes.h, sizes.h});
    const Value mixed =
        flow.Attention("attn", qkv[0], qkv[1], qkv[2], AttentionOf(row, sizes, CausalMask(row)));
    x = flow.Add(x, flow.Dropout("drop", flow.Linear("attn.o", mixed), dropout));
    flow.Add(x, flow.Dropout("drop", MlpFlow(flow, flow.Norm("ln2", x), row), dropout));
    return flow.Take();
  });
  AddHead(network, row, {.norm = LayerNorm(row, sizes.h), .norm_name = "lnf"}, sizes);
  AddTokens(network, row);
  network.buffers = {
      {.name = "mask", .elements = row.Number("ctx") * row.Number("ctx"), .bits = 8}};
  return network;
}

namespace {

Parameters RouterAndExperts(const Row& row, const Sizes& sizes) {
  Parameters moe;
  Append(moe, "gate", Linear({row.Number("E"), sizes.h}, Divide::kNot));
  Append(moe, "experts",
         Experts(GatedMlp(sizes.h, sizes.f, {.gate = "gate", .up = "up", .down = "down"}),
                 row.Number("E")));
  return moe;
}

Value FeedForwardFlow(Flow& flow, Value x, const Row& row, const Sizes& sizes) {
  if (row.Number("E") == 0) {
    const Value gate = flow.Linear("mlp.gate", x);
    const Value up = flow.Linear("mlp.up", x);
    return flow.Linear("mlp.down", flow.Gate("mlp", gate, up, Activation::kSilu));
  }
  return flow.Append(
      {.kind = OperatorKind::kExperts,
       .name = "mlp",
       .inputs = {x},
       .parameters = {flow.Use("mlp.gate.weight"), flow.Use("mlp.experts.{}.gate.weight"),
                      flow.Use("mlp.experts.{}.up.weight"), flow.Use("mlp.experts.{}.down.weight")},
       .widths = {sizes.h, sizes.f},
       .experts = row.Number("E"),
       .experts_per_token = row.Number("topk"),
       .activation = Activation::kSilu,
       .normalized = true});
}

}  // namespace

Network Llama(const Row& row) {
  const Sizes sizes = SizesOf(row);
  const std::int64_t kv = row.Number("kv");
  const std::int64_t d = sizes.h / sizes.a;
  Network network;
  Parameters embedding;
  Append(embedding, "emb", Embedding(sizes.classes, sizes.h));
  AddTruthBlock(network, row, std::move(embedding), [&](const Parameters& own) {
    Flow flow(own);
    const Value x = flow.Embedding("emb");
    if (row.Flag("enable_input_grads")) {
      flow.Append({.kind = OperatorKind::kInputGradient, .inputs = {x}});
    }
    return flow.Take();
  });
  Parameters layer;
  Append(layer, "n1", Norm(sizes.h));
  Append(layer, "attn.q", Linear({sizes.h, sizes.h}, Divide::kOutputs));
  Append(layer, "attn.k", Linear({kv * d, sizes.h}, Divide::kOutputs));
  Append(layer, "attn.v", Linear({kv * d, sizes.h}, Divide::kOutputs));
  Append(layer, "attn.o", Linear({sizes.h, sizes.h}, Divide::kInputs));
  Append(layer, "n2", Norm(sizes.h));
  Append(layer, "mlp",
         row.Number("E") > 0
             ? RouterAndExperts(row, sizes)
             : GatedMlp(sizes.h, sizes.f, {.gate = "gate", .up = "up", .down = "down"}));
  AttentionShape shape = AttentionOf(row, sizes, Mask::kAdd);
  shape.key_value_heads = kv;
  shape.float32_softmax = true;
  AddTruthLayers(network, row, std::move(layer), [&](const Parameters& own) {
    Flow flow(own);
    Value x = Flow::Input();
    const Value normed = flow.Norm("n1", x);
    const Value q = flow.Linear("attn.q", normed);
    const Value k = flow.Linear("attn.k", normed);
    const Value v = flow.Linear("attn.v", normed);
    const Value q_turned = flow.Rotary("attn.rotary", q, {.head_dim = d});
    const Value k_turned = flow.Rotary("attn.rotary", k, {.head_dim = d});
    x = flow.Add(x, flow.Linear("attn.o", flow.Attention("attn", q_turned, k_turned, v, shape)));
    flow.Add(x, FeedForwardFlow(flow, flow.Norm("n2", x), row, sizes));
    return flow.Take();
  });
  AddHead(network, row, {.norm = Norm(sizes.h), .norm_name = "norm", .shifted = row.Flag("shift")},
          sizes);
  AddTokens(network, row);
  const std::int64_t ctx = row.Number("ctx");
  network.buffers = {{.name = "cos", .elements = ctx * d, .bits = 0},
                     {.name = "sin", .elements = ctx * d, .bits = 0},
                     {.name = "mask", .elements = ctx * ctx, .bits = 0}};
  return network;
}

Network Bert(const Row& row) {
  const Sizes sizes = SizesOf(row);
  const bool dropout = row.Positive("p");
  Network network;
  Parameters embeddings;
  Append(embeddings, "we", Embedding(sizes.classes, sizes.h));
  Append(embeddings, "pe", Embedding(row.Number("ctx"), sizes.h));
  Append(embeddings, "te", Embedding(2, sizes.h));
  Append(embeddings, "ln", Norm(sizes.h, true));
  AddTruthBlock(network, row, std::move(embeddings), [&](const Parameters& own) {
    Flow flow(own);
    Value x = flow.Embedding("we");
    x = flow.Add(x, flow.TokenTypes("te"));
    x = flow.Add(x, flow.Positions("pe"));
    flow.Dropout("drop", flow.Norm("ln", x), dropout);
    return flow.Take();
  });
  Parameters layer;
  Append(layer, "attn", SeparateAttention(sizes));
  Append(layer, "ln1", Norm(sizes.h, true));
  Append(layer, "mlp", Mlp(sizes.h, sizes.f, true, "fc", "proj"));
  Append(layer, "ln2", Norm(sizes.h, true));
  AddTruthLayers(network, row, std::move(layer), [&](const Parameters& own) {
    Flow flow(own);
    Value x = Flow::Input();
    const Value mixed = SeparateAttentionFlow(flow, x, AttentionOf(row, sizes, Mask::kPadding));
    x = flow.Norm("ln1", flow.Add(flow.Dropout("drop", mixed, dropout), x));
    flow.Norm("ln2", flow.Add(flow.Dropout("drop", MlpFlow(flow, x, row), dropout), x));
    return flow.Take();
  });
  const bool tied = row.Flag("tied");
  Parameters head;
  Append(head, "tr", Linear({sizes.h, sizes.h}, Divide::kNot, true));
  Append(head, "trln", Norm(sizes.h, true));
  Append(head, "dec",
         tied ? Tensor("bias", {sizes.classes})
              : Linear({sizes.classes, sizes.h}, Divide::kOutputs, true));
  AddTruthBlock(network, row, std::move(head), [&](const Parameters& own) {
    Flow flow(own);
    Value x = flow.Activation("tr", flow.Linear("tr", Flow::Input()), Activation::kGelu);
    x = flow.Norm("trln", x);
    const ParameterUse weight =
        tied ? ParameterUse{.block = 0, .parameter = 0} : flow.Use("dec.weight");
    flow.Append({.kind = OperatorKind::kLoss,
                 .name = "dec",
                 .inputs = {x},
                 .parameters = {weight, flow.Use("dec.bias")},
                 .widths = {sizes.classes}});
    return flow.Take();
  });
  AddTokens(network, row);
  return network;
}

Network Vit(const Row& row) {
  const Sizes sizes = SizesOf(row);
  const bool dropout = row.Positive("p");
  const std::int64_t image = row.Number("img");
  const std::int64_t patch = std::max<std::int64_t>(row.Number("patch"), 1);
  const std::int64_t patches = (image / patch) * (image / patch);
  Network network;
  Parameters embeddings;
  Append(embeddings, "patch", Tensor("weight", {sizes.h, 3, patch, patch}));
  Append(embeddings, "patch", Tensor("bias", {sizes.h}));
  Append(embeddings, Tensor("cls", {1, 1, sizes.h}));
  Append(embeddings, Tensor("pos", {1, patches + 1, sizes.h}));
  AddTruthBlock(network, row, std::move(embeddings), [&](const Parameters& own) {
    Flow flow(own);
    const Value tokens =
        flow.Append({.kind = OperatorKind::kPatches,
                     .name = "patch",
                     .parameters = {flow.Use("patch.weight"), flow.Use("patch.bias")},
                     .widths = {sizes.h},
                     .channels = 3,
                     .kernel = patch});
    const Value all = flow.Append({.kind = OperatorKind::kPrependToken,
                                   .name = "cls",
                                   .inputs = {tokens},
                                   .parameters = {flow.Use("cls")}});
    flow.Add(all, flow.Constant("pos"));
    return flow.Take();
  });
  Parameters layer;
  Append(layer, "ln1", Norm(sizes.h, true));
  Append(layer, "attn", SeparateAttention(sizes));
  Append(layer, "ln2", Norm(sizes.h, true));
  Append(layer, "mlp", Mlp(sizes.h, sizes.f, true, "fc", "proj"));
  AddTruthLayers(network, row, std::move(layer), [&](const Parameters& own) {
    Flow flow(own);
    Value x = Flow::Input();
    const Value mixed =
        SeparateAttentionFlow(flow, flow.Norm("ln1", x), AttentionOf(row, sizes, Mask::kNone));
    x = flow.Add(x, flow.Dropout("drop", mixed, dropout));
    flow.Add(x, flow.Dropout("drop", MlpFlow(flow, flow.Norm("ln2", x), row), dropout));
    return flow.Take();
  });
  Parameters head;
  Append(head, "ln", Norm(sizes.h, true));
  Append(head, "head", Linear({sizes.classes, sizes.h}, Divide::kOutputs, true));
  AddTruthBlock(network, row, std::move(head), [&](const Parameters& own) {
    Flow flow(own);
    const Value x = flow.FirstToken(flow.Norm("ln", Flow::Input()));
    flow.Append({.kind = OperatorKind::kLoss,
                 .name = "head",
                 .inputs = {x},
                 .parameters = {flow.Use("head.weight"), flow.Use("head.bias")},
                 .widths = {sizes.classes}});
    return flow.Take();
  });
  network.batch = {{.name = "images", .elements = 3 * image * image},
                   {.name = "labels", .indices = true}};
  network.tokens_per_sample = patches + 1;
  return network;
}

namespace {

Network WithoutAdapters(const Row& row) {
  const std::string arch = row.Text("arch");
  using Build = Network (*)(const Row& row);
  static constexpr std::pair<std::string_view, Build> kBuilders[] = {
      {"gpt2", Gpt2}, {"llama", Llama},   {"moe", Llama}, {"bert", Bert},
      {"vit", Vit},   {"resnet", ResNet}, {"unet", UNet}, {"lstm", Lstm}};
  for (const auto& [name, build] : kBuilders) {
    if (arch == name) {
      return build(row);
    }
  }
  CHECK(false);
  return {};
}

}  // namespace

Network NetworkOf(const Row& row) {
  Network network = WithoutAdapters(row);
  const Json* lora = row.json.Find("lora");
  if (lora == nullptr || lora->IsNull()) {
    return network;
  }
  Adapter adapter = {.float32 = row.Setting("lora_dtype") == "fp32",
                     .rank = *lora->Find("r")->AsInteger(),
                     .dropout = row.Positive("lora_dropout") ? 0.1 : 0};
  for (const Json& target : *lora->Find("targets")->AsArray()) {
    adapter.targets.push_back(*target.AsString());
  }
  return WithAdapter(std::move(network), adapter, "lora").value();
}

}  // namespace fourpiles::truth
