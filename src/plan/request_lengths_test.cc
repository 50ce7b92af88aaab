#include "plan/request_lengths.h"

#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

Result<RequestLengths> Read(std::string_view text) {
  return ReadRequestLengths(MemorySource("r", std::as_bytes(std::span(text))));
}

// "PROMPT+OUTPUT×COUNT …", or the error.
std::string RowsOf(std::string_view text) {
  const auto lengths = Read(text);
  if (!lengths) {
    return ErrorLine(lengths.error());
  }
  std::string rows;
  for (const auto& [prompt, output, count] : lengths->rows) {
    rows +=
        std::to_string(prompt) + "+" + std::to_string(output) + "×" + std::to_string(count) + " ";
  }
  return rows;
}

TEST(RequestLengths, AreAddedUpAndSortedByTotal) {
  EXPECT_EQ(RowsOf("prompt_tokens,output_tokens,count\n100,50,2\n10,5,1\n100,50,3\n50,100,1\n"),
            "10+5×1 50+100×1 100+50×5 ");
}

// The first rows of each trace in the form in which it is published.
TEST(RequestLengths, ReadPublishedTraces) {
  // Azure/AzurePublicDataset, AzureLLMInferenceTrace_conv.csv
  EXPECT_EQ(RowsOf("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                   "2023-11-16 18:15:46.6805900,374,44\r\n"
                   "2023-11-16 18:15:50.9951690,396,109\r\n"),
            "374+44×1 396+109×1 ");
  // HPMLL/BurstGPT
  EXPECT_EQ(RowsOf("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                   "5,ChatGPT,472,18,490,Conversation log\n"),
            "472+18×1 ");
  // kvcache-ai/Mooncake
  EXPECT_EQ(RowsOf("{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, "
                   "\"hash_ids\": [0, 1, 2]}\n"),
            "6758+500×1 ");
  // The usage of an OpenAI response.
  EXPECT_EQ(RowsOf("{\"completion_tokens\": 3, \"prompt_tokens\": 9, \"total_tokens\": 12}"),
            "9+3×1 ");
}

TEST(RequestLengths, ReadEveryFormAlike) {
  for (const char* text : {
           "input_tokens;output_tokens;count\n5;6;7\n",
           "\xEF\xBB\xBF\"prompt_length\",\"output_length\",\"request_count\"\r\n\"5\",\"6\",\"7\"",
           "note,requests,output-tokens,Prompt Tokens\n\"a, b\nc\",7,6,5\n\n",
           "{\"prompt_tokens\":5,\"output_tokens\":6,\"count\":7}",
           "\n {\"prompt_tokens\":5,\"output_tokens\":6,\"count\":3}\n"
           "{\"count\":4,\"output_tokens\":6,\"x\":{\"prompt_tokens\":1},\"prompt_tokens\":5}\n\n",
           "\xEF\xBB\xBF[{\"prompt_tokens\":5,\n\"output_tokens\":6,\"count\":7}]\n",
       }) {
    EXPECT_EQ(RowsOf(text), "5+6×7 ") << text;
  }
}

TEST(RequestLengths, RowsOfCountZeroAreNone) {
  EXPECT_EQ(RowsOf("prompt_tokens,output_tokens,count\n9,9,0\n1,2,1\n"), "1+2×1 ");
  EXPECT_EQ(RowsOf("prompt_tokens,output_tokens,count\n9,9,0\n"),
            "r | no request | expected at least one | a row of count 0 is none");
  EXPECT_EQ(RowsOf("[]"), "r | no request | expected at least one | a row of count 0 is none");
}

struct BadCase {
  std::string text;
  std::string error;
};

TEST(RequestLengths, RefuseWhatIsNoNumberOfTokens) {
  const std::string range = " | expected a whole number from 0 to 2^53 | ";
  const std::string csv = "prompt_tokens,output_tokens,count\n1,1,1\n";
  const std::string json = "{\"output_tokens\": 1, \"prompt_tokens\": ";
  const BadCase cases[] = {
      {csv + "-3,1,1\n", "r: line 3: prompt_tokens | \"-3\"" + range},
      {csv + "3,1.5,1\n", "r: line 3: output_tokens | \"1.5\"" + range},
      {csv + "3,1,many\n", "r: line 3: count | \"many\"" + range},
      {csv + "3,1e3,1\n", "r: line 3: output_tokens | \"1e3\"" + range},
      {csv + "3,\n", "r: line 3: output_tokens | nothing" + range},
      {csv + "3\n", "r: line 3: output_tokens | nothing" + range},
      {csv + "9007199254740993,1,1", "r: line 3: prompt_tokens | \"9007199254740993\"" + range},
      {json + "-3}", "r: line 1: prompt_tokens | -3" + range},
      {"\n" + json + "2.0}", "r: line 2: prompt_tokens | 2.0" + range},
      {json + "\n\"3\"}",
       "r: line 2: prompt_tokens | the string \"3\"" + range + "write the number without quotes"},
      {json + "null}", "r: line 1: prompt_tokens | null" + range},
      {json + "1e400}", "r: line 1: prompt_tokens | 1e400" + range},
  };
  for (const BadCase& bad : cases) {
    EXPECT_EQ(RowsOf(bad.text), bad.error);
  }
}

TEST(RequestLengths, RefuseFilesWithoutTheColumns) {
  const std::string hint = " | docs/REQUESTS.md lists the names that are known";
  const BadCase cases[] = {
      {"promt_tokens,output_tokens\n1,2\n",
       "r: line 1 | no prompt_tokens, but \"promt_tokens\" | "
       "did you mean \"prompt_tokens\"?" +
           hint},
      {"\nprompt_tokens\n1\n",
       "r: line 2 | no output_tokens | expected it, or another name such "
       "as completion_tokens" +
           hint},
      {"12,34\n56,78\n",
       "r: line 1 | no prompt_tokens | expected it, or another name such as "
       "input_tokens" +
           hint},
      {"{\"prompt_tokens\": 1, \"output_tokns\": 2}",
       "r: line 1 | no output_tokens, but \"output_tokns\" | did you mean \"output_tokens\"?" +
           hint},
      {"prompt_tokens,input_tokens,output_tokens\n1,1,1\n",
       "r: line 1 | prompt_tokens twice, perhaps under two names | expected it once | take the "
       "other column out"},
      {"{\"count\": 1, \"count\": 1}",
       "r: line 1 | count twice, perhaps under two names | expected it once | take the other "
       "column out"},
  };
  for (const BadCase& bad : cases) {
    EXPECT_EQ(RowsOf(bad.text), bad.error);
  }
}

TEST(RequestLengths, RefuseWhatIsNoFileOfRequests) {
  using std::string_literals::operator""s;
  const std::string empty =
      "r | an empty file | expected a line for each request | CSV with the header "
      "prompt_tokens,output_tokens, or JSON Lines";
  const std::string hint = " | expected one JSON object a request";
  const BadCase cases[] = {
      {"", empty},
      {" \n\r\n", empty},
      {"prompt_tokens,output_tokens\n1,\0\n"s,
       "r: line 2 | a NUL byte | expected text | UTF-16 must be saved as UTF-8"},
      {"[{\"prompt_tokens\": 1, \"output_tokens\": 2}, 7]",
       "r: line 1 | 7 | expected an object of one request | {\"prompt_tokens\": 512, "
       "\"output_tokens\": 128}"},
      {"{\"prompt_tokens\": 1,\n\"output_tokens\": 2",
       "r: line 2 | the end of the text | expected ',' or '}'" + hint},
      {"{\"prompt_tokens\": 1, \"output_tokens\": 2}\n\0"s,
       "r: line 2 | unexpected byte 0x00 | expected a value" + hint},
      {"[{\"prompt_tokens\": 1, \"output_tokens\": 2}]\n{}",
       "r: line 2 | unexpected '{' | expected the end of the text" + hint},
  };
  for (const BadCase& bad : cases) {
    EXPECT_EQ(RowsOf(bad.text), bad.error);
  }
}

TEST(RequestLengths, RefuseTextOf100Megabytes) {
  const std::string text(std::size_t{100} << 20, 'a');
  EXPECT_EQ(RowsOf(text),
            "r: line 1 | a line of more than 1048576 bytes | expected a shorter one | ");
  EXPECT_EQ(RowsOf("{\"" + text + "\": 1}"),
            "r: line 1 | a value of more than 16777216 bytes | expected a shorter one | expected "
            "one JSON object a request");
  EXPECT_EQ(RowsOf("{\"prompt_tokens\": " + std::string(text.size(), '1') + "}"),
            "r: line 1 | a value of more than 16777216 bytes | expected a shorter one | expected "
            "one JSON object a request");
}

TEST(RequestLengths, RefuseSumsPast2To53) {
  const std::string csv = "prompt_tokens,output_tokens,count\n0,0,9007199254740992\n";
  EXPECT_EQ(RowsOf(csv), "0+0×9007199254740992 ");
  const std::string rest =
      " | expected at most 2^53 in all | check the columns, or give a sample "
      "of the requests";
  EXPECT_EQ(RowsOf(csv + "0,0,1\n"), "r: line 3 | too many requests up to here" + rest);
  EXPECT_EQ(RowsOf("prompt_tokens,output_tokens,count\n4503599627370496,0,3\n"),
            "r: line 2 | too many tokens up to here" + rest);
  EXPECT_EQ(RowsOf("prompt_tokens,output_tokens\n9007199254740992,1\n"),
            "r: line 2 | too many tokens up to here" + rest);
}

TEST(RequestLengths, HaveMeansPercentilesAndAWorst) {
  // The totals 1, 2, … 100, by hand.
  std::string text = "prompt_tokens,output_tokens\n";
  for (int i = 1; i <= 100; ++i) {
    text += std::to_string(i - 1) + ",1\n";
  }
  const RequestLengths lengths = Read(text).value();
  EXPECT_EQ(lengths.requests, 100);
  EXPECT_EQ(lengths.mean_prompt, 49.5);
  EXPECT_EQ(lengths.mean_output, 1);
  EXPECT_EQ(lengths.mean_total, 50.5);
  EXPECT_EQ(lengths.p50, 50);
  EXPECT_EQ(lengths.p95, 95);
  EXPECT_EQ(lengths.p99, 99);
  EXPECT_EQ(lengths.worst, 100);
  EXPECT_EQ(ShareWithin(lengths, 0), 0);
  EXPECT_EQ(ShareWithin(lengths, 25), 0.25);
  EXPECT_EQ(ShareWithin(lengths, 1000), 1);
}

TEST(RequestLengths, OfOneRequestAreItsOwn) {
  const RequestLengths lengths = Read("prompt_tokens,output_tokens\n7,8\n").value();
  EXPECT_EQ(lengths.p50, 15);
  EXPECT_EQ(lengths.p99, 15);
  EXPECT_EQ(lengths.worst, 15);
}

TEST(RequestLengths, TakeWholeBlocksInACache) {
  const RequestLengths lengths = Read("prompt_tokens,output_tokens\n16,1\n16,17\n").value();
  EXPECT_EQ(MeanTokensInBlocks(lengths, 1), 25);
  EXPECT_EQ(MeanTokensInBlocks(lengths, 16), 40);  // (32 + 48) ÷ 2
  EXPECT_EQ(MeanTokensInBlocks(lengths, 64), 64);
  const RequestLengths thirds = Read("prompt_tokens,output_tokens,count\n1,0,2\n2,0,1\n").value();
  EXPECT_EQ(MeanTokensInBlocks(thirds, 1), 2);  // 4 ÷ 3, rounded up
}

TEST(RequestLengths, MergeManyRowsAsTheyCome) {
  std::string text = "prompt_tokens,output_tokens\n";
  for (int i = 0; i < 200'000; ++i) {
    text += std::to_string(i % 70'000) + ",1\n";
  }
  const RequestLengths lengths = Read(text).value();
  EXPECT_EQ(lengths.requests, 200'000);
  ASSERT_EQ(lengths.rows.size(), 70'000u);
  EXPECT_EQ(lengths.rows[59'999].count, 3);
  EXPECT_EQ(lengths.rows[60'000].count, 2);
}

class RequestFile : public FolderTest {};

TEST_F(RequestFile, IsToldByItsContentAndNamedInErrors) {
  const std::string path = MakeFile("trace.csv", "{\"input_len\": 3, \"output_len\": 4}\n");
  EXPECT_EQ(ReadRequestLengths(path).value().worst, 7);
  EXPECT_EQ(ErrorLine(ReadRequestLengths(PathTo("none.csv"))),
            PathTo("none.csv") + " | no such file |  | check the spelling of the path");
}

}  // namespace
}  // namespace fourpiles
