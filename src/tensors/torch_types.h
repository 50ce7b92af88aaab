#pragma once

// The words that PyTorch's files have for types of elements.

#include <string_view>

#include "formats/stored_type.h"

namespace fourpiles {

struct TorchType {
  std::string_view storage = {};  // "Float", of torch.FloatStorage; empty: there is no such class
  std::string_view name = {};     // "float32", of torch.float32
  std::string_view dtype = {};    // "F32", as safetensors has it
  std::string_view stored = {};   // the name of the StoredType; empty: none
  int bits = 0;                   // of one element
};

// Of "torch.FloatStorage", "torch.cuda.FloatStorage" or "torch.storage.UntypedStorage", which
// counts bytes; nullptr: of another word.
const TorchType* TorchTypeOfStorage(std::string_view global);

// Of "torch.float32" and its aliases; nullptr: of another word.
const TorchType* TorchTypeOfDtype(std::string_view global);

}  // namespace fourpiles
