// What one more layer of each family keeps for the backward pass, against closed forms.
//
// In the formulas b is the micro-batch, s the sequence, N = b × s, h hidden_size, f
// intermediate_size, a the heads, d head_dim, A = b × a × s². MS is 1 where mean() keeps its input
// (PyTorch up to 2.1): 8 N h a layer of two norms. The closed forms of GPT-2, BERT, ViT, Llama and
// Mixtral were measured with PyTorch 1.13 to the byte (tests/truth/README.md); the others are
// derived term by term beside them.

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "model/from_config.h"
#include "step/play.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kTokens = 16;
constexpr std::int64_t kN = kBatch * kTokens;

enum class Mode { kFloat32, kBfloat16, kAutocast };

Numbers NumbersOf(Mode mode) {
  const ElementType bfloat16 = TypeOf(FindFormat("bfloat16").value());
  return {.weights = mode == Mode::kBfloat16 ? bfloat16 : kFloat32,
          .compute = mode == Mode::kFloat32 ? kFloat32 : bfloat16,
          .autocast = mode == Mode::kAutocast};
}

Profile ProfileNamed(std::string_view name, AttentionKind attention = AttentionKind::kEager) {
  return FindProfile(name, {.attention = attention}).value();
}

Result<Tape> Played(const Network& network, const Profile& profile, Mode mode,
                    std::int64_t tokens = kTokens) {
  return Play({.network = std::make_shared<const Network>(network),
               .schedule = TrainingSchedule(network, {}),
               .batch = {.micro_batch_size = kBatch,
                         .sequence_length = network.tokens_per_sample.value_or(tokens)},
               .numbers = NumbersOf(mode)},
              profile);
}

// A config.json without its number of layers.
std::int64_t BytesOfALayer(const std::string& config, const Profile& profile, Mode mode,
                           const std::string& layers_key = "num_hidden_layers") {
  const auto saved = [&](int layers) {
    const std::string text = fmt::format(R"({{"{}": {}, {}}})", layers_key, layers, config);
    const Json json = ReadJson(text, "config.json").value();
    const Network network = NetworkFromConfig(json, "config.json").value();
    return SavedActivations(Played(network, profile, mode).value()).value();
  };
  return saved(3) - saved(2);
}

// --- The whole catalogue ---

// How often the operators of the network use each parameter.
std::vector<std::vector<int>> UsesOf(const Network& network) {
  std::vector<std::vector<int>> uses;
  for (const Block& block : network.blocks) {
    uses.emplace_back(block.parameters.size());
  }
  for (std::size_t block = 0; block < network.blocks.size(); ++block) {
    for (const Operator& op : network.blocks[block].operators) {
      for (const ParameterUse& use : op.parameters) {
        const std::size_t of = use.block < 0 ? block : static_cast<std::size_t>(use.block);
        ++uses[of][static_cast<std::size_t>(use.parameter)];
      }
    }
  }
  return uses;
}

// Once, but the embedding of the words, where it is the output layer as well.
void ExpectEveryParameterUsed(const Network& network, const std::string& name) {
  const std::vector<std::vector<int>> uses = UsesOf(network);
  const auto heads = std::ranges::count_if(network.blocks, [](const Block& block) {
    return block.name.ends_with("lm_head") || block.name.ends_with("embed_out");
  });
  const bool bare = network.blocks.back().name.ends_with("pooler.dense");
  for (std::size_t block = 0; block < uses.size(); ++block) {
    for (std::size_t i = 0; i < uses[block].size(); ++i) {
      const Parameter& parameter = network.blocks[block].parameters[i];
      const bool tied = block == 0 && i == 0 && heads == 0 && !bare;
      const int expected = parameter.trainable ? (tied ? 2 : 1) : 0;
      EXPECT_EQ(uses[block][i], expected)
          << name << ": " << network.blocks[block].name << "." << parameter.name;
    }
  }
}

// Architectures whose layers are not described.
constexpr std::string_view kNotDescribed[] = {
    "deepseek_v32",      "falcon_h1",    "gemma4_text", "glm_moe_dsa",
    "granitemoehybrid",  "jamba",        "kimi_linear", "lfm2",
    "llama4_text",       "mamba",        "mamba2",      "mimo_v2_flash",
    "mllama_text_model", "nemotron-nas", "nemotron_h",  "qwen3_5_moe_text",
    "qwen3_5_text"};

