#pragma once

// The weight scheme that a checkpoint's config declares: what its files hold where no tensors can
// be read; and the format that a model is served in where nobody chose one.

#include <cstdint>
#include <optional>
#include <string>

#include "model/catalogue.h"
#include "plan/serving_job.h"

namespace fourpiles {

struct DeclaredScheme {
  std::string name = {};  // as --weights-format takes it: "gptq:4:128"
  WeightScheme scheme = {};
};

// Of a model of so many layers, whose other tensors are in `plain`. Modules that the config leaves
// as they are stay plain; one that is named layer by layer does where most layers are named.
// Nothing: no quantisation, or one whose bytes are not known here.
std::optional<DeclaredScheme> SchemeDeclaredBy(const DeclaredQuantisation& declared,
                                               const NumberFormat& plain, std::int64_t layers);

// The file's own formats where its tensors were read, else what its config declares, else the dtype
// of its config, else bfloat16. llama.cpp reads GGUF alone, and of what a config declares
// convert_hf_to_gguf.py keeps MXFP4.
Result<ServedFormat> OwnFormatOf(const Model& model, bool llamacpp);

// A word of --weights-format: a number format, a scheme, or a mixture of llama-quantize.
Result<ServedFormat> FindServedFormat(std::string_view word, std::string_view where, bool llamacpp);

}  // namespace fourpiles
