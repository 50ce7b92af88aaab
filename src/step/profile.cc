#include "step/profile.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "step/profiles.h"
#include "step/rules.h"

namespace fourpiles {
namespace {

using MakeProfile = Profile (*)();
constexpr MakeProfile kProfiles[] = {PyTorch,
                                     PyTorch21,
                                     PyTorch1,
                                     PyTorch113OnCpu,
                                     PyTorchCompile,
                                     PyTorchFsdp1,
                                     Liger,
                                     Torchtune,
                                     TorchtuneCompile,
                                     Torchtitan,
                                     TorchtitanCompile,
                                     Torchtitan2024,
                                     Torchtitan2024Compile,
                                     Megatron,
                                     MegatronWithSeparateGradients,
                                     LlmC,
                                     LlmCKeepingGelu,
                                     LlmCRecomputingNorms,
                                     LitGpt};

// What is chosen of an implementation. Rules and names are numbered by kind.
struct Choice {
  std::string_view what;  // "attention"
  std::string_view where;
  OperatorKind op;
  std::span<const Rule> rules;
  std::vector<std::string_view> names;
};

Result<void> Choose(Profile& profile, const Choice& choice, std::size_t chosen) {
  if (choice.rules[chosen] != nullptr) {
    SetRule(profile, choice.op, choice.rules[chosen]);
    return {};
  }
  std::vector<std::string_view> known;
  for (std::size_t kind = 0; kind < choice.rules.size(); ++kind) {
    if (choice.rules[kind] != nullptr) {
      known.push_back(choice.names[kind]);
    }
  }
  return WrongUsage(
      {.where = std::string(choice.where),
       .found = fmt::format("{} has no {} {}", profile.name, choice.names[chosen], choice.what),
       .expected = fmt::format("expected {}", fmt::join(known, " or ")),
       .hint = fmt::format("leave it out for that of {}, or choose another implementation",
                           profile.name)});
}

}  // namespace

std::string_view Name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kEager:
      return "eager";
    case AttentionKind::kSdpa:
      return "sdpa";
    case AttentionKind::kFlash:
      break;
  }
  return "flash";
}

std::string_view Name(LossKind kind) {
  switch (kind) {
    case LossKind::kPlain:
      return "plain";
    case LossKind::kFused:
      return "fused";
    case LossKind::kChunked:
      break;
  }
  return "chunked";
}

std::vector<std::string_view> ImplementationNames() {
  std::vector<std::string_view> names;
  for (const MakeProfile make : kProfiles) {
    names.push_back(make().name);
  }
  return names;
}

Result<Profile> FindProfile(std::string_view name, const ProfileChoices& choices,
                            std::string_view where) {
  const std::vector<std::string_view> names = ImplementationNames();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    return WrongUsage({.where = std::string(where),
                       .found = fmt::format("unknown implementation \"{}\"", name),
                       .expected = DidYouMean(name, names),
                       .hint = fmt::format("known: {}", fmt::join(names, ", "))});
  }
  Profile profile = kProfiles[found - names.begin()]();
  if (choices.attention) {
    const Choice choice = {.what = "attention",
                           .where = choices.attention_where,
                           .op = OperatorKind::kAttention,
                           .rules = profile.attention,
                           .names = {Name(AttentionKind::kEager), Name(AttentionKind::kSdpa),
                                     Name(AttentionKind::kFlash)}};
    TRY_VOID(Choose(profile, choice, static_cast<std::size_t>(*choices.attention)));
  }
  if (choices.loss) {
    const Choice choice = {
        .what = "loss",
        .where = choices.loss_where,
        .op = OperatorKind::kLoss,
        .rules = profile.loss,
        .names = {Name(LossKind::kPlain), Name(LossKind::kFused), Name(LossKind::kChunked)}};
    TRY_VOID(Choose(profile, choice, static_cast<std::size_t>(*choices.loss)));
  }
  return profile;
}

void SetRule(Profile& profile, OperatorKind kind, Rule rule) {
  profile.rules[static_cast<std::size_t>(kind)] = rule;
}

void UseUncastLoss(Profile& profile) {
  SetRule(profile, OperatorKind::kLoss, UncastLossRule);
}

void UseFusedNorms(Profile& profile) {
  SetRule(profile, OperatorKind::kRmsNorm, FusedRmsNormRule);
}

Profile LowerBound() {
  return {.name = "lower-bound",
          .summary = "of each layer its output and no more",
          .source = "any implementation keeps the input of a layer to run it backward",
          .lower_bound = true};
}

}  // namespace fourpiles
