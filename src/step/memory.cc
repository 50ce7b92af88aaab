#include "step/memory.h"

#include <utility>

#include "formats/storage.h"

namespace fourpiles {

ElementType TypeOf(const NumberFormat& format) {
  return {format.name, StorageBits(format)};
}

void Memory::Begin(const Kernel& kernel) {
  tape_.moments.push_back(kernel);
}

std::int32_t Memory::Allocate(const Shape& shape, const ElementType& type, Pile pile,
                              const char* slot) {
  const Checked elements = shape.Elements();
  const Checked bytes = StorageBytes(elements, type.bits);
  if (!bytes.ok() && !overflow_) {
    overflow_ = Now();
  }
  const Bytes size = Bytes(bytes.ok() ? bytes.value() : 0);
  tape_.storages.push_back({.pile = pile,
                            .format = type.name,
                            .shape = shape,
                            .elements = Elements(elements.ok() ? elements.value() : 0),
                            .bytes = Exactly(size),
                            .born = std::ssize(tape_.moments) - 1,
                            .copies = copies_,
                            .slot = slot});
  // Residents come first on the tape and are held by nobody here.
  holders_.resize(tape_.storages.size());
  holders_.back() = 1;
  return static_cast<std::int32_t>(tape_.storages.size() - 1);
}

void Memory::Hold(std::int32_t storage, std::int32_t holders) {
  if (storage != kNothing) {
    holders_[Index(storage)] += holders;
  }
}

void Memory::LetGo(std::int32_t storage) {
  if (storage != kNothing && !closed_ && --holders_[Index(storage)] == 0) {
    At(storage).dies = std::ssize(tape_.moments);
  }
}

void Memory::Keep(std::int32_t storage) {
  Hold(storage);
  Assign(storage, Pile::kActivations);
  if (storage != kNothing && At(storage).kept < 0) {
    At(storage).kept = std::ssize(tape_.moments) - 1;
  }
}

void Memory::Assign(std::int32_t storage, Pile pile) {
  if (storage != kNothing) {
    At(storage).pile = pile;
  }
}

Tensor::Tensor(Memory* memory, std::int32_t held, const Shape& lengths, const ElementType& element)
    : shape(lengths), type(element), storage(held), memory_(memory) {}

Tensor::Tensor(const Tensor& other)
    : shape(other.shape),
      type(other.type),
      storage(other.storage),
      edge(other.edge),
      memory_(other.memory_) {
  if (memory_ != nullptr) {
    memory_->Hold(storage);
  }
}

Tensor::Tensor(Tensor&& other) noexcept
    : shape(other.shape),
      type(other.type),
      storage(std::exchange(other.storage, kNothing)),
      edge(other.edge),
      memory_(std::exchange(other.memory_, nullptr)) {}

Tensor& Tensor::operator=(Tensor other) noexcept {
  std::swap(shape, other.shape);
  std::swap(type, other.type);
  std::swap(storage, other.storage);
  std::swap(edge, other.edge);
  std::swap(memory_, other.memory_);
  return *this;
}

Tensor::~Tensor() {
  if (memory_ != nullptr) {
    memory_->LetGo(storage);
  }
}

}  // namespace fourpiles
