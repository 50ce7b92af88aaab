#pragma once

// Number formats, in one include: the record of each and the code that a value gets
// (number_format.h), formats whose elements share scales (block_format.h), both over arrays
// (arrays.h), and sums and dot products in a format (arithmetic.h). More examples stand in
// docs/FORMATS.md, "In C++"; tests/package/consumer.cc is this one:
//
//   #include <iostream>
//   #include <vector>
//
//   #include <fourpiles/formats.h>
//
//   int main() {
//     const auto e4m3 = fourpiles::FindFormat("e4m3").value();
//     const std::vector<float> weights = {0.1F, -3.0F, 1e-4F, 500.0F};
//     std::vector<float> rounded(weights.size());
//     const auto lost = fourpiles::RoundArray(weights, e4m3, {}, rounded);
//     std::cout << lost.underflow << " of " << lost.count << " underflow, signal to noise "
//               << fourpiles::SignalToNoise(lost) << " dB\n";
//   }

#include "fourpiles/arithmetic.h"
#include "fourpiles/arrays.h"
#include "fourpiles/block_format.h"
#include "fourpiles/number_format.h"
