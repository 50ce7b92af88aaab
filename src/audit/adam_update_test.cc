#include "audit/adam_update.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

struct Element {
  double before;
  Moments moments;
  double update;
};

// Third steps of torch.optim 1.13.1 in float64: the weight before, the moments afterwards, and what
// the weight changed by. Learning rate 0.01, betas 0.9 and 0.95, epsilon 1e-6.
void ExpectUpdates(std::initializer_list<Element> elements, double decoupled_decay) {
  const AdamUpdate update({.learning_rate = 1e-2,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .epsilon = 1e-6,
                           .decoupled_decay = decoupled_decay},
                          3);
  for (const Element& element : elements) {
    EXPECT_NEAR(update.Of(element.before, element.moments), element.update, 1e-15);
  }
}

TEST(AdamUpdate, IsThatOfAdamW) {
  ExpectUpdates(
      {{0.9804203014318119, {0.05609999999999999, 0.0068512500000000075}, -0.009445055409221359},
       {-0.48042014931197374, {-1.1219999999999999, 2.7405000000000026}, 0.00944509634857088},
       {0.23911428578581495,
        {5.609999999999999e-07, 6.851250000000006e-13},
        -0.006485857556881303}},
      0);
}

TEST(AdamUpdate, HasTheDecayOfAdamW) {
  ExpectUpdates(
      {{0.9784313013318129, {0.05609999999999999, 0.0068512500000000075}, -0.010423486710553154},
       {-0.47943064930697377, {-1.1219999999999999, 2.7405000000000026}, 0.00992452699787788}},
      0.1);
}

// weight_decay = 0.1 went into the gradient.
TEST(AdamUpdate, OfAdamHasItsDecayInTheMoments) {
  ExpectUpdates(
      {{0.9801370030588602, {0.08291137048058635, 0.013972292923583488}, -0.009774789265346917},
       {0.23000838988518463, {0.006485648498563868, 8.202886309598915e-05}, -0.009978849908279186}},
      0);
}

TEST(AdamUpdate, OfANegativeSecondMomentIsNaN) {
  EXPECT_TRUE(std::isnan(AdamUpdate({.learning_rate = 1}, 1).Of(0, {1, -1})));
}

}  // namespace
}  // namespace fourpiles