TEST(Architectures, OfTheCatalogueAreDescribed) {
  for (const ModelRecord& record : ModelRecords()) {
    const Result<Model> model = FindModel(record.names.id);
    if (!model) {
      continue;  // an architecture that cannot be built
    }
    const bool excepted =
        std::ranges::find(kNotDescribed, model->network.model_type) != std::end(kNotDescribed);
    EXPECT_EQ(OperatorsAreKnown(model->network), !excepted) << record.names.id;
  }
}

TEST(Architectures, OfTheCataloguePlay) {
  for (const ModelRecord& record : ModelRecords()) {
    const Result<Model> model = FindModel(record.names.id);
    if (!model || !OperatorsAreKnown(model->network)) {
      continue;
    }
    ExpectEveryParameterUsed(model->network, record.names.id);
    for (const char* name : {"pytorch", "pytorch-1.13-cpu"}) {
      for (const Mode mode : {Mode::kFloat32, Mode::kAutocast}) {
        const Result<Tape> tape =
            Played(model->network, ProfileNamed(name, AttentionKind::kSdpa), mode, 4);
        ASSERT_TRUE(tape) << record.names.id;
        EXPECT_GT(SavedActivations(*tape), Bytes(0)) << record.names.id;
      }
    }
  }
}

// --- GPT-2, BERT, ViT, Llama: what was measured ---

constexpr std::int64_t kH = 64;
constexpr std::int64_t kF = 256;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kA = kBatch * kHeads * kTokens * kTokens;
constexpr std::int64_t kNh = kN * kH;
constexpr std::int64_t kNf = kN * kF;

// Casts of the four square and the two rectangular weights.
constexpr std::int64_t kCasts = 2 * (4 * kH * kH + 2 * kH * kF);

std::string Gpt2(const std::string& activation) {
  return R"("model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_positions": 32, "vocab_size": 50,
            "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "activation_function": ")" +
         activation + "\"";
}

std::int64_t Gpt2Layer(Mode mode, const std::string& config = Gpt2("gelu")) {
  return BytesOfALayer(config, ProfileNamed("pytorch-1.13-cpu"), mode, "n_layer");
}

TEST(Architectures, Gpt2AsMeasured) {
  EXPECT_EQ(Gpt2Layer(Mode::kFloat32), 32 * kNh + 8 * kNf + 16 * kN + 4 * kA);
  EXPECT_EQ(Gpt2Layer(Mode::kBfloat16), 16 * kNh + 4 * kNf + 8 * kN + 2 * kA);
  EXPECT_EQ(Gpt2Layer(Mode::kAutocast), 20 * kNh + 4 * kNf + 16 * kN + 2 * kA + kCasts);
}

// "gelu_new" keeps five tensors of the inner width, not two.
TEST(Architectures, Gpt2WithItsOwnGelu) {
  EXPECT_EQ(Gpt2Layer(Mode::kFloat32, Gpt2("gelu_new")), 32 * kNh + 20 * kNf + 16 * kN + 4 * kA);
}

// Without keys for them its probabilities are 0.1. Two masks of the residual (of the processor, in
// the format of the input), the mask of the probabilities and a second copy of these.
TEST(Architectures, Gpt2DropsByDefault) {
  const std::string config =
      R"("model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_positions": 32, "vocab_size": 50,
         "activation_function": "gelu")";
  EXPECT_EQ(Gpt2Layer(Mode::kFloat32, config),
            32 * kNh + 8 * kNf + 16 * kN + 4 * kA + 2 * 4 * kNh + 8 * kA);
}

TEST(Architectures, BertAsMeasured) {
  const std::string bert =
      R"("model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 64,
         "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 50,
         "max_position_embeddings": 32, "hidden_dropout_prob": 0,
         "attention_probs_dropout_prob": 0)";
  const auto layer = [&](Mode mode) {
    return BytesOfALayer(bert, ProfileNamed("pytorch-1.13-cpu"), mode);
  };
  EXPECT_EQ(layer(Mode::kFloat32), 32 * kNh + 8 * kNf + 16 * kN + 4 * kA);
  EXPECT_EQ(layer(Mode::kBfloat16), 16 * kNh + 4 * kNf + 8 * kN + 2 * kA);
  EXPECT_EQ(layer(Mode::kAutocast), 24 * kNh + 4 * kNf + 16 * kN + 6 * kA + kCasts);
}

