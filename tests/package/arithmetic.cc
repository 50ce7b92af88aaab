#include <iostream>
#include <vector>

#include <fourpiles/formats.h>

int main() {
  const auto bfloat16 = fourpiles::FindFormat("bfloat16").value();
  const std::vector<double> ones(1000, 1.0);
  std::cout << "1000 ones in bfloat16: " << fourpiles::SumSequential(ones, bfloat16)
            << ", in halves " << fourpiles::SumPairwise(ones, bfloat16) << "\n";

  // As tensor cores of Hopper add up products of float8, and with a float32 every 128 of them.
  const auto e4m3 = fourpiles::FindFormat("e4m3").value();
  std::vector<double> small(4096, 0.015625);
  small[0] = 448;
  const std::vector<double> unit(4096, 1.0);
  for (const char* const name : {"float32", "hopper-fp8", "hopper-fp8-promoted"}) {
    const auto accumulator = fourpiles::FindAccumulator(name).value();
    const auto dot = fourpiles::Dot({small, e4m3}, {unit, e4m3}, accumulator);
    std::cout << name << ": " << dot.value() << "\n";
  }

  // One of your own: every product and sum in e5m10, the largest past it.
  const fourpiles::Accumulator own = {
      .format = fourpiles::FindFormat("e5m10").value(),
      .conversion = fourpiles::NearestEven(fourpiles::Overflow::kSaturate),
      .rounds_products = true};
  std::cout << "own: " << fourpiles::Dot({small, e4m3}, {unit, e4m3}, own).value() << "\n";
}
