#include "cli/command_line.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/program.h"

namespace fourpiles::cli {
namespace {

using Words = std::vector<std::string>;

constexpr Option kRoundOptions[] = {
    {"VALUE", "", "VALUE", "numbers to round", "", Count::kMany, true},
    {"--to", "", "FORMAT", "formats", "", Count::kMany, true},
    {"--batch", "-b", "N", "how many", "", Count::kOne},
    {"--exact", "-e", "", "a flag", "", Count::kFlag},
};
constexpr Option kScaleOptions[] = {
    {"--by", "", "S", "the factor", "", Count::kOne, true},
    {"--in", "", "FORMAT", "formats", "", Count::kMany},
};
constexpr Option kQualityOptions[] = {
    {"PATH", "", "PATH", "a checkpoint", "", Count::kOne, true},
    {"COMMAND", "", "COMMAND", "the evaluation", "", Count::kMany},
    {"--to", "", "FORMAT", "formats", "", Count::kMany},
};
Result<Answer> Nothing(const Arguments&) {
  return Answer();
}
constexpr Command kCommands[] = {
    {"round", "", "", kRoundOptions, Nothing},
    {"scale", "", "", kScaleOptions, Nothing},
    {"quality", "", "", kQualityOptions, Nothing},
};

// The words of a line without quotes; '' is the empty word.
std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end) == "''" ? "" : line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

CommandLine Parse(std::string_view line) {
  return ParseCommandLine(kCommands, Split(line));
}

// The message for `line`, or "" when nothing is wrong with it.
std::string MessageOf(std::string_view line) {
  const CommandLine parsed = Parse(line);
  return parsed.arguments ? "" : MessageText(parsed.arguments.error().text, false);
}

struct Reading {
  std::string_view line;
  std::string_view option;
  Words values;
};

void ExpectRead(const std::vector<Reading>& readings) {
  for (const Reading& reading : readings) {
    const CommandLine parsed = Parse(reading.line);
    ASSERT_TRUE(parsed.arguments) << MessageOf(reading.line);
    const std::span<const std::string> values = parsed.arguments->All(reading.option);
    EXPECT_EQ(Words(values.begin(), values.end()), reading.values) << reading.line;
  }
}

TEST(CommandLine, ReadsNegativeNumbers) {
  ExpectRead(
      {{"round -1.5 -0x1p-3 -1e-8 --to f16", "VALUE", {"-1.5", "-0x1p-3", "-1e-8"}},
       {"round -inf -nan -Infinity -.5 --to f16", "VALUE", {"-inf", "-nan", "-Infinity", "-.5"}},
       {"round --to f16 --batch -3 1", "--batch", {"-3"}},
       {"round 1 --to f16 -b -3", "--batch", {"-3"}},
       {"scale --by -2", "--by", {"-2"}},
       {"scale --by=-inf", "--by", {"-inf"}},
       {"scale --by -nan", "--by", {"-nan"}}});
}

TEST(CommandLine, ReadsSeveralValues) {
  ExpectRead({{"round 1 --to a,b", "--to", {"a", "b"}},
              {"round 1 --to=a,b", "--to", {"a", "b"}},
              {"round 1 --to a b", "--to", {"a", "b"}},
              {"round 1 --to a --to b", "--to", {"a", "b"}},
              {"round 1 --to a b,c --exact", "--to", {"a", "b", "c"}},
              {"round 1 --to a,b:c=1,d", "--to", {"a", "b:c=1,d"}},
              {"round 1 --to a -- 2", "--to", {"a"}},
              {"round 1 --to a -- 2", "VALUE", {"1", "2"}},
              {"round 1,5 [2] --to a", "VALUE", {"1,5", "[2]"}},
              {"scale --by 1 --in a -1 b", "--in", {"a", "-1", "b"}}});
}

TEST(CommandLine, ReadsOptionsBeforeTheValues) {
  ExpectRead({{"round --to a 1.5", "--to", {"a"}},
              {"round --to a 1.5", "VALUE", {"1.5"}},
              {"round --to a,b 1.5 2.5 --exact", "--to", {"a", "b"}},
              {"round --to a,b 1.5 2.5 --exact", "VALUE", {"1.5", "2.5"}},
              {"round --to=a 1.5", "VALUE", {"1.5"}},
              {"round --to a --to b 1,5", "VALUE", {"1,5"}},
              {"round --to a b --exact 1.5", "--to", {"a", "b"}},
              {"--json round --exact 1.5 --to a b", "VALUE", {"1.5"}},
              {"--unit GB round 1 --to a", "--unit", {"GB"}},
              {"--unit=GB round 1 --to a", "VALUE", {"1"}}});
}

TEST(CommandLine, TakesWordsBehindTwoDashesAsValues) {
  ExpectRead({{"quality m --to a -- run --json -x", "COMMAND", {"run", "--json", "-x"}},
              {"quality m --to a -- run --json -x", "PATH", {"m"}},
              {"round --to a -- -x --", "VALUE", {"-x", "--"}},
              {"round -b8 -e --to a -- 1", "--batch", {"8"}}});
}

TEST(CommandLine, TellsFlagsThatAreThereFromOthers) {
  const CommandLine parsed = Parse("round 1 --to a -e");
  EXPECT_TRUE(parsed.arguments->Has("--exact"));
  EXPECT_FALSE(parsed.arguments->Has("--json"));
  EXPECT_FALSE(parsed.arguments->Has("--batch"));
  EXPECT_EQ(parsed.arguments->One("--batch", "1"), "1");
}

TEST(CommandLine, SeesJsonWhereTheRestIsWrong) {
  EXPECT_TRUE(Parse("round --tp --json").json);
  EXPECT_TRUE(Parse("--json").json);
  EXPECT_FALSE(Parse("quality m -- run --json").json);
}

TEST(CommandLine, KnowsTheCommandWhereTheRestIsWrong) {
  EXPECT_EQ(Parse("round --tp").command, &kCommands[0]);
  EXPECT_EQ(Parse("rond --to a").command, nullptr);
}

// "help round", "help", "version round" … or "round" when an answer is wanted.
std::string WishOf(std::string_view line) {
  const CommandLine parsed = Parse(line);
  std::string wish;
  if (!parsed.arguments) {
    return "wrong";
  }
  if (parsed.wish == CommandLine::Wish::kHelp) {
    wish = "help ";
  } else if (parsed.wish == CommandLine::Wish::kVersion) {
    wish = "version ";
  }
  return fmt::format("{}{}", wish, parsed.command == nullptr ? "" : parsed.command->name);
}

TEST(CommandLine, AsksForHelp) {
  EXPECT_EQ(WishOf("help round"), "help round");
  EXPECT_EQ(WishOf("help round --json"), "help round");
  EXPECT_EQ(WishOf("round --help"), "help round");
  EXPECT_EQ(WishOf("-h round"), "help round");
  EXPECT_EQ(WishOf("round --tp -h"), "help round");
  EXPECT_EQ(WishOf("help"), "help ");
  EXPECT_EQ(WishOf("--help"), "help ");
  EXPECT_EQ(WishOf("-h --json"), "help ");
  EXPECT_EQ(WishOf("quality m -- run --help"), "quality");
}

TEST(CommandLine, AsksForTheVersion) {
  EXPECT_EQ(WishOf("--version"), "version ");
  EXPECT_EQ(WishOf("round --version"), "version ");
}

struct Mistake {
  std::string_view line;
  std::string_view message;
};

void ExpectRefused(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(MessageOf(mistake.line), mistake.message) << mistake.line;
  }
}

