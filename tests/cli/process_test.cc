// What whole outputs cannot say: closed and full streams, terminals, scripts for other programs.

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace fourpiles {
namespace {

bool IsInstalled(std::string_view program) {
  return RunShell(fmt::format("command -v {}", program)).exit_status == 0;
}

TEST(Output, ToAReaderThatHasGoneEndsQuietly) {
  // A pipe that nobody reads, from the start.
  const std::string closed_pipe =
      "mkfifo $scratch/pipe; exec 3<>$scratch/pipe 4>$scratch/pipe 3>&-\n";
  const ShellRun run = RunShell(closed_pipe + "fourpiles man >&4");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_EQ(RunShell(closed_pipe + "fourpiles rond --json >&4").exit_status, 2);
}

TEST(Output, ToHeadIsItsFirstLine) {
  const ShellRun run = RunShell("set -o pipefail; fourpiles help | head -1");
  EXPECT_TRUE(run.out.starts_with("fourpiles: will ")) << run.out;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.exit_status, 0);
}

TEST(Output, ToAClosedStreamEndsQuietly) {
  const ShellRun run = RunShell("fourpiles help >&-");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_EQ(RunShell("fourpiles rond >&- 2>&- <&-").exit_status, 2);
}

TEST(Output, ToAFullDiskIsAnError) {
  const ShellRun run = RunShell("fourpiles help >/dev/full");
  EXPECT_EQ(run.err,
            "error: standard output: No space left on device, the answer is cut short\n"
            "hint: write it to a place with free space\n");
  EXPECT_EQ(run.exit_status, 3);
}

TEST(Colour, IsForTerminalsWithoutNoColor) {
  if (RunShell("script -qec true /dev/null").exit_status != 0) {
    GTEST_SKIP() << "no pseudo-terminal can be had here";
  }
  const std::string on_a_terminal = "script -qec 'fourpiles rond' /dev/null";
  EXPECT_NE(RunShell(on_a_terminal).out.find("\x1b[1;31merror:\x1b[0m fourpiles: unknown"),
            std::string::npos);
  const std::string plain =
      "error: fourpiles: unknown command \"rond\", did you mean \"round\"?\r\n";
  EXPECT_TRUE(RunShell("export NO_COLOR=1; " + on_a_terminal).out.starts_with(plain));
  EXPECT_NE(RunShell("export NO_COLOR=; " + on_a_terminal).out.find("\x1b["), std::string::npos);
  EXPECT_EQ(RunShell("fourpiles rond").err.find("\x1b["), std::string::npos);
}

// What bash would offer for the last of `words`.
std::string Completed(const std::string& words) {
  return RunShell("eval \"$(fourpiles completions bash)\"; COMP_WORDS=(" + words +
                  "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fourpiles; echo ${COMPREPLY[@]}")
      .out;
}

TEST(Completion, InBashOffersCommandsAndOptions) {
  EXPECT_EQ(Completed("fourpiles rou"), "round\n");
  EXPECT_EQ(Completed("fourpiles --json acc"), "accumulate\n");
  EXPECT_EQ(Completed("fourpiles help les"), "lesson\n");
  EXPECT_EQ(Completed("fourpiles round 1 --t"), "--to\n");
  EXPECT_EQ(Completed("fourpiles lesson --j"), "--json\n");
  EXPECT_EQ(Completed("fourpiles lesson --t"), "\n");
}

void ExpectIsReadBy(std::string_view shell) {
  if (!IsInstalled(shell)) {
    GTEST_SKIP() << shell << " is not installed";
  }
  const ShellRun run = RunShell(fmt::format(
      "fourpiles completions {0} >$scratch/completion && {0} -n $scratch/completion", shell));
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.exit_status, 0);
}

TEST(Completion, IsReadByZsh) {
  ExpectIsReadBy("zsh");
}
TEST(Completion, IsReadByFish) {
  ExpectIsReadBy("fish");
}

TEST(ManualPage, HasNoWarnings) {
  if (!IsInstalled("groff")) {
    GTEST_SKIP() << "groff is not installed";
  }
  const ShellRun run =
      RunShell("set -o pipefail; fourpiles man | groff -K utf8 -man -ww -Tutf8 | cat -s");
  EXPECT_EQ(run.err, "");
  EXPECT_NE(run.out.find("FOURPILES(1)"), std::string::npos);
  EXPECT_EQ(run.exit_status, 0);
}

}  // namespace
}  // namespace fourpiles
