#pragma once

// How many requests of a measured kind a serving job holds at once, and which share of them fit.

#include "plan/budget.h"
#include "plan/request_lengths.h"

namespace fourpiles {

struct RequestAnswer {
  std::int64_t requests = 0;
  std::int64_t mean_tokens = 0;   // of a request, rounded up
  std::int64_t worst_tokens = 0;  // of the longest
  std::int64_t concurrency_at_mean = 0;
  std::int64_t concurrency_at_worst = 0;
  std::int64_t longest_that_fits = 0;  // tokens of one request alone
  double share_that_fits = 0;          // of the requests, 0 to 1
};

// Of a job with a device. Error (kUsage): none, or a cache that does not grow.
Result<RequestAnswer> AnswerRequests(const Job& job, const RequestLengths& lengths);

}  // namespace fourpiles
