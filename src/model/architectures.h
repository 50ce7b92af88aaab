#pragma once

// One function for each model_type of a config.json. Each reads the sizes it needs from the record
// and returns the network; a misfit stays in the record, for NetworkFromConfig to report.
//
// To add an architecture: a function here, in the file of its family, and a row in from_config.cc.

#include "model/network.h"
#include "model/record.h"

namespace fourpiles {

// llama.cc: grouped attention and a gated feed-forward part in every layer
Network BuildCohere(Record& config);
Network BuildCohere2(Record& config);
Network BuildErnie45(Record& config);
Network BuildExaone4(Record& config);
Network BuildGemma(Record& config);
Network BuildGemma2(Record& config);
Network BuildGemma3(Record& config);
Network BuildGlm4(Record& config);
Network BuildGranite(Record& config);
Network BuildHunyuanDense(Record& config);
Network BuildLlama(Record& config);
Network BuildMistral(Record& config);
Network BuildOlmo2(Record& config);
Network BuildOlmo3(Record& config);
Network BuildPhi3(Record& config);
Network BuildQwen(Record& config);
Network BuildQwen2(Record& config);
Network BuildQwen3(Record& config);
Network BuildSeedOss(Record& config);
Network BuildSmolLm3(Record& config);

// mixture.cc: the same with routed experts
Network BuildGptOss(Record& config);
Network BuildLlama4(Record& config);
Network BuildMinimaxM2(Record& config);
Network BuildMixtral(Record& config);
Network BuildQwen2Moe(Record& config);
Network BuildQwen3Moe(Record& config);
Network BuildQwen3VlMoe(Record& config);

// deepseek.cc: latent attention, shared and routed experts
Network BuildDeepseekV2(Record& config);
Network BuildDeepseekV3(Record& config);

// qwen3_5.cc: three layers of gated linear attention, then one of full attention
Network BuildQwen3Next(Record& config);
Network BuildQwen35(Record& config);
Network BuildQwen35Moe(Record& config);

// gemma4.cc: windows and larger heads by turns, experts, embeddings for every layer
Network BuildGemma4(Record& config);

// mimo.cc: windows by turns, values narrower than keys, experts
Network BuildMimoV2(Record& config);

// nemotron_h.cc: state-space layers, attention and feed-forward parts, each a layer of its own
Network BuildNemotronH(Record& config);

// mamba.cc: state-space layers alone
Network BuildMamba(Record& config);
Network BuildMamba2(Record& config);

// hybrid.cc: attention and state-space parts, by turns or side by side
Network BuildBamba(Record& config);
Network BuildFalconH1(Record& config);
Network BuildJamba(Record& config);
Network BuildLfm2(Record& config);

// kimi_linear.cc: three layers of delta attention, then one of latent attention
Network BuildKimiLinear(Record& config);

// granite.cc: stacked experts, and hybrids of attention and state-space layers
Network BuildGraniteMoe(Record& config);
Network BuildGraniteMoeHybrid(Record& config);

// nemotron.cc: a plain feed-forward part, and layers of many sizes
Network BuildNemotron(Record& config);
Network BuildNemotronNas(Record& config);

// gpt.cc: layer norms with biases and a plain feed-forward part
Network BuildBloom(Record& config);
Network BuildFalcon(Record& config);
Network BuildGpt2(Record& config);
Network BuildGptJ(Record& config);
Network BuildGptNeox(Record& config);
Network BuildPhi(Record& config);

// starcoder.cc: the same with fewer heads of keys and values, and StableLM
Network BuildGptBigCode(Record& config);
Network BuildStableLm(Record& config);
Network BuildStarcoder2(Record& config);

// litgpt.cc: LitGPT's own, whose settings tell the families apart
Network BuildLitGpt(Record& config);

// megatron.cc: Megatron-LM's own, whose arguments tell the families apart
Network BuildMegatron(Record& config);

// mllama.cc: some layers see an image instead of the words
Network BuildMllama(Record& config);

// opt.cc: the same with positions that are counted, and words that may be narrower
Network BuildOpt(Record& config);

// encoders.cc: every token sees every other
Network BuildBert(Record& config);
Network BuildVit(Record& config);

}  // namespace fourpiles