TEST(Architectures, VitAsMeasured) {
  const std::string vit =
      R"("model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 64,
         "num_attention_heads": 4, "intermediate_size": 256, "image_size": 16, "patch_size": 4)";
  constexpr std::int64_t kImageTokens = 4 * 4 + 1;
  constexpr std::int64_t n = kBatch * kImageTokens;
  constexpr std::int64_t a = kBatch * kHeads * kImageTokens * kImageTokens;
  const auto layer = [&](Mode mode) {
    return BytesOfALayer(vit, ProfileNamed("pytorch-1.13-cpu"), mode);
  };
  EXPECT_EQ(layer(Mode::kFloat32), n * (32 * kH + 8 * kF + 16) + 4 * a);
  EXPECT_EQ(layer(Mode::kBfloat16), n * (16 * kH + 4 * kF + 8) + 2 * a);
  EXPECT_EQ(layer(Mode::kAutocast), n * (24 * kH + 4 * kF + 16) + 2 * a + kCasts);
}

std::string Decoder(const std::string& model_type, const std::string& more, int key_value_heads) {
  return fmt::format(R"("model_type": "{}", "hidden_size": 64, "num_attention_heads": 4,
                        "num_key_value_heads": {}, "intermediate_size": 256, "vocab_size": 50,
                        "max_position_embeddings": 32{})",
                     model_type, key_value_heads, more);
}

class LlamaLayer : public testing::TestWithParam<int> {};  // by key and value heads

TEST_P(LlamaLayer, AsMeasured) {
  const std::string config = Decoder("llama", "", GetParam());
  const Profile old = ProfileNamed("pytorch-1.13-cpu");
  EXPECT_EQ(BytesOfALayer(config, old, Mode::kFloat32), 48 * kNh + 16 * kNf + 8 * kN + 4 * kA);
  EXPECT_EQ(BytesOfALayer(config, old, Mode::kBfloat16), 32 * kNh + 8 * kNf + 8 * kN + 6 * kA);
  const std::int64_t d = kH / kHeads;
  EXPECT_EQ(BytesOfALayer(config, old, Mode::kAutocast),
            42 * kNh + 8 * kNf + 8 * kN + 6 * kA + 8 * kTokens * d +
                2 * (2 * kH * kH + 2 * kH * GetParam() * d + 3 * kH * kF));
}

TEST_P(LlamaLayer, WithoutTheInputsOfMeans) {
  const std::string config = Decoder("llama", "", GetParam());
  const Profile profile = ProfileNamed("pytorch");
  EXPECT_EQ(BytesOfALayer(config, profile, Mode::kFloat32), 40 * kNh + 16 * kNf + 8 * kN + 4 * kA);
  EXPECT_EQ(BytesOfALayer(config, profile, Mode::kBfloat16), 24 * kNh + 8 * kNf + 8 * kN + 6 * kA);
}

// The scores are replaced by one float32 a query and head.
TEST_P(LlamaLayer, WithFusedAttention) {
  const Profile profile = ProfileNamed("pytorch", AttentionKind::kSdpa);
  EXPECT_EQ(BytesOfALayer(Decoder("llama", "", GetParam()), profile, Mode::kBfloat16),
            24 * kNh + 8 * kNf + 8 * kN + 4 * kN * kHeads);
}

INSTANTIATE_TEST_SUITE_P(Heads, LlamaLayer, testing::Values(4, 2, 1));

// --- By hand: PyTorch 2.2 and later, MS = 0, eager attention ---

constexpr std::int64_t kD = 32;           // head_dim
constexpr std::int64_t kQ = kHeads * kD;  // width of all queries
constexpr std::int64_t kKeys = 2 * kD;    // of all keys, two heads

