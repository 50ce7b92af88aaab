#pragma once

// The types of tensors in GGUF: those of ggml, those it has removed, those of its forks.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/stored_type.h"

namespace fourpiles {

struct GgufType {
  std::string dtype = {};            // "Q4_K", "IQ2_K (ik_llama.cpp)", "type 97"
  const StoredType* type = nullptr;  // nullptr: how its elements lie is not known here
  // For an error: "tensor type 137 (IQ2_K of ik_llama.cpp)".
  std::string description = {};
};

// The type of that number, whatever it is.
GgufType GgufTypeOf(std::uint32_t id);

// The same, with the types of ggml looked up once.
class GgufTypes {
 public:
  GgufTypes();
  // Valid up to the next call.
  const GgufType& Find(std::uint32_t id);

 private:
  std::vector<GgufType> first_ = {};  // by id
  GgufType other_ = {};               // the last one that is not of ggml
};

}  // namespace fourpiles
