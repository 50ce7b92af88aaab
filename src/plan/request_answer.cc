#include "plan/request_answer.h"

#include <algorithm>

#include "base/try.h"
#include "plan/solve_serving.h"

namespace fourpiles {
namespace {

// Of the pool whose blocks are largest; 1 without one.
std::int64_t BlockTokensOf(const ServingPlan& plan) {
  std::int64_t tokens = 1;
  for (const ServingRank& rank : plan.ranks) {
    tokens = rank.pool ? std::max(tokens, rank.pool->block_tokens) : tokens;
  }
  return tokens;
}

}  // namespace

Result<RequestAnswer> AnswerRequests(const Job& job, const RequestLengths& lengths) {
  if (!job.device) {
    return WrongUsage({.where = "--requests",
                       .found = "no device to fit",
                       .expected = "expected --device",
                       .hint = "a size such as 80GB will do"});
  }
  TRY(const ServingPlan plan, PlanServing(job));
  if (job.model.network.caches.empty()) {
    return WrongUsage({.where = "--requests",
                       .found = "the KV cache is not known",
                       .expected = "expected a model whose layers are known",
                       .hint = "put its config.json beside the tensors"});
  }
  const auto at_once = [&](std::int64_t tokens) -> Result<std::int64_t> {
    Job other = job;
    other.serving.context_length = std::max<std::int64_t>(1, tokens);
    TRY(const std::optional<std::int64_t> found, SolveServing(other, plan, Unknown::kConcurrency));
    return found.value_or(0);
  };
  RequestAnswer answer = {.mean_tokens = MeanTokensInBlocks(lengths, BlockTokensOf(plan))};
  TRY(answer.concurrency_at_mean, at_once(answer.mean_tokens));
  TRY(answer.concurrency_at_worst, at_once(lengths.worst));
  // A cache that stops growing holds any length: then the model's own decides, else the requests'.
  Job alone = job;
  alone.serving.concurrency = 1;
  const std::int64_t longest =
      job.model.network.max_position_embeddings.value_or(std::max<std::int64_t>(1, lengths.worst));
  answer.longest_that_fits = MostThatFit(alone, plan, Unknown::kContextLength, longest).value_or(0);
  answer.share_that_fits = ShareWithin(lengths, answer.longest_that_fits);
  return answer;
}

}  // namespace fourpiles
