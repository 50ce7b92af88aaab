#pragma once

// The lengths of the requests that a server is to answer: how many tokens each keeps in the cache
// when it ends. The longest possible request says what must fit at once; the lengths that really
// come say how many fit together.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "fourpiles/result.h"
#include "plan/request_rows.h"

namespace fourpiles {

struct RequestLengths {
  std::vector<RequestLength> rows = {};  // by total, then prompt; each pair of lengths once
  std::int64_t requests = 0;             // at least 1
  double mean_prompt = 0;
  double mean_output = 0;
  double mean_total = 0;
  // Of the totals: the least length that so many percent of the requests do not pass.
  std::int64_t p50 = 0;
  std::int64_t p95 = 0;
  std::int64_t p99 = 0;
  std::int64_t worst = 0;  // the largest total
};

// Reads a file of any size in bounded memory: equal rows are added up as they come. Errors, of kind
// kInput: what request_rows.h refuses, no request at all, more than 2^53 requests or tokens, more
// different pairs of lengths than a server can have.
Result<RequestLengths> ReadRequestLengths(const std::string& path);
Result<RequestLengths> ReadRequestLengths(const ByteSource& source);
// The same of rows that are read otherwise: `name` is that of their file, `what` they count:
// "requests".
Result<RequestLengths> AddUpRows(RequestRows& rows, std::string_view name, std::string_view what);

// The share of the requests whose total is at most so many tokens, 0 … 1.
double ShareWithin(const RequestLengths& lengths, std::int64_t tokens);

// Tokens that a request takes in a cache of whole blocks of `block_tokens`, at least 1: the mean,
// rounded up. 17 and 33 tokens in blocks of 16 take 32 and 48, 40 in the mean.
std::int64_t MeanTokensInBlocks(const RequestLengths& lengths, std::int64_t block_tokens);

}  // namespace fourpiles
