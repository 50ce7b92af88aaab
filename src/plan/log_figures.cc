// The figures that logs hold. A "*" in the id of a row ("weights_*_bytes") is the place of the
// buffer: device or host.

#include <algorithm>

#include "base/check.h"
#include "plan/log_engine.h"

namespace fourpiles {
namespace {

constexpr FigureKind kFigures[] = {
    {"kv_bytes", "bytes", "KV cache"},
    {"kv_key_bytes", "bytes", "keys of the KV cache"},
    {"kv_value_bytes", "bytes", "values of the KV cache"},
    {"kv_device_bytes", "bytes", "KV buffer"},
    {"cells", "cells", "cells of the KV cache"},
    {"streams", "streams", "streams of the KV cache"},
    {"recurrent_bytes", "bytes", "recurrent states"},
    {"recurrent_conv_bytes", "bytes", "recurrent states of convolutions"},
    {"recurrent_state_bytes", "bytes", "recurrent states of the scan"},
    {"recurrent_device_bytes", "bytes", "RS buffer"},
    {"recurrent_cells", "cells", "cells of the recurrent states"},
    {"weights_device_bytes", "bytes", "model buffer"},
    {"weights_host_bytes", "bytes", "model buffer"},
    {"weights_bytes", "bytes", "weights"},
    {"file_bytes", "bytes", "weights in the file"},
    {"compute_device_bytes", "bytes", "compute buffer"},
    {"compute_host_bytes", "bytes", "compute buffer"},
    {"output_bytes", "bytes", "output buffer"},
    {"breakdown_total_bytes", "bytes", "memory"},
    {"breakdown_self_bytes", "bytes", "model, context and compute together"},
    {"breakdown_model_bytes", "bytes", "model"},
    {"breakdown_context_bytes", "bytes", "context"},
    {"breakdown_compute_bytes", "bytes", "compute"},
    {"total_bytes", "bytes", "memory of the device"},
    {"free_bytes", "bytes", "free memory at the end"},
    {"free_before_bytes", "bytes", "free memory before loading"},
    {"free_after_weights_bytes", "bytes", "free memory after loading"},
    {"free_after_pool_bytes", "bytes", "free memory after the pool"},
    {"requested_bytes", "bytes", "memory the engine takes"},
    {"non_kv_bytes", "bytes", "all but the KV cache"},
    {"peak_torch_bytes", "bytes", "peak of PyTorch, weights included"},
    {"activation_bytes", "bytes", "peak of activations"},
    {"non_torch_bytes", "bytes", "memory outside PyTorch"},
    {"available_bytes", "bytes", "left for the KV cache"},
    {"suggested_bytes", "bytes", "suggested --kv-cache-memory"},
    {"graph_bytes", "bytes", "CUDA graphs"},
    {"graph_estimate_bytes", "bytes", "CUDA graphs as estimated"},
    {"blocks", "blocks", "blocks of the KV cache"},
    {"cpu_blocks", "blocks", "blocks on the host"},
    {"cache_tokens", "tokens", "tokens of the KV cache"},
    {"full_tokens", "tokens", "tokens of the layers without a window"},
    {"swa_tokens", "tokens", "tokens of the layers with a window"},
    {"max_concurrency", "x", "requests of full length at once"},
    {"max_running_requests", "requests", "requests at once, at most"},
};

constexpr std::string_view kWindow = "swa_";

}  // namespace

FigureKind KindOfFigure(std::string_view id) {
  const auto* const found = std::ranges::find(kFigures, id, &FigureKind::id);
  if (found != std::end(kFigures)) {
    return *found;
  }
  CHECK(id.starts_with(kWindow));
  return KindOfFigure(id.substr(kWindow.size()));
}

std::string WhatOfFigure(std::string_view id, std::string_view device) {
  const FigureKind kind = KindOfFigure(id);
  std::string what(device);
  what += device.empty() ? "" : " ";
  what += kind.what;
  return kind.id == id ? what : what + " (sliding window)";
}

}  // namespace fourpiles