#define HINT(command) "hint: \"fourpiles help " command "\" shows examples and options\n"
#define LIST_HINT "hint: \"fourpiles help\" lists the commands\n"
#define ROUND_USAGE "expected \"fourpiles round VALUE... --to FORMAT... [options]\"\n"

TEST(CommandLine, RefusesUnknownNames) {
  ExpectRefused(
      {{"rond 1 --to a",
        "error: fourpiles: unknown command \"rond\", did you mean \"round\"?\n" LIST_HINT},
       {"help rond",
        "error: fourpiles: unknown command \"rond\", did you mean \"round\"?\n" LIST_HINT},
       {"'' 1", "error: fourpiles: no command given\n" LIST_HINT},
       {"--json", "error: fourpiles: no command given\n" LIST_HINT},
       {"--jsn round",
        "error: --jsn: unknown option \"--jsn\", did you mean \"--json\"?\n" LIST_HINT},
       {"round 1 --tp a",
        "error: --tp: unknown option \"--tp\", did you mean \"--to\"?\n" HINT("round")},
       {"round 1 --tp=a",
        "error: --tp: unknown option \"--tp\", did you mean \"--to\"?\n" HINT("round")},
       {"round 1 --zebra", "error: --zebra: unknown option \"--zebra\"\n" HINT("round")},
       {"round 1 --to a -z", "error: -z: unknown option \"-z\"\n" HINT("round")}});
}

