#include "base/json.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/testing.h"

namespace fourpiles {
namespace {

using namespace std::string_literals;

std::string Refusal(std::string_view text, const JsonLimits& limits = {}) {
  return ErrorLine(ReadJson(text, "a.json", limits));
}

std::string Nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, ReadsEachKindInOrder) {
  const Json json = *ReadJson(R"( {"b": [1, -2.5, true, false, null], "a": {"é\n": "😀"}} )", "x");
  ASSERT_NE(json.AsObject(), nullptr);
  EXPECT_EQ(json.AsObject()->at(0).first, "b");
  EXPECT_EQ(json.AsObject()->at(1).first, "a");
  const Json::Array& array = *json.Find("b")->AsArray();
  EXPECT_EQ(*array.at(0).AsInteger(), 1);
  EXPECT_EQ(*array.at(1).AsDouble(), -2.5);
  EXPECT_EQ(*array.at(2).AsBool(), true);
  EXPECT_EQ(*array.at(3).AsBool(), false);
  EXPECT_TRUE(array.at(4).IsNull());
  EXPECT_EQ(*json.Find("a")->Find("é\n")->AsString(), "😀");
}

TEST(Json, FindsNothingWhereNothingIs) {
  const Json json = *ReadJson(R"({"a": 1})", "x");
  EXPECT_EQ(json.Find("b"), nullptr);
  EXPECT_EQ(json.Find("a")->Find("a"), nullptr);
}

TEST(Json, UnescapesStrings) {
  const Json json = *ReadJson(R"("\"\\\/\b\f\n\r\t\u0000\u00e9\u20ac\ud83d\ude00")", "x");
  EXPECT_EQ(*json.AsString(), "\"\\/\b\f\n\r\t\0é€😀"s);
}

TEST(Json, WholeNumbersWithin64BitsAreIntegers) {
  const struct {
    std::string_view text;
    std::int64_t value;
  } cases[] = {
      {"0", 0},
      {"-0", 0},
      {"9007199254740993", 9007199254740993},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
  };
  for (const auto& [text, value] : cases) {
    const Json json = *ReadJson(text, "x");
    EXPECT_TRUE(json.AsInteger() != nullptr && *json.AsInteger() == value) << text;
  }
}

// The values are the compiler's own reading of the same digits.
TEST(Json, OtherNumbersAreTheNearestDouble) {
  const struct {
    std::string_view text;
    double value;
  } cases[] = {
      {"4096.0", 4096.0},
      {"1e3", 1000.0},
      {"1E+2", 100.0},
      {"-0.1", -0.1},
      {"1e-400", 0.0},
      {"5e-324", 5e-324},
      {"2.2250738585072011e-308", 2.2250738585072011e-308},
      {"1.7976931348623157e308", 1.7976931348623157e308},
      {"9223372036854775808", 9223372036854775808.0},
      {"18446744073709551616", 18446744073709551616.0},
      // What simdjson 3.0.1 misreads, the first as get_number, the second as get_double.
      {"123456789012345678.5", 123456789012345678.5},
      {"0.0000000000000080000000000010000000000000011", 8.000000000001e-15},
      // The "no limit" of Hugging Face tokenizers: int(1e30).
      {"1000000000000000019884624838656", 1e30},
  };
  for (const auto& [text, value] : cases) {
    const Json json = *ReadJson(text, "x");
    EXPECT_TRUE(json.AsDouble() != nullptr && *json.AsDouble() == value) << text;
  }
}

// Each way to be no JSON, with the place.
TEST(Json, SaysWhatIsMalformedAndWhere) {
  const struct {
    std::string text;
    std::string_view refusal;
  } cases[] = {
      {"", "byte 0 | unexpected end of input | expected '[', '{', or a literal | "},
      {" \n", "byte 2 | unexpected end of input | expected '[', '{', or a literal | "},
      {"{", "byte 1 | unexpected end of input | expected string literal | "},
      {"[1, 2", "byte 5 | unexpected end of input | expected ',' or ']' | "},
      {"[1, 2}", "byte 5 | unexpected '}' | expected ',' or ']' | "},
      {"[1,]", "byte 3 | unexpected ']' | expected '[', '{', or a literal | "},
      {"[1 22]", "byte 3 | unexpected number literal | expected ',' or ']' | "},
      {"[1 true]", "byte 3 | unexpected true literal | expected ',' or ']' | "},
      {"[1 false]", "byte 3 | unexpected false literal | expected ',' or ']' | "},
      {"[1 null]", "byte 3 | unexpected null literal | expected ',' or ']' | "},
      {R"({"a": 1 "b": 2})", "byte 8 | unexpected string literal | expected ',' or '}' | "},
      {R"({"a": 1,})", "byte 8 | unexpected '}' | expected string literal | "},
      {R"({"a" 1})", "byte 5 | unexpected number literal | expected ':' | "},
      {"{a: 1}", "byte 1 | invalid literal |  | "},
      {R"({"a": tru})", "byte 9 | invalid literal |  | "},
      {"{} {}", "byte 3 | unexpected '{' | expected end of input | "},
      {"1, 2", "byte 1 | unexpected ',' | expected end of input | "},
      {"1],[2", "byte 1 | unexpected ']' | expected end of input | "},
      {"[1] // x", "byte 4 | invalid literal |  | "},
      {"[NaN]", "byte 1 | invalid literal |  | "},
      {"'a'", "byte 0 | invalid literal |  | "},
      {"[01]", "byte 2 | unexpected number literal | expected ',' or ']' | "},
      {"[+1]", "byte 1 | invalid literal |  | "},
      {"[-]", "byte 2 | invalid number | expected digit after '-' | "},
      {"[1.]", "byte 3 | invalid number | expected digit after '.' | "},
      {"[.5]", "byte 1 | invalid literal |  | "},
      {"[1e]", "byte 3 | invalid number | expected '+', '-', or digit after exponent | "},
      {"[0x10]", "byte 2 | invalid literal |  | "},
      {"[-1e400]",
       "byte 1 | the number -1e400 | expected one that a double can hold, below 1.8e308 | "},
      {"\"abc", "byte 4 | invalid string: missing closing quote |  | "},
      {"\"a\nb\"",
       "byte 2 | invalid string: control character U+000A (LF) must be escaped to \\u000A or \\n |"
       "  | "},
      {R"("\x")", "byte 2 | invalid string: forbidden character after backslash |  | "},
      {R"("\u12g4")", "byte 5 | invalid string: '\\u' must be followed by 4 hex digits |  | "},
      {R"("\ud800")",
       "byte 7 | invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF |  "
       "| "},
      {R"("\udc00")",
       "byte 6 | invalid string: surrogate U+DC00..U+DFFF must follow U+D800..U+DBFF |  | "},
      {"\"\xC0\x80\"", "byte 1 | invalid string: ill-formed UTF-8 byte |  | "},
      {"\"\xED\xA0\x80\"", "byte 2 | invalid string: ill-formed UTF-8 byte |  | "},
      {"\xFF\xFE{", "byte 0 | invalid literal |  | "},
      {"{}\0"s, "byte 2 | a NUL byte |  | "},
      {"\"a\0b\""s, "byte 2 | a NUL byte |  | "},
  };
  for (const auto& [text, refusal] : cases) {
    EXPECT_EQ(Refusal(text), fmt::format("a.json: {}", refusal)) << text;
  }
}

TEST(Json, RefusesAByteOrderMark) {
  EXPECT_EQ(ReadJson("\xEF\xBB\xBF", "x").error().kind, ErrorKind::kInput);
  EXPECT_EQ(Refusal("\xEF\xBB\xBF{}"),
            "a.json: byte 0 | a byte order mark | expected the document | "
            "save the file as UTF-8 without a byte order mark");
}

TEST(Json, RefusesDuplicateKeys) {
  const std::string_view expected = " | expected each key once | ";
  EXPECT_EQ(Refusal(R"({"a": 1, "b": 2, "a": 3})"),
            fmt::format("a.json: byte 17 | the string \"a\" as a key a second time{}", expected));
  EXPECT_EQ(Refusal(R"({"a": 1, "\u0061": 2})"),
            fmt::format("a.json: byte 9 | the string \"a\" as a key a second time{}", expected));
  EXPECT_EQ(Refusal(R"([{"x": {"": 1, "y": 2, "y": 3, "": 4}}])"),
            fmt::format("a.json: byte 23 | the string \"y\" as a key a second time{}", expected))
      << "the first of two";
  EXPECT_EQ(Refusal(R"({"a": {"a": 1}, "A": [{"a": 1}, {"a": 2}]})"), "no error");
}

// A quadratic search would take half a minute here.
TEST(Json, FindsADuplicateAmong100000Keys) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) {
    text += fmt::format("\"model.layers.{}.self_attn.q_proj.weight\":0,", i);
  }
  const std::size_t end = text.size();
  EXPECT_EQ(ReadJson(text + "\"x\":0}", "x")->AsObject()->size(), 100'001U);
  EXPECT_EQ(Refusal(text + "\"model.layers.0.self_attn.q_proj.weight\":0}"),
            fmt::format("a.json: byte {} | the string \"model.layers.0.self_attn.q_proj.weight\" "
                        "as a key a second time | expected each key once | ",
                        end));
}

