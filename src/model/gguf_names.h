#pragma once

// What llama.cpp calls a tensor → what the Hugging Face checkpoint calls it.

#include <optional>
#include <string>
#include <string_view>

namespace fourpiles {

// "blk.3.attn_q.weight" is "model.layers.3.self_attn.q_proj.weight" where the model_type is
// "llama". All experts of a layer, which a GGUF keeps in one tensor, have "{}" in place of their
// number: "model.layers.3.mlp.experts.{}.up_proj.weight". Where the checkpoint fuses what a GGUF
// keeps apart, several tensors have one name. Nothing for a tensor that no checkpoint has.
std::optional<std::string> CheckpointName(std::string_view gguf_name, std::string_view model_type);

// Tables that llama.cpp makes itself: factors of the rotary embedding.
bool IsMadeByConversion(std::string_view gguf_name);

}  // namespace fourpiles
