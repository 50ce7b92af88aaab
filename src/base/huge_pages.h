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
  // The whole pages within the array; a system without them answers with an error.
  constexpr std::size_t kPage = std::size_t{2} << 20;
  const std::size_t bytes = elements.capacity() * sizeof(T);
  const std::size_t before =
      (kPage - reinterpret_cast<std::uintptr_t>(elements.data()) % kPage) % kPage;
  if (bytes >= before + kPage) {
    madvise(reinterpret_cast<char*>(elements.data()) + before, (bytes - before) / kPage * kPage,
            MADV_HUGEPAGE);
  }
#endif
}

}  // namespace fourpiles