TEST(Architectures, QwenNormsOfHeadsByHand) {
  // Llama's terms with the width of the queries where it is not h: the four of attention, 16 NQ in
  // float32, 8 NQ in bfloat16. Each norm of heads keeps its input in float32 and its normed copy,
  // and 1/rms a head.
  const std::string config = Decoder("qwen3", R"(, "head_dim": 32)", 2);
  const Profile profile = ProfileNamed("pytorch");
  const std::int64_t statistics = 4 * kN * (kHeads + 2);
  EXPECT_EQ(
      BytesOfALayer(config, profile, Mode::kFloat32),
      24 * kNh + 16 * kN * kQ + 16 * kNf + 8 * kN + 4 * kA + 8 * kN * (kQ + kKeys) + statistics);
  EXPECT_EQ(
      BytesOfALayer(config, profile, Mode::kBfloat16),
      16 * kNh + 8 * kN * kQ + 8 * kNf + 8 * kN + 6 * kA + 6 * kN * (kQ + kKeys) + statistics);
}

TEST(Architectures, GemmaByHand) {
  // Each of the two norms keeps, in bfloat16: its input in float32 4Nh, that times 1/rms in float32
  // 4Nh, 1 + weight 4h, and its output, which the linear layers keep, 2Nh. In float32 the same with
  // an output of 4Nh. The rest is Llama's, with queries of width Q.
  const std::string config = Decoder("gemma", R"(, "head_dim": 32)", 2);
  const Profile profile = ProfileNamed("pytorch");
  EXPECT_EQ(BytesOfALayer(config, profile, Mode::kFloat32),
            24 * kNh + 8 * kH + 16 * kN * kQ + 16 * kNf + 8 * kN + 4 * kA);
  EXPECT_EQ(BytesOfALayer(config, profile, Mode::kBfloat16),
            20 * kNh + 8 * kH + 8 * kN * kQ + 8 * kNf + 8 * kN + 6 * kA);
}

TEST(Architectures, Gemma3ByHand) {
  // In bfloat16. Norms before a part keep 10Nh (as Gemma's), after a part 8Nh, since addition keeps
  // nothing of their output; norms of heads 8 bytes an element of queries and keys. Every norm has
  // 1 + weight, and 1/rms a token or a head.
  const std::string config = Decoder("gemma3_text", R"(, "head_dim": 32, "sliding_window": 8)", 2);
  EXPECT_EQ(BytesOfALayer(config, ProfileNamed("pytorch"), Mode::kBfloat16),
            36 * kNh + 8 * kN * (kQ + kKeys) + 8 * kN * kQ + 8 * kNf + 6 * kA + 16 * kN +
                4 * kN * (kHeads + 2) + 4 * (4 * kH + 2 * kD));
}

TEST(Architectures, Gemma2BoundsScoresByHand) {
  // tanh keeps its result, 2A in bfloat16, before the softmax in float32, 4A, and its copy, 2A.
  const std::string config = Decoder("gemma2", R"(, "head_dim": 32)", 2);
  EXPECT_EQ(BytesOfALayer(config, ProfileNamed("pytorch"), Mode::kBfloat16),
            36 * kNh + 8 * kN * kQ + 8 * kNf + 8 * kA + 16 * kN + 16 * kH);
}

constexpr std::int64_t kExperts = 4;
constexpr std::int64_t kChosen = 2;
constexpr std::int64_t kRouted = kN * kChosen;

TEST(Architectures, MixtralAsMeasured) {
  // Llama's attention and norms, 36Nh (in bfloat16 22Nh), and in place of its MLP: the input of the
  // router; softmax 4NE, indices 8, the best 4 and their sum; of each routed token its place 16,
  // the input, four tensors of the inner width, the output, the weight, and what is added.
  const std::string config =
      Decoder("mixtral", R"(, "num_local_experts": 4, "num_experts_per_tok": 2)", 2);
  const Profile profile = ProfileNamed("pytorch");
  const std::int64_t router = 4 * kN * kExperts + 12 * kN * kChosen + 4 * kN;
  EXPECT_EQ(BytesOfALayer(config, profile, Mode::kFloat32),
            36 * kNh + 8 * kN + 4 * kA + 4 * kNh + router +
                kRouted * (16 + 4 * kH + 16 * kF + 4 * kH + 4 + 4 * kH));
  EXPECT_EQ(BytesOfALayer(config, profile, Mode::kBfloat16),
            22 * kNh + 8 * kN + 6 * kA + 2 * kNh + router +
                kRouted * (16 + 2 * kH + 8 * kF + 2 * kH + 2 + 2 * kH));
}

