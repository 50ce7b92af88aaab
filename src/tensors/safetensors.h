#pragma once

// safetensors: eight bytes that give the length of a JSON header, the header, the data
// (github.com/huggingface/safetensors 24b0b285, README and safetensors/src/tensor.rs).

#include "base/byte_source.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// Reads the header. Refused is what tensor.rs refuses, and what the text of the format forbids:
// keys that stand twice, fields it does not have, bytes that no tensor covers, tensors that
// overlap. The facts are "header_bytes" and "data_start".
FileReading ReadSafetensors(const ByteSource& source);

}  // namespace fourpiles
