// CLI11 recognises options; what its exceptions would say is told from the records instead.
//
// CLI11 judges a word by its first characters ("-inf" would be four short options, "[a,b]" a list).
// So every word that is a value gets a mark in front before CLI11 sees it, and loses it afterwards.
// The mark also keeps what CLI11 forgets: whether the word followed an option directly.

#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "base/nearest_name.h"
#include "base/try.h"
#include "cli/help.h"
#include "cli/other_names.h"

namespace fourpiles::cli {
namespace {

using Words = std::vector<std::string>;

constexpr char kOwn = '\x1e';    // a value directly behind an option, or behind its "="
constexpr char kLoose = '\x1f';  // any other value

constexpr Option kGlobalOptions[] = {
    {"--json", "", "", "the same answer as JSON", "General options", Count::kFlag},
    {"--unit", "", "UNIT", "print amounts of memory in GiB (default) or GB", "General options"},
    {"--help", "-h", "", "this help", "General options", Count::kFlag},
    {"--version", "", "", "the version of fourpiles", "General options", Count::kFlag},
};

// "-5", "-.5", "-0x1p-3", "-inf", "-nan": what would be a number but for its sign.
bool IsNegativeNumber(std::string_view word) {
  const std::string name = CLI::detail::to_lower(std::string(word.substr(1)));
  return name.find_first_of("0123456789") == (name.front() == '.' ? 1U : 0U) || name == "inf" ||
         name == "infinity" || name == "nan";
}

bool LooksLikeOption(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && !IsNegativeNumber(word);
}

// "--to" of "--to=float16".
std::string_view NameOf(std::string_view word) {
  return word.substr(0, word.find('='));
}

const Option* Find(std::span<const Option> options, std::string_view name) {
  const auto found = std::ranges::find_if(options, [&](const Option& option) {
    return name == option.name || name == option.short_name;
  });
  return found == options.end() ? nullptr : &*found;
}

std::vector<Option> OptionsOf(const Command& command) {
  std::vector<Option> options(command.options.begin(), command.options.end());
  options.insert(options.end(), std::begin(kGlobalOptions), std::end(kGlobalOptions));
  return options;
}

// The hint of every mistake: where to read on.
std::string SeeHelp(const Command* command) {
  return command == nullptr
             ? "\"fourpiles help\" lists the commands"
             : fmt::format("\"fourpiles help {}\" shows examples and options", command->name);
}

tl::unexpected<Error> UnknownOption(std::string_view name, std::span<const Option> options,
                                    const Command* command) {
  std::vector<std::string_view> names;
  for (const Option& option : options) {
    if (!IsPositional(option)) {
      names.push_back(option.name);
    }
  }
  const std::string_view own = NameOfOther(name);
  const bool known = std::ranges::find(names, own) != names.end();
  return WrongUsage(
      {.where = std::string(name),
       .found = fmt::format("unknown option \"{}\"", name),
       .expected = known ? fmt::format("here it is \"{}\"", own) : DidYouMean(name, names),
       .hint = SeeHelp(command)});
}

// Removes the command's name from the words and returns it: the first word that is neither an
// option nor an option's value. Empty when there is none.
Result<std::string_view> TakeName(std::vector<std::string_view>& words) {
  for (auto word = words.begin(); word != words.end() && *word != "--"; ++word) {
    if (!LooksLikeOption(*word)) {
      const std::string_view name = *word;
      words.erase(word);
      return name;
    }
    const Option* option = Find(kGlobalOptions, NameOf(*word));
    if (option == nullptr) {
      return UnknownOption(NameOf(*word), kGlobalOptions, nullptr);
    }
    if (option->count == Count::kOne && *word == option->name && word + 1 != words.end()) {
      ++word;
    }
  }
  return std::string_view();
}

Words Marked(std::span<const std::string_view> words) {
  Words marked;
  bool only_values = false;
  bool behind_option = false;
  for (const std::string_view word : words) {
    const bool is_option = !only_values && LooksLikeOption(word);
    if (!is_option) {
      marked.push_back((behind_option ? kOwn : kLoose) + std::string(word));
    } else if (const auto equals = word.find('='); word.starts_with("--") && equals < word.size()) {
      marked.push_back(fmt::format("{}={}{}", NameOf(word), kOwn, word.substr(equals + 1)));
    } else {
      marked.emplace_back(word);
    }
    only_values = only_values || word == "--";
    behind_option = is_option && word != "--" && word.find('=') == std::string_view::npos;
  }
  return marked;
}

bool IsMark(char c) {
  return c == kOwn || c == kLoose;
}

std::string Unmarked(std::string_view word) {
  return std::string(word.substr(!word.empty() && IsMark(word.front()) ? 1 : 0));
}

CLI::Option* AddTo(CLI::App& app, const Option& option) {
  std::string names(option.name);
  if (!option.short_name.empty()) {
    names += fmt::format(",{}", option.short_name);
  }
  if (option.count == Count::kFlag) {
    return app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  CLI::Option* const added =
      app.add_option(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (option.count == Count::kMany) {
    return added->expected(0, -1)->allow_extra_args();
  }
  // At least 0, so that an option without its value reads as an empty one.
  return IsPositional(option) ? added : added->expected(0, 1);
}

// What CLI11 makes of the words: those of each option, still marked, and those of none.
struct Sorted {
  std::map<std::string_view, Words> by_option;
  Words unknown;
};

Sorted Sort(std::span<const Option> options, Words words) {
  try {
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    std::vector<CLI::Option*> added;
    for (const Option& option : options) {
      added.push_back(AddTo(app, option));
    }
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(words);
    Sorted sorted = {.by_option = {}, .unknown = app.remaining()};
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (added[i]->count() > 0) {
        sorted.by_option[options[i].name] = added[i]->results();
      }
    }
    std::erase(sorted.unknown, "--");
    return sorted;
  } catch (const CLI::Error& error) {  // a fault of a record, since every word is allowed above
    FailCheck(__FILE__, __LINE__, error.what());
  }
}

// "--to float16 1.5" leaves nothing for VALUE: the option gives back what did not follow it
// directly.
void GiveBackValues(std::span<const Option> options, Sorted& sorted) {
  const auto lacking = std::ranges::find_if(options, [&](const Option& option) {
    return IsPositional(option) && option.required && !sorted.by_option.contains(option.name);
  });
  if (lacking == options.end()) {
    return;
  }
  Words given_back;
  for (const Option& option : options) {
    if (option.count == Count::kMany && !IsPositional(option)) {
      Words& words = sorted.by_option[option.name];
      const auto loose = std::stable_partition(
          words.begin(), words.end(),
          [](const std::string& word) { return word.empty() || word.front() != kLoose; });
      given_back.insert(given_back.end(), loose, words.end());
      words.erase(loose, words.end());
      if (words.empty()) {
        sorted.by_option.erase(option.name);
      }
    }
  }
  if (!given_back.empty()) {
    sorted.by_option[lacking->name] = std::move(given_back);
  }
}

// The values of one option: without marks, lists taken apart.
Words ValuesOf(const Option& option, const Words& words) {
  Words values;
  for (const std::string& word : words) {
    const std::string plain = Unmarked(word);
    if (option.count == Count::kMany && !IsPositional(option)) {
      const Words parts = ItemsOf(plain);
      values.insert(values.end(), parts.begin(), parts.end());
    } else {
      values.push_back(plain);
    }
  }
  return values;
}

// What is wrong with the words of one option, which is there.
std::optional<ErrorText> Mistake(const Option& option, const Words& words) {
  const std::string name(option.name);
  if (option.count == Count::kFlag) {
    const auto value = std::ranges::find_if(
        words, [](const std::string& word) { return !word.empty() && IsMark(word.front()); });
    if (value != words.end()) {
      return ErrorText{.where = name,
                       .found = fmt::format("has the value \"{}\"", Unmarked(*value)),
                       .expected = "takes none"};
    }
    return std::nullopt;
  }
  const Words values = ValuesOf(option, words);
  if (!IsPositional(option) && (values.empty() || std::ranges::count(values, "") > 0)) {
    return ErrorText{.where = name,
                     .found = "has no value",
                     .expected = fmt::format("expected {}", option.value)};
  }
  if (option.count == Count::kOne && values.size() > 1) {
    return ErrorText{.where = name,
                     .found = fmt::format("given as \"{}\" and \"{}\"", values[0], values[1]),
                     .expected = "expected once"};
  }
  if (option.name == "--unit" && values[0] != "GiB" && values[0] != "GB") {
    return ErrorText{.where = name,
                     .found = fmt::format("unknown unit \"{}\"", values[0]),
                     .expected = "expected GiB or GB"};
  }
  return std::nullopt;
}

// What is wrong with the words as a whole.
std::optional<ErrorText> Mistake(const Command& command, std::span<const Option> options,
                                 const Sorted& sorted) {
  const std::string usage = fmt::format("expected \"{}\"", Usage(command));
  for (const Option& option : options) {
    if (const auto words = sorted.by_option.find(option.name); words != sorted.by_option.end()) {
      if (std::optional<ErrorText> mistake = Mistake(option, words->second)) {
        return mistake;
      }
    }
  }
  if (!sorted.unknown.empty()) {
    return ErrorText{.where = fmt::format("fourpiles {}", command.name),
                     .found = fmt::format("unexpected \"{}\"", Unmarked(sorted.unknown.front())),
                     .expected = usage};
  }
  for (const Option& option : options) {
    if (option.required && !sorted.by_option.contains(option.name)) {
      return ErrorText{.where = std::string(option.name), .found = "not given", .expected = usage};
    }
  }
  return std::nullopt;
}

Result<Arguments> ReadArguments(const Command& command, std::span<const std::string_view> words) {
  const std::vector<Option> options = OptionsOf(command);
  Sorted sorted = Sort(options, Marked(words));
  for (const std::string& word : sorted.unknown) {
    if (LooksLikeOption(word)) {
      return UnknownOption(NameOf(word), options, &command);
    }
  }
  GiveBackValues(options, sorted);
  if (std::optional<ErrorText> mistake = Mistake(command, options, sorted)) {
    mistake->hint = SeeHelp(&command);
    return WrongUsage(*std::move(mistake));
  }
  std::map<std::string, Words, std::less<>> values;
  for (const Option& option : options) {
    if (const auto found = sorted.by_option.find(option.name); found != sorted.by_option.end()) {
      values[std::string(option.name)] = ValuesOf(option, found->second);
    }
  }
  return Arguments(std::move(values));
}

Result<const Command*> FindCommand(std::span<const Command> commands, std::string_view name) {
  const auto found = std::ranges::find(commands, name, &Command::name);
  if (found != commands.end()) {
    return &*found;
  }
  std::vector<std::string_view> names;
  std::ranges::transform(commands, std::back_inserter(names), &Command::name);
  return WrongUsage({.where = "fourpiles",
                     .found = fmt::format("unknown command \"{}\"", name),
                     .expected = DidYouMean(name, names),
                     .hint = SeeHelp(nullptr)});
}

// Fills in the command and the wish, and returns the arguments.
Result<Arguments> Read(std::span<const Command> commands, std::vector<std::string_view> words,
                       CommandLine& line) {
  TRY(std::string_view name, TakeName(words));
  if (name == "help") {
    line.wish = CommandLine::Wish::kHelp;
    TRY(name, TakeName(words));
  }
  if (name.empty() && line.wish == CommandLine::Wish::kHelp) {
    return Arguments({});
  }
  if (name.empty()) {
    return WrongUsage(
        {.where = "fourpiles", .found = "no command given", .hint = SeeHelp(nullptr)});
  }
  TRY(line.command, FindCommand(commands, name));
  if (line.wish == CommandLine::Wish::kHelp) {
    return Arguments({});
  }
  return ReadArguments(*line.command, words);
}

}  // namespace

ByteUnit UnitOf(const Arguments& arguments) {
  return arguments.One("--unit", "GiB") == "GB" ? ByteUnit::kGb : ByteUnit::kGib;
}

std::span<const Option> GlobalOptions() {
  return kGlobalOptions;
}

std::vector<std::string> ItemsOf(const std::string& list) {
  const std::size_t end = list.find(',', std::min(list.find(':'), list.size()));
  Words items = CLI::detail::split(list.substr(0, end), ',');
  if (end < list.size()) {
    items.back() += list.substr(end);
  }
  return items;
}

bool IsPositional(const Option& option) {
  return !option.name.starts_with('-');
}

CommandLine ParseCommandLine(std::span<const Command> commands,
                             std::span<const std::string_view> words) {
  // No value begins with two dashes, so these can be seen before anything else is understood.
  const auto typed = [end = std::ranges::find(words, "--"), &words](std::string_view name) {
    return std::find(words.begin(), end, name) != end;
  };
  CommandLine line;
  line.json = typed("--json");
  if (typed("--version")) {
    line.wish = CommandLine::Wish::kVersion;
    return line;
  }
  if (typed("--help") || typed("-h")) {
    line.wish = CommandLine::Wish::kHelp;
  }
  line.arguments = Read(commands, {words.begin(), words.end()}, line);
  return line;
}

}  // namespace fourpiles::cli
