#include "tensors/optimizer_groups.h"

#include <algorithm>
#include <string>

#include "tensors/pickle.h"
#include "tensors/zip.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostPickleBytes = std::int64_t{256} << 20;
constexpr std::size_t kMostGroups = 10'000;
constexpr int kStreamPickles = 4;  // a magic number, a protocol, facts of the machine, the object
constexpr std::string_view kPickle = "data.pkl";

std::optional<double> NumberOf(const Pickle& pickle, PickleRef value) {
  switch (pickle.Kind(value)) {
    case PickleKind::kFloat:
      return pickle.Real(value);
    case PickleKind::kInteger:
      return static_cast<double>(pickle.Integer(value));
    default:
      return std::nullopt;
  }
}

void TakeSetting(const Pickle& pickle, std::string_view key, PickleRef value,
                 OptimizerGroup& group) {
  if (key == "lr") {
    group.learning_rate = NumberOf(pickle, value);
  } else if (key == "eps") {
    group.epsilon = NumberOf(pickle, value);
  } else if (key == "weight_decay") {
    group.weight_decay = NumberOf(pickle, value);
  } else if (key == "decoupled_weight_decay" && pickle.Kind(value) == PickleKind::kBool) {
    group.decoupled = pickle.Integer(value) != 0;
  } else if (key == "betas" && pickle.Items(value).size() == 2) {
    group.beta1 = NumberOf(pickle, pickle.Items(value)[0]);
    group.beta2 = NumberOf(pickle, pickle.Items(value)[1]);
  }
}

// A dict with parameters, a learning rate and betas, wherever it stands.
void AddGroups(const Pickle& pickle, std::vector<OptimizerGroup>& groups) {
  for (PickleRef value = 0; value < pickle.ValueCount() && groups.size() < kMostGroups; ++value) {
    if (pickle.Kind(value) != PickleKind::kDict) {
      continue;
    }
    const auto items = pickle.Items(value);
    OptimizerGroup group;
    int found = 0;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const std::string_view key = pickle.Text(items[i]);
      found += key == "lr" || key == "betas" || key == "params" ? 1 : 0;
      TakeSetting(pickle, key, items[i + 1], group);
    }
    if (found == 3) {
      groups.push_back(group);
    }
  }
}

void AddGroupsOfZip(const ByteSource& source, std::vector<OptimizerGroup>& groups) {
  const Result<ZipDirectory> directory = ReadZip(source);
  if (!directory || directory->members.empty()) {
    return;
  }
  const std::string& first = directory->members.front().name;
  const std::string own = first.substr(0, first.find('/') + 1) + std::string(kPickle);
  auto member = std::ranges::find(directory->members, own, &ZipMember::name);
  if (member == directory->members.end()) {
    member = std::ranges::find_if(directory->members, [](const ZipMember& each) {
      return each.name == kPickle || each.name.ends_with("/" + std::string(kPickle));
    });
  }
  if (member == directory->members.end()) {
    return;
  }
  if (const auto text = ReadZipMember(source, *member, kMostPickleBytes)) {
    const MemorySource bytes(member->name, std::as_bytes(std::span(*text)));
    AddGroups(ReadPickle(bytes, 0), groups);
  }
}

void AddGroupsOfStream(const ByteSource& source, std::vector<OptimizerGroup>& groups) {
  std::int64_t begin = 0;
  for (int i = 0; i < kStreamPickles; ++i) {
    const Pickle pickle = ReadPickle(source, begin);
    if (pickle.Root() == kNoValue) {
      return;
    }
    AddGroups(pickle, groups);
    begin = pickle.End();
  }
}

}  // namespace

std::vector<OptimizerGroup> OptimizerGroupsOf(const ByteSource& source, std::string_view format) {
  std::vector<OptimizerGroup> groups;
  if (format == "torch-zip") {
    AddGroupsOfZip(source, groups);
  } else if (format == "torch-legacy") {
    AddGroupsOfStream(source, groups);
  }
  return groups;
}

}  // namespace fourpiles
