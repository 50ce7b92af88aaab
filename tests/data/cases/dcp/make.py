# The folders beside this file, written by PyTorch 1.13 (Debian's python3-torch):
#   /usr/bin/python3 make.py OUT
# two_ranks, alone    torch.distributed._shard.checkpoint, with two processes and with one
# objects             a transposed tensor, which keeps its strides, and objects; one of them names posix.system
# grid                a .metadata with the classes of PyTorch 2, a tensor cut along both dimensions
# and from grid: another type, another shape, a dict, zstd, safetensors, a gap, a call of getattr.
# chunk_outside, chunks_overlap, offset_past_eof and path_escapes are of another hand.
import dataclasses, functools, json, os, pathlib, pickle, shutil, struct, sys, types
from enum import Enum

# Python 3.11 refuses the mutable default that a dataclass of torch 1.13 has; with a hash it passes.
plain_dataclass = dataclasses.dataclass
def with_hash(cls=None, **options):
    if cls is None:
        return functools.partial(with_hash, **options)
    if '__hash__' not in cls.__dict__:
        options['unsafe_hash'] = True
    return plain_dataclass(cls, **options)
dataclasses.dataclass = with_hash

import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.distributed._shard import checkpoint as dcp
from torch.distributed._shard.sharded_tensor import Shard, init_from_local_shards

def run(rank, world, path):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29611', GLOO_SOCKET_IFNAME='lo')
    dist.init_process_group('gloo', rank=rank, world_size=world)
    whole = torch.arange(20, dtype=torch.float32).reshape(5, 4)
    rows = whole[0:3] if rank == 0 else whole[3:5]
    shard = Shard.from_tensor_and_offsets(rows.clone(), [0 if rank == 0 else 3, 0], rank)
    state = {'model.weight': init_from_local_shards([shard], 5, 4), 'model.bias': torch.arange(5, dtype=torch.bfloat16),
             'model.step': 7, 'model.scalar': torch.tensor(3.5, dtype=torch.float64)}
    dcp.save_state_dict(state, dcp.FileSystemWriter(path, single_file_per_rank=True))
    dist.destroy_process_group()

class Evil:
    def __reduce__(self):
        return os.system, ('true',)

# ---- PyTorch 2: stand-ins under the names that its classes have

PACKAGE = 'torch.distributed.checkpoint'
metadata = types.ModuleType(PACKAGE + '.metadata')
filesystem = types.ModuleType(PACKAGE + '.filesystem')
for module in (types.ModuleType(PACKAGE), metadata, filesystem):
    sys.modules[module.__name__] = module

def stand_in(module, name):
    cls = type(name, (), {'__module__': module.__name__, '__init__': lambda self, **fields: self.__dict__.update(fields)})
    setattr(module, name, cls)
    return cls
Metadata, Tensor, Bytes, Chunk, Index, Meta = (stand_in(metadata, name) for name in (
    'Metadata', 'TensorStorageMetadata', 'BytesStorageMetadata', 'ChunkStorageMetadata', 'MetadataIndex', 'StorageMeta'))
Info = stand_in(filesystem, '_StorageInfo')
Format = Enum('_MEM_FORMAT_ENCODING', ['TORCH_CONTIGUOUS_FORMAT', 'TORCH_CHANNELS_LAST', 'TORCH_PRESERVE_FORMAT'],
              module=metadata.__name__, start=0)
metadata._MEM_FORMAT_ENCODING = Format
Format.__reduce_ex__ = lambda self, protocol: (getattr, (Format, self.name))  # as Python 3.11 does
class Properties:
    __module__ = metadata.__name__
    def __getstate__(self):
        return (torch.float32, torch.strided, False, Format.TORCH_CONTIGUOUS_FORMAT, False)
Properties.__name__ = Properties.__qualname__ = 'TensorProperties'
metadata.TensorProperties = Properties

def grid(folder, change=lambda meta, chunks: None):
    whole = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    boxes = [((0, 0), (2, 3)), ((0, 3), (2, 1)), ((2, 0), (1, 3)), ((2, 3), (1, 1))]
    chunks = [whole[r:r + h, c:c + w].clone() for (r, c), (h, w) in boxes]
    tensor = Tensor(properties=Properties(), size=whole.size(),
                    chunks=[Chunk(offsets=torch.Size(o), sizes=torch.Size(s)) for o, s in boxes])
    meta = Metadata(state_dict_metadata={'model.w': tensor}, planner_data={'model.w': ('model', 'w')}, storage_data={},
                    storage_meta=Meta(checkpoint_id=pathlib.PosixPath('/checkpoints/1'), save_id='x'), version='v1.0.0')
    change(meta, chunks)
    os.makedirs(folder)
    with open(f'{folder}/__0_0.distcp', 'wb') as file:
        for (offset, _), chunk in zip(boxes, chunks):
            begin = file.tell()
            file.write(chunk) if isinstance(chunk, bytes) else torch.save(chunk, file)
            meta.storage_data[Index(fqn='model.w', offset=torch.Size(offset), index=0)] = Info(
                relative_path='__0_0.distcp', offset=begin, length=file.tell() - begin,
                transform_descriptors=getattr(meta, 'transforms', None))
    meta.__dict__.pop('transforms', None)
    with open(f'{folder}/.metadata', 'wb') as file:
        pickle.dump(meta, file, protocol=4)

def set_chunk(value):
    return lambda meta, chunks: chunks.__setitem__(1, value)

def gap(meta, chunks):
    meta.state_dict_metadata['model.w'].chunks[1].__dict__['sizes'] = torch.Size((1, 1))

class Getattr:
    def __reduce__(self):
        return getattr, (Format, '__class__')

def getattr_of_class(meta, chunks):
    meta.storage_meta = Getattr()

if __name__ == '__main__':
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    os.chdir(out)
    for name in ('two_ranks', 'alone', 'objects', 'grid', 'other_type', 'other_shape', 'dict', 'zstd', 'safetensors', 'gap', 'getattr'):
        shutil.rmtree(name, ignore_errors=True)
    mp.spawn(run, (2, 'two_ranks'), nprocs=2)
    dcp.save_state_dict({'w': torch.ones(3, 2, dtype=torch.float16), 'empty': torch.zeros(0, 4), 'number': torch.arange(4),
                         'note': {'lr': 0.1}}, dcp.FileSystemWriter('alone'), no_dist=True)
    dcp.save_state_dict({'t': torch.arange(6, dtype=torch.float32).reshape(2, 3).t(), 'text': 'a', 'real': 0.5, 'yes': True,
                         'evil': Evil()}, dcp.FileSystemWriter('objects', single_file_per_rank=True), no_dist=True)
    grid('grid')
    grid('other_type', set_chunk(torch.zeros(2, 1, dtype=torch.float16)))
    grid('other_shape', set_chunk(torch.zeros(1, 2)))
    grid('dict', set_chunk({'w': torch.zeros(2, 1)}))  # loading it fails: a dict has no narrow()
    grid('zstd', lambda meta, chunks: setattr(meta, 'transforms', ['zstd']))
    header = json.dumps({'model.w': {'dtype': 'F32', 'shape': [2, 1], 'data_offsets': [0, 8]}}).encode()
    grid('safetensors', set_chunk(struct.pack('<Q', len(header)) + header + bytes(8)))
    grid('gap', gap)
    grid('getattr', getattr_of_class)
