#pragma once

// What a step of Adam adds to a weight, from the optimizer's state after the step's moments were
// taken (torch/optim/adam.py and adamw.py of PyTorch 1.13; Kingma and Ba 2015, algorithm 1;
// Loshchilov and Hutter 2019, algorithm 2):
//
//   Δw = −lr × (m ÷ (1 − β1^t)) ÷ (√(v ÷ (1 − β2^t)) + ε) − lr × λ × w
//
// λ is AdamW's decay, decoupled from the gradient. That of Adam goes into the gradient, so it is in
// the moments already. For m = 0.1, v = 0.001, t = 1 with the usual betas both averages are those
// of a gradient of 1, and Δw is −lr ÷ (1 + ε).

namespace fourpiles {

struct AdamSettings {
  double learning_rate = 0;
  double beta1 = 0.9;  // these as torch.optim.Adam has them
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decoupled_decay = 0;  // AdamW's weight decay, whose default there is 0.01
};

struct Moments {
  double first = 0;   // "exp_avg"
  double second = 0;  // "exp_avg_sq"
};

class AdamUpdate {
 public:
  // Of step t, which counts from 1.
  AdamUpdate(const AdamSettings& settings, double step);

  // In float64; NaN where the second moment is negative.
  double Of(double weight, const Moments& moments) const;

 private:
  AdamSettings settings_;
  double correction1_;  // 1 − β1^t
  double correction2_;  // 1 − β2^t
};

}  // namespace fourpiles
