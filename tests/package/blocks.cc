#include <cstdint>
#include <iostream>
#include <span>
#include <vector>

#include <fourpiles/formats.h>

int main() {
  // A matrix of 2 × 32 weights in mxfp4, and back.
  std::vector<float> weights(64, 0.75F);
  weights[1] = 7.5F;
  fourpiles::BlockTensor tensor{.format = fourpiles::FindBlockFormat("mxfp4").value(),
                                .shape = {.rows = 2, .columns = 32}};
  if (const auto encoded = fourpiles::EncodeBlocks(weights, {}, tensor); !encoded) {
    std::cerr << encoded.error().text.found << "\n";
    return 1;
  }
  std::vector<float> back(weights.size());
  fourpiles::DecodeBlocks(tensor, back);
  std::cout << tensor.codes.size() << " + " << tensor.scales.size() << " bytes; " << back[0] << ", "
            << back[1] << "; " << back[32] << "\n";

  // Codes of float16 to codes of float8_e4m3fn, rounded once, the largest where they do not fit.
  const std::vector<std::uint16_t> halves = {0x3c00, 0xbe00, 0x7bff};  // 1, -1.5, 65504
  std::vector<std::uint8_t> bytes(halves.size());
  const auto float16 = fourpiles::FindFormat("float16").value();
  const auto e4m3 = fourpiles::FindFormat("e4m3").value();
  fourpiles::ConvertArray({float16, std::as_bytes(std::span(halves))},
                          {e4m3, std::as_writable_bytes(std::span(bytes))},
                          fourpiles::NearestEven(fourpiles::Overflow::kSaturate));
  std::cout << fourpiles::Decode(bytes[1], e4m3) << ", " << fourpiles::Decode(bytes[2], e4m3)
            << "\n";
}
