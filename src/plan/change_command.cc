#include "plan/change_command.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ascii.h"

namespace fourpiles {
namespace {

// What a shell takes as it stands; anything else is put between single quotes.
std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::int64_t SolvedValue(const Job& job) {
  switch (*job.solve) {
    case Unknown::kMicroBatchSize:
      return job.training.micro_batch_size;
    case Unknown::kSequenceLength:
      return job.training.sequence_length;
    case Unknown::kDevices:
      return job.devices;
    case Unknown::kConcurrency:
      return job.serving.concurrency;
    case Unknown::kContextLength:
      break;
  }
  return job.serving.context_length;
}

std::string OptionText(JobKind kind, std::string_view name, std::string_view value) {
  const std::vector<Setting> settings = SettingsOf(kind);
  const auto setting = std::ranges::find(settings, name, &Setting::name);
  const bool is_flag = setting != settings.end() && setting->value.empty();
  return is_flag ? fmt::format(" --{}", name) : fmt::format(" --{} {}", name, ShellWord(value));
}

}  // namespace

std::string RecomputeWord(const Recompute& recompute) {
  switch (recompute.kind) {
    case RecomputeKind::kNone:
      return "none";
    case RecomputeKind::kAttention:
      return "selective";
    case RecomputeKind::kOperators:
      return "selective-op";
    case RecomputeKind::kLayers:
      break;
  }
  return recompute.every > 1 ? fmt::format("every:{}", recompute.every) : "full";
}

std::string ChangeAsTyped(const SettingChanges& changes) {
  std::string text;
  for (const auto& [name, value] : changes) {
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

Settings SettingsWith(const Job& job, const SettingChanges& changes) {
  Settings settings = job.settings;
  if (job.solve) {
    std::string name(Name(*job.solve));
    std::ranges::replace(name, '_', '-');
    settings.erase("solve");
    settings.insert_or_assign(name, SetValue{fmt::to_string(SolvedValue(job)), "--" + name});
  }
  for (const auto& [name, value] : changes) {
    settings.insert_or_assign(name, SetValue{value, "--" + name});
  }
  return settings;
}

std::string CommandWith(const Job& job, const SettingChanges& changes) {
  const Settings settings = SettingsWith(job, changes);
  const auto model = settings.find("model");
  std::string command =
      fmt::format("fourpiles {} {}", Name(job.kind),
                  ShellWord(model == settings.end() ? job.model.name : model->second.text));
  for (const auto& [name, value] : settings) {
    if (name != "model") {
      command += OptionText(job.kind, name, value.text);
    }
  }
  return command;
}

}  // namespace fourpiles
