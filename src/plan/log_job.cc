#include "plan/log_job.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/checked.h"
#include "base/try.h"

namespace fourpiles {
namespace {

std::string ValueOr(const std::map<std::string, std::string>& values, const std::string& name,
                    const std::string& otherwise = "") {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

std::int64_t CountOr(const std::map<std::string, std::string>& values, const std::string& name,
                     std::int64_t otherwise) {
  const std::string text = ValueOr(values, name);
  std::int64_t count = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

bool Prints(const EngineLog& log, std::string_view id) {
  return FindFigure(log, id) != nullptr;
}

std::string_view EngineId(LogEngine engine) {
  switch (engine) {
    case LogEngine::kLlamacpp:
      return "llama.cpp";
    case LogEngine::kVllm:
      return "vllm";
    case LogEngine::kSglang:
      break;
  }
  return "sglang";
}

// "Q4_K - Medium" is the mixture Q4_K_M, "IQ3_XXS - 3.0625 bpw" is IQ3_XXS, "all F32" F32.
std::string MixtureOfFileType(std::string_view type) {
  constexpr std::string_view kAll = "all ";
  type.remove_prefix(type.starts_with(kAll) ? kAll.size() : 0);
  std::string name(type.substr(0, type.find(' ')));
  for (const std::string_view size : {"Small", "Medium", "Large"}) {
    if (type.find(size) != std::string_view::npos) {
      name += fmt::format("_{}", size.front());
    }
  }
  return name;
}

// Kernels do not change what lies in memory: "awq_marlin" is awq.
std::string SchemeOfQuantization(std::string quantization) {
  constexpr std::string_view kMarlin = "_marlin";
  if (quantization.ends_with(kMarlin)) {
    quantization.resize(quantization.size() - kMarlin.size());
  }
  return quantization;
}

// The build, where the log shows what it did:
// windows without caches of their own, cells that are no multiple of 256.
std::string LlamacppVersionOf(const EngineLog& log) {
  const LogFigure* const cells = FindFigure(log, "cells");
  if (cells != nullptr && static_cast<std::int64_t>(cells->value) % 256 != 0) {
    return "2025-09";
  }
  const bool windows = CountOr(log.model, "n_swa", 0) > 0;
  return windows && !Prints(log, "swa_cells") && !Prints(log, "swa_kv_bytes") ? "2025-05" : "";
}

std::map<std::string, std::string> LlamacppSettings(const EngineLog& log) {
  const std::int64_t slots = std::max<std::int64_t>(1, CountOr(log.settings, "concurrency", 1));
  const std::int64_t context = CountOr(log.settings, "context-length", 0);
  const auto devices = std::ssize(LlamacppDevices(log));
  std::map<std::string, std::string> settings = {
      {"concurrency", fmt::to_string(slots)},
      {"context-length", context >= slots ? fmt::to_string(context / slots) : ""},
      {"ubatch", ValueOr(log.settings, "ubatch")},
      {"kv-format-k", ValueOr(log.settings, "kv-format-k")},
      {"kv-format-v", ValueOr(log.settings, "kv-format-v")},
      {"engine-version", ValueOr(log.settings, "engine-version", LlamacppVersionOf(log))},
      {"weights-format", MixtureOfFileType(ValueOr(log.model, "file_type"))},
      {"gpu-layers", devices == 0 ? "0" : ValueOr(log.settings, "gpu-layers")},
      {"devices", devices > 1 ? fmt::to_string(devices) : ""}};
  const std::string flash = ValueOr(log.settings, "flash-attention");
  if (flash == "true" || flash == "false") {
    settings["flash-attention"] = flash == "true" ? "on" : "off";
  }
  for (const char* const flag : {"kv-unified", "swa-full"}) {
    settings[flag] = ValueOr(log.settings, flag) == "true" ? "true" : "";
  }
  return settings;
}

// "0.20": what has its last digit changed by versions is the second number.
std::string VllmVersionOf(const EngineLog& log) {
  if (Prints(log, "cpu_blocks")) {
    return "0.6";
  }
  constexpr std::int64_t kFirstDerived = 21;  // data/engines.json
  const std::size_t dot = log.version.find('.');
  if (dot == std::string::npos || log.version.front() != '0') {
    return "";
  }
  return CountOr({{"minor", log.version.substr(dot + 1)}}, "minor", kFirstDerived) < kFirstDerived
             ? "0.20"
             : "";
}

std::map<std::string, std::string> PoolSettings(const EngineLog& log) {
  std::map<std::string, std::string> settings;
  for (const char* const name :
       {"context-length", "ubatch", "memory-utilization", "tensor-parallel", "pipeline-parallel"}) {
    settings[name] = ValueOr(log.settings, name);
  }
  for (const char* const name : {"kv-format-k", "kv-format-v"}) {
    const std::string format = ValueOr(log.settings, name, "auto");
    settings[name] = format == "auto" ? "" : format;
  }
  const std::string weights =
      SchemeOfQuantization(ValueOr(log.settings, "weights-format", ValueOr(log.settings, "dtype")));
  settings["weights-format"] = weights == "auto" ? "" : weights;
  if (log.engine == LogEngine::kVllm) {
    settings["max-num-seqs"] = ValueOr(log.settings, "concurrency");
    settings["engine-version"] = VllmVersionOf(log);
  }
  return settings;
}

// A file or folder says itself what its weights are, but for a folder that llama.cpp was given a
// GGUF of.
bool NamesItsWeights(std::string_view model, LogEngine engine) {
  std::error_code fault;
  return std::filesystem::exists(model, fault) &&
         (engine != LogEngine::kLlamacpp || LowerCase(model).ends_with(".gguf"));
}

bool Types(const Settings& typed, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return typed.contains(name); });
}

// What was typed goes before what the log says; of a layout or a cache's formats as a whole.
Settings TogetherWith(const Settings& typed, const Settings& logged) {
  Settings settings = typed;
  for (const auto& [name, value] : logged) {
    const bool layout = name == "devices" || name.ends_with("-parallel");
    const bool cache = name.starts_with("kv-format");
    if ((layout && Types(typed, {"devices", "tensor-parallel", "pipeline-parallel"})) ||
        (cache && Types(typed, {"kv-format", "kv-format-k", "kv-format-v"}))) {
      continue;
    }
    settings.emplace(name, value);
  }
  return settings;
}

// A device of that memory: what vLLM and llama.cpp name as the total, what SGLang finds free.
// Without one, llama.cpp's is known by its kind, as buffers on it pad their rows.
std::optional<Device> DeviceOfLog(const EngineLog& log) {
  Device device = {.name = "the log's", .memory = Bytes(kLargestAmount)};
  bool known = log.engine == LogEngine::kLlamacpp;
  for (const std::string_view id : {"total_bytes", "breakdown_total_bytes", "free_before_bytes"}) {
    if (const LogFigure* const total = FindFigure(log, id)) {
      device.memory = Bytes(static_cast<std::int64_t>(total->value));
      known = true;
      break;
    }
  }
  for (const LogFigure& figure : log.figures) {
    if (figure.device.starts_with("CUDA")) {
      device.vendor = "NVIDIA";
    } else if (figure.device.starts_with("ROCm")) {
      device.vendor = "AMD";
    }
  }
  return known ? std::optional(std::move(device)) : std::nullopt;
}

// What the log says is input, not usage.
tl::unexpected<Error> OfTheLog(Error error, std::string_view where) {
  if (error.text.where.starts_with(where)) {
    error.kind = ErrorKind::kInput;
  }
  return tl::make_unexpected(std::move(error));
}

}  // namespace

std::string_view DeviceOfBuffer(std::string_view buffer) {
  constexpr std::string_view kMapped = "_Mapped";  // a part of the file, where it lies
  return buffer.ends_with(kMapped) ? buffer.substr(0, buffer.size() - kMapped.size()) : buffer;
}

std::vector<std::string> LlamacppDevices(const EngineLog& log) {
  const auto by_number = [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);  // CUDA2 before CUDA10
  };
  std::set<std::string, decltype(by_number)> names(by_number);
  for (const LogFigure& figure : log.figures) {
    if (!figure.device.empty() && !IsHostBuffer(figure.device)) {
      names.emplace(DeviceOfBuffer(figure.device));
    }
  }
  return {names.begin(), names.end()};
}

