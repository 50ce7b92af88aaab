#!/usr/bin/env python3
"""Times `fourpiles inspect` on headers alone, beside Python's json + struct, in one run.

    bench/inspect_bench.py build/release/cli/fourpiles [FOLDER]

Makes the files in FOLDER (a temporary one by default): sparse, so that they take no space. Prints
the processor time of each whole process, the median of several runs, and the ratio of the two.
"""

import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile

READ_WITH_PYTHON = """
import json, struct, sys
tensors = parameters = 0
for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
    for name, entry in header.items():
        if name != '__metadata__':
            count = 1
            for dimension in entry['shape']:
                count *= dimension
            tensors += 1
            parameters += count
print(tensors, parameters)
"""


SIZES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}


def write_safetensors(path, tensors):
    """A file of (name, dtype, shape); its data is a hole."""
    entries, offset = [], 0
    for name, dtype, shape in tensors:
        size = SIZES[dtype]
        for dimension in shape:
            size *= dimension
        entries.append('"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}'
                       % (name, dtype, json.dumps(shape), offset, offset + size))
        offset += size
    header = ("{" + ",".join(entries) + "}").encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + offset)


def make_shards(folder):
    """163 shards with 91,000 tensors: DeepSeek-V3's experts in float8 with their scales, and norms."""
    tensors = []
    for layer in range(3, 61):
        for expert in range(256):
            for part in ("gate", "up", "down"):
                name = "model.layers.%d.mlp.experts.%d.%s_proj.weight" % (layer, expert, part)
                tensors.append((name, "F8_E4M3", [2048, 7168]))
                tensors.append((name + "_scale_inv", "F32", [16, 56]))
    tensors += [("model.layers.%d.norm%d.weight" % (layer, i), "BF16", [7168])
                for layer in range(61) for i in range(32)]
    tensors = tensors[:91000]
    shards = 163
    weight_map = {}
    for shard in range(shards):
        file = "model-%05d-of-%06d.safetensors" % (shard + 1, shards)
        own = tensors[shard * len(tensors) // shards:(shard + 1) * len(tensors) // shards]
        write_safetensors(os.path.join(folder, file), own)
        weight_map.update((name, file) for name, _, _ in own)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as index:
        json.dump({"metadata": {}, "weight_map": weight_map}, index)
    with open(os.path.join(folder, "config.json"), "w") as config:
        json.dump({"model_type": "deepseek_v3",
                   "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
                  config)


def make_long_header(path):
    """A header of about 97 MB: 850,000 tensors."""
    write_safetensors(path, [("model.layers.%d.mlp.experts.%d.up_proj.w" % (i % 64, i), "BF16",
                              [16, 8]) for i in range(850000)])


def processor_seconds(command):
    """User and system time of the whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(what, program, path, files, repeats):
    ours, pythons = [], []
    for _ in range(repeats):
        ours.append(processor_seconds([program, "inspect", path]))
        pythons.append(processor_seconds([sys.executable, "-c", READ_WITH_PYTHON] + files))
    own, python = statistics.median(ours), statistics.median(pythons)
    print("%-32s fourpiles %8.1f ms   json + struct %8.1f ms   ratio %.2f"
          % (what, own * 1e3, python * 1e3, own / python))


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        shards = os.path.join(folder, "shards")
        os.mkdir(shards)
        make_shards(shards)
        files = sorted(os.path.join(shards, name) for name in os.listdir(shards)
                       if name.endswith(".safetensors"))
        compare("163 shards, 91,000 tensors", program, shards, files, 7)
        long_header = os.path.join(folder, "long.safetensors")
        make_long_header(long_header)
        compare("a header of %d MB" % (struct.unpack("<Q", open(long_header, "rb").read(8))[0] / 1e6),
                program, long_header, [long_header], 3)
        small = os.path.join(folder, "small.safetensors")
        write_safetensors(small, [("model.layers.%d.norm.weight" % i, "BF16", [4])
                                  for i in range(60)])
        compare("a file of %d bytes" % os.path.getsize(small), program, small, [small], 200)


if __name__ == "__main__":
    main()
