#include "tensors/gguf_split.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"

namespace fourpiles {
namespace {

constexpr std::string_view kEnding = ".gguf";
constexpr std::array<std::string_view, 2> kShardEndings = {".safetensors", ".bin"};
constexpr std::string_view kBetween = "-of-";
constexpr std::size_t kFewestDigits = 5;
constexpr std::size_t kMostDigits = 9;

// The number that the text ends in, as "%05d" writes it, which is taken off.
std::optional<std::int64_t> TakeNumber(std::string_view& text, bool is_gguf) {
  const std::size_t before = text.find_last_not_of("0123456789");
  const std::string_view digits = text.substr(before == std::string_view::npos ? 0 : before + 1);
  // "model-00001-of-000163.safetensors" is a name of a shard.
  const bool has_zero_too_many = is_gguf && digits.size() > kFewestDigits && digits.front() == '0';
  if (digits.size() < kFewestDigits || digits.size() > kMostDigits || has_zero_too_many) {
    return std::nullopt;
  }
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  text.remove_suffix(digits.size());
  return number;
}

bool TakeEnding(std::string_view& text, std::string_view ending) {
  const bool has_it = text.ends_with(ending);
  text.remove_suffix(has_it ? ending.size() : 0);
  return has_it;
}

Finding Refusal(std::string_view where, std::string found, std::string expected,
                std::string_view hint = "") {
  return {FileVerdict::kRefuse,
          {std::string(where), std::move(found), std::move(expected), std::string(hint)}};
}

std::optional<std::int64_t> Fact(const SplitPart& part, std::string_view name) {
  for (const auto& [key, value] : part.facts) {
    if (key == name && value.AsInteger() != nullptr) {
      return *value.AsInteger();
    }
  }
  return std::nullopt;
}

// A number that the part gives, against what it must be.
void CheckFact(const SplitPart& part, std::string_view fact, std::string_view key,
               std::int64_t expected, std::vector<Finding>& findings) {
  const std::optional<std::int64_t> value = Fact(part, fact);
  if (value != expected) {
    findings.push_back(Refusal(
        part.file_name, value ? fmt::format("{} {}", key, *value) : fmt::format("no key {}", key),
        fmt::format("expected {}", expected),
        "the file may have been renamed, or be of another split"));
  }
}

// The parts whose names belong together, with the first one's stem and count.
struct Named {
  const SplitPart* part = nullptr;
  SplitName name = {};
};

std::vector<Named> NamedParts(std::span<const SplitPart> parts, std::vector<Finding>& findings) {
  std::vector<Named> named;
  for (const SplitPart& part : parts) {
    std::optional<SplitName> name = ParseSplitName(part.file_name);
    if (!name) {
      findings.push_back(Refusal(part.file_name, "a name that is no part's",
                                 "expected NAME-00001-of-00002.gguf",
                                 "give parts under the names that they were made with"));
    } else if (!named.empty() &&
               (name->stem != named[0].name.stem || name->count != named[0].name.count)) {
      findings.push_back(Refusal(part.file_name, "a part of another model",
                                 fmt::format("expected a name like {}", named[0].part->file_name)));
    } else {
      named.push_back({&part, *std::move(name)});
    }
  }
  return named;
}

// True when each part is there once. `named` is in the order of the numbers, and not empty.
bool CheckNumbers(const std::vector<Named>& named, std::vector<Finding>& findings) {
  const SplitName& model = named[0].name;
  std::int64_t missing = 0;
  std::int64_t first_missing = 0;
  std::int64_t last = 0;
  for (const auto& [part, name] : named) {
    if (name.number == last) {
      findings.push_back(Refusal(part->file_name, "given twice", "expected each part once"));
    }
    const std::int64_t skipped = std::max<std::int64_t>(name.number - last - 1, 0);
    first_missing = missing == 0 && skipped > 0 ? last + 1 : first_missing;
    missing += skipped;
    last = name.number;
  }
  first_missing = missing == 0 ? last + 1 : first_missing;
  missing += model.count - last;
  if (missing > 0) {
    findings.push_back(
        Refusal(SplitFileName({model.stem, first_missing, model.count, model.ending}),
                fmt::format("missing part; {} of {} are absent", missing, model.count),
                "expected all parts in one folder"));
  }
  return missing == 0;
}

}  // namespace

std::optional<SplitName> ParseSplitName(std::string_view file_name) {
  std::string_view rest = file_name;
  const bool is_gguf = TakeEnding(rest, kEnding);
  if (!is_gguf && std::ranges::none_of(kShardEndings, [&](std::string_view ending) {
        return TakeEnding(rest, ending);
      })) {
    return std::nullopt;
  }
  const std::string_view ending = file_name.substr(rest.size());
  const std::optional<std::int64_t> count = TakeNumber(rest, is_gguf);
  if (!count || !TakeEnding(rest, kBetween)) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> number = TakeNumber(rest, is_gguf);
  if (!number || !(TakeEnding(rest, "-") || (!is_gguf && TakeEnding(rest, "_"))) || *number < 1 ||
      *number > *count) {
    return std::nullopt;
  }
  return SplitName{std::string(rest), *number, *count, std::string(ending)};
}

std::string SplitFileName(const SplitName& name) {
  return fmt::format("{}-{:05}-of-{:05}{}", name.stem, name.number, name.count, name.ending);
}

std::vector<Finding> CheckSplit(std::span<const SplitPart> parts) {
  std::vector<Finding> findings;
  std::vector<Named> named = NamedParts(parts, findings);
  if (named.empty()) {
    return findings;
  }
  std::ranges::stable_sort(named, {}, [](const Named& part) { return part.name.number; });
  const bool is_complete = CheckNumbers(named, findings) && findings.empty();
  if (named.front().name.ending != kEnding) {
    return findings;  // shards of other kinds say nothing of each other
  }
  Checked tensors = 0;
  for (const auto& [part, name] : named) {
    CheckFact(*part, "split_no", "split.no", name.number - 1, findings);
    CheckFact(*part, "split_count", "split.count", name.count, findings);
    tensors = tensors + part->tensors;
  }
  for (const auto& [part, name] : named) {
    if (is_complete && Fact(*part, "split_tensors")) {
      CheckFact(*part, "split_tensors", "split.tensors.count", OrLargest(tensors), findings);
    }
  }
  return findings;
}

}  // namespace fourpiles
