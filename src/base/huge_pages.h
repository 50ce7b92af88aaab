#pragma once

// Large arrays that are filled once, on pages of 2 MiB where the system has them: a hundred
// thousand small pages cost more than what is written to them. Only speed depends on it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/mman.h>

namespace fourpiles {

// Reserves room for so many elements, on huge pages where it is large.
template <class T>
void ReserveOnHugePages(std::vector<T>& elements, std::size_t count) {
  elements.reserve(count);
#if defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  // Of the whole pages within the array; a system without them answers with an error.
  const auto begin = (reinterpret_cast<std::uintptr_t>(elements.data()) + kPage - 1) & ~(kPage - 1);
  const auto end =
      reinterpret_cast<std::uintptr_t>(elements.data() + elements.capacity()) & ~(kPage - 1);
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
}

}  // namespace fourpiles
