#include "step/memory.h"

#include "formats/storage.h"

namespace fourpiles {

ElementType TypeOf(const NumberFormat& format) {
  return {format.name, StorageBits(format)};
}

Memory::Memory(Tape& tape) : tape_(tape) {
  // As many as the play of a large language model needs, most of whose actions are a layer's.
  constexpr std::size_t kOfAnAction = 64;
  const std::size_t usual = kOfAnAction * tape.actions.size();
  holders_.reserve(tape.storages.size() + usual);
  holders_.resize(tape.storages.size());
  tape_.storages.reserve(tape.storages.size() + usual);
  tape_.moments.reserve(usual);
}

void Memory::Begin(const Kernel& kernel) {
  tape_.moments.push_back(kernel);
  tape_.moments.back().alike = alike_;
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
                            .made = std::ssize(tape_.moments) - 1,
                            .born = std::ssize(tape_.moments) - 1,
                            .copies = copies_ * alike_,
                            .slot = slot});
  holders_.push_back(1);
  return static_cast<std::int32_t>(tape_.storages.size() - 1);
}

}  // namespace fourpiles
