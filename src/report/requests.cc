#include "report/requests.h"

#include <fmt/format.h>

#include "units/print.h"

namespace fourpiles {

std::string RequestAnswerText(const RequestAnswer& answer) {
  return fmt::format(
      "Of {} requests {:.4g} % fit, up to {} tokens. At once: {} of the mean {} tokens, {} of the "
      "longest {}.\n",
      PrintGrouped(answer.requests), 100 * answer.share_that_fits,
      PrintGrouped(answer.longest_that_fits), PrintGrouped(answer.concurrency_at_mean),
      PrintGrouped(answer.mean_tokens), PrintGrouped(answer.concurrency_at_worst),
      PrintGrouped(answer.worst_tokens));
}

Json RequestAnswerJson(const RequestAnswer& answer) {
  return Json::Object{{"requests", answer.requests},
                      {"mean_tokens", answer.mean_tokens},
                      {"worst_tokens", answer.worst_tokens},
                      {"concurrency_at_mean", answer.concurrency_at_mean},
                      {"concurrency_at_worst", answer.concurrency_at_worst},
                      {"longest_that_fits", answer.longest_that_fits},
                      {"share_that_fits", answer.share_that_fits}};
}

}  // namespace fourpiles
