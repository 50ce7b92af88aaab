#pragma once

// The model in a file or folder of the user.

#include <string>

#include "fourpiles/result.h"
#include "model/catalogue.h"

namespace fourpiles {

// From a config.json or a record of the catalogue's form, no tensor of which is looked at; a folder
// with a config.json, and safetensors or a GGUF model beside it or not; a folder with a GGUF model;
// a GGUF file, of a split model any part; a safetensors file or its index, beside a config.json or
// not. The network is that of the config.json or of the keys of the GGUF, and the warnings say
// where the tensors differ from it; without a config.json safetensors give a network of tensors
// alone. Errors: kInput; kUsage for a folder of several models.
Result<Model> OpenModel(const std::string& path);

}  // namespace fourpiles
