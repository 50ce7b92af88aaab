#pragma once

// Bytes of a network's weights in a format that an engine serves: codes, scales, zero points.
//
// What a scheme leaves in the plain format is a rule of names and shapes, as the tools that make
// such checkpoints have it: embeddings, the output layer, norms, biases and other vectors, routers
// (gate, router), convolutions, and whatever stands outside the numbered layers or inside an image
// or sound tower. MXFP4 takes routed experts alone (gpt-oss: modules_to_not_convert). All other
// matrices of the layers are coded, but for the modules that a config leaves out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "fourpiles/formats.h"
#include "fourpiles/result.h"
#include "model/network.h"

namespace fourpiles {

enum class WeightCoding {
  kPlain,
  kFloat8Tensor,   // one float32 scale a matrix (vLLM, quantization/fp8.py)
  kFloat8Channel,  // one float32 scale an output (compressed-tensors)
  kFloat8Block,    // one float32 scale each 128 × 128 (DeepSeek-V3, weight_scale_inv)
  kInt8Channel,    // w8a8: one float32 scale an output (compressed-tensors)
  kGptq,    // groups: float16 scales, zero points of the codes' width, an int32 index an input
  kAwq,     // the same without the index
  kPacked,  // groups: 16-bit scales and no zero points (compressed-tensors, pack-quantized)
  kNormalFloat4,        // bitsandbytes: 4 bits, a float32 each 64, the table of 16 float32
  kNormalFloat4Double,  // the same, those scales in 8 bits with a float32 each 256
  kInt8Vector,          // bitsandbytes LLM.int8: one float32 an output
  kMxfp4,               // experts: 4 bits, an 8-bit exponent each 32
  kNvfp4,               // 4 bits, a float8 each 16, two float32 a matrix
};

struct WeightScheme {
  WeightCoding coding = WeightCoding::kPlain;
  NumberFormat plain = {};        // of what is not coded
  std::int64_t bits = 4;          // of a code: GPTQ, AWQ and packed integers
  std::int64_t group_size = 128;  // of GPTQ, AWQ and packed integers
  // Modules that stay plain besides: a module's path or the end of one, "self_attn", "mlp.gate".
  std::vector<std::string> plain_modules = {};
  // Parameters that are trained stay plain as well.
  bool of_frozen = false;
  // The output layer is coded too (Lightning Fabric, plugins/precision/bitsandbytes.py, which
  // replaces every linear layer).
  bool with_output_layer = false;
};

// The scheme of that name: a format ("bfloat16", "bf16", "fp16" …), "fp8", "fp8-channel",
// "fp8-block", "int8", "gptq", "awq", "nf4", "nf4-double", "bnb-int8", "mxfp4", "nvfp4", "packed";
// "gptq", "awq" and "packed" may say bits and group: "awq:4:128". What is not coded is bfloat16, of
// GPTQ, AWQ and bitsandbytes float16. Error: kUsage, with those there are.
Result<WeightScheme> FindWeightScheme(std::string_view name, std::string_view where);

struct SchemeBytes {
  struct Part {
    std::string format = {};  // "bfloat16", "int4", "scales"
    Checked elements = 0;     // weights of that format; of scales and zero points: theirs
    Checked bytes = 0;
  };
  std::vector<Part> parts = {};  // in the order found
  Checked bytes = 0;
};

// Of one rank of tensor parallelism: a tensor with a cut is divided, rounded up, others are whole.
// Qwen2.5-72B in AWQ on 2 ranks: 19.4 GiB.
SchemeBytes WeightBytes(const Network& network, const WeightScheme& scheme,
                        std::int64_t tensor_parallel);

// Whether the scheme leaves this parameter plain.
bool StaysPlain(const Block& block, const Parameter& parameter, const WeightScheme& scheme);

}  // namespace fourpiles
