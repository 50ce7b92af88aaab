#pragma once

// .npy: one array of NumPy, a header and the data (npy_header.h). .npz: a zip archive of them, one
// a member, stored or deflated.

#include "base/byte_source.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// The array, whose name is empty. Arrays of Python objects are a pickle: they are reported, and
// nothing of them is read or listed. The facts are "version", that of the header, and "data_start".
FileReading ReadNpy(const ByteSource& source);

// The arrays, each named as its member without ".npy". The fact is "members".
FileReading ReadNpz(const ByteSource& source);

}  // namespace fourpiles
