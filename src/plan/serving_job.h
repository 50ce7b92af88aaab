#pragma once

// The settings of serving, with the defaults filled in.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "formats/stored_type.h"
#include "model/adapter.h"
#include "model/catalogue.h"
#include "plan/engine_record.h"
#include "plan/gguf_mixture.h"
#include "plan/weight_scheme.h"

namespace fourpiles {

// In which numbers the weights are served: one of the three.
struct ServedFormat {
  std::string name = {};   // as the setting takes it: "bfloat16", "awq:4:128", "Q4_K_M", "stored"
  std::string why = {};    // where no format was typed: "of its config"
  bool as_stored = false;  // the file's tensors as they lie, each in its own format
  std::optional<WeightScheme> scheme = {};
  std::optional<Mixture> mixture = {};
};

// Whether one number format holds all weights.
inline bool IsPlain(const ServedFormat& format) {
  return !format.as_stored && FindFormat(format.name).has_value();
}

// Over how many devices what is cut. Tensor × pipeline × data = devices.
struct ServingLayout {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;    // whole replicas, which share the requests
  std::int64_t expert = 1;  // whole experts over so many devices, instead of each cut by tensor
};

struct ServingJob {
  std::optional<EngineRecord> engine = {};  // none: weights and caches alone
  EngineVersion version = {};
  ServedFormat weights = {};
  NumberFormat compute_format = {};  // the weights', or the config's dtype where they are smaller
  const StoredType* key_format = nullptr;
  const StoredType* value_format = nullptr;
  std::int64_t context_length = 1;
  std::int64_t concurrency = 1;
  ServingLayout layout = {};
  double memory_utilization = 1;
  std::optional<std::int64_t> micro_batch = {};   // tokens in one forward pass
  std::optional<std::int64_t> max_num_seqs = {};  // requests that the engine prepares for
  // Of each request, beside its context; those of cross attention are in the network's caches.
  std::int64_t image_tokens = 0;

  // llama.cpp's
  std::optional<std::int64_t> gpu_layers = {};  // none: all
  bool experts_on_host = false;
  bool flash_attention = true;
  bool unified = false;
  bool full_windows = false;
  std::int64_t projector_bytes = 0;  // tensors of --mmproj

  std::shared_ptr<const Model> draft = {};
  std::optional<Adapter> adapter = {};
  std::int64_t adapters = 1;
};

// Its settings and layouts are its own: layers on devices, mixtures of tensors.
inline bool IsLlamacpp(const ServingJob& serving) {
  return serving.engine && serving.engine->names.id == "llama.cpp";
}

// Tokens of a request that the caches hold.
inline std::int64_t TokensOf(const ServingJob& serving) {
  return serving.context_length + serving.image_tokens;
}

}  // namespace fourpiles
