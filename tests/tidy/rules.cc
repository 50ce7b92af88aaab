#include "tests/tidy/rules.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fourpiles::tidy {
namespace {

// The list of docs/ARCHITECTURE.md. Folders in one row do not know each other.
constexpr std::array<std::string_view, 12> kLayers = {
    "fourpiles", "base", "units", "formats", "kernels tensors",   "model",
    "step",      "plan", "audit", "report",  "cli web fetch mpi", "tests fuzz bench"};

struct HeavyHeader {
  std::string_view prefix;  // of the included path
  std::string_view users;   // whole paths, endings ("_test.cc") or folders ("bench/")
};
constexpr std::array<HeavyHeader, 6> kHeavyHeaders = {{
    {"CLI/", "cli/command_line.cc"},
    {"nlohmann/", "src/base/json_fault.cc src/base/json_write.cc fuzz/json_fuzz.cc"},
    {"simdjson", "src/base/json_read.cc"},
    {"hwy/", "src/kernels/"},
    {"gtest/", "_test.cc src/base/testing.h src/tensors/test_cases.h"},
    {"benchmark/", "bench/"},
}};

constexpr std::array<std::string_view, 9> kEmptyNames = {
    "util", "utils", "utilities", "helper", "helpers", "common", "manager", "managers", "misc"};

constexpr std::size_t kMostLines = 500;

// The non-empty pieces of `text` between any of the `separators`.
std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) {
      pieces.push_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}

