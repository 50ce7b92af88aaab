#include "plan/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/try.h"

namespace fourpiles {
namespace {

constexpr std::string_view kModel = "Model";
constexpr std::string_view kStep = "Training step";
constexpr std::string_view kServe = "Serving";
constexpr std::string_view kPlace = "Device and layout";
constexpr bool kNotBuilt = false;
constexpr unsigned kTrainOnly = 1U << static_cast<unsigned>(JobKind::kTrain);

constexpr Setting kSettings[] = {
    {"layers", "", "N", "layers of a bare parameter count", kModel, kTraining},
    {"width", "", "N", "hidden size of a bare parameter count", kModel, kTraining},

    {"recipe", "", "NAME", "number formats of the training step (default mixed-bf16)", kStep,
     kTraining},
    {"optimizer", "", "NAME", "optimizer (default adamw)", kStep, kTraining},
    {"micro-batch-size", "b", "N", "samples in one forward pass on one device (default 1)", kStep,
     kTraining},
    {"sequence-length", "s", "N", "tokens of a sample (default 2048, or the model's longest)",
     kStep, kTraining},
    {"length-histogram", "", "FILE",
     "lengths of the data's samples, one a line or length,count (docs/LENGTHS.md): the step is "
     "that "
     "of the longest, up to --sequence-length, and the limits are compared",
     kStep, kTraining},
    {"padding", "", "KIND",
     "what samples of --length-histogram are filled up to: longest (of the batch, the default), "
     "max "
     "or none",
     kStep, kTraining},
    {"excess-length", "", "KIND",
     "what becomes of samples of --length-histogram that pass --sequence-length: truncate (the "
     "default) or drop",
     kStep, kTraining},
    {"packing", "", "", "samples of --length-histogram follow one another in full sequences", kStep,
     kTraining},
    {"gradient-accumulation", "", "N",
     "micro-batches before a step (default 1; of a pipeline 2 × stages)", kStep, kTraining},
    {"activations", "", "KIND",
     "exact, by the operators of the network, or lower-bound, of each layer its output (default: "
     "exact where the operators are known)",
     kStep, kTraining},
    {"activation-format", "", "FORMAT", "number format of a lower bound (default: the recipe's)",
     kStep, kTraining},
    {"attention", "", "KIND", "eager, sdpa or flash (default: the implementation's)", kStep,
     kTraining},
    {"loss", "", "KIND", "plain, fused or chunked:N (default: the implementation's)", kStep,
     kTraining},
    {"recompute", "", "KIND", "none, selective, selective-op, full or every:K (default none)",
     kStep, kTraining},
    {"implementation", "", "NAME", "pytorch, pytorch-2.1, liger, … (default pytorch)", kStep,
     kTraining},
    {"optimizer-kernels", "", "KIND",
     "loop, foreach, fused, or in-backward, which steps with every gradient as it comes (default: "
     "the recipe's)",
     kStep, kTraining},
    {"adapter", "", "SPEC",
     "train an adapter alone: lora:rank=16,targets=all-linear,dropout=0.05 (or "
     "targets=q_proj+lm_head, with * and ?, modules=embed_tokens), rslora, dora, vera:rank=256, "
     "ia3, prompt:tokens=20, prefix:tokens=20, bitfit, ln, or none (default of finetune: "
     "lora:rank=16)",
     kStep, kTraining},
    {"freeze", "", "PARTS",
     "freeze embeddings, head, vision, norms, biases, last:K, all-but-last:K or a pattern of "
     "names; "
     "several joined by +",
     kStep, kTraining},
    {"train-only", "", "PARTS", "freeze all but such parts: last:2+head", kStep, kTraining},
    {"evaluate", "", "", "a forward pass that keeps nothing, instead of a training step", kStep,
     kTrainOnly},
    {"base-format", "", "FORMAT",
     "number format of frozen linear layers: nf4, nf4-double, bnb-int8, gptq, awq … (default: the "
     "recipe's)",
     kStep, kTraining},
    {"first-step", "", "",
     "the first step, which has no optimizer states before its end, instead of a steady one", kStep,
     kTraining},

    {"engine", "", "NAME",
     "llama.cpp, vllm, sglang, tensorrt-llm, transformers, or all: side by side (default: none, "
     "weights and caches alone)",
     kServe, kServing},
    {"engine-version", "", "NAME",
     "what differs in other builds: a version of the engine's record (default: current)", kServe,
     kServing},
    {"weights-format", "", "FORMAT",
     "a number format, a scheme (fp8, int8, gptq, awq:4:128, nf4, mxfp4, nvfp4 …), a mixture of "
     "llama.cpp (q4_k_m, iq3_xxs …), or stored: as they lie in the file (default: stored where "
     "there are tensors, else what the config says, else bfloat16)",
     kServe, kServing},
    {"kv-format", "", "FORMAT",
     "number format of the KV cache, q8_0 and its like for llama.cpp (default: the weights', or "
     "the dtype where they have under 16 bits; float16 for llama.cpp)",
     kServe, kServing},
    {"kv-format-k", "", "FORMAT", "of its keys alone", kServe, kServing},
    {"kv-format-v", "", "FORMAT", "of its values alone", kServe, kServing},
    {"context-length", "", "N", "tokens a request may hold (default: the model's longest)", kServe,
     kServing},
    {"concurrency", "", "N", "requests at a time (default 1)", kServe, kServing},
    {"memory-utilization", "", "SHARE",
     "share of the device, or of what is free, that the engine takes (default: the engine's)",
     kServe, kServing},
    {"ubatch", "", "N",
     "tokens in one forward pass: micro-batch, chunk of a prefill (default: the engine's)", kServe,
     kServing},
    {"max-num-seqs", "", "N",
     "requests that the engine prepares for; their logits count (default: the engine's)", kServe,
     kServing},
    {"gpu-layers", "", "N", "layers on devices, the output layer as one more (default: all)",
     kServe, kServing},
    {"experts-on-host", "", "", "routed experts stay in host memory (llama.cpp --cpu-moe)", kServe,
     kServing},
    {"flash-attention", "", "on|off", "llama.cpp: off keeps the scores (default on)", kServe,
     kServing},
    {"kv-unified", "", "", "llama.cpp: requests share the cells of the cache", kServe, kServing},
    {"swa-full", "", "", "llama.cpp: layers with a window keep the whole context", kServe,
     kServing},
    {"draft", "", "MODEL", "draft model of speculative decoding, served beside it", kServe,
     kServing},
    {"mmproj", "", "FILE", "projector of images, a GGUF file, on the first device (llama.cpp)",
     kServe, kServing},
    {"adapter", "", "SPEC", "low-rank adapters that stay loaded: lora:rank=16,targets=all-linear",
     kServe, kServing},
    {"adapters", "", "N", "how many of them (default 1)", kServe, kServing},
    {"image-tokens", "", "N",
     "tokens that the images of a request take, beside --context-length (default 0; one image, "
     "where "
     "cross attention keeps them)",
     kServe, kServing},

    {"device", "", "DEVICE", "a device of the catalogue, or its memory: 80GB, 79.6GiB", kPlace},
    {"devices", "", "N", "how many devices (default 1)", kPlace, kTraining},
    {"devices", "", "N",
     "how many devices (default: tensor × pipeline parallel); what they share is cut over them",
     kPlace, kServing},
    {"later-batches", "", "KIND",
     "alike, or shorter: the batch before may have been as long, so that what is held from one to "
     "the next counts, or not (default alike)",
     kStep, kTraining},
    {"expandable-segments", "", "",
     "PyTorch's allocator has one segment that grows (PYTORCH_CUDA_ALLOC_CONF)", kPlace, kTraining},
    {"zero", "", "0..3",
     "shard optimizer state (1: Megatron's distributed optimizer), gradients, weights over the "
     "data-parallel devices",
     kPlace, kTraining},
    {"solve", "", "WHAT", "find the largest batch or sequence, or the fewest devices", kPlace,
     kTraining},
    {"solve", "", "WHAT", "find the largest concurrency or context, or the fewest devices", kPlace,
     kServing},
    {"fsdp", "", "KIND",
     "full, or hybrid:N: shard everything over the data-parallel devices, or over N of them; with "
     ":keep what was gathered stays between forward and backward, with :always none of it does",
     kPlace, kTraining},
    {"tensor-parallel", "", "N", "cut every layer over N devices (default 1)", kPlace, kTraining},
    {"tensor-parallel", "", "N", "cut every layer over N devices (default: all of them)", kPlace,
     kServing},
    {"sequence-parallel", "", "",
     "cut by tokens what tensor parallelism leaves whole: norms, dropout, residuals", kPlace,
     kTraining},
    {"pipeline-parallel", "", "N", "cut the layers into N stages (default 1)", kPlace, kTraining},
    {"pipeline-schedule", "", "KIND",
     "1f1b, gpipe or zero-bubble (default 1f1b, interleaved where a stage has several chunks)",
     kPlace, kTraining},
    {"first-stage-layers", "", "N", "layers of the first stage (default: as the others)", kPlace,
     kTraining},
    {"last-stage-layers", "", "N", "layers of the last stage (default: as the others)", kPlace,
     kTraining},
    {"pipeline-parallel", "", "N", "cut the layers into N stages (default 1)", kPlace, kServing},
    {"virtual-pipeline", "", "N", "chunks of layers that every stage has (default 1)", kPlace,
     kTraining},
    {"context-parallel", "", "N", "cut the sequence over N devices (default 1)", kPlace, kTraining},
    {"context-parallel", "", "N", "cut the sequence over N devices", kPlace, kServing, kNotBuilt},
    {"expert-parallel", "", "N", "spread whole experts over N devices (default 1)", kPlace,
     kTraining},
    {"expert-tensor-parallel", "", "N",
     "cut every expert over N devices (default: as --tensor-parallel)", kPlace, kTraining},
    {"expert-imbalance", "", "X",
     "how many times its even share of tokens the fullest device's experts get (default 1)", kPlace,
     kTraining},
    {"expert-parallel", "", "N",
     "spread whole experts over N devices instead of cutting each (default 1)", kPlace, kServing},
    {"offload", "", "WHAT",
     "to the host: activations until the backward pass, optimizer (states and step), parameters "
     "(and with them the optimizer); several joined by +",
     kPlace, kTraining},
    {"host-memory", "", "SIZE", "memory of one host, for what is offloaded", kPlace, kTraining},
    {"devices-per-host", "", "N", "devices of one host (default 8)", kPlace, kTraining},
    {"rank", "", "RANK", "the rank that is shown: worst, first, last or its number (default worst)",
     kPlace, kTraining},
};

// The value of a setting in a job file, as it would be typed; nothing for a flag that is false.
Result<std::optional<std::string>> TextOf(const Json& value, bool is_flag,
                                          const std::string& where) {
  const bool* flag = value.AsBool();
  if (is_flag && flag != nullptr) {
    return *flag ? std::optional<std::string>("true") : std::nullopt;
  }
  if (const std::string* text = value.AsString(); text != nullptr && !is_flag) {
    return *text;
  }
  if (const std::int64_t* number = value.AsInteger(); number != nullptr && !is_flag) {
    return fmt::to_string(*number);
  }
  if (const double* number = value.AsDouble(); number != nullptr && !is_flag) {
    return fmt::to_string(*number);
  }
  return BadInput({.where = where,
                   .found = Describe(value),
                   .expected = is_flag ? "expected true or false" : "expected a string or a number",
                   .hint = "write it as on the command line"});
}

}  // namespace

std::string_view Name(JobKind kind) {
  switch (kind) {
    case JobKind::kTrain:
      return "train";
    case JobKind::kFinetune:
      return "finetune";
    case JobKind::kServe:
      break;
  }
  return "serve";
}

std::vector<Setting> SettingsOf(JobKind kind) {
  std::vector<Setting> settings;
  std::ranges::copy_if(kSettings, std::back_inserter(settings), [&](const Setting& setting) {
    return (setting.commands & (1U << static_cast<unsigned>(kind))) != 0;
  });
  return settings;
}

std::string KeyOf(const Setting& setting) {
  std::string key(setting.name);
  std::ranges::replace(key, '-', '_');
  return key;
}

Settings TypedSettings(const std::map<std::string, std::string>& typed) {
  Settings settings;
  for (const auto& [name, text] : typed) {
    settings[name] = {text, "--" + name};
  }
  return settings;
}

Result<Settings> SettingsFromJson(const Json& job, JobKind kind, std::string_view where) {
  TRY(const Fields fields, Fields::Of(job, std::string(where)));
  std::map<std::string, Setting, std::less<>> settings_by_key = {
      {"model", {.name = "model", .value = "MODEL"}}};
  for (const Setting& setting : SettingsOf(kind)) {
    settings_by_key.emplace(KeyOf(setting), setting);
  }
  std::vector<std::string_view> known;
  known.reserve(settings_by_key.size());
  for (const auto& [key, setting] : settings_by_key) {
    known.emplace_back(key);
  }
  TRY_VOID(fields.RefuseUnknown(known));
  Settings settings;
  for (const auto& [key, value] : fields.Members()) {
    if (!value.IsNull()) {
      const Setting& setting = settings_by_key.find(key)->second;
      const std::string place = fields.Where(key);
      TRY(const std::optional<std::string> text, TextOf(value, setting.value.empty(), place));
      if (text) {
        settings[std::string(setting.name)] = {*text, place};
      }
    }
  }
  return settings;
}

Result<void> RefuseUnbuilt(const Settings& settings, JobKind kind) {
  for (const Setting& setting : SettingsOf(kind)) {
    const auto set = settings.find(setting.name);
    if (set != settings.end() && !setting.built) {
      return WrongUsage({.where = set->second.where,
                         .found = "not in this version",
                         .hint = fmt::format("leave it out; it will mean: {}", setting.help)});
    }
  }
  return {};
}

}  // namespace fourpiles
