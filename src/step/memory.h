#pragma once

// The memory of one rank while its part is played: which storages are alive, by whom they are held.
//
// A Tensor here is what it is in PyTorch, a view of a storage that it keeps alive: a rule that is
// written as the framework's code is written, holds and lets go of memory as that code does.
// Nothing is computed but sizes.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "fourpiles/formats.h"
#include "step/tape.h"

namespace fourpiles {

// What one element is: a number of some format, or an index or a truth value, which frameworks keep
// as well.
struct ElementType {
  std::string_view name = {};
  int bits = 0;
};
inline constexpr ElementType kFloat32 = {"float32", 32};
inline constexpr ElementType kInt64 = {"int64", 64};
inline constexpr ElementType kBool = {"bool", 8};
inline constexpr ElementType kByte = {"uint8", 8};
ElementType TypeOf(const NumberFormat& format);

inline constexpr std::int32_t kNothing = -1;

class Memory {
 public:
  explicit Memory(Tape& tape) : tape_(tape) {}

  // The kernel that runs now; everything allocated until the next one is born at its moment.
  void Begin(const Kernel& kernel);
  const Kernel& Now() const { return tape_.moments.back(); }

  // A new storage with one holder. Sizes past 2^53 bytes are remembered, see Overflow().
  std::int32_t Allocate(const Shape& shape, const ElementType& type, Pile pile, const char* slot);
  void Hold(std::int32_t storage, std::int32_t holders = 1);
  void LetGo(std::int32_t storage);
  // The kernel that runs holds it for the backward pass.
  void Keep(std::int32_t storage);
  // From its birth it was part of this pile.
  void Assign(std::int32_t storage, Pile pile);

  // Storages allocated from now on stand for so many alike.
  void SetCopies(std::int64_t copies) { copies_ = copies; }
  void SetCopies(std::int32_t storage, std::int64_t copies) { At(storage).copies = copies; }

  // The tape is complete: what is still held was alive to the end.
  void Close() { closed_ = true; }

  // The forward pass of a micro-batch has ended.
  void EndForward() { tape_.forward_ends.push_back(std::ssize(tape_.moments)); }
  Storage& At(std::int32_t storage) { return tape_.storages[Index(storage)]; }

  // The first kernel whose memory passed 2^53 bytes, if any.
  const std::optional<Kernel>& Overflow() const { return overflow_; }

 private:
  static std::size_t Index(std::int32_t storage) { return static_cast<std::size_t>(storage); }

  Tape& tape_;
  std::vector<std::int32_t> holders_ = {};  // by storage
  std::int64_t copies_ = 1;
  bool closed_ = false;
  std::optional<Kernel> overflow_ = {};
};

// A view of a storage, and its place in the graph of gradients. Tensors of parameters and of the
// batch have no storage here: they are resident.
class Tensor {
 public:
  Tensor() = default;
  // Takes over one hold on the storage.
  Tensor(Memory* memory, std::int32_t storage, const Shape& shape, const ElementType& type);
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor other) noexcept;
  ~Tensor();

  bool RequiresGradient() const { return edge != kNothing; }

  Shape shape = {};
  ElementType type = {};
  std::int32_t storage = kNothing;  // in the tape, or none: resident
  std::int32_t edge = kNothing;     // where its gradient goes, or none: it needs no gradient

 private:
  Memory* memory_ = nullptr;
};

}  // namespace fourpiles
