// The number half of the lesson: a format has a range and a precision, and two silent failures
// follow: values overflow or vanish, and small updates round away.

#include <limits>

#include "formats/accumulate.h"
#include "formats/scaling.h"
#include "plan/lesson.h"

namespace fourpiles {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

TypedNumber Typed(std::string_view text) {
  return ParseNumber(text, "lesson").value();
}

// What the lesson's table says of a format: exact counts, and values to two digits.
struct TaughtFormat {
  const char* name;
  int bits, exponent_bits, fraction_bits;
  double largest;
  int largest_digits;
  double step_near_one;
};
constexpr TaughtFormat kTaughtFormats[] = {
    {"float32", 32, 8, 23, 3.4e38, 2, 1.2e-7},
    {"float16", 16, 5, 10, 65504, 5, 9.8e-4},
    {"bfloat16", 16, 8, 7, 3.4e38, 2, 7.8e-3},
};

void AddFormatTable(std::vector<LessonFigure>& figures) {
  for (const TaughtFormat& taught : kTaughtFormats) {
    const NumberFormat format = Format(taught.name);
    const auto add = [&](const char* what, double value, double computed, int digits) {
      figures.push_back({.topic = "Formats",
                         .what = std::string(taught.name) + ": " + what,
                         .taught = value,
                         .computed = computed,
                         .agreement = digits == 0 ? Agreement::kExactly : Agreement::kToDigits,
                         .digits = digits});
    };
    add("bits", taught.bits, Bits(format), 0);
    add("exponent bits", taught.exponent_bits, format.exponent_bits, 0);
    add("fraction bits", taught.fraction_bits, format.fraction_bits, 0);
    add("largest", taught.largest, Largest(format), taught.largest_digits);
    add("step near 1.0", taught.step_near_one, StepNearOne(format), 2);
  }
}

void AddRange(std::vector<LessonFigure>& figures) {
  const NumberFormat half = Format("float16");
  const NumberFormat brain = Format("bfloat16");
  const auto add = [&](const char* what, double taught, double computed, int digits = 0) {
    figures.push_back({.topic = "Range",
                       .what = what,
                       .taught = taught,
                       .computed = computed,
                       .agreement = digits == 0 ? Agreement::kExactly : Agreement::kToDigits,
                       .digits = digits});
  };
  add("65504 in float16", 65504, Round(65504, half));
  add("65519 in float16", 65504, Round(65519, half));
  add("65520 in float16", kInfinity, Round(65520, half));
  add("70000 in float16", kInfinity, Round(70000, half));
  add("70000 in bfloat16", 70144, Round(70000, brain));
  add("1e-8 in float16", 0, Round(1e-8, half));
  add("1e-8 in bfloat16", 1.001e-8, Round(1e-8, brain), 4);
  add("smallest positive float16", 6e-8, SmallestPositive(half), 1);
  add("just below half of it in float16", 0, Round(0.499 * SmallestPositive(half), half));
}

void AddLossScaling(std::vector<LessonFigure>& figures) {
  const Scaling scaling = Scale(Typed("1e-8"), Typed("1024"), Format("float16"), Overflow::kIeee);
  figures.push_back({.topic = "Loss scaling",
                     .what = "1e-8 × 1024 in float16 ÷ 1024",
                     .taught = 1.0012e-8,
                     .computed = scaling.value,
                     .agreement = Agreement::kToDigits,
                     .digits = 5});
  figures.push_back({.topic = "Loss scaling",
                     .what = "its relative error is at most",
                     .taught = 0.2,
                     .computed = 100 * scaling.relative_error,
                     .agreement = Agreement::kAtMost,
                     .unit = "%"});
}

void AddStalledUpdate(std::vector<LessonFigure>& figures) {
  const AccumulationJob job{Typed("1"), Typed("0.0001"), 10'000};
  const NumberFormat half = Format("float16");
  const NumberFormat single = Format("float32");
  const auto add = [&](const char* what, double taught, double computed, Agreement agreement) {
    figures.push_back({.topic = "Stalled update, 1.0 + 10,000 × 0.0001",
                       .what = what,
                       .taught = taught,
                       .computed = computed,
                       .agreement = agreement,
                       .digits = agreement == Agreement::kToDigits ? 5 : 0});
  };
  add("in float16", 1.0, Accumulate(job, half).value, Agreement::kExactly);
  add("in float32", 2.0002, Accumulate(job, single).value, Agreement::kToDigits);
  add("exact", 2.0, ExactSum(job).Nearest(), Agreement::kExactly);
  add("float16 weight with a float32 master copy, more than", 1.0,
      AccumulateWithMaster(job, half, single).value, Agreement::kMoreThan);
}

}  // namespace

std::vector<LessonFigure> LessonNumbers() {
  std::vector<LessonFigure> figures;
  AddFormatTable(figures);
  AddRange(figures);
  AddLossScaling(figures);
  AddStalledUpdate(figures);
  return figures;
}

}  // namespace fourpiles
