#include "audit/audit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/byte_source.h"
#include "base/json.h"
#include "base/testing.h"

namespace fourpiles {
namespace {

std::vector<AuditFormat> FormatsNamed(const std::vector<std::string>& names) {
  std::vector<AuditFormat> formats;
  formats.reserve(names.size());
  for (const std::string& name : names) {
    formats.push_back(*FindAuditFormat(name));
  }
  return formats;
}

Audit AuditOf(const std::string& path, const AuditOptions& options) {
  const auto checkpoint = OpenCheckpoint(path);
  EXPECT_TRUE(checkpoint.has_value()) << ErrorLine(checkpoint);
  auto audit = AuditCheckpoint(*checkpoint, options);
  EXPECT_TRUE(audit.has_value()) << ErrorLine(audit);
  return *std::move(audit);
}

// --- Against figures that NumPy and PyTorch computed of the same files ---
//
// tests/data/audit/*.pt.json: float64 statistics, conversions by .half(), .bfloat16() and a search
// in the tables of OCP's float8. Counts are exact, signal to noise agrees to 0.001 dB.

// One of our formats, what the figures call it, and which counts they have.
struct Figure {
  const char* format;
  const char* key;
};
constexpr Figure kFigures[] = {
    {"float16", "fp16"},
    {"bfloat16", "bf16"},
    {"float8_e4m3fn", "fp8_e4m3fn_noscale_sat"},
    {"float8_e5m2", "fp8_e5m2_noscale_sat"},
    {"float8_e4m3fn:scaled", "fp8_e4m3fn_absmax_scaled"},
    {"float8_e5m2:scaled", "fp8_e5m2_absmax_scaled"},
    {"int8:tensor", "int8_per_tensor_absmax_sym127"},
    {"int8:channel", "int8_per_row_absmax_sym127"},
};

std::optional<double> NumberIn(const Json& object, const char* key) {
  const Json* found = object.Find(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (const std::int64_t* whole = found->AsInteger()) {
    return static_cast<double>(*whole);
  }
  const double* number = found->AsDouble();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

void ExpectCount(const Json& expected, const char* key, std::int64_t count) {
  if (const Json* figure = expected.Find(key)) {
    EXPECT_EQ(count, *figure->AsInteger()) << key;
  }
}

// Beyond float64's own rounding, which a scaled value that fits exactly ends at, all is "inf".
constexpr double kLossless = 200;

void ExpectSqnr(const Json& expected, const Losses& losses) {
  const Json* figure = expected.Find("sqnr_db");
  const auto number = NumberIn(expected, "sqnr_db");
  if (number && *number < kLossless) {
    EXPECT_NEAR(SignalToNoise(losses), *number, 0.001);
  } else if (figure != nullptr && figure->AsString() != nullptr) {
    EXPECT_GT(SignalToNoise(losses), 120);
  }
}

void ExpectValues(const Json& stats, const ValueFacts& values) {
  ExpectCount(stats, "zeros", values.zero);
  ExpectCount(stats, "nan", values.nan);
  ExpectCount(stats, "inf", values.infinite);
  EXPECT_EQ(values.largest, NumberIn(stats, "amax"));
  const double close = 1e-12 * values.largest;
  EXPECT_NEAR(values.mean, NumberIn(stats, "mean").value_or(NAN), close);
  if (const auto deviation = NumberIn(stats, "std")) {
    EXPECT_NEAR(values.deviation, *deviation, 1e-9 * values.deviation + close);
  } else {
    EXPECT_EQ(values.deviation, INFINITY);
  }
}

void ExpectTensor(const Json& stats, const TensorAudit& tensor) {
  SCOPED_TRACE(tensor.name);
  ExpectValues(stats, tensor.values);
  for (std::size_t i = 0; i < std::size(kFigures); ++i) {
    const Json* expected = stats.Find(kFigures[i].key);
    if (expected == nullptr) {
      continue;
    }
    SCOPED_TRACE(kFigures[i].format);
    const Losses& losses = tensor.formats[i].losses;
    ExpectCount(*expected, "overflow_count", losses.overflow);
    ExpectCount(*expected, "saturated_count", losses.saturated);
    ExpectCount(*expected, "underflow_to_zero_count", losses.underflow);
    ExpectCount(*expected, "subnormal_result_count", losses.subnormal);
    ExpectCount(*expected, "changed_count", losses.changed);
    ExpectSqnr(*expected, losses);
  }
}

// Returns how many tensors had figures.
int ExpectFigures(const std::string& checkpoint, const std::string& figures) {
  SCOPED_TRACE(checkpoint);
  const auto text = ReadWholeFile(figures, 10'000'000);
  const auto json = ReadJson(*text, figures, {.bytes = 10'000'000, .non_finite = true});
  AuditOptions options = {.threads = 2};
  for (const Figure& figure : kFigures) {
    options.formats.push_back(*FindAuditFormat(figure.format));
  }
  const Audit audit = AuditOf(checkpoint, options);
  int compared = 0;
  const Json* list = json->Find("tensors");
  for (const Json& each : list == nullptr ? Json::Array() : *list->AsArray()) {
    const Json* stats = each.Find("stats");
    const auto tensor = std::ranges::find(audit.tensors, *each.Find("name")->AsString(),
                                          [](const TensorAudit& one) { return one.name; });
    if (stats != nullptr && stats->Find("fp16") != nullptr) {
      EXPECT_NE(tensor, audit.tensors.end());
      ExpectTensor(*stats, *tensor);
      ++compared;
    }
  }
  return compared;
}

TEST(Audit, EqualsIndependentFigures) {
  const std::string data = FOURPILES_TEST_DATA;
  EXPECT_EQ(
      ExpectFigures(data + "/cases/torch/edge_values.pt", data + "/audit/edge_values.pt.json"), 4);
  EXPECT_GT(ExpectFigures(data + "/cases/torch/views.pt", data + "/audit/views.pt.json"), 15);
}

TEST(Audit, EqualsIndependentFiguresOfARun) {
  const char* folder = std::getenv("FOURPILES_CHECKPOINTS");
  if (folder == nullptr) {
    GTEST_SKIP() << "FOURPILES_CHECKPOINTS names no folder of checkpoints";
  }
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".pt") && !path.ends_with("whole_module_pickle.pt")) {
      compared += ExpectFigures(path, path + ".json");
    }
  }
  EXPECT_GT(compared, 100);
}

// --- However it is done ---

// A NumPy file of version 1.0.
std::string NpyFile(std::string_view descr, const std::string& shape, std::string_view data) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.resize(118, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + char(118) + '\0' + header + std::string(data);
}

class AuditFiles : public FolderTest {
 protected:
  // So many values of all magnitudes that matter, a few of them special.
  std::string MakeFloats(std::string_view name, std::size_t rows, std::size_t columns) const {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.02F);
    std::vector<float> values(rows * columns);
    for (float& value : values) {
      value = normal(random);
    }
    values[7] = 1e30F;
    values[values.size() / 2] = -INFINITY;
    values[values.size() / 3] = NAN;
    values[values.size() - 2] = 1e-30F;
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    return MakeFile(name, NpyFile("<f4", fmt::format("{}, {}", rows, columns), data));
  }
};

