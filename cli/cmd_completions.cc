// fourpiles completions bash|zsh|fish: a script that completes commands and options, made from the
// commands' records.

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"

namespace fourpiles::cli {
namespace {

// Inside single quotes a shell knows only the quote itself, written there as `quote`.
std::string Quoted(std::string_view text, std::string_view quote = "'\\''") {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += quote;
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::vector<Option> DashedOptions(std::span<const Option> own) {
  std::vector<Option> options;
  for (const std::span<const Option> all : {own, GlobalOptions()}) {
    for (const Option& option : all) {
      if (!IsPositional(option)) {
        options.push_back(option);
      }
    }
  }
  return options;
}

std::string Names(std::span<const Option> own) {
  std::string names;
  for (const Option& option : DashedOptions(own)) {
    names += fmt::format(" {}", option.name);
  }
  return names;
}

std::string Bash() {
  std::string commands;
  std::string cases;
  for (const Command& command : Commands()) {
    commands += fmt::format("{} ", command.name);
    cases += fmt::format("    {}) words='{}' ;;\n", command.name, Names(command.options).substr(1));
  }
  return fmt::format(R"(# Completion of fourpiles for bash: source <(fourpiles completions bash)
_fourpiles() {{
  local command= words= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command=${{COMP_WORDS[i]}}; break; }}
  done
  case $command in
    '') words='{0}help{1}' ;;
    help) words='{0}' ;;
{2}  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _fourpiles fourpiles
)",
                     commands, Names({}), cases);
}

// An option as zsh's _arguments reads it: 'NAMES[help]:VALUE:_files'. A ":" or "]" in the help
// would end it.
std::string ZshOption(const Option& option, std::string_view name) {
  std::string help;
  for (const char c : option.help) {
    if (c == ':' || c == '[' || c == ']') {
      help += '\\';
    }
    help += c;
  }
  const std::string value =
      option.count == Count::kFlag ? "" : fmt::format(":{}:_files", option.value);
  return Quoted(
      fmt::format("{}{}[{}]{}", option.count == Count::kMany ? "*" : "", name, help, value));
}

std::string Zsh() {
  std::string commands;
  std::string cases;
  for (const Command& command : Commands()) {
    commands +=
        fmt::format("    {}\n", Quoted(fmt::format("{}:{}", command.name, command.summary)));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const Option& option : DashedOptions(command.options)) {
      cases += " \\\n      " + ZshOption(option, option.name);
      if (!option.short_name.empty()) {
        cases += " \\\n      " + ZshOption(option, option.short_name);
      }
    }
    cases += " \\\n      '*:value:_files' ;;\n";
  }
  return fmt::format(R"(#compdef fourpiles
# Completion of fourpiles for zsh: source <(fourpiles completions zsh)
_fourpiles() {{
  local -a commands=(
{}    'help:examples and options of a command'
  )
  if ((CURRENT == 2)) || [[ ${{words[2]}} == help ]]; then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case ${{words[1]}} in
{}  esac
}}
compdef _fourpiles fourpiles
)",
                     commands, cases);
}

std::string FishOption(const Option& option, std::string_view condition) {
  std::string line = fmt::format("complete -c fourpiles{} -l {}", condition, option.name.substr(2));
  if (!option.short_name.empty()) {
    line += fmt::format(" -s {}", option.short_name.substr(1));
  }
  return line + fmt::format("{} -d {}\n", option.count == Count::kFlag ? "" : " -r",
                            Quoted(option.help, "\\'"));
}

std::string Fish() {
  std::string text = "# Completion of fourpiles for fish: fourpiles completions fish | source\n";
  for (const Command& command : Commands()) {
    for (const std::string_view condition :
         {"__fish_use_subcommand", "'__fish_seen_subcommand_from help'"}) {
      text += fmt::format("complete -c fourpiles -n {} -f -a {} -d {}\n", condition, command.name,
                          Quoted(command.summary, "\\'"));
    }
    const std::string condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
    for (const Option& option : command.options) {
      if (!IsPositional(option)) {
        text += FishOption(option, condition);
      }
    }
  }
  for (const Option& option : GlobalOptions()) {
    text += FishOption(option, "");
  }
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr std::array<Shell, 3> kShells = {{{"bash", Bash}, {"zsh", Zsh}, {"fish", Fish}}};

Result<Answer> Completions(const Arguments& arguments) {
  const std::string_view typed = arguments.One("SHELL");
  for (const Shell& shell : kShells) {
    if (shell.name == typed) {
      const std::string script = shell.script();
      return Answer{.text = script,
                    .json = {{"shell", shell.name}, {"script", script}},
                    .warnings = {},
                    .exit_status = 0};
    }
  }
  return WrongUsage({.where = "SHELL",
                     .found = fmt::format("unknown shell \"{}\"", typed),
                     .expected = "expected bash, zsh or fish"});
}

constexpr Option kOptions[] = {
    {.name = "SHELL", .value = "SHELL", .help = "bash, zsh or fish", .required = true},
};

}  // namespace

constexpr Command kCompletionsCommand = {
    .name = "completions",
    .summary = "completion of commands and options for your shell",
    .examples =
        "source <(fourpiles completions bash)\n"
        "source <(fourpiles completions zsh)\n"
        "fourpiles completions fish | source",
    .options = kOptions,
    .run = Completions,
};

}  // namespace fourpiles::cli
