#pragma once

// Patterns that name modules and parameters: "*" stands for any letters, "?" for one, dots among
// them.

#include <string_view>

namespace fourpiles {

// Whether the pattern names the module: it matches the whole name, or what stands behind one of its
// dots. "c_proj", "mlp.c_proj", "h.*.mlp.*" and "h.11.*" all name "transformer.h.11.mlp.c_proj".
bool NamesModule(std::string_view pattern, std::string_view module);

// Whether it names the parameter or a module that holds it: "mlp" and "up_proj.weight" both name
// "model.layers.0.mlp.up_proj.weight".
bool NamesPart(std::string_view pattern, std::string_view parameter);

}  // namespace fourpiles