void ExpectSame(const Losses& a, const Losses& b) {
  EXPECT_EQ(a.overflow, b.overflow);
  EXPECT_EQ(a.changed, b.changed);
  EXPECT_EQ(a.squared_values, b.squared_values);
  EXPECT_EQ(a.squared_errors, b.squared_errors);
  EXPECT_EQ(a.error_products, b.error_products);
  EXPECT_EQ(a.relative_errors, b.relative_errors);
  EXPECT_EQ(a.largest_relative_error, b.largest_relative_error);
  EXPECT_EQ(a.largest_at, b.largest_at);
  EXPECT_EQ(a.relative_error_p99, b.relative_error_p99);
}

TEST_F(AuditFiles, DoNotDependOnThreads) {
  const std::string path = MakeFloats("a.npy", 1100, 1024);
  AuditOptions options = {.formats = FormatsNamed({"fp16", "e4m3:scaled", "mxfp4", "nvfp4", "nf4",
                                                   "int8:tensor", "int8:channel"})};
  const Audit one = AuditOf(path, options);
  EXPECT_EQ(one.totals[5].scales->scales, 1);     // of the whole tensor
  EXPECT_EQ(one.totals[6].scales->scales, 1100);  // of each row
  for (const int threads : {2, 5}) {
    options.threads = threads;
    const Audit many = AuditOf(path, options);
    ASSERT_EQ(many.tensors.size(), 1U);
    EXPECT_EQ(one.values.mean, many.values.mean);
    EXPECT_EQ(one.values.kurtosis, many.values.kurtosis);
    for (std::size_t i = 0; i < options.formats.size(); ++i) {
      SCOPED_TRACE(options.formats[i].name);
      EXPECT_EQ(many.tensors[0].formats[i].not_possible, "");
      ExpectSame(one.tensors[0].formats[i].losses, many.tensors[0].formats[i].losses);
      ExpectSame(one.totals[i].losses, many.totals[i].losses);
    }
  }
}

