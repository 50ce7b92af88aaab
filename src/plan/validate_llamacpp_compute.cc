// llama.cpp's compute and output buffers, by the row's figure_name: compute_buffer,
// compute_buffer_DEVICE, output_buffer. A device that is no CPU is a GPU with the output layer.
// Experts are on the host where the notes say so ("experts on CPU"), and where a mixture of experts
// cannot fit the device at 2 bits a weight. "pipeline" in the notes means copies of the inputs.

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "plan/llamacpp.h"
#include "plan/llamacpp_compute.h"
#include "plan/run_row.h"

namespace fourpiles {
namespace {

constexpr std::string_view kFigure = "compute_buffer";

bool IsHost(std::string_view device) {
  const std::string lower = LowerCase(device);
  return lower.find("cpu") != std::string::npos || lower.find("host") != std::string::npos;
}

// Where the row tells no types, at 2 bits a weight.
bool HasExpertsOnHost(const Fields& row, const Fields& arch) {
  if (RowCount(arch, "n_expert") < 2) {
    return false;
  }
  const auto gguf = RowTensors(row);
  if (gguf) {
    return ExpertsAreOnHost(row, TensorBytes(*gguf));
  }
  const auto network = RowNetwork(row);
  return ExpertsAreOnHost(row, network ? ParameterCount(*network) / 4 : 0);
}

// llama.cpp computes experts of the host on the device in micro-batches of 32 and more
// (ggml_backend_cuda_device_offload_op), ik_llama.cpp only in larger ones.
Result<void> AddExperts(ComputeRequest& request, const Fields& row, const Fields& arch) {
  request.experts_on_host = true;
  if (IsIkLlama(row)) {
    return {};
  }
  TRY(const GgufTensors gguf, RowTensors(row));
  TRY(const Json config, RowConfig(row));
  const Json* used = config.Find("num_experts_per_tok");
  request.expert_bytes = LargestExpertBytes(gguf);
  request.experts_per_token =
      used != nullptr && used->AsInteger() != nullptr ? *used->AsInteger() : 1;
  request.expert_width = RowCount(arch, "n_ff_exp", RowCount(arch, "n_ff"));
  return {};
}

// Layers with one matrix for queries, keys and values, as the converter leaves them.
bool IsFused(std::string_view family) {
  for (const std::string_view fused : {"gpt_neox", "phi3", "falcon"}) {
    if (family == fused) {
      return true;
    }
  }
  return false;
}

void AddAttention(ComputeRequest& request, const Fields& row, const Fields& arch) {
  const std::int64_t heads = RowCount(arch, "n_head");
  if (heads == 0) {
    return;
  }
  const std::int64_t head = RowCount(arch, "head_dim", request.hidden_size / heads);
  request.heads = heads;
  request.query_width = OrLargest(Checked(heads) * head);
  if (IsFused(FamilyOfName(RunText(row, "model")))) {
    const std::int64_t keys = OrLargest(Checked(RowCount(arch, "n_head_kv", heads)) * head);
    request.fused_width = OrLargest(Checked(request.query_width) + keys + keys);
  }
}

std::int64_t PipelineCopies(const Fields& row) {
  constexpr std::int64_t kMaxCopies = 4;  // GGML_SCHED_MAX_COPIES
  return RowSays(row, "notes", "pipeline") ? kMaxCopies : 1;
}

Result<Checked> ComputeBytes(const Fields& row, std::string_view device) {
  TRY(const Fields arch, RowArch(row));
  TRY(const std::int64_t context, RowNeeds(row, "ctx"));
  TRY(const std::int64_t hidden_size, RowNeeds(arch, "n_embd"));
  ComputeRequest request = {.micro_batch = RowCount(row, "ubatch", 512),
                            .hidden_size = hidden_size};
  request.cells = OrLargest(PadTo(context, LlamacppVersion{}.padding));
  request.flash_attention = RowCount(row, "flash", 1) != 0;
  request.on_gpu = !IsHost(device);
  request.mask_below_logits = !IsIkLlama(row);
  request.pipeline_copies = PipelineCopies(row);
  request.window_cells_apart =
      RowCount(arch, "swa_layers") > 0 && RowCount(arch, "full_layers") > 0 && !IsIkLlama(row);
  request.window_mask = arch.Has("n_swa") && !request.window_cells_apart;
  if (arch.Has("n_vocab")) {
    request.vocab_size = RowCount(arch, "n_vocab");
  }
  AddAttention(request, row, arch);
  if (request.on_gpu && HasExpertsOnHost(row, arch)) {
    TRY_VOID(AddExperts(request, row, arch));
  }
  if (!request.vocab_size && (request.flash_attention || !request.heads)) {
    return NotExpressible("neither the vocabulary nor the heads are said");
  }
  return ComputeBufferBytes(request);
}

}  // namespace

Result<Prediction> PredictLlamacppCompute(const Fields& row) {
  const std::string figure = RunText(row, "figure_name");
  if (figure == "output_buffer") {
    TRY(const Fields arch, RowArch(row));
    TRY(const std::int64_t vocab_size, RowNeeds(arch, "n_vocab"));
    return InUnitOf(row, OutputBufferBytes(RowCount(row, "parallel", 1), vocab_size));
  }
  if (!figure.starts_with(kFigure)) {
    return NotExpressible(fmt::format("figure_name \"{}\" is not known", figure));
  }
  const std::string of_figure = figure.substr(std::min(figure.size(), kFigure.size() + 1));
  TRY(const Checked bytes,
      ComputeBytes(row, of_figure.empty() ? RunText(row, "device") : of_figure));
  return InUnitOf(row, bytes);
}

}  // namespace fourpiles
