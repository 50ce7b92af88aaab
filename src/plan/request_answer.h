#pragma once

// How many requests of a measured kind a serving job holds at once, and which share of them fit.

#include "plan/budget.h"
#include "plan/request_lengths.h"

namespace fourpiles {

struct RequestAnswer {
  // Tokens that the mean request takes in the engine's whole blocks, rounded up.
  std::int64_t mean_tokens = 0;
  std::int64_t concurrency_at_mean = 0;
  std::int64_t concurrency_at_worst = 0;
  // Tokens of one request alone: at most the model's longest, or the requests' where the model has
  // none.
  std::int64_t longest_that_fits = 0;
  double share_that_fits = 0;  // of the requests, 0 to 1
};

// Of a job with a device. Error (kUsage): none, or caches that are not known.
Result<RequestAnswer> AnswerRequests(const Job& job, const RequestLengths& lengths);

}  // namespace fourpiles
