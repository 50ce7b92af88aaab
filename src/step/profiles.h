#pragma once

// The profile of each implementation, by file.

#include "step/profile.h"

namespace fourpiles {

void SetRule(Profile& profile, OperatorKind kind, Rule rule);

// profiles_pytorch.cc
Profile PyTorch();
Profile PyTorch21();
Profile PyTorch1();
Profile PyTorch113OnCpu();
Profile PyTorchCompile();
Profile PyTorchFsdp1();
Profile Liger();
Profile Torchtune();
Profile TorchtuneCompile();
Profile Torchtitan();
Profile TorchtitanCompile();
Profile Torchtitan2024();
Profile Torchtitan2024Compile();

// profiles_frameworks.cc
Profile Megatron();
Profile MegatronWithSeparateGradients();
Profile LlmC();
Profile LlmCKeepingGelu();
Profile LlmCRecomputingNorms();
Profile LitGpt();

}  // namespace fourpiles
