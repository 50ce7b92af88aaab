#pragma once

// The tensor infos of a GGUF file: read one behind the other, then laid out in the data.

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensors/checkpoint.h"
#include "tensors/finding_list.h"
#include "tensors/gguf_values.h"

namespace fourpiles {

// Names of keys and tensors, all together: they are kept, and a file may have millions.
inline constexpr std::int64_t kMostGgufNameBytes = std::int64_t{256} << 20;

// Reads `count` infos. An info whose size cannot be told is left out, with a finding; the others
// have their offset from the start of the data, and no bytes where the type is unknown. An error
// means that nothing behind it can be read. `name_bytes` is what names may still take.
Result<std::vector<FileTensor>> ReadGgufInfos(GgufStream& stream, std::int64_t count,
                                              std::int64_t& name_bytes, FindingList& findings);

struct GgufData {
  std::string_view file = {};
  std::int64_t start = 0;  // of the data in the file
  std::int64_t alignment = 32;
  std::int64_t file_bytes = 0;
};

// Turns offsets into places in the file, gives unknown types the bytes up to the next tensor, and
// leaves out, with a finding, what does not lie within the file, or within another tensor. Says
// where the file is not as llama.cpp has it: in order, without gaps.
void PlaceGgufTensors(std::vector<FileTensor>& tensors, const GgufData& data,
                      FindingList& findings);

}  // namespace fourpiles
