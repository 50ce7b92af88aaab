#pragma once

// What the recognisers of quantised layouts share. A recogniser is given a tensor that may be the
// codes of a weight, looks at its neighbours, and either adds the weight or leaves the tensor as it
// is. Each file quantised_….cc knows a group of layouts; quantised.cc asks them in turn.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.h"
#include "tensors/quantised.h"
#include "tensors/quantised_config.h"

namespace fourpiles {

// What the type of a tensor allows it to be.
enum class TensorKind {
  kPlainFloat,  // 16 bits and more
  kFloat8,
  kFloat4,
  kPowerOfTwo,  // F8_E8M0: scales, in every known layout
  kInteger,     // of whole bytes
  kOther,       // blocks of ggml, bool, complex, unknown ones
};
TensorKind KindOf(const FileTensor& tensor);

inline constexpr std::int32_t kNone = -1;  // an index: no such tensor, no such weight

class QuantisedLayers {
 public:
  // Both must outlive it.
  QuantisedLayers(const Checkpoint& checkpoint, const DeclaredQuantisation& declared);

  const DeclaredQuantisation& Declared() const { return *declared_; }
  const FileTensor& Tensor(std::int32_t index) const {
    return checkpoint_->tensors[static_cast<std::size_t>(index)];
  }
  std::int32_t TensorCount() const { return static_cast<std::int32_t>(result_.tensors.size()); }
  // Whether it belongs to a weight already.
  bool IsTaken(std::int32_t index) const;

  // The tensor of the name `stem` + `suffix`, and its shape; kNone, nullptr: there is none.
  std::int32_t Find(std::string_view stem, std::string_view suffix) const;
  const FileTensor* FindTensor(std::string_view stem, std::string_view suffix) const;
  // The whole of a small tensor; nothing: it is absent, longer, or cannot be read.
  std::optional<std::string> SmallBytes(std::string_view stem, std::string_view suffix) const;
  // The same as whole numbers, from a tensor of int32 or int64.
  std::optional<std::vector<std::int64_t>> SmallIntegers(std::string_view stem,
                                                         std::string_view suffix) const;

  // Adds a weight whose codes are the tensor `codes`; its parameters follow from its shape. A shape
  // with more values than the codes have bits is none: it is noted, and kNone is returned.
  std::int32_t Add(StoredWeight weight, std::int32_t codes);
  // Gives a weight the tensors `stem` + each suffix, those that are there. Nothing happens when the
  // weight is kNone.
  void Attach(std::int32_t weight, TensorRole role, std::string_view stem,
              std::initializer_list<std::string_view> suffixes);
  // A tensor that belongs to no weight, or whose weight is not known.
  void SetRole(std::int32_t tensor, TensorRole role, std::int64_t parameters);
  // Notes with the same text are told once, with their number and the first of the names.
  void Note(std::string text, std::string_view name);

  StoredWeights Finish() &&;

 private:
  struct Noted {
    std::int64_t count = 0;
    std::string first = {};
  };

  void Take(std::int32_t weight, TensorRole role, std::int32_t tensor);

  const Checkpoint* checkpoint_;
  const DeclaredQuantisation* declared_;
  std::unordered_map<std::string_view, std::int32_t, KeyedHash> by_name_;
  // What stands behind the last dot of any name: most suffixes asked for stand nowhere.
  std::set<std::string_view> last_steps_;
  std::map<std::string, Noted> notes_;
  StoredWeights result_;
};

// "model.norm.weight" without ".weight"; nothing when it ends otherwise.
std::optional<std::string_view> WithoutSuffix(std::string_view name, std::string_view suffix);

// `dimension` × `numerator` / `denominator`; nothing when that is no whole number, or too large.
std::optional<std::int64_t> ExactShare(std::int64_t dimension, std::int64_t numerator,
                                       std::int64_t denominator);

// How many values of `count` share one of `scales`: the declared number where it fits, else the
// equal share, else the least power of two that fits, for a last group that is shorter. 0: all of
// them do, or none of these fits.
std::int64_t GroupSize(std::int64_t count, std::int64_t scales, std::int64_t declared);

// The bits and the group size that are declared for a layer, or else for all of them.
DeclaredWeights DeclaredFor(const DeclaredQuantisation& declared, std::string_view layer);

// "config.json, g_idx": the file that declares a quantisation, where one does, and `proof`.
std::string Evidence(const DeclaredQuantisation& declared, std::string_view proof);

// "uint3"
std::string IntegerFormat(std::string_view kind, std::int64_t bits);

// The recognisers. Each returns whether the tensor is codes that it knows.
bool AddQweight(QuantisedLayers& layers, std::int32_t codes);       // GPTQ, AWQ, EETQ
bool AddMlx(QuantisedLayers& layers, std::int32_t codes);           // MLX
bool AddHqq(QuantisedLayers& layers, std::int32_t codes);           // HQQ
bool AddBitsAndBytes(QuantisedLayers& layers, std::int32_t state);  // asked for each quant_state
bool AddWeightPacked(QuantisedLayers& layers, std::int32_t codes);  // compressed-tensors
bool AddBlocks(QuantisedLayers& layers, std::int32_t codes);        // gpt-oss
bool AddScaled(QuantisedLayers& layers, std::int32_t codes);        // a value or two a byte
bool AddOpaque(QuantisedLayers& layers, std::int32_t codes);        // known by name only

}  // namespace fourpiles
