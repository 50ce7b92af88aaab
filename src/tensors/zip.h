#pragma once

// zip: members one behind the other, each behind a local header, and at the end a directory that
// says where they lie (PKWARE's APPNOTE.TXT 6.3.10). PyTorch, NumPy and Keras put tensors into it.
//
// Programs that read only the directory see other members than those that read only the local
// headers, wherever the two disagree: what one of them checks, the other loads. So both are read,
// and a member on which they disagree is refused.

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

enum class ZipMethod { kStored, kDeflated };

struct ZipMember {
  std::string name = {};  // as in the archive: any bytes
  ZipMethod method = ZipMethod::kStored;
  std::int64_t offset = 0;        // of its data in the source; that of a stored one is read there
  std::int64_t packed_bytes = 0;  // of its data in the source
  std::int64_t bytes = 0;         // unpacked; of a stored one the same
  std::uint32_t crc = 0;          // CRC-32 of the unpacked bytes
};

struct ZipDirectory {
  // Those that can be trusted, in the order of the directory: names are unlike, and data lies
  // within the source and overlaps no other. Folders are members too, of no bytes; their names end
  // in "/".
  std::vector<ZipMember> members = {};
  // What is wrong with the others, and what is odd.
  std::vector<Finding> findings = {};
};

// Reads directory and local headers of an archive that is the whole source; for one within a file
// give a SliceSource. No member is unpacked. An error: there is no directory, or it cannot be read.
Result<ZipDirectory> ReadZip(const ByteSource& source);

// A member of more than 1 MiB unpacked, and of more than 200 times its packed bytes.
bool IsDense(const ZipMember& member);

// The unpacked bytes. An error when they are more than `limit`, when the member is dense, when it
// does not unpack to its size, or when the CRC is another.
Result<std::string> ReadZipMember(const ByteSource& source, const ZipMember& member,
                                  std::int64_t limit);

// The first `count` unpacked bytes, or all where there are fewer: then the CRC is checked.
Result<std::string> ReadZipBeginning(const ByteSource& source, const ZipMember& member,
                                     std::int64_t count);

}  // namespace fourpiles
