#pragma once

// The GGUF that llama.cpp's converter and llama-quantize make of a network, without the file: its
// tensors, their types, and where llama.cpp puts them.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "model/network.h"
#include "plan/gguf_mixture.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// How a file keeps the two halves of latent attention's kv_b_proj: as one tensor (files up to
// spring 2025), as attn_k_b and attn_v_b (after), or all three.
enum class LatentTensors { kWhole, kSplit, kBoth };

struct GgufOptions {
  LatentTensors latent = LatentTensors::kWhole;
  bool imatrix = true;  // an importance matrix was used, as by those who publish GGUFs
  // Factors of the rotary embedding, which the converter computes for Llama 3.1 to 3.3.
  std::int64_t rope_frequencies = 0;
};

struct PlacedTensor {
  GgufTensor tensor = {};
  const StoredType* type = nullptr;
};

struct GgufTensors {
  std::vector<PlacedTensor> tensors = {};  // in the order of the layers
  bool tied = false;                       // the output layer is the embedding
};

// Errors (kInput): a tensor that llama.cpp has no name for; (kUsage) an unknown mixture.
Result<GgufTensors> TensorsOfNetwork(const Network& network, std::string_view mixture,
                                     const GgufOptions& options = {});

Checked TensorBytes(const PlacedTensor& placed);
// What the tensors of the file take; its header is some MiB more.
Checked TensorBytes(const GgufTensors& gguf);
Checked TensorElements(const GgufTensors& gguf);

// Of the routed experts of a layer, stacked.
bool IsExpert(const PlacedTensor& placed);

// Where the layers are. llama.cpp's llama_model::load_tensors puts the last gpu_layers on devices,
// the output layer being the last, or in older builds the one that comes when all others are there.
// The embedding of the tokens stays on the host.
struct GpuPlacement {
  std::int64_t gpu_layers = 0;
  bool experts_on_host = false;
  // Alike; they share the layers evenly: 94 and the output on 2 devices are 48, and 46 and it.
  std::int64_t devices = 1;
  bool output_last = false;
};

// The device of a layer; the number after the last layer is that of the output layer. Nothing: the
// host.
std::optional<std::int64_t> DeviceOfLayer(std::int64_t layer, std::int64_t layers,
                                          const GpuPlacement& placement);

// The devices that a tensor is on; tied embeddings are on the host and, as the output layer, on the
// last device too.
struct TensorPlaces {
  bool host = false;
  std::optional<std::int64_t> device = {};
};
TensorPlaces PlacesOf(const GgufTensors& gguf, const PlacedTensor& placed, std::int64_t layers,
                      const GpuPlacement& placement);

// The tensors of a GGUF file. One whose type is not known counts with its bytes as 8-bit integers.
GgufTensors TensorsOfFile(const std::vector<FileTensor>& tensors);

// Bytes of the tensors that stay on the host: the embedding, and what is on no device.
Checked HostTensorBytes(const GgufTensors& gguf, std::int64_t layers,
                        const GpuPlacement& placement);
// Bytes of the CUDA buffer of weights; tied embeddings are on it a second time, as the output
// layer.
Checked DeviceTensorBytes(const GgufTensors& gguf, std::int64_t layers,
                          const GpuPlacement& placement);

// Bytes of the embedding of the tokens.
Checked EmbeddingBytes(const GgufTensors& gguf);

// Of one layer, the largest stack of experts of one matrix; 0 where there are none.
Checked LargestExpertBytes(const GgufTensors& gguf);

}  // namespace fourpiles
