#include "base/error_text.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

std::string Message(ErrorText text) {
  return ErrorMessage({ErrorKind::kInput, std::move(text)});
}

TEST(ErrorMessage, HasFourParts) {
  EXPECT_EQ(Message({.where = "a.safetensors: tensor \"lm_head.weight\"",
                     .found = "has 8192 bytes",
                     .expected = "BF16 [64, 128] needs 16384",
                     .hint = "the file may be cut short; compare its size with the source"}),
            "error: a.safetensors: tensor \"lm_head.weight\": has 8192 bytes, "
            "BF16 [64, 128] needs 16384\n"
            "hint: the file may be cut short; compare its size with the source\n");
}

TEST(ErrorMessage, LeavesOutEmptyParts) {
  EXPECT_EQ(Message({.where = "--to", .found = "unknown format \"x\""}),
            "error: --to: unknown format \"x\"\n");
  EXPECT_EQ(Message({.found = "no command", .hint = "see --help"}),
            "error: no command\nhint: see --help\n");
  EXPECT_EQ(Message({.where = "VALUE", .expected = "expected at least one"}),
            "error: VALUE: expected at least one\n");
}

TEST(ErrorMessage, IsSafeToPrint) {
  EXPECT_EQ(Message({.where = "a\nb.gguf", .found = "\x1b[2J", .expected = "\xFF", .hint = "\r"}),
            "error: a\\nb.gguf: \\x1b[2J, \\xff\nhint: \\x0d\n");
}

TEST(ErrorJson, KeepsThePartsAsTheyAre) {
  const Error error = {ErrorKind::kUsage, {.where = "--to", .found = "a\nb", .hint = "c"}};
  EXPECT_EQ(WriteJson(ErrorJson(error)),
            "{\n  \"where\": \"--to\",\n  \"found\": \"a\\nb\",\n  \"expected\": \"\",\n"
            "  \"hint\": \"c\"\n}\n");
}

TEST(ExitStatus, TellsUsageFromInput) {
  EXPECT_EQ(ExitStatus(ErrorKind::kUsage), 2);
  EXPECT_EQ(ExitStatus(ErrorKind::kInput), 3);
}

}  // namespace
}  // namespace fourpiles