Settings SettingsOfLog(const EngineLog& log, std::string_view where) {
  const bool llamacpp = log.engine == LogEngine::kLlamacpp;
  std::map<std::string, std::string> found = llamacpp ? LlamacppSettings(log) : PoolSettings(log);
  found["engine"] = EngineId(log.engine);
  Settings settings;
  for (const auto& [name, text] : found) {
    if (!text.empty()) {
      settings[name] = {text, fmt::format("{}: {}", where, name)};
    }
  }
  return settings;
}

Result<Job> JobOfLog(const EngineLog& log, std::string_view where, std::string_view model,
                     const Settings& typed) {
  const auto engine = typed.find("engine");
  if (engine != typed.end() && engine->second.text != EngineId(log.engine)) {
    return WrongUsage(
        {.where = engine->second.where,
         .found = fmt::format("\"{}\", and a log of {}", engine->second.text, NameOf(log.engine)),
         .expected = fmt::format("expected {}", EngineId(log.engine)),
         .hint = "leave it out: the log says it"});
  }
  Settings logged = SettingsOfLog(log, where);
  if (NamesItsWeights(model, log.engine)) {
    logged.erase("weights-format");
  }
  auto made = MakeJob(JobKind::kServe, model, TogetherWith(typed, logged));
  if (!made) {
    return OfTheLog(std::move(made.error()), where);
  }
  Job job = *std::move(made);
  const std::int64_t page = CountOr(log.settings, "page", 0);
  if (page > 0) {
    job.serving.engine->page_tokens = page;
  }
  if (!job.device) {
    job.device = DeviceOfLog(log);
  }
  return job;
}

}  // namespace fourpiles
