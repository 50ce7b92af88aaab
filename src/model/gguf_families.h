#pragma once

// One function for each family that a GGUF file can hold: what its keys and tensors say beyond the
// sizes that all families have. A misfit stays in the source.

#include <cstdint>
#include <string_view>

#include "model/gguf_source.h"

namespace fourpiles {

void ReadBert(GgufSource& gguf);
void ReadBloom(GgufSource& gguf);
void ReadCohere(GgufSource& gguf);
void ReadDeci(GgufSource& gguf);
void ReadDeepseek(GgufSource& gguf);
void ReadDeepseekIndexed(GgufSource& gguf);
void ReadFalcon(GgufSource& gguf);
void ReadFalconH1(GgufSource& gguf);
void ReadGemma4(GgufSource& gguf);
void ReadGlm4(GgufSource& gguf);
void ReadGpt2(GgufSource& gguf);
void ReadGptNeox(GgufSource& gguf);
void ReadGptOss(GgufSource& gguf);
void ReadGraniteExperts(GgufSource& gguf);
void ReadGraniteHybrid(GgufSource& gguf);
void ReadJamba(GgufSource& gguf);
void ReadKimiLinear(GgufSource& gguf);
void ReadLfm2(GgufSource& gguf);
void ReadLlama(GgufSource& gguf);
void ReadLlama4(GgufSource& gguf);
void ReadMamba(GgufSource& gguf);
void ReadMamba2(GgufSource& gguf);
void ReadMimo2(GgufSource& gguf);
void ReadMinimaxM2(GgufSource& gguf);
void ReadNemotronH(GgufSource& gguf);
void ReadOlmo2(GgufSource& gguf);
void ReadPhi2(GgufSource& gguf);
void ReadQwen3(GgufSource& gguf);
void ReadQwen3Experts(GgufSource& gguf);
void ReadQwenExperts(GgufSource& gguf);
void ReadQwenLinear(GgufSource& gguf);
void ReadQwenLinearExperts(GgufSource& gguf);
void ReadRotatedShare(GgufSource& gguf);
void ReadSeedOss(GgufSource& gguf);
void ReadStableLm(GgufSource& gguf);
void ReadStarcoder(GgufSource& gguf);
void ReadStarcoder2(GgufSource& gguf);

// --- What several families put ---

void PutBiases(GgufSource& gguf);
// How many experts there are under `key`, and how many of them a token takes.
void PutExpertCounts(GgufSource& gguf, std::string_view key);
// Older files lack the key; the tensors tell.
void PutExpertWidth(GgufSource& gguf, std::string_view key);
void PutSharedExpertWidth(GgufSource& gguf, std::string_view key);
// Latent attention: its ranks, and what of a head's keys, `key` long, is rotated.
void PutLatentRanks(GgufSource& gguf, std::int64_t key);

}  // namespace fourpiles
