#pragma once

// The model in a file or folder of the user.

#include <string>

#include "fourpiles/result.h"
#include "model/catalogue.h"

namespace fourpiles {

// From a config.json or a record of the catalogue's form, no tensor of which is looked at; a folder
// with a config.json, and tensors beside it or not: safetensors, GGUF, files of PyTorch or NumPy,
// what several ranks have saved; a folder with tensors alone; a file of tensors, of a model in
// several any part, or its index, beside a config.json or not. The network is that of the
// config.json or of the keys of the GGUF, and the warnings say where the tensors differ from it;
// without a config.json other files give a network of tensors alone. Errors: kInput; kUsage for a
// folder of several models.
Result<Model> OpenModel(const std::string& path);

}  // namespace fourpiles
