#!/usr/bin/env python3
"""What NumPy and PyTorch need for one format of an audit: see audit_bench.

Arguments: LIBRARY (numpy, torch), DTYPE (float32, bfloat16), FILE, OFFSET of the values. Prints the
seconds of the fastest of three runs: the file is read, the values are rounded to float16, then
overflow, underflow, subnormal and changed values are counted and the signal to noise is computed.
"""
import math
import sys
import time

library, dtype, path, offset = sys.argv[1:5]
offset = int(offset)


def with_numpy():
    import numpy as np
    if dtype == "bfloat16":  # NumPy has none: the upper half of a float32
        x = (np.fromfile(path, np.uint16, offset=offset).astype(np.uint32) << 16).view(np.float32)
    else:
        x = np.fromfile(path, np.float32, offset=offset)
    with np.errstate(over="ignore"):
        r = x.astype(np.float16).astype(np.float32)
    finite = np.isfinite(x)
    magnitude = np.abs(r)
    counts = ((np.isinf(r) & finite).sum(), ((r == 0) & (x != 0)).sum(),
              ((r != 0) & (magnitude < 2.0**-14)).sum(), ((r != x) & finite).sum())
    error = float(np.square(np.clip(r, -65504, 65504) - x, dtype=np.float64).sum())
    return counts, 10 * math.log10(float(np.square(x, dtype=np.float64).sum()) / error)


def with_torch():
    import numpy as np
    import torch
    torch.set_num_threads(2)
    raw = torch.from_numpy(np.fromfile(path, np.int16 if dtype == "bfloat16" else np.float32, offset=offset))
    x = (raw.view(torch.bfloat16) if dtype == "bfloat16" else raw).float()
    r = x.half().float()
    finite = torch.isfinite(x)
    counts = ((torch.isinf(r) & finite).sum(), ((r == 0) & (x != 0)).sum(),
              ((r != 0) & (r.abs() < 2.0**-14)).sum(), ((r != x) & finite).sum())
    error = float((r.clamp(-65504, 65504) - x).double().square().sum())
    return counts, 10 * math.log10(float(x.double().square().sum()) / max(error, 1e-300))


run = with_numpy if library == "numpy" else with_torch
best = math.inf
for _ in range(3):
    start = time.perf_counter()
    run()
    best = min(best, time.perf_counter() - start)
print(best)