TEST(Json, LimitsDepth) {
  EXPECT_EQ(Refusal(Nested(64)), "no error");
  EXPECT_EQ(Refusal(Nested(65)),
            "a.json: byte 64 | an array or object inside too many | "
            "expected at most 64 one inside the other | ");
  EXPECT_EQ(Refusal(Nested(JsonLimits::kMostDepth), {.depth = JsonLimits::kMostDepth}), "no error");
  EXPECT_EQ(Refusal(R"({"a": [{"b": 1}, {"b": []}]})", {.depth = 3}),
            "a.json: byte 23 | an array or object inside too many | "
            "expected at most 3 one inside the other | ");
  EXPECT_EQ(Refusal(std::string(1'000'000, '[')),
            "a.json: byte 64 | an array or object inside too many | "
            "expected at most 64 one inside the other | ");
}

TEST(Json, LimitsSize) {
  EXPECT_EQ(ReadJson("[1, 2]", "x", {.bytes = 5}).error().kind, ErrorKind::kInput);
  EXPECT_EQ(Refusal("[1, 2]", {.bytes = 6}), "no error");
  EXPECT_EQ(Refusal("[1, 2]", {.bytes = 5}), "a.json | 6 bytes of JSON | expected at most 5 | ");
}

TEST(Json, ChecksTheLimitsItIsGiven) {
  EXPECT_THROW(ReadJson("1", "x", {.bytes = JsonLimits::kMostBytes + 1}), CheckFailure);
  EXPECT_THROW(ReadJson("1", "x", {.depth = JsonLimits::kMostDepth + 1}), CheckFailure);
}

