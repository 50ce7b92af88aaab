// fourpiles accumulate --start X --add Y --times N --in FORMAT...

#include "base/try.h"
#include "cli/commands.h"
#include "cli/number_arguments.h"
#include "report/numbers.h"
#include "units/parse.h"

namespace fourpiles::cli {
namespace {

constexpr Option kOptions[] = {
    {.name = "--start", .value = "X", .help = "the number to begin with", .required = true},
    {.name = "--add", .value = "Y", .help = "the number added in every step", .required = true},
    {.name = "--times", .value = "N", .help = "how many steps: 10000, 1e12", .required = true},
    {.name = "--in",
     .value = "FORMAT",
     .help = "the number format that holds the sum",
     .count = Count::kMany,
     .required = true},
    {.name = "--master",
     .value = "FORMAT",
     .help = "keep the sum in this format too, and read it in the other"},
    {.name = "--compare",
     .help =
         "beside it a master copy (float32, or --master), a tree of halves (pairwise), Kahan's sum "
         "and stochastic rounding",
     .count = Count::kFlag},
    {.name = "--seed",
     .value = "N",
     .help = "of the stochastic rounding of --compare, 0 by default"},
};

Result<AccumulationJob> JobOf(const Arguments& arguments) {
  AccumulationJob job;
  TRY(job.start, ParseFiniteNumber(arguments.One("--start"), "--start"));
  TRY(job.add, ParseFiniteNumber(arguments.One("--add"), "--add"));
  TRY(job.times, ParseCount(arguments.One("--times"), "--times"));
  return job;
}

// Every sum that is asked for.
Result<std::vector<SumPlan>> PlansOf(const Arguments& arguments) {
  TRY(const std::vector<NumberFormat> formats, FormatsOf(arguments, "--in"));
  TRY(const std::vector<NumberFormat> masters, FormatsOf(arguments, "--master"));
  TRY_VOID(RefuseIdle(arguments, "--seed", arguments.Has("--compare"), "--compare"));
  TRY(const std::int64_t seed, ParseCount(arguments.One("--seed", "0"), "--seed"));
  TRY(const NumberFormat float32, FindFormat("float32"));
  std::vector<SumPlan> plans;
  for (const NumberFormat& format : formats) {
    if (arguments.Has("--compare")) {
      const NumberFormat& master = masters.empty() ? float32 : masters.front();
      const std::vector<SumPlan> all = AllPlans(format, master, static_cast<std::uint64_t>(seed));
      plans.insert(plans.end(), all.begin(), all.end());
    } else {
      plans.push_back({.format = format});
      plans.back().master = masters.empty() ? std::nullopt : std::optional(masters.front());
    }
  }
  return plans;
}

Result<Answer> Run(const Arguments& arguments) {
  TRY(const AccumulationJob job, JobOf(arguments));
  TRY(const std::vector<SumPlan> plans, PlansOf(arguments));
  std::vector<SumResult> results;
  results.reserve(plans.size());
  for (const SumPlan& plan : plans) {
    results.push_back({plan, AccumulateBy(plan, job)});
  }
  const bool compare = arguments.Has("--compare");
  Answer answer;
  answer.text = compare ? CompareText(job, results) : AccumulateText(job, results);
  answer.json = compare ? CompareJson(job, results) : AccumulateJson(job, results);
  return answer;
}

}  // namespace

constexpr Command kAccumulateCommand = {
    .name = "accumulate",
    .summary = "the stalled update: a small number added many times",
    .examples =
        "fourpiles accumulate --start 1 --add 0.0001 --times 10000 --in fp16 fp32\n"
        "fourpiles accumulate --start 1 --add 0.0001 --times 10000 --in fp16 --master fp32\n"
        "fourpiles accumulate --start 1 --add 0.0001 --times 10000 --in bf16 --compare\n"
        "fourpiles accumulate --start 0 --add 1 --times 1e12 --in fp32",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