TEST(CommandLine, RefusesWhatLacksSomething) {
  ExpectRefused(
      {{"round 1", "error: --to: not given, " ROUND_USAGE HINT("round")},
       {"round --to a", "error: VALUE: not given, " ROUND_USAGE HINT("round")},
       {"round 1 --to", "error: --to: has no value, expected FORMAT\n" HINT("round")},
       {"round 1 --to=", "error: --to: has no value, expected FORMAT\n" HINT("round")},
       {"round 1 --to ,", "error: --to: has no value, expected FORMAT\n" HINT("round")},
       {"round 1 --to --json", "error: --to: has no value, expected FORMAT\n" HINT("round")},
       {"round 1 --to a -b", "error: --batch: has no value, expected N\n" HINT("round")},
       {"round 1 --to a -b ''", "error: --batch: has no value, expected N\n" HINT("round")},
       {"scale --by -- 2", "error: --by: has no value, expected S\n" HINT("scale")}});
}

TEST(CommandLine, RefusesTooMuch) {
  ExpectRefused({{"scale --by 1 --by 2",
                  "error: --by: given as \"1\" and \"2\", expected once\n" HINT("scale")},
                 {"--unit GB scale --by 1 --unit GiB",
                  "error: --unit: given as \"GB\" and \"GiB\", expected once\n" HINT("scale")},
                 {"scale --by 1 --json=yes",
                  "error: --json: has the value \"yes\", takes none\n" HINT("scale")},
                 {"scale --by 1 2",
                  "error: fourpiles scale: unexpected \"2\", expected \"fourpiles scale --by S "
                  "[options]\"\n" HINT("scale")},
                 {"scale --by 1 -- --in",
                  "error: fourpiles scale: unexpected \"--in\", expected \"fourpiles scale --by S "
                  "[options]\"\n" HINT("scale")},
                 {"scale --by 1 --unit MB",
                  "error: --unit: unknown unit \"MB\", expected GiB or GB\n" HINT("scale")}});
}

// Every line of three odd words behind a command.
Words OddLines() {
  const Words odd = {"--",   "-",     "---", "--to", "--to=", "-b", "-be", "-=",
                     "--=a", "[a,b]", "++",  "/to",  ",",     "-5", "a",   "--json="};
  Words lines;
  for (const std::string& a : odd) {
    for (const std::string& b : odd) {
      for (const std::string& c : odd) {
        lines.push_back(fmt::format("round {} {} {}", a, b, c));
      }
    }
  }
  return lines;
}

// An exception of CLI11 would be a fault of ours, and fail this test.
TEST(CommandLine, AnswersWhateverIsTyped) {
  for (const std::string& line : OddLines()) {
    const CommandLine parsed = Parse(line);
    EXPECT_EQ(parsed.command, &kCommands[0]) << line;
  }
}

}  // namespace
}  // namespace fourpiles::cli
