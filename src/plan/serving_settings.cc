// Reads the settings of serving.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "formats/any_format.h"
#include "plan/adapter_setting.h"
#include "plan/declared_scheme.h"
#include "plan/model_argument.h"
#include "plan/rank_network.h"
#include "plan/setting_reader.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {
namespace {

constexpr std::string_view kStored = "stored";  // of --weights-format
constexpr std::string_view kAuto = "auto";      // of --kv-format, in a record

// Settings of one engine alone, and settings of engines at all.
struct OwnSetting {
  std::string_view name;
  std::string_view engine;  // empty: any
};
constexpr OwnSetting kOwnSettings[] = {
    {"gpu-layers", "llama.cpp"}, {"experts-on-host", "llama.cpp"}, {"flash-attention", "llama.cpp"},
    {"kv-unified", "llama.cpp"}, {"swa-full", "llama.cpp"},        {"mmproj", "llama.cpp"},
    {"engine-version", ""},      {"memory-utilization", ""},       {"ubatch", ""},
    {"max-num-seqs", ""},
};

Result<void> RefuseForeign(const SettingReader& reader, const ServingJob& serving) {
  for (const OwnSetting& own : kOwnSettings) {
    const SetValue* set = reader.Find(own.name);
    if (set == nullptr) {
      continue;
    }
    if (!serving.engine) {
      return WrongUsage({.where = set->where,
                         .found = "no engine to tell",
                         .expected = "expected --engine",
                         .hint = own.engine.empty() ? "for example --engine vllm"
                                                    : fmt::format("--engine {}", own.engine)});
    }
    if (!own.engine.empty() && own.engine != serving.engine->names.id) {
      return WrongUsage({.where = set->where,
                         .found = fmt::format("{} has no such setting", serving.engine->names.id),
                         .expected = fmt::format("expected --engine {}", own.engine),
                         .hint = "leave it out"});
    }
  }
  return {};
}

Result<void> ReadEngine(SettingReader& reader, ServingJob& serving) {
  const SetValue* set = reader.Find("engine");
  if (set != nullptr && set->text != "none") {
    TRY(serving.engine, FindEngine(set->text, set->where));
    serving.version = serving.engine->versions.front();
  }
  TRY_VOID(RefuseForeign(reader, serving));
  const SetValue* version = reader.Find("engine-version");
  if (version == nullptr) {
    return {};
  }
  const std::vector<EngineVersion>& versions = serving.engine->versions;
  const auto found = std::ranges::find(versions, version->text, &EngineVersion::id);
  if (found == versions.end()) {
    std::vector<std::string_view> known;
    known.reserve(versions.size());
    for (const EngineVersion& one : versions) {
      known.push_back(one.id);
    }
    return WrongUsage({.where = version->where,
                       .found = fmt::format("unknown version \"{}\"", version->text),
                       .expected = DidYouMean(version->text, known),
                       .hint = fmt::format("one of {}", fmt::join(known, ", "))});
  }
  serving.version = *found;
  return {};
}

// The word that was set; without one the model's own format.
Result<ServedFormat> ReadWeights(SettingReader& reader, const Model& model, bool llamacpp) {
  const SetValue* set = reader.Find("weights-format");
  if (set == nullptr) {
    TRY(ServedFormat own, OwnFormatOf(model, llamacpp));
    reader.NoteDefault("weights-format", own.name);
    return own;
  }
  if (set->text != kStored) {
    return FindServedFormat(set->text, set->where, llamacpp);
  }
  if (!model.checkpoint) {
    return WrongUsage({.where = set->where,
                       .found = "\"stored\", and no tensors to read",
                       .expected = "expected a model with its tensor files",
                       .hint = "give a number format"});
  }
  return ServedFormat{.name = std::string(kStored), .as_stored = true};
}

// A format that tensors are stored in, of 16 bits at least: no engine computes in others.
bool IsComputedIn(const NumberFormat& format) {
  return StorageBits(format) >= 16 && FindStoredType(format.name) != nullptr;
}

NumberFormat ComputeFormat(const ServedFormat& weights, const Network& network) {
  static const NumberFormat bfloat16 = FindFormat("bfloat16").value();
  const NumberFormat own = network.stored_format.value_or(bfloat16);
  const NumberFormat& plain = weights.scheme ? weights.scheme->plain : own;
  const NumberFormat& wide = IsComputedIn(plain) ? plain : own;
  return IsComputedIn(wide) ? wide : bfloat16;
}

bool HasKvFormat(const EngineRecord& engine, std::string_view name) {
  return std::ranges::find(engine.kv_formats, name) != engine.kv_formats.end();
}

// A format of the cache, one that the engine has. Values of 4 bits are kept with a byte of scale
// for each 16, which makes them as large as nvfp4 (sglang memory_pool.py, MHATokenToKVPoolFP4 and
// MLATokenToKVPoolFP4).
Result<const StoredType*> KvFormat(const SetValue& set, const ServingJob& serving) {
  const StoredType* type = FindStoredType(set.text);
  if (const auto format = FindFormat(set.text)) {
    // "fp8" and the other words that people type
    const bool scaled =
        serving.engine && format->name == "float4_e2m1fn" && HasKvFormat(*serving.engine, "nvfp4");
    type = FindStoredType(scaled ? "nvfp4" : format->name);
  }
  if (type == nullptr) {
    TRY(const AnyFormat format, FindAnyFormat(set.text, set.where));
    const std::string_view name = std::visit([](const auto& any) { return any.name; }, format);
    return WrongUsage({.where = set.where,
                       .found = fmt::format("no cache is kept in {}", name),
                       .expected = "expected a format that tensors are stored in",
                       .hint = "for example bfloat16, float8_e4m3fn, q8_0"});
  }
  if (serving.engine && !HasKvFormat(*serving.engine, type->name)) {
    return WrongUsage(
        {.where = set.where,
         .found = fmt::format("{} keeps no cache in {}", serving.engine->names.id, type->name),
         .expected = "expected one that it has",
         .hint = fmt::format("one of {}", fmt::join(serving.engine->kv_formats, ", "))});
  }
  return type;
}

Result<void> ReadKvFormats(SettingReader& reader, ServingJob& serving) {
  // llama.cpp's default is float16 whatever the model's (common/common.h, cache_type_k).
  const std::string_view usual = serving.engine && serving.engine->kv_formats.front() != kAuto
                                     ? serving.engine->kv_formats.front()
                                     : serving.compute_format.name;
  SetValue both = reader.Text("kv-format", usual);
  if (both.text == kAuto) {
    both.text = usual;
  }
  TRY(serving.key_format, KvFormat(both, serving));
  serving.value_format = serving.key_format;
  if (const SetValue* keys = reader.Find("kv-format-k")) {
    TRY(serving.key_format, KvFormat(*keys, serving));
  }
  if (const SetValue* values = reader.Find("kv-format-v")) {
    TRY(serving.value_format, KvFormat(*values, serving));
  }
  return {};
}

tl::unexpected<Error> DoesNotDivide(const SetValue* set, std::string found) {
  return WrongUsage({.where = set == nullptr ? "--devices" : set->where,
                     .found = std::move(found),
                     .expected = "expected tensor × pipeline × data parallel = devices",
                     .hint = "leave out --devices or one of the others"});
}

// llama.cpp has no ranks, and what is searched for is not given.
Result<void> RefuseLayout(const SettingReader& reader, bool llamacpp, bool searched) {
  for (const char* const name : {"tensor-parallel", "pipeline-parallel", "expert-parallel"}) {
    if (const SetValue* set = reader.Find(name); set != nullptr && llamacpp) {
      return WrongUsage({.where = set->where,
                         .found = "llama.cpp puts layers on devices",
                         .expected = "expected --devices alone",
                         .hint = "leave it out"});
    }
  }
  if (const SetValue* devices = reader.Find("devices"); devices != nullptr && searched) {
    return WrongUsage({.where = devices->where,
                       .found = fmt::format("{}, and searched for", devices->text),
                       .expected = "expected one of the two",
                       .hint = "leave out --devices or --solve devices"});
  }
  return {};
}

bool SearchesDevices(const SettingReader& reader) {
  const SetValue* solve = reader.Find("solve");
  return solve != nullptr && solve->text == Word(Unknown::kDevices);
}

// Devices that nothing was said of are cut by tensor parallelism; llama.cpp's hold layers.
Result<ServingLayout> ReadLayout(SettingReader& reader, bool llamacpp) {
  const bool searched = SearchesDevices(reader);
  TRY_VOID(RefuseLayout(reader, llamacpp, searched));
  ServingLayout layout;
  TRY(const std::optional<std::int64_t> devices, reader.OptionalCount("devices", kRanks));
  TRY(const std::optional<std::int64_t> tensor, reader.OptionalCount("tensor-parallel", kRanks));
  TRY(const std::optional<std::int64_t> pipeline,
      reader.OptionalCount("pipeline-parallel", kRanks));
  TRY(const std::optional<std::int64_t> expert, reader.OptionalCount("expert-parallel", kRanks));
  layout.pipeline = llamacpp ? devices.value_or(1) : pipeline.value_or(1);
  const std::int64_t all = devices.value_or(tensor.value_or(1) * layout.pipeline);
  if (all % layout.pipeline != 0) {
    return DoesNotDivide(reader.Find("pipeline-parallel"),
                         fmt::format("{} stages on {} devices", layout.pipeline, all));
  }
  layout.tensor = tensor.value_or(all / layout.pipeline);
  const std::int64_t replica = layout.tensor * layout.pipeline;
  if (all % replica != 0) {
    return DoesNotDivide(reader.Find("devices"),
                         fmt::format("{} devices, {} a replica", all, replica));
  }
  layout.data = all / replica;
  layout.expert = expert.value_or(1);
  const std::int64_t ranks = layout.tensor * layout.data;
  if (!searched && ranks % layout.expert != 0) {
    return DoesNotDivide(reader.Find("expert-parallel"),
                         fmt::format("experts over {} of {} devices", layout.expert, ranks));
  }
  if (!devices) {
    reader.NoteDefault("devices", fmt::to_string(all));
  } else if (!tensor && !llamacpp) {
    reader.NoteDefault("tensor-parallel", fmt::to_string(layout.tensor));
  }
  return layout;
}

// More stages than layers, and heads that no number of ranks can share.
Result<void> CheckLayout(const SettingReader& reader, const ServingLayout& layout,
                         const Network& network, bool vllm) {
  const std::int64_t layers = network.num_hidden_layers.value_or(kRanks.most);
  if (layout.pipeline > layers) {
    const SetValue* set = reader.Find("pipeline-parallel");
    return WrongUsage({.where = set == nullptr ? "--devices" : set->where,
                       .found = fmt::format("{} stages of {} layers", layout.pipeline, layers),
                       .expected = fmt::format("expected at most {}", layers),
                       .hint = "a stage holds at least one layer"});
  }
  const std::int64_t replicas = layout.tensor * layout.data;
  if (vllm && layout.expert != 1 && layout.expert != replicas) {
    return WrongUsage({.where = "--expert-parallel",
                       .found = fmt::format("experts over {} of {} ranks", layout.expert, replicas),
                       .expected = fmt::format("expected 1 or {}", replicas),
                       .hint = "vLLM spreads them over all ranks of tensor and data parallelism"});
  }
  if (!HeadsDivide(network, layout.tensor)) {
    const SetValue* set = reader.Find("tensor-parallel");
    return WrongUsage({.where = set == nullptr ? "--devices" : set->where,
                       .found = fmt::format("{} devices cannot share the heads", layout.tensor),
                       .expected = "expected a number that divides the heads, or that they divide",
                       .hint = "for example 2, 4 or 8"});
  }
  return {};
}

Result<void> ReadAmounts(SettingReader& reader, ServingJob& serving, const Network& network) {
  const std::int64_t longest = network.max_position_embeddings.value_or(kDefaultSequenceLength);
  TRY(serving.context_length, reader.Count("context-length", longest, kSizes));
  TRY(serving.concurrency, reader.Count("concurrency", 1, kSizes));
  TRY(serving.micro_batch, reader.OptionalCount("ubatch", kSizes));
  TRY(serving.max_num_seqs, reader.OptionalCount("max-num-seqs", kSizes));
  TRY(const std::optional<std::int64_t> images,
      reader.OptionalCount("image-tokens", {0, kSizes.most}));
  serving.image_tokens = images.value_or(0);
  if (!serving.engine || !serving.engine->memory_utilization) {
    if (const SetValue* set = reader.Find("memory-utilization")) {
      return WrongUsage({.where = set->where,
                         .found = fmt::format("{} reserves nothing", serving.engine->names.id),
                         .expected = "expected an engine that fills a share of the device",
                         .hint = "vllm, sglang or tensorrt-llm"});
    }
    return {};
  }
  TRY(const std::optional<double> share,
      reader.OptionalNumber("memory-utilization", {.least = 0, .most = 1}));
  serving.memory_utilization = share.value_or(*serving.engine->memory_utilization);
  if (!share) {
    reader.NoteDefault("memory-utilization", fmt::format("{}", serving.memory_utilization));
  }
  return {};
}

Result<void> ReadLlamacpp(SettingReader& reader, ServingJob& serving) {
  TRY(serving.gpu_layers, reader.OptionalCount("gpu-layers", {0, 1 << 20}));
  serving.experts_on_host = reader.Flag("experts-on-host");
  serving.unified = reader.Flag("kv-unified");
  serving.full_windows = reader.Flag("swa-full");
  static constexpr std::string_view kSwitch[] = {"off", "on"};
  TRY(const std::size_t flash, reader.Word("flash-attention", kSwitch, 1));
  serving.flash_attention = flash == 1;
  const bool quantised_values = serving.value_format->block_elements > 1;
  if (!serving.flash_attention && quantised_values) {  // llama_context: "V cache quantization …"
    return WrongUsage({.where = reader.Find("flash-attention")->where,
                       .found = fmt::format("off, with values in {}", serving.value_format->name),
                       .expected = "expected flash attention for quantised values",
                       .hint = "quantise the keys alone: --kv-format-k"});
  }
  if (const SetValue* projector = reader.Find("mmproj")) {
    TRY(const Checkpoint checkpoint, OpenCheckpoint(projector->text));
    for (const FileTensor& tensor : checkpoint.tensors) {
      serving.projector_bytes = OrLargest(Checked(serving.projector_bytes) + Checked(tensor.bytes));
    }
  }
  return {};
}

Result<void> ReadBeside(SettingReader& reader, ServingJob& serving, const Job& job) {
  if (const SetValue* draft = reader.Find("draft")) {
    TRY(ModelArgument argument, OpenModelArgument(draft->text, {}));
    serving.draft = std::make_shared<const Model>(std::move(argument.model));
  }
  TRY(serving.adapter, ReadAdapter(reader));
  TRY(const std::optional<std::int64_t> adapters, reader.OptionalCount("adapters", kRanks));
  serving.adapters = adapters.value_or(1);
  if (adapters && !serving.adapter) {
    return WrongUsage({.where = reader.Find("adapters")->where,
                       .found = "no adapter to count",
                       .expected = "expected --adapter",
                       .hint = "for example --adapter lora:rank=16"});
  }
  if (serving.adapter && serving.adapter->kind != AdapterKind::kLora &&
      serving.adapter->kind != AdapterKind::kRsLora) {
    return WrongUsage(
        {.where = reader.Find(kAdapterSetting)->where,
         .found =
             fmt::format("engines load no {} beside a model", RecordOf(serving.adapter->kind).word),
         .expected = "expected lora or rslora",
         .hint = "merge it into the weights: serving then needs no more than the model does"});
  }
  if (serving.adapter && !serving.adapter->modules.empty()) {
    return WrongUsage({.where = reader.Find(kAdapterSetting)->where,
                       .found = "engines load no trained copies of modules",
                       .expected = "expected targets alone",
                       .hint = "leave modules out"});
  }
  if (serving.adapter) {  // targets that the model does not have
    TRY_VOID(WithAdapter(job.model.network, *serving.adapter, reader.Find(kAdapterSetting)->where));
  }
  return {};
}

}  // namespace

Result<ServingJob> ReadServing(SettingReader& reader, const Job& job) {
  const Network& network = job.model.network;
  ServingJob serving;
  TRY_VOID(ReadEngine(reader, serving));
  const bool llamacpp = IsLlamacpp(serving);
  TRY(serving.weights, ReadWeights(reader, job.model, llamacpp));
  serving.compute_format = ComputeFormat(serving.weights, network);
  TRY_VOID(ReadKvFormats(reader, serving));
  TRY_VOID(ReadAmounts(reader, serving, network));
  TRY(serving.layout, ReadLayout(reader, llamacpp));
  TRY_VOID(CheckLayout(reader, serving.layout, network,
                       serving.engine && serving.engine->names.id == "vllm"));
  if (llamacpp) {
    TRY_VOID(ReadLlamacpp(reader, serving));
  }
  TRY_VOID(ReadBeside(reader, serving, job));
  return serving;
}

}  // namespace fourpiles