constexpr char kDeepseek[] =
    R"("model_type": "deepseek_v3", "hidden_size": 64, "num_attention_heads": 4,
       "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 12, "qk_rope_head_dim": 4,
       "v_head_dim": 8, "intermediate_size": 256, "moe_intermediate_size": 32,
       "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "vocab_size": 50,
       "topk_method": "noaux_tc")";

TEST(Architectures, DeepseekByHand) {
  constexpr std::int64_t kRank = 24;
  constexpr std::int64_t kLatent = 16;
  constexpr std::int64_t kRope = 4;
  constexpr std::int64_t kKeyWidth = kHeads * (12 + kRope);
  constexpr std::int64_t kValueWidth = kHeads * 8;
  constexpr std::int64_t kInner = 32;
  const Profile profile = ProfileNamed("pytorch");
  const std::int64_t roots = 4 * 4 * kN;
  // Sigmoids, indices, the weights gathered, and their sum.
  const std::int64_t router = 4 * kN * kExperts + 12 * kN * kChosen + 4 * kN;
  // Two norms of the width and one of the rank of queries keep three tensors; that of the latent
  // keeps the whole that the latent is a view of, and two. Queries and keys, values and what
  // attention puts out. The shared expert keeps four tensors of its inner width.
  EXPECT_EQ(BytesOfALayer(kDeepseek, profile, Mode::kFloat32),
            24 * kNh + 12 * kN * kRank + kN * (4 * (kLatent + kRope) + 8 * kLatent) + roots +
                8 * kN * kKeyWidth + 8 * kN * kValueWidth + 4 * kA + router +
                kRouted * (16 + 4 * kH + 16 * kInner + 4 * kH + 4 + 4 * kH) + 16 * kN * kInner);
  // A norm keeps 4 + 2 + 2; the router has its input and its weight in float32; what the experts
  // put out, in bfloat16, is multiplied by float32 weights and added in float32.
  EXPECT_EQ(BytesOfALayer(kDeepseek, profile, Mode::kBfloat16),
            16 * kNh + 8 * kN * kRank + 8 * kN * kLatent + roots + 4 * kN * kKeyWidth +
                4 * kN * kValueWidth + 6 * kA + router + 4 * kNh + 4 * kExperts * kH +
                kRouted * (16 + 2 * kH + 8 * kInner + 2 * kH + 4 + 4 * kH) + 8 * kN * kInner);
}

TEST(Architectures, GptJByHand) {
  // In bfloat16. One layer norm for both parts, 4Nh and statistics 8N. Queries and keys in float32,
  // 8Nh, values and output 4Nh; a softmax in float32 and its copy; sin and cos for queries and for
  // keys, in float32, of the 8 elements rotated; "gelu_new" keeps five tensors.
  const std::string config =
      R"("model_type": "gptj", "n_embd": 64, "n_head": 4, "n_positions": 32, "rotary_dim": 8,
         "vocab_size": 50)";
  EXPECT_EQ(BytesOfALayer(config, ProfileNamed("pytorch"), Mode::kBfloat16, "n_layer"),
            4 * kNh + 8 * kN + 12 * kNh + 6 * kA + 16 * kTokens * 8 + 10 * kNf);
}

TEST(Architectures, GptOssByHand) {
  // In bfloat16. Norms: input and normed copy in float32, output: 10Nh each. Attention: queries,
  // keys, values and output 8NQ; the softmax of scores and sinks 2b a s (s + 1), the places of the
  // maxima 8b a s. Router: its input is the norm's output; indices 8, their softmax 2 a choice.
  // Of each routed token its place 16, the input 2h, gate and input 4f and five more tensors of the
  // inner width 10f, the output 2h, its weight 2, and what is added 2h.
  const std::string config = Decoder(
      "gpt_oss", R"(, "head_dim": 32, "num_local_experts": 4, "num_experts_per_tok": 2)", 2);
  EXPECT_EQ(BytesOfALayer(config, ProfileNamed("pytorch"), Mode::kBfloat16),
            20 * kNh + 8 * kN + 8 * kN * kQ + 2 * kN * kHeads * (kTokens + 1) + 8 * kN * kHeads +
                10 * kN * kChosen + kRouted * (16 + 2 * kH + 14 * kF + 2 * kH + 2 + 2 * kH));
}

}  // namespace
}  // namespace fourpiles
