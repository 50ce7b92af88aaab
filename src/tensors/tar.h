#pragma once

// The members of a tar archive: blocks of 512 bytes, of each member a header and then its bytes
// (POSIX.1-2017, pax, "ustar Interchange Format"). They are told where they lie, never extracted.
//
// PyTorch reads its old archives with Python's tarfile. What tarfile and another program would
// read as two different archives is refused: names and sizes of GNU's own headers, sparse files.

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "fourpiles/result.h"

namespace fourpiles {

struct TarMember {
  std::string name = {};
  char type = '0';  // '0' a file, '1' and '2' links, '3' and '4' devices, '5' a folder, '6' a pipe
  std::int64_t offset = 0;  // of its bytes, from the start of the archive
  std::int64_t bytes = 0;   // 0 but of files
};

struct TarDirectory {
  std::vector<TarMember> members = {};
  std::int64_t end = 0;  // the first byte of the blocks of zeros that end the archive
};

// At most 1,000 members. An error of kind kInput where the archive is cut short, or where what
// follows cannot be told.
Result<TarDirectory> ReadTar(const ByteSource& source);

}  // namespace fourpiles
