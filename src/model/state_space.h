#pragma once

// State-space layers: a short convolution, and a memory that does not grow with the context. Mamba
// (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024), as several families have them.

#include <cstdint>
#include <string_view>

#include "model/parts.h"
#include "model/record.h"

namespace fourpiles {

// Every channel has a memory of its own; step sizes, B and C are made from the channels.
struct Mamba {
  std::int64_t hidden_size = 1;
  std::int64_t width = 1;  // channels
  std::int64_t state_size = 1;
  std::int64_t rank = 1;  // through which the step sizes are made
  std::int64_t kernel = 1;
  bool projection_bias = false;
  bool convolution_bias = true;
  bool norms = false;  // of step sizes, B and C: Jamba
};
Parameters MixerOf(const Mamba& sizes);
Cache StateOf(const Mamba& sizes);

// Heads of channels share a step size, and groups of heads share B and C, which pass the
// convolution.
struct Mamba2 {
  std::int64_t hidden_size = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t groups = 1;
  std::int64_t state_size = 1;
  std::int64_t kernel = 1;
  bool in_bias = false;
  bool out_bias = false;
  bool convolution_bias = true;
  bool norm = true;

  std::int64_t Width() const { return heads * head_dim; }
  std::int64_t ConvolutionSize() const { return Width() + 2 * groups * state_size; }
};
Parameters MixerOf(const Mamba2& sizes);
Cache StateOf(const Mamba2& sizes);

// The cache of a layer that has both keys and values and a state.
Cache Joined(const Cache& attention, const Cache& state);

// The sizes under the names that Bamba gave them, mamba_n_heads and the like: a mixer is as wide as
// mamba_d_ssm says, else mamba_expand times as wide as the model.
Mamba2 ReadMamba2(Record& config, std::int64_t hidden_size);
// The rank under the key: a count, or "auto" as without the key.
std::int64_t ReadRank(Record& config, std::string_view key, std::int64_t hidden_size);

// What a config.json means that leaves them out, in all these families.
inline constexpr std::int64_t kMambaExpand = 2;
inline constexpr std::int64_t kMambaKernel = 4;

}  // namespace fourpiles
