#include "base/csv_reader.h"

#include <span>

#include <gtest/gtest.h>

#include "base/testing.h"

namespace fourpiles {
namespace {

// Each record as "LINE: [field][field]", the last line the error if there is one.
std::vector<std::string> RecordsOf(std::string_view text) {
  const MemorySource source("a.csv", std::as_bytes(std::span(text)));
  CsvReader csv(source, 0);
  std::vector<std::string> records;
  std::vector<std::string_view> fields;
  Result<bool> more = csv.Next(fields);
  for (; more && *more; more = csv.Next(fields)) {
    std::string record = csv.Where() + ": ";
    for (const std::string_view field : fields) {
      record.append("[").append(field).append("]");
    }
    records.push_back(record);
  }
  if (!more) {
    records.push_back(ErrorLine(more.error()));
  }
  return records;
}

using Records = std::vector<std::string>;

TEST(CsvReader, GivesFieldsWithoutTheSpaceAroundThem) {
  EXPECT_EQ(
      RecordsOf("a, b ,c\r\n1,,\n\n \nlast"),
      Records({"a.csv: line 1: [a][b][c]", "a.csv: line 2: [1][][]", "a.csv: line 5: [last]"}));
}

TEST(CsvReader, QuotedFieldsHoldSeparatorsQuotesAndLines) {
  EXPECT_EQ(RecordsOf("\"a,\"\"b\"\"\n\",2\n \" 3 \" ,\"\"\n"),
            Records({"a.csv: line 1: [a,\"b\"\n][2]", "a.csv: line 3: [ 3 ][]"}));
}

TEST(CsvReader, TheFirstRecordSaysWhatSeparates) {
  EXPECT_EQ(RecordsOf("a;b\n1,5;2\n"),
            Records({"a.csv: line 1: [a][b]", "a.csv: line 2: [1,5][2]"}));
  EXPECT_EQ(RecordsOf("a\tb\n\t2\n"), Records({"a.csv: line 1: [a][b]", "a.csv: line 2: [][2]"}));
}

TEST(CsvReader, HasNoRecordsInAnEmptyFile) {
  EXPECT_EQ(RecordsOf(""), Records());
  EXPECT_EQ(RecordsOf(" \n\r\n"), Records());
}

TEST(CsvReader, RefusesNulBytesAndOpenQuotes) {
  using std::string_literals::operator""s;
  EXPECT_EQ(RecordsOf("a\n1\0\n"s), Records({"a.csv: line 1: [a]",
                                             "a.csv: line 2 | a NUL byte | expected text | UTF-16 "
                                             "must be saved as UTF-8"}));
  EXPECT_EQ(RecordsOf("a\n\"1\n2\n"),
            Records({"a.csv: line 1: [a]",
                     "a.csv: line 2 | a quote without its end | expected another quote | "}));
}

TEST(CsvReader, RefusesAVeryLongLineWithoutKeepingIt) {
  const std::string text = "a\n" + std::string(std::size_t{100} << 20, '1') + "\n";
  EXPECT_EQ(RecordsOf(text), Records({"a.csv: line 1: [a]",
                                      "a.csv: line 2 | a line of more than 1048576 bytes | "
                                      "expected a shorter one | "}));
}

TEST(CsvReader, ReadsOnAcrossTheEndsOfItsBuffer) {
  std::string text;
  constexpr int kRecords = 500'000;
  for (int i = 0; i < kRecords; ++i) {
    text += std::to_string(i) + ",x\n";
  }
  const Records records = RecordsOf(text);
  ASSERT_EQ(records.size(), std::size_t{kRecords});
  for (int i = 0; i < kRecords; ++i) {
    ASSERT_EQ(records[static_cast<std::size_t>(i)],
              "a.csv: line " + std::to_string(i + 1) + ": [" + std::to_string(i) + "][x]");
  }
}

}  // namespace
}  // namespace fourpiles
