#include "cli/help.h"

#include <gtest/gtest.h>

namespace fourpiles::cli {
namespace {

constexpr Option kOptions[] = {
    {"VALUE", "", "VALUE", "numbers to round", "", Count::kMany, true},
    {"--to", "", "FORMAT", "formats to round to", "", Count::kMany, true},
    {"--overflow", "-o", "RULE", "ieee (default), saturate or nan", "Rounding"},
};
constexpr Command kRound = {"round", "what a format makes of a value",
                            "fourpiles round 1 --to a\nfourpiles round 2 --to b\n", kOptions,
                            nullptr};
constexpr Command kPlain = {"models", "the catalogue", "fourpiles models\n", {}, nullptr};

TEST(Help, OpensWithExamplesAndGroupsTheOptions) {
  EXPECT_EQ(CommandHelp(kRound),
            R"(fourpiles round: what a format makes of a value

Examples:
  fourpiles round 1 --to a
  fourpiles round 2 --to b

Usage: fourpiles round VALUE... --to FORMAT... [options]

Arguments:
  VALUE...  numbers to round

Options:
  --to FORMAT...  formats to round to

Rounding:
  -o, --overflow RULE  ieee (default), saturate or nan

General options:
  --json       the same answer as JSON
  --unit UNIT  print amounts of memory in GiB (default) or GB
  -h, --help   this help
  --version    the version of fourpiles

An option with "..." takes a list (a,b), or the words up to the next option or "--";
in front of VALUE... only the next word.
)");
}

TEST(Help, OfACommandWithoutOptionsSaysNothingOfLists) {
  const std::string help = CommandHelp(kPlain);
  EXPECT_NE(help.find("Usage: fourpiles models [options]\n\nGeneral options:\n"), std::string::npos)
      << help;
  EXPECT_EQ(help.find("takes a list"), std::string::npos) << help;
}

TEST(Help, SaysWhereListsEnd) {
  constexpr Option kIn[] = {{"--in", "", "FORMAT", "", "", Count::kMany}};
  const std::string help = CommandHelp({"accumulate", "", "", kIn, nullptr});
  EXPECT_TRUE(
      help.ends_with("An option with \"...\" takes a list (a,b), or the words up to the "
                     "next option or \"--\".\n"))
      << help;
}

TEST(Help, OfTheProgramHasAnExampleAndALineForEachCommand) {
  const Command commands[] = {kRound, kPlain};
  EXPECT_EQ(OverviewHelp(commands),
            R"(fourpiles: will the tensors fit the device, and the values the number format?

Examples:
  fourpiles round 1 --to a
  fourpiles models

Commands:
  round   what a format makes of a value
  models  the catalogue

General options:
  --json       the same answer as JSON
  --unit UNIT  print amounts of memory in GiB (default) or GB
  -h, --help   this help
  --version    the version of fourpiles

Exit status:
  0  yes
  1  the answer is no
  2  wrong usage
  3  unreadable or hostile input
  4  a fault of fourpiles itself

"fourpiles help COMMAND" shows its examples and options.
)");
}

TEST(Help, NamesWhatMayBeLeftOutInBrackets) {
  constexpr Option kName[] = {{"NAME", "", "NAME", "", "", Count::kMany}};
  EXPECT_EQ(Usage({"formats", "", "", kName, nullptr}), "fourpiles formats [NAME...] [options]");
}

}  // namespace
}  // namespace fourpiles::cli
