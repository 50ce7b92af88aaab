#pragma once

// What serving keeps of its requests where nothing is padded: the keys and values of every token,
// and states that do not grow with the context.

#include <cstdint>
#include <span>

#include "base/checked.h"
#include "formats/stored_type.h"
#include "model/network.h"
#include "plan/serving.h"
#include "step/play.h"

namespace fourpiles {

struct CacheFormats {
  const StoredType* key = nullptr;
  const StoredType* value = nullptr;
  const StoredType* convolution = nullptr;
};
// Of the job: convolution inputs are kept in the format that is computed in, as vLLM does;
// llama.cpp keeps float32.
CacheFormats CacheFormatsOf(const ServingJob& serving);

// The caches of the load, a storage for each run of alike layers and each kind. A layer with a
// sliding window keeps its last tokens only. Error: bytes past 2^53.
Result<Resident> CacheStorages(std::span<const Cache> caches, const CacheFormats& formats,
                               const RequestLoad& load);

// Of latent attention, the cache of an engine that keeps the keys and values of all heads; others
// are what they were. DeepSeek-V2-Lite: 16 × (192 + 128) elements for 576.
Cache FullHeads(Cache cache);

// Tokens of a request of that length whose keys and values the layer holds: the last ones of a
// window, or those of the encoder.
std::int64_t TokensHeld(const Cache& cache, std::int64_t tokens);

// Tokens that an encoder makes of a request, and cross attention holds; 0 without it.
std::int64_t EncoderTokens(std::span<const Cache> caches);

// Bytes that one more token costs one request while no window is full: keys, values, and index keys
// of all layers. Llama-2-7B in float16: 2 × 32 layers × 4,096 × 2 bytes = 524,288.
Checked CacheBytesPerToken(std::span<const Cache> caches, const CacheFormats& formats);

// Bytes of one request that do not grow: convolution inputs, recurrent memory in float32, and what
// cross attention holds of the encoder.
Checked StateBytesPerRequest(std::span<const Cache> caches, const CacheFormats& formats);

// The error of a cache past 2^53 bytes.
tl::unexpected<Error> CacheTooLarge();

}  // namespace fourpiles
