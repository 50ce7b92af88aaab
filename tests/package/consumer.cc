#include <iostream>
#include <vector>

#include <fourpiles/formats.h>

int main() {
  const auto e4m3 = fourpiles::FindFormat("e4m3").value();
  const std::vector<float> weights = {0.1F, -3.0F, 1e-4F, 500.0F};
  std::vector<float> rounded(weights.size());
  const auto lost = fourpiles::RoundArray(weights, e4m3, {}, rounded);
  std::cout << lost.underflow << " of " << lost.count << " underflow, signal to noise "
            << fourpiles::SignalToNoise(lost) << " dB\n";
}
