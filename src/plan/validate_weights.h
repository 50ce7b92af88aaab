#pragma once

// Predictions of what weights take, for runs that name a model: in a safetensors file, in an
// engine, loaded by transformers or diffusers.
//
// A model is found in the catalogue by its name without what does not change its shapes: text
// behind a space, and the words instruct, chat, it, base, hf, the names of weight formats, and the
// like.
// "(.1)" may be there or not. Llama 3 has the shapes of Llama 3.1, DeepSeek-R1 those of V3. A BERT,
// GPT-J or GPT-NeoX is made from the row's shapes.

#include "model/network.h"
#include "plan/validate.h"
#include "plan/weight_scheme.h"

namespace fourpiles {

Result<Network> NetworkOfRun(const Fields& row);
// By the words of "dtype_quant": bf16, fp8, int8, AWQ g128, GPTQ, bnb nf4, mxfp4, nvfp4 …
Result<WeightScheme> SchemeOfRun(const Fields& row);

Result<Prediction> PredictSafetensorsTotal(const Fields& row);
Result<Prediction> PredictEngineWeights(const Fields& row);
Result<Prediction> PredictHfLoad(const Fields& row);
Result<Prediction> PredictDiffusers(const Fields& row);

}  // namespace fourpiles
