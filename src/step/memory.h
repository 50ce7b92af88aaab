#pragma once

// The memory of one rank while its part is played: which storages are alive, by whom they are held.
//
// A Tensor here is what it is in PyTorch, a view of a storage that it keeps alive: a rule that is
// written as the framework's code is written, holds and lets go of memory as that code does.
// Nothing is computed but sizes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
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
// Of a frozen weight that is kept as codes and scales, which a product makes numbers of again.
inline constexpr ElementType kCodes = {"codes", 4};
inline bool IsCoded(const ElementType& type) {
  return type.name == kCodes.name;
}
ElementType TypeOf(const NumberFormat& format);

inline constexpr std::int32_t kNothing = -1;

class Memory {
 public:
  // The tape has the resident storages already; nobody here holds them.
  explicit Memory(Tape& tape);

  // The kernel that runs now; everything allocated until the next one is born at its moment.
  void Begin(const Kernel& kernel);
  const Kernel& Now() const { return tape_.moments.back(); }
  Moment NowMoment() const { return std::ssize(tape_.moments) - 1; }

  // A new storage with one holder. Sizes past 2^53 bytes are remembered, see Overflow().
  std::int32_t Allocate(const Shape& shape, const ElementType& type, Pile pile, const char* slot);
  void Hold(std::int32_t storage) {
    if (storage != kNothing) {
      ++holders_[Index(storage)];
    }
  }
  void LetGo(std::int32_t storage) {
    if (storage != kNothing && !closed_ && --holders_[Index(storage)] == 0) {
      At(storage).dies = std::ssize(tape_.moments);
    }
  }
  // The kernel that runs holds it for the backward pass.
  void Keep(std::int32_t storage) {
    if (storage != kNothing) {
      Hold(storage);
      Assign(storage, Pile::kActivations);
      Storage& kept = At(storage);
      kept.kept = kept.kept < 0 ? std::ssize(tape_.moments) - 1 : kept.kept;
    }
  }
  // Nothing but the asker holds it.
  bool HasOneHolder(std::int32_t storage) const {
    return storage != kNothing && holders_[Index(storage)] == 1;
  }
  // From its birth it was part of this pile.
  void Assign(std::int32_t storage, Pile pile) {
    if (storage != kNothing) {
      At(storage).pile = pile;
    }
  }

  // Storages allocated from now on stand for so many alike.
  void SetCopies(std::int64_t copies) { copies_ = copies; }
  // The same of kernels that run for one of so many alike: experts of a layer. Theirs multiply.
  void SetAlike(std::int32_t alike) { alike_ = alike; }
  std::int32_t Alike() const { return alike_; }
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
  std::int32_t alike_ = 1;
  bool closed_ = false;
  std::optional<Kernel> overflow_ = {};
};

// A view of a storage, and its place in the graph of gradients. Tensors of parameters and of the
// batch have no storage here: they are resident.
class Tensor {
 public:
  Tensor() = default;
  // Takes over one hold on the storage.
  Tensor(Memory* memory, std::int32_t held, const Shape& lengths, const ElementType& element)
      : shape(lengths), type(element), storage(held), memory_(memory) {}
  Tensor(const Tensor& other)
      : shape(other.shape),
        type(other.type),
        storage(other.storage),
        edge(other.edge),
        is_gathered(other.is_gathered),
        made_of(other.made_of),
        memory_(other.memory_) {
    if (memory_ != nullptr) {
      memory_->Hold(storage);
    }
  }
  Tensor(Tensor&& other) noexcept
      : shape(other.shape),
        type(other.type),
        storage(std::exchange(other.storage, kNothing)),
        edge(other.edge),
        is_gathered(other.is_gathered),
        made_of(std::move(other.made_of)),
        memory_(std::exchange(other.memory_, nullptr)) {}
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    const std::int32_t old = std::exchange(storage, std::exchange(other.storage, kNothing));
    Memory* const memory = std::exchange(memory_, std::exchange(other.memory_, nullptr));
    shape = other.shape;
    type = other.type;
    edge = other.edge;
    is_gathered = other.is_gathered;
    made_of = std::exchange(other.made_of, nullptr);
    if (memory != nullptr) {
      memory->LetGo(old);
    }
    return *this;
  }
  ~Tensor() {
    if (memory_ != nullptr) {
      memory_->LetGo(storage);
    }
  }

  bool RequiresGradient() const { return edge != kNothing; }

  Shape shape = {};
  ElementType type = {};
  std::int32_t storage = kNothing;  // in the tape, or none: resident
  std::int32_t edge = kNothing;     // where its gradient goes, or none: it needs no gradient
  bool is_gathered = false;         // made of what other ranks have too, and gathered again
  // Where the backward pass computes it again rather than keep it: what it is computed from.
  std::shared_ptr<const std::vector<Tensor>> made_of = {};

 private:
  Memory* memory_ = nullptr;
};

}  // namespace fourpiles
