#pragma once

// The fields of a measured run, in the vocabulary of such records: settings stand in the row,
// shapes in its "arch", and either place will do.
//
//   layers            n_layer, kv_layers
//   key/value heads   n_kv_heads, n_head_kv
//   head size         head_dim; of values v_head where it differs
//   latent attention  kv_lora_rank, qk_rope
//   cache format      kv_dtype_k: auto, bf16, fp16, fp32, fp8…, int8; absent is auto: 16 bits
//   amounts           NAME_gib, a figure that a log printed with two decimals or more

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "fourpiles/result.h"
#include "plan/paged_cache.h"

namespace fourpiles {

// A number as it was printed: the true one lies within `half` of it.
struct Printed {
  double value = 0;
  double half = 0;
};

// Half a unit of the last decimal of a number: 0.005 for 26.43, 0.5 for 1952, which counts as so
// many decimals at least.
double HalfUnit(double value, int least_decimals);

// The first of the names that the row or its "arch" has, as a number.
std::optional<double> RunNumber(const Fields& row, std::initializer_list<std::string_view> names);
Result<double> NeededNumber(const Fields& row, std::initializer_list<std::string_view> names);
// The same, a whole number of at least 1; a fraction is refused.
Result<std::int64_t> NeededCount(const Fields& row, std::initializer_list<std::string_view> names);
std::int64_t CountOr(const Fields& row, std::initializer_list<std::string_view> names,
                     std::int64_t otherwise);
// An amount in GiB that a log printed.
std::optional<Printed> PrintedGib(const Fields& row, std::initializer_list<std::string_view> names);
Result<Printed> NeededGib(const Fields& row, std::initializer_list<std::string_view> names);
// A text of the row; "" where there is none.
std::string RunText(const Fields& row, std::string_view name);

// Error: "no field NAME".
tl::unexpected<Error> NotExpressible(std::string reason);

// Bits of an element of the cache.
Result<int> CacheBits(const Fields& row);
// One attention layer, from the shapes.
Result<PagedLayer> LayerOfRun(const Fields& row);
// Bytes of one token on one rank, in all layers: a field that says so, else from the shapes.
Result<double> TokenBytesOfRun(const Fields& row);

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace fourpiles
