#include "tests/cli/shell.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <sys/wait.h>

#include "base/check.h"

namespace fourpiles {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

ShellRun RunShell(const std::string& script) {
  std::string scratch = std::filesystem::temp_directory_path() / "fourpiles_XXXXXX";
  CHECK(mkdtemp(scratch.data()) != nullptr);
  const std::filesystem::path folder = scratch;
  std::ofstream(folder / "script")
      << fmt::format("unset NO_COLOR\nexport LC_ALL=C PATH='{}':$PATH\nscratch='{}'\ncd '{}'\n{}\n",
                     FOURPILES_PROGRAM_DIR, scratch, FOURPILES_GOLDEN_DIR, script);
  const std::string command = fmt::format("cd '{}' && bash script >out 2>err </dev/null", scratch);
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  ShellRun run = {.out = ReadFile(folder / "out"),
                  .err = ReadFile(folder / "err"),
                  .exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  std::filesystem::remove_all(folder);
  return run;
}

}  // namespace fourpiles
