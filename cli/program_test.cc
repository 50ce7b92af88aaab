#include "cli/program.h"

#include <new>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"

namespace fourpiles::cli {
namespace {

Result<Answer> Fits(const Arguments&) {
  return Answer{.text = "fits\n", .json = {{"fits", true}}, .warnings = {}, .exit_status = 0};
}
Result<Answer> DoesNotFit(const Arguments&) {
  return Answer{.text = "does not fit\n",
                .json = {{"fits", false}},
                .warnings = {"a bare count", "no device"},
                .exit_status = 1};
}
Result<Answer> IsRefused(const Arguments&) {
  return BadInput({.where = "a.gguf: byte 24", .found = "is cut short"});
}
Result<Answer> FailsACheck(const Arguments& arguments) {
  CHECK(arguments.Has("--never"));
  return Answer();
}
Result<Answer> RunsOutOfMemory(const Arguments&) {
  throw std::bad_alloc();
}
Result<Answer> MeetsALibrary(const Arguments&) {
  throw std::runtime_error("from a library");
}

constexpr Command kCommands[] = {
    {"fits", "", "", {}, Fits},
    {"tight", "", "", {}, DoesNotFit},
    {"read", "", "", {}, IsRefused},
    {"check", "", "", {}, FailsACheck},
    {"memory", "", "", {}, RunsOutOfMemory},
    {"library", "", "", {}, MeetsALibrary},
};

Outcome Say(const std::vector<const char*>& words, bool colour = false) {
  return RunProgram(kCommands, words, colour);
}

TEST(Program, PrintsTheAnswer) {
  const Outcome outcome = Say({"fits"});
  EXPECT_EQ(outcome.out, "fits\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.exit_status, 0);
}

TEST(Program, SaysNoWithItsWarnings) {
  const Outcome outcome = Say({"tight"});
  EXPECT_EQ(outcome.out, "does not fit\n");
  EXPECT_EQ(outcome.err, "warning: a bare count\nwarning: no device\n");
  EXPECT_EQ(outcome.exit_status, 1);
}

TEST(Program, PutsAJsonAnswerBehindSchemaAndCommand) {
  const Outcome outcome = Say({"tight", "--json"});
  EXPECT_EQ(outcome.out,
            "{\n  \"schema\": \"fourpiles/1\",\n  \"command\": \"tight\",\n  \"fits\": false\n}\n");
  EXPECT_EQ(outcome.err, "warning: a bare count\nwarning: no device\n");
  EXPECT_EQ(outcome.exit_status, 1);
}

TEST(Program, RefusesInputWithStatus3) {
  const Outcome outcome = Say({"read"});
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "error: a.gguf: byte 24: is cut short\n");
  EXPECT_EQ(outcome.exit_status, 3);
}

TEST(Program, PutsAJsonErrorOnTheStandardOutput) {
  const Outcome outcome = Say({"--json", "raed"});
  EXPECT_EQ(outcome.out, R"({
  "schema": "fourpiles/1",
  "command": null,
  "error": {
    "where": "fourpiles",
    "found": "unknown command \"raed\"",
    "expected": "did you mean \"read\"?",
    "hint": "\"fourpiles help\" lists the commands"
  },
  "exit_status": 2
}
)");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.exit_status, 2);
}

TEST(Program, NamesTheCommandInAJsonError) {
  const Outcome outcome = Say({"read", "--json"});
  EXPECT_EQ(outcome.out, R"({
  "schema": "fourpiles/1",
  "command": "read",
  "error": {
    "where": "a.gguf: byte 24",
    "found": "is cut short",
    "expected": "",
    "hint": ""
  },
  "exit_status": 3
}
)");
  EXPECT_EQ(outcome.exit_status, 3);
}

TEST(Program, OwnsUpToAFailedCheck) {
  const Outcome outcome = Say({"check"});
  EXPECT_TRUE(outcome.err.starts_with("error: fourpiles: internal fault (")) << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with(
      ": arguments.Has(\"--never\")), please report it with the command line\n"))
      << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.exit_status, 4);
}

TEST(Program, OwnsUpToAnyException) {
  EXPECT_EQ(Say({"memory"}).exit_status, 4);
  EXPECT_EQ(Say({"library"}).err,
            "error: fourpiles: internal fault (from a library), please report it with the command "
            "line\n");
}

TEST(Program, OwnsUpInJsonToo) {
  const Outcome outcome = Say({"library", "--json"});
  EXPECT_EQ(outcome.out, R"json({
  "schema": "fourpiles/1",
  "command": "library",
  "error": {
    "where": "fourpiles",
    "found": "internal fault (from a library)",
    "expected": "please report it with the command line",
    "hint": ""
  },
  "exit_status": 4
}
)json");
  EXPECT_EQ(outcome.exit_status, 4);
}

TEST(Program, ShowsItsHelpWithStatus2WhenNothingIsTyped) {
  EXPECT_EQ(Say({}).exit_status, 2);
  EXPECT_EQ(Say({}).out, Say({"help"}).out);
  EXPECT_EQ(Say({"help"}).exit_status, 0);
}

TEST(Program, PaintsTheFirstWordOfAMessageOnly) {
  EXPECT_EQ(Say({"tight"}, true).err,
            "\x1b[1;33mwarning:\x1b[0m a bare count\n\x1b[1;33mwarning:\x1b[0m no device\n");
  EXPECT_EQ(MessageText({.where = "--to", .found = "x", .expected = "y", .hint = "z"}, true),
            "\x1b[1;31merror:\x1b[0m --to: x, y\n\x1b[1;36mhint:\x1b[0m z\n");
}

}  // namespace
}  // namespace fourpiles::cli
