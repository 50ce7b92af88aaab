#pragma once

// The rules of this tree that no compiler checks. Each function looks at one file, or at the list
// of all, and returns what is wrong with it, one line a fault: "PATH:LINE: what; what to do".

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourpiles::tidy {

struct TextFile {
  std::string path;  // from the root of the tree: "src/base/json.h"
  std::string text;
};

using Faults = std::vector<std::string>;

// Whether the file is written by hand and read by a machine: sources, build files, scripts.
bool IsCode(std::string_view path);

// The one-way rule: a folder includes only itself and folders above it in the list.
Faults IncludeFaults(const TextFile& file);
// Headers that take seconds to compile stand only in the files that need them.
Faults HeavyHeaderFaults(const TextFile& file);
// At most 500 lines.
Faults LengthFaults(const TextFile& file);
// No file or folder is named for being useful.
Faults NameFaults(const TextFile& file);
// What is left to do has an issue.
Faults TodoFaults(const TextFile& file);
// foo.cc includes foo.h first, which shows that foo.h compiles alone.
Faults FirstIncludeFaults(std::span<const TextFile> tree);
// No two headers define an inline constant of one name: linked into one program, one would have the
// other's value.
Faults SharedConstantFaults(std::span<const TextFile> tree);
// A build that is up to date does nothing: no glob is looked through at each build.
Faults GlobFaults(const TextFile& file);
// Each .cc file is named in the nearest CMakeLists.txt: a test that is not built cannot fail.
Faults UnbuiltFaults(std::span<const TextFile> tree);
// Each folder says in a README.md what it is.
Faults ReadmeFaults(std::span<const TextFile> tree);

// Every file below `root` except hidden ones and build/; of files that are not code, the path only.
std::vector<TextFile> ReadTree(const std::string& root);

}  // namespace fourpiles::tidy
