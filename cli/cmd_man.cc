// fourpiles man: the manual page, made from the commands' records.

#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace fourpiles::cli {
namespace {

// Text as roff shows it unchanged: a "-" is not a hyphen, a line may not begin with a request.
std::string Roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && escaped.empty()) {
      escaped += fmt::format("\\&{}", c);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Options(std::span<const Option> options) {
  std::string text;
  for (const Option& option : options) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(Spelling(option)), Roff(option.help));
  }
  return text;
}

std::string Examples(std::string_view examples) {
  std::string text = ".PP\n.nf\n.RS\n";
  for (const std::string_view example : Lines(examples)) {
    text += Roff(example) + "\n";
  }
  return text + ".RE\n.fi\n";
}

std::string Page() {
  std::string text = fmt::format(
      ".TH FOURPILES 1 \"\" \"fourpiles {}\"\n.SH NAME\nfourpiles \\- {}\n.SH SYNOPSIS\n"
      "\\fBfourpiles\\fR \\fICOMMAND\\fR [\\fIarguments\\fR]\n.SH COMMANDS\n",
      Version(), Roff(kPurpose));
  for (const Command& command : Commands()) {
    text += fmt::format(".SS {}\n{}\n", Roff(Usage(command)), Roff(command.summary));
    text += Examples(command.examples) + Options(command.options);
  }
  text += ".SH OPTIONS OF EVERY COMMAND\n" + Options(GlobalOptions());
  text += ".SH EXIT STATUS\n";
  for (const ExitStatus& status : ExitStatuses()) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", status.number, Roff(status.meaning));
  }
  return text;
}

Result<Answer> Man(const Arguments&) {
  const std::string page = Page();
  return Answer{.text = page, .json = {{"roff", page}}, .warnings = {}, .exit_status = 0};
}

}  // namespace

constexpr Command kManCommand = {
    .name = "man",
    .summary = "the manual page, in roff",
    .examples =
        "fourpiles man | man -l -\n"
        "fourpiles man > ~/.local/share/man/man1/fourpiles.1",
    .options = {},
    .run = Man,
};

}  // namespace fourpiles::cli
