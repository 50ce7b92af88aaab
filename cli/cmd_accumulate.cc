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
};

Result<AccumulationJob> JobOf(const Arguments& arguments) {
  AccumulationJob job;
  TRY(job.start, ParseFiniteNumber(arguments.One("--start"), "--start"));
  TRY(job.add, ParseFiniteNumber(arguments.One("--add"), "--add"));
  TRY(job.times, ParseCount(arguments.One("--times"), "--times"));
  return job;
}

Result<Answer> Run(const Arguments& arguments) {
  TRY(const AccumulationJob job, JobOf(arguments));
  TRY(const std::vector<NumberFormat> formats, FormatsOf(arguments, "--in"));
  TRY(const std::vector<NumberFormat> masters, FormatsOf(arguments, "--master"));
  std::vector<AccumulateResult> results;
  for (const NumberFormat& format : formats) {
    if (masters.empty()) {
      results.push_back({format, {}, Accumulate(job, format)});
    } else {
      const NumberFormat& master = masters.front();
      results.push_back({format, master, AccumulateWithMaster(job, format, master)});
    }
  }
  Answer answer;
  answer.text = AccumulateText(job, results);
  answer.json = AccumulateJson(job, results);
  return answer;
}

}  // namespace

constexpr Command kAccumulateCommand = {
    .name = "accumulate",
    .summary = "the stalled update: a small number added many times",
    .examples =
        "fourpiles accumulate --start 1 --add 0.0001 --times 10000 --in fp16 fp32\n"
        "fourpiles accumulate --start 1 --add 0.0001 --times 10000 --in fp16 --master fp32\n"
        "fourpiles accumulate --start 0 --add 1 --times 1e12 --in fp32",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
