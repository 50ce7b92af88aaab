#include "report/audit.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "report/audit_words.h"
#include "report/step_audit.h"

namespace fourpiles {
namespace {

// Two tensors of 1,000 values in float8_e4m3fn, and one that cannot be in it; the second one is
// clipped.
AuditReport Report() {
  AuditReport report;
  report.path = "model.safetensors";
  report.thresholds = DefaultThresholds();
  Audit& audit = report.audit;
  audit.overflow = Overflow::kSaturate;
  audit.formats = {*FindAuditFormat("e4m3")};
  const Losses good = {.changed = 990,
                       .squared_values = 100,
                       .squared_errors = 0.1,
                       .error_products = -0.05,
                       .relative_errors = 25,
                       .compared = 1000,
                       .largest_relative_error = 0.06,
                       .largest_at = 17,
                       .relative_error_p99 = 0.0625};
  Losses clipped = good;
  clipped.saturated = 3;
  clipped.overflow = 2;
  clipped.largest_relative_error = 0.25;
  const ValueFacts values = {.count = 1000, .smallest = 0.5, .largest = 600, .kurtosis = 3};
  audit.tensors = {
      {.name = "a.weight", .values = values, .formats = {{.losses = good}}},
      {.name = "b,\"weight",
       .values = values,
       .formats = {{.losses = clipped, .fitting_scale = 0.7}}},
      {.name = "c.weight", .values = values, .formats = {{.not_possible = "rows of 3"}}}};
  audit.values = values;
  audit.values.count = 3000;
  audit.totals = {{.losses = clipped}};
  audit.worst_tensors = {1};
  audit.skipped = {{.tensor = 3, .name = "mask", .why = "bool"}};
  report.findings = FindingsOf(audit, report.thresholds);
  return report;
}

std::size_t LongestLine(const std::string& text) {
  std::size_t longest = 0;
  std::size_t characters = 0;
  for (const char c : text) {
    characters = c == '\n' ? 0 : characters + ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U);
    longest = std::max(longest, characters);
  }
  return longest;
}

TEST(AuditReport, TheTextSaysWhatToLookAtFirst) {
  const std::string text = AuditText(Report(), {});
  EXPECT_NE(
      text.find(
          "1 fault, 1 warning\n  fault: float8_e4m3fn: 3 of 1,000 values (0.3 %) are past 448 and "
          "are clipped to it\n    in b,\"weight; the largest is 600: multiply by at "
          "most 0.7 first, as float8_e4m3fn:scaled does\n"),
      std::string::npos)
      << text;
  // The shares are of what is in that format: 2,000 values.
  EXPECT_NE(text.find("float8_e4m3fn  fault       0.1 %   0.15 %"), std::string::npos) << text;
  EXPECT_NE(text.find("30.0 dB"), std::string::npos) << text;  // 10 × log10(100 ÷ 0.1)
  EXPECT_NE(text.find("b,\"weight [17]"), std::string::npos) << text;
  EXPECT_NE(text.find("1 tensor cannot be in float8_e4m3fn: rows of 3 (c.weight)\n"
                      "1 tensor left out: bool (mask)\n"),
            std::string::npos)
      << text;
  EXPECT_LE(LongestLine(text), 100U) << text;
}

TEST(AuditReport, FindingsAlikeStandTogether) {
  AuditReport report = Report();
  report.audit.tensors[0] = report.audit.tensors[1];
  report.findings = FindingsOf(report.audit, report.thresholds);
  const std::string text = AuditText(report, {});
  EXPECT_NE(text.find("2 faults, 1 warning\n"), std::string::npos) << text;
  EXPECT_NE(text.find("and 1 more tensor; "), std::string::npos) << text;
  EXPECT_EQ(GroupsOf(report.findings, true).size(), 3U);
}

TEST(AuditReport, JsonHasTheMembersThatAreSpecified) {
  const Json json = AuditJson(Report());
  const Json& format = json.Find("formats")->AsArray()->front();
  EXPECT_EQ(*format.Find("format")->AsString(), "float8_e4m3fn");
  EXPECT_EQ(*format.Find("verdict")->AsString(), "fault");
  EXPECT_EQ(*format.Find("totals")->Find("tensors")->AsInteger(), 2);
  EXPECT_EQ(*format.Find("totals")->Find("worst_tensor")->AsString(), "b,\"weight");
  const Json::Array& tensors = *format.Find("tensors")->AsArray();
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(*tensors[1].Find("saturated")->AsInteger(), 3);
  EXPECT_DOUBLE_EQ(*tensors[1].Find("sqnr_db")->AsDouble(), 30);
  EXPECT_EQ(*tensors[1].Find("relative_error")->Find("mean")->AsDouble(), 0.025);
  EXPECT_EQ(*tensors[1].Find("relative_error")->Find("index")->AsInteger(), 17);
  EXPECT_EQ(*tensors[2].Find("not_possible")->AsString(), "rows of 3");
  const Json& finding = json.Find("findings")->AsArray()->front();
  EXPECT_EQ(*finding.Find("severity")->AsString(), "fault");
  EXPECT_EQ(*finding.Find("tensor")->AsString(), "b,\"weight");
  EXPECT_EQ(*finding.Find("threshold")->AsString(), "saturated");
  EXPECT_FALSE(finding.Find("source")->AsString()->empty());
}

TEST(AuditReport, CsvHasARowForEachTensorAndFormat) {
  const std::string csv = AuditCsv(Report());
  EXPECT_EQ(std::ranges::count(csv, '\n'), 4);
  EXPECT_NE(
      csv.find("\n\"b,\"\"weight\",float8_e4m3fn,1000,0,0,0,0.5,600,11,0,0,3,2,3,0,0,990,30,"),
      std::string::npos)
      << csv;
  // As many cells everywhere.
  std::size_t row = 0;
  for (const std::string_view line :
       {csv.substr(0, csv.find('\n')), csv.substr(csv.find("\nc.weight") + 1)}) {
    const auto commas = static_cast<std::size_t>(std::ranges::count(line, ','));
    row = row == 0 ? commas : row;
    EXPECT_EQ(commas, row);
  }
}

TEST(AuditReport, MarkdownOpensWithTheVerdict) {
  const std::string text = AuditMarkdown(Report());
  EXPECT_TRUE(text.starts_with(
      "**Do not convert as it is: 1 fault, 1 warning**\n\n- fault, float8_e4m3fn: "))
      << text;
  EXPECT_NE(text.find("| `float8_e4m3fn` | fault | 0.15 % | 0 | 30.0 dB |"), std::string::npos)
      << text;
}

// A step in bfloat16: half of the updates are lost, a tenth of their magnitude; of the gradients
// one in four vanishes without a loss scale.
StepAudit Step() {
  StepAudit step;
  step.formats = {*FindFormat("bfloat16")};
  step.settings = {{.name = "learning_rate", .value = 0.001, .from = "given"},
                   {.name = "beta1", .value = 0.9, .from = "default"},
                   {.name = "beta2", .value = 0.999, .from = "default"}};
  const UpdateLosses losses = {.elements = 8,
                               .nonzero = 8,
                               .lost = 4,
                               .mass = 1,
                               .lost_mass = 0.1,
                               .stochastic_unmoved = 2,
                               .stochastic_mass = 1,
                               .median_steps = 3,
                               .largest_steps = 70};
  step.updates = UpdateAudit{.tensors = {{.name = "w", .step = 5, .formats = {losses}}},
                             .totals = {losses},
                             .without_state = {"b"}};
  GradientAudit gradients;
  gradients.facts = {.count = 4, .nonzero = 4, .smallest = 0.25, .largest = 1};
  gradients.facts.binades[static_cast<std::size_t>(-2 - kLowestBinade)] = 1;
  gradients.facts.binades[static_cast<std::size_t>(0 - kLowestBinade)] = 3;
  gradients.totals = {{.scales = {{.exponent = 0, .vanished = 1}, {.exponent = 4}},
                       .largest_safe = 9,
                       .recommended = 4}};
  step.gradients = gradients;
  step.verdicts = {
      {.needed = true, .sentence = "Keep a float32 master copy."},
      {.question = StepQuestion::kLossScaling, .needed = true, .sentence = "Use loss scaling."}};
  return step;
}

TEST(StepReport, SaysWhatFollowsFirst) {
  const std::string text = StepText(Step(), false);
  EXPECT_TRUE(
      text.starts_with("  Keep a float32 master copy.\n  Use loss scaling.\n"
                       "given: learning rate 0.001\n"
                       "default: beta1 0.9, beta2 0.999\n\n"))
      << text;
  for (const char* line :
       {"\nbfloat16    50 %          10 %              3       70                25 %  100 %\n",
        "\n1 without state: b\n", " 1, none    25 %          0         0\n",
        " 2^4       0          0         0  recommended\n", " 2^-2       25 %  ",
        " 2^0       75 %  "}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
  }
}

TEST(StepReport, AScaleThatIsNotNeededIsNotRecommended) {
  StepAudit step = Step();
  step.verdicts[1].needed = false;
  EXPECT_NE(StepText(step, false).find(" 0  recommended if one is used\n"), std::string::npos);
}

TEST(StepReport, JsonHasPowersAndShares) {
  const Json json = StepJson(Step());
  const Json& update = json.Find("updates")->Find("totals")->AsArray()->front();
  EXPECT_EQ(*update.Find("lost_share")->AsDouble(), 0.5);
  EXPECT_EQ(*update.Find("lost_magnitude_share")->AsDouble(), 0.1);
  const Json& gradients = json.Find("gradients")->Find("totals")->AsArray()->front();
  EXPECT_EQ(*gradients.Find("largest_safe_scale")->AsDouble(), 512);
  EXPECT_EQ(*gradients.Find("recommended_scale")->AsDouble(), 16);
  EXPECT_EQ(json.Find("gradients")->Find("facts")->Find("binades")->AsArray()->size(), 2U);
  EXPECT_EQ(*json.Find("verdicts")->AsArray()->front().Find("question")->AsString(), "master_copy");
}

TEST(StepReport, CsvHasUpdatesAndGradientsOfATensorInOneRow) {
  StepAudit step = Step();
  TensorGradients gradients = {.facts = step.gradients->facts, .formats = step.gradients->totals};
  for (const char* name : {"w", "b"}) {
    gradients.name = name;
    step.gradients->tensors.push_back(gradients);
  }
  const std::string csv = StepCsv(step);
  EXPECT_TRUE(csv.starts_with("tensor,format,step,weights,")) << csv;
  EXPECT_NE(csv.find("\nw,bfloat16,5,8,0,0,0,0,8,4,0.5,0.1,0.25,1,3,70,4,0,0,0,0.25,1,1,0.25,0,0,"
                     "512,16\n"),
            std::string::npos)
      << csv;
  EXPECT_TRUE(csv.ends_with("\nb,bfloat16,,,,,,,,,,,,,,,4,0,0,0,0.25,1,1,0.25,0,0,512,16\n"))
      << csv;
  step.gradients.reset();
  EXPECT_TRUE(StepCsv(step).ends_with(",3,70,,,,,,,,,,,,\n")) << StepCsv(step);
}

TEST(StepReport, MarkdownMarksWhatIsNeeded) {
  EXPECT_TRUE(StepMarkdown(Step()).starts_with("- **Keep a float32 master copy.**\n"));
}

TEST(StepReport, MarkdownOfAStepAloneHasItsFindings) {
  AuditReport report;
  report.path = "run.pt";
  report.thresholds = DefaultThresholds();
  report.step = Step();
  report.findings = {
      {.severity = AuditSeverity::kFault, .what = "1 of 4 gradients are NaN already"}};
  ASSERT_TRUE(SetThreshold(report.thresholds, "lost-updates=5%", "").has_value());
  const std::string text = AuditMarkdown(report);
  EXPECT_TRUE(
      text.starts_with("**Do not train on from here: 1 fault**\n\n"
                       "- fault, as stored: 1 of 4 gradients are NaN already\n\n"
                       "Training step of `run.pt`:\n\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\nthresholds set: lost-updates 0.05.\n")) << text;
}

// Tied weights are one tensor: half of its values are 50 %.
TEST(AuditReport, SharesAreOfValuesThatAreThereOnce) {
  AuditReport report = Report();
  const std::string once = AuditText(report, {});
  report.audit.tensors.push_back(report.audit.tensors.front());
  report.audit.tensors.back().is_repeated = true;
  const std::string row = once.substr(once.find("\nfloat8_e4m3fn"));
  EXPECT_NE(AuditText(report, {}).find(row.substr(0, row.find('\n', 1))), std::string::npos);
}

TEST(AuditReport, NoValuesAreNoTrouble) {
  AuditReport report;
  report.audit.formats = {*FindAuditFormat("e4m3")};
  report.audit.totals.resize(1);
  report.audit.worst_tensors = {-1};
  report.thresholds = DefaultThresholds();
  EXPECT_NE(AuditText(report, {.all = true}).find("nothing to look at"), std::string::npos);
  EXPECT_TRUE(AuditMarkdown(report).starts_with("**No fault: nothing to look at**"));
  EXPECT_EQ(std::ranges::count(AuditCsv(report), '\n'), 1);
}

}  // namespace
}  // namespace fourpiles
