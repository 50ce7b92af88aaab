#include "cli/program.h"

#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_text.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "cli/command_line.h"
#include "cli/help.h"

namespace fourpiles::cli {
namespace {

constexpr std::string_view kRed = "31";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kCyan = "36";

std::string Label(std::string_view word, std::string_view paint, bool colour) {
  return colour ? fmt::format("\x1b[1;{}m{}:\x1b[0m ", paint, word) : fmt::format("{}: ", word);
}

// The members behind "schema" and "command", which every JSON answer and error opens with.
std::string Envelope(const Command* command, Json::Object members) {
  Json::Object whole = {{"schema", "fourpiles/1"},
                        {"command", command != nullptr ? Json(command->name) : Json()}};
  std::move(members.begin(), members.end(), std::back_inserter(whole));
  return WriteJson(whole);
}

Outcome Failure(const CommandLine& line, const ErrorText& error, int exit_status, bool colour) {
  if (!line.json) {
    return {.out = {}, .err = MessageText(error, colour), .exit_status = exit_status};
  }
  Json::Object members = {{"error", ErrorJson({.text = error})}, {"exit_status", exit_status}};
  return {.out = Envelope(line.command, std::move(members)), .err = {}, .exit_status = exit_status};
}

Outcome Success(const CommandLine& line, Answer answer, bool colour) {
  Outcome outcome = {.out = {}, .err = {}, .exit_status = answer.exit_status};
  if (line.json && !answer.errors.empty()) {
    answer.json.emplace_back("error", ErrorJson({.text = answer.errors.front()}));
    answer.json.emplace_back("exit_status", answer.exit_status);
  }
  outcome.out = line.json ? Envelope(line.command, std::move(answer.json)) : std::move(answer.text);
  for (const std::string& warning : answer.warnings) {
    outcome.err += Label("warning", kYellow, colour) + EscapeForTerminal(warning) + "\n";
  }
  for (const std::string& note : answer.notes) {
    outcome.err += EscapeForTerminal(note) + "\n";
  }
  if (!line.json) {
    for (const ErrorText& error : answer.errors) {
      outcome.err += MessageText(error, colour);
    }
  }
  return outcome;
}

Outcome Respond(std::span<const Command> commands, const CommandLine& line, bool colour) {
  const auto fail = [&](const Error& error) {
    return Failure(line, error.text, fourpiles::ExitStatus(error.kind), colour);
  };
  if (!line.arguments) {
    return fail(line.arguments.error());
  }
  if (line.wish == CommandLine::Wish::kVersion) {
    return {.out = fmt::format("fourpiles {}\n", Version()), .err = {}, .exit_status = 0};
  }
  if (line.wish == CommandLine::Wish::kHelp) {
    return {.out = line.command != nullptr ? CommandHelp(*line.command) : OverviewHelp(commands),
            .err = {},
            .exit_status = 0};
  }
  Result<Answer> answer = line.command->run(*line.arguments);
  return answer ? Success(line, *std::move(answer), colour) : fail(answer.error());
}

}  // namespace

std::string MessageText(const ErrorText& error, bool colour) {
  std::string text = ErrorMessage({.text = error});
  if (!colour) {
    return text;
  }
  for (const auto& [word, paint] : {std::pair{"error", kRed}, {"hint", kCyan}}) {
    const std::string plain = Label(word, paint, false);
    const std::size_t place = text.starts_with(plain) ? 0 : text.find("\n" + plain) + 1;
    if (text.compare(place, plain.size(), plain) == 0) {
      text.replace(place, plain.size(), Label(word, paint, true));
    }
  }
  return text;
}

Outcome RunProgram(std::span<const Command> commands, std::span<const char* const> words,
                   bool colour) {
  CommandLine line;
  try {
    if (words.empty()) {
      return {.out = OverviewHelp(commands), .err = {}, .exit_status = kExitUsage};
    }
    line = ParseCommandLine(commands, std::vector<std::string_view>(words.begin(), words.end()));
    return Respond(commands, line, colour);
  } catch (const std::exception& fault) {
    return Failure(line,
                   {.where = "fourpiles",
                    .found = fmt::format("internal fault ({})", fault.what()),
                    .expected = "please report it with the command line"},
                   kExitFault, colour);
  }
}

}  // namespace fourpiles::cli
