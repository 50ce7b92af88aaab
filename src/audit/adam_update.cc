#include "audit/adam_update.h"

#include <cmath>

namespace fourpiles {

AdamUpdate::AdamUpdate(const AdamSettings& settings, double step)
    : settings_(settings),
      correction1_(1 - std::pow(settings.beta1, step)),
      correction2_(1 - std::pow(settings.beta2, step)) {}

double AdamUpdate::Of(double weight, const Moments& moments) const {
  const double first = moments.first / correction1_;
  const double root = std::sqrt(moments.second / correction2_);
  const double update = -settings_.learning_rate * first / (root + settings_.epsilon);
  return update - settings_.learning_rate * settings_.decoupled_decay * weight;
}

}  // namespace fourpiles