// In spans of 262,144 elements as bitsandbytes does it, with the whole tensor at once.
TEST_F(AuditFiles, DoubleQuantisedScalesAreLessTheMeanOfAll) {
  std::vector<float> values(600'000);
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 0.02F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = normal(random) * (i < 200'000 ? 9.0F : 1.0F);
  }
  BlockTensor tensor = {.format = *FindBlockFormat("nf4:double"), .shape = {1, 600'000}};
  std::vector<float> rounded(values.size());
  const auto statistics = RoundBlocks(values, {}, tensor, rounded);
  std::string data(values.size() * sizeof(float), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  const Audit audit = AuditOf(MakeFile("a.npy", NpyFile("<f4", "600000,", data)),
                              {.formats = FormatsNamed({"nf4:double"})});
  EXPECT_NEAR(SignalToNoise(audit.totals[0].losses),
              10 * std::log10(statistics->sum_of_squares / statistics->sum_of_squared_errors),
              1e-9);
}

TEST_F(AuditFiles, TellsTheWorstElementOfCodes) {
  // bfloat16 as a safetensors file; 1e-30 vanishes in float8, and occurs first at element 300,000.
  std::vector<std::uint16_t> codes(1'000'000, 0x3f80);  // 1
  codes[300'000] = 0x0da2;
  codes[900'000] = 0x8da2;
  std::string header = R"({"w":{"dtype":"BF16","shape":[1000000],"data_offsets":[0,2000000]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  file += header;
  file.append(reinterpret_cast<const char*>(codes.data()), codes.size() * 2);
  AuditOptions options = {.formats = FormatsNamed({"e4m3"}), .threads = 2};
  const Audit audit = AuditOf(MakeFile("a.safetensors", file), options);
  const Losses& losses = audit.tensors.at(0).formats[0].losses;
  EXPECT_EQ(losses.underflow, 2);
  EXPECT_EQ(losses.largest_relative_error, 1);
  EXPECT_EQ(losses.largest_at, 300'000);
  EXPECT_EQ(losses.relative_error_p99, 0);
}

TEST_F(AuditFiles, AreToldWhereNothingIsToCompare) {
  const float values[] = {NAN, NAN, NAN};
  std::string data(sizeof values, '\0');
  std::memcpy(data.data(), values, sizeof values);
  const AuditOptions options = {.formats = FormatsNamed({"fp16", "mxfp4", "e4m3:scaled"})};
  const Audit nothing = AuditOf(MakeFile("nan.npy", NpyFile("<f4", "3,", data)), options);
  EXPECT_EQ(nothing.tensors.at(0).values.nan, 3);
  EXPECT_EQ(nothing.tensors[0].formats[0].losses.compared, 0);
  EXPECT_FALSE(nothing.tensors[0].formats[0].losses.relative_error_p99.has_value());

  const Audit empty = AuditOf(MakeFile("empty.npy", NpyFile("<f4", "0, 4", "")), options);
  EXPECT_EQ(empty.tensors.at(0).values.count, 0);

  const Audit whole = AuditOf(MakeFile("whole.npy", NpyFile("<i4", "3,", data)), options);
  EXPECT_TRUE(whole.tensors.empty());
  EXPECT_EQ(whole.skipped.at(0).why, "it holds int32, not real numbers");
}

// A view with strides of 0, as of torch.expand: 64 bytes stand for 4 GB.
TEST_F(AuditFiles, LeaveOutViewsThatRepeatAFewBytes) {
  auto checkpoint = OpenCheckpoint(MakeFloats("a.npy", 1, 16));
  FileTensor& view = checkpoint->tensors.front();
  view.shape = {32'768, 32'768};
  view.strides = {0, 0};
  view.elements = std::int64_t{1} << 30;
  view.bytes = std::int64_t{4} << 30;
  const auto audit = AuditCheckpoint(*checkpoint, {.formats = FormatsNamed({"fp16"})});
  ASSERT_TRUE(audit.has_value());
  EXPECT_EQ(audit->skipped.at(0).why,
            "it is a view that repeats its elements to more bytes than its file has");
}

TEST_F(AuditFiles, ThatShrinkAreAnError) {
  const std::string path = MakeFloats("a.npy", 300, 1024);
  const auto checkpoint = OpenCheckpoint(path);
  std::filesystem::resize_file(path, 200'000);
  const auto audit = AuditCheckpoint(*checkpoint, {.formats = FormatsNamed({"fp16"})});
  ASSERT_FALSE(audit.has_value());
  EXPECT_EQ(audit.error().kind, ErrorKind::kInput);
}

}  // namespace
}  // namespace fourpiles
