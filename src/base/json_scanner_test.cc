#include "base/json_scanner.h"

#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// What SkipValue() says of the text, or where and what the fault is.
std::string Skipped(const std::string& text) {
  const MemorySource source("x", std::as_bytes(std::span(text)));
  JsonScanner json(source, 0, source.Size());
  const std::string kind = json.SkipValue();
  return json.Finish() ? kind
                       : std::to_string(json.Fault().byte) + ": " + json.Fault().found + ", " +
                             json.Fault().expected;
}

TEST(JsonScanner, ReadsMembersAndElementsInTheirOrder) {
  const std::string text =
      "--{\"b\": [1, -2, 3.0, 1e2, 9223372036854775808] , \"\\u0041\": \"x\"}--";
  const MemorySource source("x", std::as_bytes(std::span(text)));
  JsonScanner json(source, 2, source.Size() - 2);
  std::string seen;
  json.EnterObject();
  for (std::string key; json.NextKey(key);) {
    seen += key + "=";
    if (json.NextKind() != JsonKind::kArray) {
      seen += json.SkipValue();
      continue;
    }
    json.EnterArray();
    while (json.NextElement()) {
      const auto number = json.ReadNumber();
      seen += number ? std::to_string(*number) + "," : "no whole number,";
    }
  }
  EXPECT_TRUE(json.Finish());
  EXPECT_EQ(seen, "b=1,-2,no whole number,no whole number,no whole number,A=the string \"x\"");
}

TEST(JsonScanner, SkipsAnyValue) {
  EXPECT_EQ(Skipped(R"({"a":[{},[],[[1,{"b":null}]],true,false,"c"],"d":-0.5e+3})"), "an object");
  EXPECT_EQ(Skipped(" [ ] "), "an array");
  EXPECT_EQ(Skipped("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\""),
            "the string \"\"\\/\b\f\n\r\t\xc3\xa9\"");
  EXPECT_EQ(Skipped("\"\\ud83d\\ude00\""), "the string \"\xf0\x9f\x98\x80\"");
  EXPECT_EQ(Skipped("null"), "null");
}

// RFC 8259 has none of these.
TEST(JsonScanner, RefusesWhatIsNoJson) {
  EXPECT_EQ(Skipped(""), "0: the end of the text, expected a value");
  EXPECT_EQ(Skipped("{\"a\":1,}"), "7: unexpected '}', expected '\"'");
  EXPECT_EQ(Skipped("[1,]"), "3: unexpected ']', expected a value");
  EXPECT_EQ(Skipped("[1 2]"), "3: unexpected '2', expected ',' or ']'");
  EXPECT_EQ(Skipped("{} {}"), "3: unexpected '{', expected the end of the text");
  EXPECT_EQ(Skipped("[01]"), "3: the number 01, expected a number as JSON writes it");
  EXPECT_EQ(Skipped("[NaN]"), "1: unexpected 'N', expected a value");
  EXPECT_EQ(Skipped("[nul]"), "4: unexpected ']', expected \"null\"");
  EXPECT_EQ(Skipped("\"\n\""),
            "1: unexpected byte 0x0a, expected a string without control "
            "characters and its end");
  EXPECT_EQ(Skipped("\"\\ud83d\""), "7: half of a surrogate pair, expected both halves");
  EXPECT_EQ(Skipped("\"\\ude00\""), "7: half of a surrogate pair, expected both halves");
  EXPECT_EQ(Skipped("\"\\u12g4\""), "5: unexpected 'g', expected four hexadecimal digits");
  EXPECT_EQ(Skipped("\"\\x\""), "2: unexpected 'x', expected an escape");
  EXPECT_EQ(Skipped("\"\xff\""), "3: a string that is no UTF-8, expected UTF-8");
  EXPECT_EQ(Skipped("\xEF\xBB\xBF{}"), "0: unexpected byte 0xef, expected a value");
  EXPECT_EQ(Skipped(std::string("{}\0", 3)),
            "2: unexpected byte 0x00, expected the end of the text");
  EXPECT_EQ(Skipped(std::string(64, '[') + std::string(64, ']')), "an array");
  EXPECT_EQ(Skipped(std::string(65, '[') + std::string(65, ']')),
            "65: an array or object inside too many, expected at most 64 one inside the other");
}

// Longer than the buffer: a token may lie across two of its fillings.
TEST(JsonScanner, ReadsAcrossItsBuffer) {
  for (std::size_t length = (1 << 18) - 4; length < (1 << 18) + 4; ++length) {
    const std::string text = "[\"" + std::string(length, 'a') + "\\n\", 12345, \"\xc3\xa9\"]";
    const MemorySource source("x", std::as_bytes(std::span(text)));
    JsonScanner json(source, 0, source.Size());
    std::string read;
    json.EnterArray();
    json.NextElement();
    json.ReadString(read);
    EXPECT_EQ(read.size(), length + 1);
    json.NextElement();
    EXPECT_EQ(json.ReadNumber(), 12345);
    json.NextElement();
    json.ReadString(read);
    EXPECT_EQ(read, "\xc3\xa9");
    EXPECT_FALSE(json.NextElement());
    EXPECT_TRUE(json.Finish());
  }
}

TEST(JsonScanner, ReadsOneDocumentAfterTheOther) {
  const std::string text = "{\"a\":1}\n {\"a\":2}{} \n";
  const MemorySource source("x", std::as_bytes(std::span(text)));
  JsonScanner json(source, 0, source.Size());
  std::string seen;
  while (!json.AtEnd()) {
    seen += std::to_string(json.Place()) + ":";
    json.EnterObject();
    for (std::string key; json.NextKey(key);) {
      seen += key + std::to_string(json.ReadNumber().value_or(-1));
    }
  }
  EXPECT_TRUE(json.Finish());
  EXPECT_EQ(seen, "0:a19:a216:");
}

TEST(JsonScanner, RefusesTextsPastAGivenLength) {
  for (const std::string text : {"\"12345\"", "12345"}) {
    const MemorySource source("x", std::as_bytes(std::span(text)));
    JsonScanner five(source, 0, source.Size());
    five.LimitText(5);
    five.SkipValue();
    EXPECT_TRUE(five.Finish());
    JsonScanner four(source, 0, source.Size());
    four.LimitText(4);
    four.SkipValue();
    EXPECT_FALSE(four.Finish());
    EXPECT_EQ(four.Fault().found, "a value of more than 4 bytes");
  }
}

}  // namespace
}  // namespace fourpiles
