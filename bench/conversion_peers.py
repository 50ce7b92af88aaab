#!/usr/bin/env python3
"""NumPy's and PyTorch's conversions for conversions_bench: into memory that is there already.

Reads lines "LIBRARY FROM TO ELEMENTS THREADS REPEATS" and answers each with the seconds of one run,
or "none" where the library is not installed or does not have the format.
"""
import sys
import time

operations = {}


def numpy_operation(source, target, elements):
    import numpy
    values = numpy.random.default_rng(1).normal(0, 0.02, elements).astype(source)
    out = numpy.empty(elements, target)
    return lambda: numpy.copyto(out, values, casting="unsafe")


def torch_operation(source, target, elements, threads):
    import torch
    torch.set_num_threads(threads)
    values = torch.randn(elements).mul_(0.02).to(getattr(torch, source))
    out = torch.empty(elements, dtype=getattr(torch, target))
    return lambda: out.copy_(values)


def operation_of(library, source, target, elements, threads):
    try:
        if library == "numpy":
            return numpy_operation(source, target, elements)
        return torch_operation(source, target, elements, threads)
    except (ImportError, TypeError, AttributeError):
        return None


for line in sys.stdin:
    *key, repeats = line.split()
    library, source, target, elements, threads = key
    key = tuple(key)
    if key not in operations:
        operations.clear()  # one pair of arrays at a time
        operations[key] = operation_of(library, source, target, int(elements), int(threads))
        if operations[key]:
            operations[key]()
    run = operations[key]
    if run is None:
        print("none", flush=True)
        continue
    start = time.perf_counter()
    for _ in range(int(repeats)):
        run()
    print((time.perf_counter() - start) / int(repeats), flush=True)
