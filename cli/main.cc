// The program fourpiles: its streams and exit status. What it says is made in program.cc.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/freed_memory.h"
#include "cli/program.h"

namespace fourpiles::cli {
namespace {

// A stream that was closed before we started would lend its number to the next file opened, and
// the answer would be written into that file.
void OpenClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) == -1) {
      open("/dev/null", O_RDWR);  // the lowest free number: this stream
    }
  }
}

// Colour only for a person: on a terminal, and without NO_COLOR (no-color.org).
bool Colourful() {
  const char* const no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  return isatty(STDERR_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

// False, with the reason in errno, when not all could be written.
bool Write(int stream, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(stream, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return true;
}

int Main(std::span<const char* const> words) {
  KeepFreedMemory();
  OpenClosedStreams();
  const bool colour = Colourful();
  const Outcome outcome = RunProgram(Commands(), words, colour);
  // Only now, so that the programs a command starts keep the usual signal.
  std::signal(SIGPIPE, SIG_IGN);
  // A reader that has seen enough (`| head`) is no error.
  if (!Write(STDOUT_FILENO, outcome.out) && errno != EPIPE) {
    const ErrorText error = {.where = "standard output",
                             .found = std::strerror(errno),  // NOLINT(concurrency-mt-unsafe)
                             .expected = "the answer is cut short",
                             .hint = "write it to a place with free space"};
    Write(STDERR_FILENO, MessageText(error, colour));
    return kExitInput;
  }
  Write(STDERR_FILENO, outcome.err);
  return outcome.exit_status;
}

}  // namespace
}  // namespace fourpiles::cli

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return fourpiles::cli::Main(words.subspan(words.empty() ? 0 : 1));
}
