#pragma once

// One function for each family that a GGUF file can hold: what its keys and tensors say beyond the
// sizes that all families have. A misfit stays in the source.

#include "model/gguf_source.h"

namespace fourpiles {

void ReadBert(GgufSource& gguf);
void ReadBloom(GgufSource& gguf);
void ReadCohere(GgufSource& gguf);
void ReadDeepseek(GgufSource& gguf);
void ReadDeepseekIndexed(GgufSource& gguf);
void ReadFalcon(GgufSource& gguf);
void ReadGemma4(GgufSource& gguf);
void ReadGlm4(GgufSource& gguf);
void ReadGpt2(GgufSource& gguf);
void ReadGptNeox(GgufSource& gguf);
void ReadGptOss(GgufSource& gguf);
void ReadLlama(GgufSource& gguf);
void ReadLlama4(GgufSource& gguf);
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

}  // namespace fourpiles