bool Holds(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct Line {
  std::size_t number;  // from 1
  std::string_view text;
};

std::vector<Line> Lines(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({.number = lines.size() + 1, .text = text.substr(0, end)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Include {
  std::size_t line;
  std::string_view path;
  bool quoted;
};

std::vector<Include> Includes(const TextFile& file) {
  std::vector<Include> includes;
  if (!file.path.ends_with(".cc") && !file.path.ends_with(".h") && !file.path.ends_with(".inc")) {
    return includes;
  }
  for (const Line& line : Lines(file.text)) {
    const std::vector<std::string_view> words = Split(line.text, " \t#<>\"");
    const std::size_t start = line.text.find_first_not_of(" \t");
    if (start != std::string_view::npos && line.text[start] == '#' && words.size() >= 2 &&
        words[0] == "include") {
      includes.push_back({.line = line.number,
                          .path = words[1],
                          .quoted = line.text.find('"') != std::string_view::npos});
    }
  }
  return includes;
}

// "src/base/json.h" and "base/json.h" are of folder "base", "cli/main.cc" of "cli".
std::string_view FolderOf(std::string_view path) {
  const std::vector<std::string_view> parts = Split(path, "/");
  const bool nested = parts.size() > 2 && (parts[0] == "src" || parts[0] == "include");
  return nested ? parts[1] : parts[0];
}

std::optional<std::size_t> LayerOf(std::string_view folder) {
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    if (Holds(Split(kLayers[i], " "), folder)) {
      return i;
    }
  }
  return std::nullopt;
}

// Why a file of folder `own` may not include `include`; empty when it may.
std::string DirectionFault(std::string_view own, const Include& include) {
  if (include.path.find('/') == std::string_view::npos) {
    return {};  // a system header, or one beside the file
  }
  const std::string_view other = FolderOf(include.path);
  const std::optional<std::size_t> own_layer = LayerOf(own);
  const std::optional<std::size_t> other_layer = LayerOf(other);
  if (!other_layer) {
    return include.quoted ? fmt::format("{} is no folder of the one-way list", other) : "";
  }
  if (other == own || (own_layer && *other_layer < *own_layer)) {
    return {};
  }
  return fmt::format("{} does not stand above {} in the one-way list", other, own);
}

bool MayUse(const HeavyHeader& header, std::string_view path) {
  const std::vector<std::string_view> users = Split(header.users, " ");
  return std::any_of(users.begin(), users.end(), [path](std::string_view user) {
    return path.ends_with(user) || path.starts_with(user);
  });
}

// The part of `path` before its last slash; empty for a file in the root.
std::string_view Parent(std::string_view path) {
  return path.substr(0, path.find_last_of('/') + 1 == 0 ? 0 : path.find_last_of('/'));
}

const TextFile* Find(std::span<const TextFile> tree, std::string_view path) {
  const auto found = std::find_if(tree.begin(), tree.end(),
                                  [path](const TextFile& file) { return file.path == path; });
  return found == tree.end() ? nullptr : &*found;
}

// The CMakeLists.txt beside `path` or in the nearest folder around it.
const TextFile* NearestBuildFile(std::span<const TextFile> tree, std::string_view path) {
  for (std::string_view folder = Parent(path); !folder.empty(); folder = Parent(folder)) {
    if (const TextFile* file = Find(tree, std::string(folder) + "/CMakeLists.txt")) {
      return file;
    }
  }
  return Find(tree, "CMakeLists.txt");
}

}  // namespace

bool IsCode(std::string_view path) {
  constexpr std::array<std::string_view, 9> kEndings = {
      ".cc", ".h", ".inc", ".cmake", "CMakeLists.txt", ".sh", ".py", ".js", ".css"};
  return path == "run" || path == "test" ||
         std::any_of(kEndings.begin(), kEndings.end(),
                     [path](std::string_view ending) { return path.ends_with(ending); });
}

Faults IncludeFaults(const TextFile& file) {
  Faults faults;
  for (const Include& include : Includes(file)) {
    if (const std::string why = DirectionFault(FolderOf(file.path), include); !why.empty()) {
      faults.push_back(
          fmt::format("{}:{}: includes {}, but {}", file.path, include.line, include.path, why));
    }
  }
  return faults;
}

Faults HeavyHeaderFaults(const TextFile& file) {
  Faults faults;
  for (const Include& include : Includes(file)) {
    for (const HeavyHeader& header : kHeavyHeaders) {
      if (include.path.starts_with(header.prefix) && !MayUse(header, file.path)) {
        faults.push_back(fmt::format(
            "{}:{}: includes {}, a heavy header that is for {}", file.path, include.line,
            include.path, header.users.empty() ? "no file yet" : std::string(header.users)));
      }
    }
  }
  return faults;
}

Faults LengthFaults(const TextFile& file) {
  const std::size_t lines = Lines(file.text).size();
  if (!IsCode(file.path) || lines <= kMostLines) {
    return {};
  }
  return {fmt::format("{}: {} lines, at most {}; split it", file.path, lines, kMostLines)};
}

Faults NameFaults(const TextFile& file) {
  Faults faults;
  if (IsCode(file.path)) {
    for (const std::string_view word : Split(file.path, "/_-.")) {
      if (std::find(kEmptyNames.begin(), kEmptyNames.end(), word) != kEmptyNames.end()) {
        faults.push_back(fmt::format("{}: named \"{}\"; name what it is about", file.path, word));
      }
    }
  }
  return faults;
}

Faults TodoFaults(const TextFile& file) {
  constexpr std::string_view kTodo =
      "TO"
      "DO";  // in two pieces, or this line were a fault
  Faults faults;
  if (!IsCode(file.path)) {
    return faults;
  }
  for (const Line& line : Lines(file.text)) {
    const std::size_t at = line.text.find(kTodo);
    if (at != std::string_view::npos && !line.text.substr(at + kTodo.size()).starts_with("(#")) {
      faults.push_back(fmt::format("{}:{}: {} without an issue; write {}(#12)", file.path,
                                   line.number, kTodo, kTodo));
    }
  }
  return faults;
}

Faults FirstIncludeFaults(std::span<const TextFile> tree) {
  Faults faults;
  for (const TextFile& file : tree) {
    if (!file.path.ends_with(".cc")) {
      continue;
    }
    const std::string header = file.path.substr(0, file.path.size() - 2) + "h";
    const std::vector<Include> includes = Includes(file);
    if (Find(tree, header) != nullptr &&
        (includes.empty() || !header.ends_with(includes.front().path))) {
      faults.push_back(fmt::format("{}: does not include {} first", file.path, header));
    }
  }
  return faults;
}

Faults SharedConstantFaults(std::span<const TextFile> tree) {
  Faults faults;
  std::map<std::string_view, std::string_view> places;
  for (const TextFile& file : tree) {
    for (const Line& line : file.path.ends_with(".h") ? Lines(file.text) : std::vector<Line>()) {
      const std::string_view before = line.text.substr(0, line.text.find_first_of("=({"));
      const std::vector<std::string_view> words = Split(before, " []");
      if (!line.text.starts_with("inline const") || words.size() < 4) {
        continue;
      }
      const auto [other, is_new] = places.try_emplace(words.back(), file.path);
      if (!is_new && other->second != file.path) {
        faults.push_back(fmt::format("{}:{}: {} is defined in {} too; give it a name of its own",
                                     file.path, line.number, words.back(), other->second));
      }
    }
  }
  return faults;
}

Faults GlobFaults(const TextFile& file) {
  Faults faults;
  if (!file.path.ends_with("CMakeLists.txt") && !file.path.ends_with(".cmake")) {
    return faults;
  }
  for (const Line& line : Lines(file.text)) {
    if (Holds(Split(line.text, " ()"), "CONFIGURE_DEPENDS")) {
      faults.push_back(fmt::format(
          "{}:{}: a glob at each build; name its folder in the directory's CMAKE_CONFIGURE_DEPENDS",
          file.path, line.number));
    }
  }
  return faults;
}

Faults UnbuiltFaults(std::span<const TextFile> tree) {
  Faults faults;
  for (const TextFile& file : tree) {
    const TextFile* build = NearestBuildFile(tree, file.path);
    if (!file.path.ends_with(".cc") || build == nullptr) {
      continue;
    }
    const std::string_view folder = Parent(build->path);
    const std::string_view name =
        std::string_view(file.path).substr(folder.empty() ? 0 : folder.size() + 1);
    if (!Holds(Split(build->text, " \t\n()"), name)) {
      faults.push_back(fmt::format("{}: not named in {}", file.path, build->path));
    }
  }
  return faults;
}

Faults ReadmeFaults(std::span<const TextFile> tree) {
  std::set<std::string> folders;
  for (const TextFile& file : tree) {
    const std::vector<std::string_view> parts = Split(file.path, "/");
    const bool nested = parts[0] == "src" || parts[0] == "include";
    const std::size_t depth = nested ? 2 : 1;
    if (parts.size() > depth) {
      folders.insert(nested ? fmt::format("{}/{}", parts[0], parts[1]) : std::string(parts[0]));
    }
  }
  Faults faults;
  for (const std::string& folder : folders) {
    if (Find(tree, folder + "/README.md") == nullptr) {
      faults.push_back(fmt::format("{}: has no README.md", folder));
    }
  }
  return faults;
}

std::vector<TextFile> ReadTree(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<TextFile> tree;
  for (fs::recursive_directory_iterator entry(root); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') || (entry.depth() == 0 && name == "build")) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      TextFile file{.path = fs::relative(entry->path(), root).string(), .text = {}};
      if (IsCode(file.path)) {
        std::ifstream stream(entry->path(), std::ios::binary);
        file.text.assign(std::istreambuf_iterator<char>(stream), {});
      }
      tree.push_back(std::move(file));
    }
  }
  return tree;
}

}  // namespace fourpiles::tidy
