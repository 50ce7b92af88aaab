#pragma once

// A policy of programs, not of the library: how the C library's allocator treats what is freed.

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace fourpiles {

// Keeps what is freed for the next allocation instead of handing it back to the system page by
// page: a search plays a step thousands of times, each play needs the same few hundred KiB, of a
// mixture with an action for each expert a hundred MiB, and fresh pages cost more than the play.
// Answers are the same without it.
inline void KeepFreedMemory() {
#if defined(__GLIBC__)
  constexpr int kMostKept = 512 << 20;
  mallopt(M_TRIM_THRESHOLD, kMostKept);
  mallopt(M_MMAP_THRESHOLD, kMostKept);
#endif
}

}  // namespace fourpiles