TEST(Json, Writes) {
  const Json json(Json::Object{
      {"b", Json::Array{1, -2.5, true, nullptr, std::int64_t{9007199254740992}, 1e30, 4096.0}},
      {"a", Json::Object{{"quote \" newline \n", "é"}}},
      {"none", Json::Array{}},
      {"nothing", Json::Object{}}});
  EXPECT_EQ(WriteJson(json),
            R"({
  "b": [
    1,
    -2.5,
    true,
    null,
    9007199254740992,
    1e+30,
    4096.0
  ],
  "a": {
    "quote \" newline \n": "é"
  },
  "none": [],
  "nothing": {}
}
)");
  EXPECT_EQ(WriteJson(Json()), "null\n");
}

TEST(Json, WritesNonFiniteNumbersAsStrings) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(WriteJson(Json(infinity)), "\"inf\"\n");
  EXPECT_EQ(WriteJson(Json(-infinity)), "\"-inf\"\n");
  EXPECT_EQ(WriteJson(Json(std::numeric_limits<double>::quiet_NaN())), "\"nan\"\n");
}

TEST(Json, WritesBytesThatAreNoUtf8AsReplacement) {
  EXPECT_EQ(WriteJson(Json("a\xFFz")), "\"a\uFFFDz\"\n");
}

TEST(Json, DoublesReadBackTheSame) {
  for (const double value :
       {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -2.5e-9, 123456789.125}) {
    EXPECT_EQ(*ReadJson(WriteJson(Json(value)), "x")->AsDouble(), value);
  }
}

// As Python 3's json.dumps writes them.
TEST(Json, ReadsNumbersThatJsonLacksWhereAllowed) {
  const JsonLimits limits = {.non_finite = true};
  const Result<Json> json = ReadJson(
      R"({"limit": [0.0, Infinity], "least":-Infinity, "none": NaN, "text": "[NaN, \"NaN"})", "a",
      limits);
  ASSERT_TRUE(json) << ErrorLine(json);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(*(*json->Find("limit")->AsArray())[1].AsDouble(), infinity);
  EXPECT_EQ(*json->Find("least")->AsDouble(), -infinity);
  EXPECT_TRUE(std::isnan(*json->Find("none")->AsDouble()));
  EXPECT_EQ(*json->Find("text")->AsString(), "[NaN, \"NaN");
  EXPECT_TRUE(std::isnan(*ReadJson("NaN", "a", limits)->AsDouble()));
}

TEST(Json, RefusesNumbersThatJsonLacksElsewhere) {
  const JsonLimits limits = {.non_finite = true};
  EXPECT_EQ(ErrorLine(ReadJson("[1, NaN]", "a")), "a: byte 4 | invalid literal |  | ");
  for (const char* text : {"[1NaN]", "[NaN1]", "[--Infinity]", "[+Infinity]", "[nan]", "{NaN: 1}",
                           "[-NaN]", "[Infinity x]", "[InfinityNaN]", "\"", "\"\\"}) {
    EXPECT_FALSE(ReadJson(text, "a", limits)) << text;
  }
  // Places behind such a number are those of the text.
  EXPECT_EQ(ErrorLine(ReadJson("[Infinity, tru]", "a", limits)),
            "a: byte 14 | invalid literal |  | ");
}

TEST(Describe, NamesKindAndValue) {
  EXPECT_EQ(Describe(Json()), "null");
  EXPECT_EQ(Describe(Json(true)), "true");
  EXPECT_EQ(Describe(Json(-3)), "-3");
  EXPECT_EQ(Describe(Json(4096.0)), "4096.0");
  EXPECT_EQ(Describe(Json(1e30)), "1e+30");
  EXPECT_EQ(Describe(Json("12")), "the string \"12\"");
  EXPECT_EQ(Describe(Json(Json::Array{})), "an array");
  EXPECT_EQ(Describe(Json(Json::Object{})), "an object");
}

TEST(Describe, CutsALongStringBetweenCharacters) {
  EXPECT_EQ(Describe(Json(std::string(60, 'x'))), "the string \"" + std::string(60, 'x') + "\"");
  EXPECT_EQ(Describe(Json(std::string(59, 'x') + "é and more")),
            "the string \"" + std::string(59, 'x') + "...\"");
}

}  // namespace
}  // namespace fourpiles
