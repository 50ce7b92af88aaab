#pragma once

// Options by the names that other tools give them.

#include <string_view>

namespace fourpiles::cli {

// "--context-length" of "--max-model-len" (vLLM) and "-c" (llama.cpp); "" where none is known.
std::string_view NameOfOther(std::string_view name);

}  // namespace fourpiles::cli
