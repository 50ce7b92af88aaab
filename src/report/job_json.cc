#include "report/job_json.h"

#include "plan/adapter_setting.h"
#include "plan/change_command.h"

namespace fourpiles {
namespace {

// A setting that has a value, by its key.
struct Row {
  std::string_view key;
  Json (*value)(const Job& job);
};

Json OfCount(const Job& job, std::optional<std::int64_t> value) {
  return job.bare_count && value ? Json(*value) : Json();
}

Json OrNull(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json();
}

Json IfTrue(bool flag) {
  return flag ? Json(true) : Json();
}

bool IsServing(const Job& job) {
  return job.kind == JobKind::kServe;
}

const Layout& LayoutOf(const Job& job) {
  return job.training.layout;
}

std::string OffloadWords(const TrainingJob& training) {
  std::string words;
  const auto add = [&](bool offloads, std::string_view word) {
    if (offloads) {
      words += (words.empty() ? "" : "+") + std::string(word);
    }
  };
  add(training.offloads_activations, "activations");
  add(training.offloads_optimizer, "optimizer");
  add(training.offloads_parameters, "parameters");
  return words;
}

Json TypedOrNull(const std::string& typed) {
  return typed.empty() ? Json() : Json(typed);
}

// As the settings take them.
Json Word(const std::optional<LossKind>& loss, std::int64_t chunks) {
  if (!loss) {
    return {};
  }
  return *loss == LossKind::kChunked ? Json("chunked:" + std::to_string(chunks))
                                     : Json(Name(*loss));
}

constexpr Row kRows[] = {
    {"layers", [](const Job& j) { return OfCount(j, j.model.network.num_hidden_layers); }},
    {"width", [](const Job& j) { return OfCount(j, j.model.network.hidden_size); }},
    {"recipe", [](const Job& j) { return Json(j.training.recipe.names.id); }},
    {"optimizer", [](const Job& j) { return Json(j.training.optimizer.names.id); }},
    {"micro_batch_size", [](const Job& j) { return Json(j.training.micro_batch_size); }},
    {"sequence_length", [](const Job& j) { return Json(j.training.sequence_length); }},
    {"length_histogram",
     [](const Job& j) { return j.training.data ? Json(j.training.data->file) : Json(); }},
    {"padding",
     [](const Job& j) {
       const bool pads = j.training.data && !j.training.data->is_packed;
       return pads ? Json(Name(j.training.data->padding)) : Json();
     }},
    {"excess_length",
     [](const Job& j) {
       const auto& data = j.training.data;
       const bool goes_on = data && data->is_packed && !data->drops_longer;
       return data && !goes_on ? Json(data->drops_longer ? "drop" : "truncate") : Json();
     }},
    {"packing", [](const Job& j) { return IfTrue(j.training.data && j.training.data->is_packed); }},
    {"gradient_accumulation", [](const Job& j) { return Json(j.training.gradient_accumulation); }},
    {"activations",
     [](const Job& j) { return Json(j.training.lower_bound ? "lower-bound" : "exact"); }},
    {"activation_format",
     [](const Job& j) {
       return j.training.lower_bound ? Json(j.training.activation_format.name) : Json();
     }},
    {"attention",
     [](const Job& j) {
       return j.training.attention ? Json(Name(*j.training.attention)) : Json();
     }},
    {"loss", [](const Job& j) { return Word(j.training.loss, j.training.loss_chunks); }},
    {"recompute", [](const Job& j) { return Json(RecomputeWord(j.training.recompute)); }},
    {"implementation", [](const Job& j) { return Json(j.training.implementation); }},
    {"optimizer_kernels", [](const Job& j) { return Json(Name(j.training.step_kernels)); }},
    {"adapter",
     [](const Job& j) {
       const auto& adapter = j.kind == JobKind::kServe ? j.serving.adapter : j.training.adapter;
       // Fine-tuning has one unless it is told not to.
       const bool told = j.kind == JobKind::kFinetune;
       return adapter ? Json(AdapterSpec(*adapter)) : told ? Json("none") : Json();
     }},
    {"freeze", [](const Job& j) { return TypedOrNull(j.training.freeze); }},
    {"train_only", [](const Job& j) { return TypedOrNull(j.training.train_only); }},
    {"evaluate", [](const Job& j) { return j.training.evaluates ? Json(true) : Json(); }},
    {"engine",
     [](const Job& j) { return j.serving.engine ? Json(j.serving.engine->names.id) : Json(); }},
    {"engine_version",
     [](const Job& j) { return j.serving.engine ? Json(j.serving.version.id) : Json(); }},
    {"weights_format", [](const Job& j) { return Json(j.serving.weights.name); }},
    {"kv_format_k", [](const Job& j) { return Json(j.serving.key_format->name); }},
    {"kv_format_v", [](const Job& j) { return Json(j.serving.value_format->name); }},
    {"memory_utilization",
     [](const Job& j) {
       const auto& engine = j.serving.engine;
       return engine && engine->memory_utilization ? Json(j.serving.memory_utilization) : Json();
     }},
    {"ubatch", [](const Job& j) { return OrNull(j.serving.micro_batch); }},
    {"max_num_seqs", [](const Job& j) { return OrNull(j.serving.max_num_seqs); }},
    {"gpu_layers", [](const Job& j) { return OrNull(j.serving.gpu_layers); }},
    {"experts_on_host", [](const Job& j) { return IfTrue(j.serving.experts_on_host); }},
    {"flash_attention",
     [](const Job& j) {
       const bool told = j.serving.engine && j.serving.engine->names.id == "llama.cpp";
       return told ? Json(j.serving.flash_attention ? "on" : "off") : Json();
     }},
    {"kv_unified", [](const Job& j) { return IfTrue(j.serving.unified); }},
    {"swa_full", [](const Job& j) { return IfTrue(j.serving.full_windows); }},
    {"draft", [](const Job& j) { return j.serving.draft ? Json(j.serving.draft->name) : Json(); }},
    {"adapters",
     [](const Job& j) { return j.serving.adapter ? Json(j.serving.adapters) : Json(); }},
    {"image_tokens", [](const Job& j) { return Json(j.serving.image_tokens); }},
    {"tensor_parallel",
     [](const Job& j) {
       return Json(IsServing(j) ? j.serving.layout.tensor : LayoutOf(j).tensor);
     }},
    {"pipeline_parallel",
     [](const Job& j) {
       return Json(IsServing(j) ? j.serving.layout.pipeline : LayoutOf(j).pipeline);
     }},
    {"expert_parallel",
     [](const Job& j) {
       return Json(IsServing(j) ? j.serving.layout.expert : LayoutOf(j).expert);
     }},
    {"sequence_parallel", [](const Job& j) { return Json(LayoutOf(j).sequence_parallel); }},
    {"pipeline_schedule",
     [](const Job& j) {
       return LayoutOf(j).pipeline > 1 ? Json(Name(LayoutOf(j).schedule)) : Json();
     }},
    {"first_stage_layers", [](const Job& j) { return OrNull(LayoutOf(j).first_stage_layers); }},
    {"last_stage_layers", [](const Job& j) { return OrNull(LayoutOf(j).last_stage_layers); }},
    {"virtual_pipeline", [](const Job& j) { return Json(LayoutOf(j).chunks); }},
    {"context_parallel", [](const Job& j) { return Json(LayoutOf(j).context); }},
    {"expert_tensor_parallel", [](const Job& j) { return Json(LayoutOf(j).expert_tensor); }},
    {"expert_imbalance", [](const Job& j) { return Json(LayoutOf(j).expert_imbalance); }},
    {"fsdp", [](const Job& j) { return TypedOrNull(FsdpWord(LayoutOf(j))); }},
    {"first_step", [](const Job& j) { return IfTrue(j.training.first_step); }},
    {"devices_per_host", [](const Job& j) { return Json(LayoutOf(j).per_host); }},
    {"host_memory",
     [](const Job& j) { return j.host_memory ? Json(j.host_memory->value()) : Json(); }},
    {"rank",
     [](const Job& j) {
       return j.training.shown_rank ? Json(*j.training.shown_rank) : Json("worst");
     }},
    {"context_length", [](const Job& j) { return Json(j.serving.context_length); }},
    {"concurrency", [](const Job& j) { return Json(j.serving.concurrency); }},
    {"device",
     [](const Job& j) {
       return !j.device ? Json() : Json(IsSize(*j.device) ? j.device->name : j.device->names.id);
     }},
    {"devices", [](const Job& j) { return Json(j.devices); }},
    {"later_batches",
     [](const Job& j) { return Json(j.training.later_batches_are_shorter ? "shorter" : "alike"); }},
    {"expandable_segments", [](const Job& j) { return Json(j.training.expandable_segments); }},
    {"base_format",
     [](const Job& j) { return j.training.base ? Json(j.training.base_format) : Json(nullptr); }},
    {"offload",
     [](const Job& j) {
       const std::string words = OffloadWords(j.training);
       return words.empty() ? Json(nullptr) : Json(words);
     }},
    {"zero", [](const Job& j) { return Json(j.training.layout.zero); }},
    {"solve", [](const Job& j) { return j.solve ? Json(Word(*j.solve)) : Json(); }},
};

// The path, where a record of the user's stands for a name.
std::optional<std::string> AsTyped(const Job& job, std::string_view name) {
  const auto set = job.settings.find(name);
  const bool file = set != job.settings.end() &&
                    (name == "model" ? job.from_file : set->second.text.ends_with(".json"));
  return file ? std::optional(set->second.text) : std::nullopt;
}

}  // namespace

Json::Object JobJson(const Job& job) {
  Json::Object json = {{"model", AsTyped(job, "model").value_or(job.model.name)}};
  for (const Setting& setting : SettingsOf(job.kind)) {
    const std::string key = KeyOf(setting);
    Json value;
    for (const Row& row : kRows) {
      if (setting.built && row.key == key) {
        value = row.value(job);
      }
    }
    if (const std::optional<std::string> file = AsTyped(job, setting.name)) {
      value = *file;
    }
    json.emplace_back(key, std::move(value));
  }
  return json;
}

}  // namespace fourpiles
