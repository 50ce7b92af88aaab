#pragma once

// What a measured run says of its model: the name, sizes ("arch") and quantisation, in the words
// that logs and tables use.
//
//   {"model": "Pythia-2.8B", "dtype_quant": "F16", "arch": {"n_layer": 32, "n_embd": 2560, …}}
//
// The family comes from the name: that of a model of the catalogue, whose config is filled in where
// the row says nothing, or a word in it ("pythia"); sizes of the row go before those of the
// catalogue.

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_fields.h"
#include "fourpiles/units.h"
#include "model/network.h"
#include "plan/gguf_tensors.h"
#include "plan/validate.h"
#include "plan/validate_fields.h"

namespace fourpiles {

// A member that may be absent: 0 is what a row says that says nothing.
std::int64_t RowCount(const Fields& fields, std::string_view key, std::int64_t otherwise = 0);
bool RowSays(const Fields& row, std::string_view key, std::string_view word);  // whatever the case
// A member that must be there: "no field cells".
Result<std::int64_t> RowNeeds(const Fields& fields, std::string_view key);
Result<Fields> RowArch(const Fields& row);

bool IsIkLlama(const Fields& row);  // the fork ik_llama.cpp

// "llama", "qwen3_moe"; "" for a name that says no family.
std::string FamilyOfName(std::string_view model);

// As a config.json.
Result<Json> RowConfig(const Fields& row);
Result<Network> RowNetwork(const Fields& row);

// The tensors of the row's file.
Result<GgufTensors> RowTensors(const Fields& row);

// The memory of the device that the last words of "device" name: of "CUDA0 A6000" an RTX A6000's.
std::optional<Bytes> RowDeviceMemory(const Fields& row);

// Of a mixture of experts with so many bytes of weights: the notes say so ("experts on CPU"), or
// the weights pass the memory of the one device.
bool ExpertsAreOnHost(const Fields& row, const Checked& bytes);

// Bytes in the unit of the row.
Result<Prediction> InUnitOf(const Fields& row, const Checked& bytes);

// Kinds of validate_gguf.cc and validate_llamacpp_compute.cc.
Result<Prediction> PredictGgufWeights(const Fields& row);
Result<Prediction> PredictGgufBitsPerWeight(const Fields& row);
Result<Prediction> PredictLlamacppCompute(const Fields& row);

}  // namespace fourpiles
