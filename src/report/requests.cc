#include "report/requests.h"

#include <fmt/format.h>

#include "units/print.h"

namespace fourpiles {

std::string RequestAnswerText(const RequestLengths& lengths, const RequestAnswer& answer) {
  return fmt::format(
      "Of {} requests {:.4g} % fit, up to {} tokens. At once: {} of the mean {} tokens, {} of the "
      "longest {}.\n"
      "In the mean {:.2f} tokens of prompt and {:.2f} of output; 50 % have at most {}, 95 % {}, 99 "
      "% {} in all.\n",
      PrintGrouped(lengths.requests), 100 * answer.share_that_fits,
      PrintGrouped(answer.longest_that_fits), PrintGrouped(answer.concurrency_at_mean),
      PrintGrouped(answer.mean_tokens), PrintGrouped(answer.concurrency_at_worst),
      PrintGrouped(lengths.worst), lengths.mean_prompt, lengths.mean_output,
      PrintGrouped(lengths.p50), PrintGrouped(lengths.p95), PrintGrouped(lengths.p99));
}

Json RequestAnswerJson(const RequestLengths& lengths, const RequestAnswer& answer) {
  return Json::Object{{"requests", lengths.requests},
                      {"mean_prompt_tokens", lengths.mean_prompt},
                      {"mean_output_tokens", lengths.mean_output},
                      {"mean_tokens", answer.mean_tokens},
                      {"p50_tokens", lengths.p50},
                      {"p95_tokens", lengths.p95},
                      {"p99_tokens", lengths.p99},
                      {"worst_tokens", lengths.worst},
                      {"concurrency_at_mean", answer.concurrency_at_mean},
                      {"concurrency_at_worst", answer.concurrency_at_worst},
                      {"longest_that_fits", answer.longest_that_fits},
                      {"share_that_fits", answer.share_that_fits}};
}

}  // namespace fourpiles
