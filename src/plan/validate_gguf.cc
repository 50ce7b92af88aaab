// Sizes of GGUF files and of llama.cpp's buffers of weights, by the row's figure_name:
//   file_size, model_buffer_total            all tensors
//   model_buffer_CPU, _CPU_Mapped, _CUDA_Host  all on a CPU; beside a GPU the embedding, and
//   experts
//                                              that are too many for it
//   model_buffer_CUDA0, _ROCm0, _Vulkan0, …    the others, and the embedding where it is the output
//                                              layer
//   token_embd_host_buffer                     the embedding
// A buffer of a second device says nothing of which layers are in it, and is not expressed.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/run_row.h"

namespace fourpiles {
namespace {

constexpr std::string_view kBuffer = "model_buffer_";

std::int64_t LayersOf(const GgufTensors& gguf) {
  std::int64_t layers = 0;
  for (const PlacedTensor& placed : gguf.tensors) {
    layers = std::max(layers, placed.tensor.layer + 1);
  }
  return layers;
}

// All on the device, but experts that are too many for it.
GpuPlacement PlacementOf(const Fields& row, const GgufTensors& gguf) {
  const bool experts = OrLargest(LargestExpertBytes(gguf)) > 0;
  return {.gpu_layers = LayersOf(gguf) + 1,
          .experts_on_host = experts && ExpertsAreOnHost(row, TensorBytes(gguf))};
}

// ik_llama.cpp makes the output layer of tied embeddings a tensor of its own on the host as well,
// where it repacks or does not map the file.
Checked OnHost(const Fields& row, const GgufTensors& gguf) {
  if (!RowSays(row, "device", "CPU")) {
    return HostTensorBytes(gguf, LayersOf(gguf), PlacementOf(row, gguf));
  }
  const bool twice = IsIkLlama(row) && gguf.tied;
  return TensorBytes(gguf) + (twice ? EmbeddingBytes(gguf) : Checked(0));
}

Result<Checked> OnDevice(const Fields& row, const GgufTensors& gguf, std::string_view device) {
  const std::int64_t layers = LayersOf(gguf);
  const GpuPlacement all = PlacementOf(row, gguf);
  if (device == "CUDA0" || device == "ROCm0") {
    return DeviceTensorBytes(gguf, layers, all);
  }
  if (device == "Vulkan0" || device == "SYCL0" || device == "Metal" || device == "MTL0") {
    return TensorBytes(gguf) - HostTensorBytes(gguf, layers, all) +
           (gguf.tied ? EmbeddingBytes(gguf) : Checked(0));
  }
  return NotExpressible(fmt::format("which layers are on \"{}\" is not said", device));
}

Result<Checked> Buffer(const Fields& row, const GgufTensors& gguf, std::string_view device) {
  if (device == "total") {
    return TensorBytes(gguf);
  }
  if (device == "CPU" || device == "CPU_Mapped" || device == "CUDA_Host") {
    return OnHost(row, gguf);
  }
  return OnDevice(row, gguf, device);
}

Result<Checked> WeightBytes(const Fields& row, const GgufTensors& gguf) {
  const std::string figure = RunText(row, "figure_name");
  if (figure == "file_size") {
    return TensorBytes(gguf);
  }
  if (figure == "token_embd_host_buffer") {
    return EmbeddingBytes(gguf);
  }
  if (figure.starts_with(kBuffer)) {
    return Buffer(row, gguf, std::string_view(figure).substr(kBuffer.size()));
  }
  return NotExpressible(fmt::format("figure_name \"{}\" is not known", figure));
}

}  // namespace

Result<Prediction> PredictGgufWeights(const Fields& row) {
  TRY(const GgufTensors gguf, RowTensors(row));
  TRY(const Checked bytes, WeightBytes(row, gguf));
  return InUnitOf(row, bytes);
}

Result<Prediction> PredictGgufBitsPerWeight(const Fields& row) {
  TRY(const GgufTensors gguf, RowTensors(row));
  const Checked bits = TensorBytes(gguf) * 8;
  const Checked elements = TensorElements(gguf);
  if (!bits.ok() || !elements.ok() || elements.value() == 0) {
    return NotExpressible("the sizes pass 2^53");
  }
  return Prediction{static_cast<double>(bits.value()) / static_cast<double>(elements.value()),
                    "bpw"};
}

}  // namespace fourpiles
