#include "plan/request_answer.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// The example of docs/REQUESTS.md.
RequestLengths Example() {
  return {.rows = {{512, 128, 900}, {2048, 256, 90}, {16000, 1000, 10}},
          .requests = 1000,
          .mean_total = 953.36,
          .worst = 17000};
}

RequestAnswer Answered(const char* model, const RequestLengths& lengths,
                       std::map<std::string, std::string> settings = {}) {
  settings.insert({"device", "80GB"});
  return AnswerRequests(MakeJob(JobKind::kServe, model, TypedSettings(settings)).value(), lengths)
      .value();
}

// 80e9 − 8,030,261,248 × 2 bytes are left; 131,072 a token, so 125,042,688 for 954 tokens (511.3)
// and 2,228,224,000 for 17,000 (28.7). 487,819 tokens would fit; the model has 131,072.
TEST(AnswerRequests, AtOnceAndAloneByHand) {
  const RequestAnswer answer = Answered("llama-3.1-8b", Example());
  EXPECT_EQ(answer.mean_tokens, 954);
  EXPECT_EQ(answer.concurrency_at_mean, 511);
  EXPECT_EQ(answer.concurrency_at_worst, 28);
  EXPECT_EQ(answer.longest_that_fits, 131072);
  EXPECT_EQ(answer.share_that_fits, 1);
}

// 16.2e9 − 16,060,522,496 bytes hold 1,064 tokens: the 900 requests of 640.
TEST(AnswerRequests, LongRequestsDoNotFit) {
  const RequestAnswer answer = Answered("llama-3.1-8b", Example(), {{"device", "16.2GB"}});
  EXPECT_EQ(answer.longest_that_fits, 1064);
  EXPECT_EQ(answer.share_that_fits, 0.9);
  EXPECT_EQ(answer.concurrency_at_worst, 0);
}

// A window of 4,096 in all layers of the one, states alone in the other: nothing grows.
TEST(AnswerRequests, CachesThatStopGrowingHoldTheModelsLongest) {
  EXPECT_EQ(Answered("mistral-7b-v0.1", Example()).longest_that_fits, 32768);
  const RequestAnswer states = Answered("mamba-1.4b", Example());
  EXPECT_EQ(states.longest_that_fits, 17000);  // no longest of its own: the requests'
  EXPECT_EQ(states.share_that_fits, 1);
}

// 15 and 17 tokens take 16 and 32 in blocks of 16.
TEST(AnswerRequests, TheMeanIsInTheEnginesBlocks) {
  const RequestLengths lengths = {
      .rows = {{10, 5, 1}, {10, 7, 1}}, .requests = 2, .mean_total = 16, .worst = 17};
  EXPECT_EQ(Answered("llama-3.1-8b", lengths).mean_tokens, 16);
  EXPECT_EQ(Answered("llama-3.1-8b", lengths, {{"engine", "vllm"}}).mean_tokens, 24);
}

}  // namespace
}  // namespace fourpiles
