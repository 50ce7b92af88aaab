"""Makes the files of tensor_values_test.cc: tensors that do not lie plainly in their file.

python3 with numpy 1.24 and torch 1.13.1: make_values.py FOLDER
"""
import os
import sys
import zipfile

import numpy as np
import torch

folder = sys.argv[1]

# Deflated members: column-major, big-endian, of several widths.
np.savez_compressed(
    os.path.join(folder, "deflated.npz"),
    fortran=np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    big=np.array([1.5, -2.25, 1e300], dtype=">f8"),
    small=np.array([-32768, -1, 32767], dtype=np.int16),
    large=np.array([2**63, 2**24 + 1], dtype=np.uint64),
    empty=np.zeros((0, 4), dtype=np.float32),
)

# One storage, deflated, that three tensors look at.
base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
path = os.path.join(folder, "views.pt")
torch.save({"base": base, "transposed": base.t(), "part": base[1:, 1:3]}, path + ".stored")
with zipfile.ZipFile(path + ".stored") as stored, zipfile.ZipFile(path, "w") as deflated:
    for name in stored.namelist():
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        deflated.writestr(info, stored.read(name), zipfile.ZIP_DEFLATED)
os.remove(path + ".stored")
