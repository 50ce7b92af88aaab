// Compares the program with the sessions in tests/golden/*.txt. A session is any number of
//
//   # what this shows
//   $ fourpiles round 70000 --to float16
//   --- stdout
//   (what it prints)
//   --- stderr
//   (what it prints there)
//   --- exit 0
//
// where an empty stdout or stderr is left out. A new session needs only its "$" lines: with
// UPDATE_GOLDEN=1 in the environment the files are rewritten, and the difference is then reviewed.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace fourpiles {
namespace {

using Lines = std::vector<std::string>;

Lines ReadLines(const std::filesystem::path& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

Lines Sessions() {
  Lines paths;
  for (const auto& entry : std::filesystem::directory_iterator(FOURPILES_GOLDEN_DIR)) {
    if (entry.path().extension() == ".txt") {
      paths.push_back(entry.path().stem());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

std::string Section(std::string_view name, const std::string& text) {
  return text.empty() ? "" : fmt::format("--- {}\n{}", name, text);
}

// What the program does for one "$" line, as it stands in a session.
std::string Replay(const std::string& line) {
  const ShellRun run = RunShell(line.substr(2));
  for (const std::string& text : {run.out, run.err}) {
    EXPECT_TRUE(text.empty() || text.ends_with('\n')) << line << "\nends in the middle of a line";
  }
  return Section("stdout", run.out) + Section("stderr", run.err) +
         fmt::format("--- exit {}\n", run.exit_status);
}

// The session with what the program does now.
std::string Replay(const Lines& session) {
  std::string replayed;
  for (auto line = session.begin(); line != session.end(); ++line) {
    replayed += *line + "\n";
    if (!line->starts_with("$ ")) {
      continue;
    }
    replayed += Replay(*line);
    if (line + 1 != session.end() && (line + 1)->starts_with("--- ")) {  // the recorded output
      line = std::find_if(line + 1, session.end(),
                          [](const std::string& text) { return text.starts_with("--- exit "); });
      if (line == session.end()) {
        ADD_FAILURE() << "no \"--- exit\" ends the last command";
        break;
      }
    }
  }
  return replayed;
}

// A page of the documentation with what the program prints now, in the root of the project. Its
// sessions stand between fences.
std::string ReplayPage(const Lines& page) {
  std::string replayed;
  bool fenced = false;
  bool printed = false;  // what a "$" line prints
  for (const std::string& line : page) {
    const bool fence = line.starts_with("```");
    fenced = fence ? !fenced : fenced;
    const bool command = fenced && line.starts_with("$ fourpiles");
    printed = !fence && (printed || command);
    if (!printed || command) {
      replayed += line + "\n";
    }
    if (command) {
      replayed += RunShell("cd ../..\n" + line.substr(2)).out;
    }
  }
  return replayed;
}

class Golden : public testing::TestWithParam<std::string> {};

// The file is what its lines, replayed, give.
void Compare(const std::filesystem::path& path, const Lines& lines, const std::string& replayed) {
  std::string recorded;
  for (const std::string& line : lines) {
    recorded += line + "\n";
  }
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path) << replayed;
  } else {
    EXPECT_EQ(recorded, replayed) << "UPDATE_GOLDEN=1 records what the program does now";
  }
}

TEST_P(Golden, SessionIsAsRecorded) {
  const std::filesystem::path path =
      std::filesystem::path(FOURPILES_GOLDEN_DIR) / (GetParam() + ".txt");
  const Lines session = ReadLines(path);
  Compare(path, session, Replay(session));
}

class GoldenPage : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPage, SessionsAreWhatTheProgramPrints) {
  const std::filesystem::path path =
      std::filesystem::path(FOURPILES_GOLDEN_DIR) / "../../docs" / (GetParam() + ".md");
  const Lines page = ReadLines(path);
  Compare(path, page, ReplayPage(page));
}

INSTANTIATE_TEST_SUITE_P(Pages, GoldenPage, testing::Values("AUDIT", "FORMATS"),
                         [](const testing::TestParamInfo<std::string>& page) {
                           return page.param;
                         });

INSTANTIATE_TEST_SUITE_P(Sessions, Golden, testing::ValuesIn(Sessions()),
                         [](const testing::TestParamInfo<std::string>& session) {
                           return session.param;
                         });

}  // namespace
}  // namespace fourpiles
