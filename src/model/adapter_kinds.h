#pragma once

// What each kind of adapter adds to a network whose parameters are frozen already; those that train
// parameters of the network freeze the others themselves.

#include <string_view>
#include <vector>

#include "model/adapter.h"
#include "model/modules.h"

namespace fourpiles {

using AddAdapter = Result<void> (*)(Network& network, const Adapter& adapter,
                                    std::string_view where);

// adapter_low_rank.cc: LoRA, rsLoRA, DoRA; VeRA
Result<void> AddLowRank(Network& network, const Adapter& adapter, std::string_view where);
Result<void> AddVera(Network& network, const Adapter& adapter, std::string_view where);
// adapter_ia3.cc
Result<void> AddIa3(Network& network, const Adapter& adapter, std::string_view where);
// adapter_prompt.cc: prompt and prefix tuning
Result<void> AddPrompt(Network& network, const Adapter& adapter, std::string_view where);
Result<void> AddPrefix(Network& network, const Adapter& adapter, std::string_view where);
// adapter_parts.cc: parameters that the network has already
Result<void> TrainBiases(Network& network, const Adapter& adapter, std::string_view where);
Result<void> TrainNorms(Network& network, const Adapter& adapter, std::string_view where);

// A parameter of an adapter, trained.
Parameter AdapterParameter(const Adapter& adapter, std::string_view module, std::string_view name,
                           std::vector<std::int64_t> shape);

// Puts the parameters into the block and tells the operators that run the module.
void PutBeside(Block& block, const Module& module, std::vector<Parameter> parameters,
               AdapterForm form, const Adapter& adapter);

}  // namespace fourpiles
