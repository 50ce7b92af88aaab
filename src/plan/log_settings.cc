#include "plan/log_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/ascii.h"
#include "base/checked.h"
#include "base/terminal_text.h"

namespace fourpiles {
namespace {

using Spelling = std::optional<std::string> (*)(std::string_view value);

struct SettingKind {
  std::string_view name;
  Spelling spelling;
};

std::optional<std::string> AsCount(std::string_view value) {
  std::string digits(value);
  std::erase(digits, ',');
  std::int64_t count = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, fault] = std::from_chars(digits.data(), last, count);
  if (fault != std::errc() || end != last || count < 0 || count > kLargestAmount) {
    return {};
  }
  return std::to_string(count);
}

std::optional<std::string> AsShare(std::string_view value) {
  double share = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), share);
  if (fault != std::errc() || end != value.data() + value.size() || !(share >= 0 && share <= 1)) {
    return {};
  }
  return std::string(value);
}

std::optional<std::string> AsAnswer(std::string_view value) {
  constexpr std::string_view kYes[] = {"1", "true", "on", "enabled"};
  constexpr std::string_view kNo[] = {"0", "false", "off", "disabled"};
  const std::string lower = LowerCase(value);
  if (std::ranges::find(kYes, lower) != std::end(kYes)) {
    return "true";
  }
  if (std::ranges::find(kNo, lower) != std::end(kNo)) {
    return "false";
  }
  return lower == "auto" ? std::optional<std::string>("auto") : std::nullopt;
}

// A format: torch.bfloat16 is bfloat16.
std::optional<std::string> AsFormat(std::string_view value) {
  constexpr std::string_view kTorch = "torch.";
  value.remove_prefix(value.starts_with(kTorch) ? kTorch.size() : 0);
  if (value.empty() || value == "None" || value == "none") {
    return {};
  }
  return EscapeForTerminal(value);
}

constexpr SettingKind kSettings[] = {
    {"context-length", AsCount},     {"context-per-slot", AsCount},
    {"concurrency", AsCount},        {"ubatch", AsCount},
    {"gpu-layers", AsCount},         {"page", AsCount},
    {"tensor-parallel", AsCount},    {"pipeline-parallel", AsCount},
    {"memory-utilization", AsShare}, {"swa-full-tokens-ratio", AsShare},
    {"flash-attention", AsAnswer},   {"kv-unified", AsAnswer},
    {"swa-full", AsAnswer},
};

}  // namespace

void PutSetting(std::map<std::string, std::string>& settings, std::string_view name,
                std::string_view value, bool replaces) {
  if (name == "kv-format") {
    PutSetting(settings, "kv-format-k", value, replaces);
    PutSetting(settings, "kv-format-v", value, replaces);
    return;
  }
  const auto* const kind = std::ranges::find(kSettings, name, &SettingKind::name);
  std::optional<std::string> spelled =
      kind == std::end(kSettings) ? AsFormat(value) : kind->spelling(value);
  if (!spelled) {
    return;
  }
  if (replaces) {
    settings.insert_or_assign(std::string(name), *std::move(spelled));
  } else {
    settings.try_emplace(std::string(name), *std::move(spelled));
  }
}

}  // namespace fourpiles
