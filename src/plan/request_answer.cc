#include "plan/request_answer.h"

#include <algorithm>
#include <cmath>

#include "base/try.h"
#include "plan/solve_serving.h"

namespace fourpiles {

Result<RequestAnswer> AnswerRequests(const Job& job, const RequestLengths& lengths) {
  if (!job.device) {
    return WrongUsage({.where = "--requests",
                       .found = "no device to fit",
                       .expected = "expected --device",
                       .hint = "a size such as 80GB will do"});
  }
  TRY(const ServingPlan plan, PlanServing(job));
  const auto most = [&](Unknown unknown, std::int64_t tokens) -> Result<std::int64_t> {
    Job other = job;
    other.serving.context_length = std::max<std::int64_t>(1, tokens);
    other.serving.concurrency = 1;
    TRY(const std::optional<std::int64_t> found, SolveServing(other, plan, unknown));
    return found.value_or(0);
  };
  RequestAnswer answer = {.requests = lengths.requests,
                          .mean_tokens = static_cast<std::int64_t>(std::ceil(lengths.mean_total)),
                          .worst_tokens = lengths.worst};
  TRY(answer.concurrency_at_mean, most(Unknown::kConcurrency, answer.mean_tokens));
  TRY(answer.concurrency_at_worst, most(Unknown::kConcurrency, answer.worst_tokens));
  TRY(answer.longest_that_fits, most(Unknown::kContextLength, 1));
  answer.share_that_fits = ShareWithin(lengths, answer.longest_that_fits);
  return answer;
}

}  // namespace fourpiles
