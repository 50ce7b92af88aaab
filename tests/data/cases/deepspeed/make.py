# Folders of DeepSpeed's ZeRO, with values that say where they lie: torch.save of PyTorch 1.13 writes what
# deepspeed/runtime/zero/stage_1_and_2.py and stage3.py put into their files. Element i of a parameter is its number
# times 100 plus i; exp_avg has 1000 more, exp_avg_sq 2000 more; padding is -1.
#   /usr/bin/python3 make.py OUT
import math, os, sys, types
from collections import OrderedDict
from enum import Enum
import torch

# Classes under the names that DeepSpeed has for them.
class ZeroStageEnum(int, Enum):
    disabled = 0
    optimizer_states = 1
    gradients = 2
    weights = 3
class LossScaler:
    def __init__(self):
        self.cur_scale = 1
for name, each in (('deepspeed.runtime.zero.config', ZeroStageEnum), ('deepspeed.runtime.fp16.loss_scaler', LossScaler)):
    module = types.ModuleType(name)
    setattr(module, each.__name__, each)
    each.__module__ = name
    parts = name.split('.')
    for i in range(1, len(parts)):
        sys.modules.setdefault('.'.join(parts[:i]), types.ModuleType('.'.join(parts[:i])))
    sys.modules[name] = module

GROUPS = [OrderedDict([('a.weight', (3, 2)), ('a.bias', (5,))]), OrderedDict([('norm', (4,)), ('scale', ())])]
NUMBER = {'a.weight': 1, 'a.bias': 2, 'norm': 3, 'scale': 4}

def elements(name, shape, more):
    return [NUMBER[name] * 100 + i + more for i in range(math.prod(shape))]

def flat2(group, world, more):
    values = [v for name, shape in group.items() for v in elements(name, shape, more)]
    return values, values + [-1] * (-len(values) % (2 * world))

def tensor(values):
    return torch.tensor(values, dtype=torch.float32)

def save(folder, name, value):
    os.makedirs(folder, exist_ok=True)
    torch.save(value, os.path.join(folder, name))

def shapes():
    return [OrderedDict((n, torch.Size(s)) for n, s in group.items()) for group in GROUPS]

def stage2(folder, world):
    module = OrderedDict((n, torch.zeros(s, dtype=torch.bfloat16)) for g in GROUPS for n, s in g.items())
    save(folder, 'mp_rank_00_model_states.pt', {'module': module, 'buffer_names': [], 'param_shapes': shapes(),
         'shared_params': {}, 'frozen_param_shapes': None, 'ds_version': '0.14.0', 'dp_world_size': world})
    for rank in range(world):
        def part(group, more, padded):
            bare, whole = flat2(group, world, more)
            size = len(whole) // world
            return tensor((whole if padded else bare)[rank * size:(rank + 1) * size])
        state = {i: {'step': torch.tensor(2.), 'exp_avg': part(g, 1000, True), 'exp_avg_sq': part(g, 2000, True)}
                 for i, g in enumerate(GROUPS)}
        save(folder, f'bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt', {'optimizer_state_dict': {
            'loss_scaler': LossScaler(), 'base_optimizer_state': {'state': state, 'param_groups': []},
            'single_partition_of_fp32_groups': [part(g, 0, False) for g in GROUPS],
            'zero_stage': ZeroStageEnum.gradients, 'group_paddings': [1, 3], 'partition_count': [world, world],
            'ds_version': '0.14.0'}, 'ds_version': '0.14.0'})

def stage3(folder, world):
    for rank in range(world):
        module = OrderedDict((n, torch.zeros(0, dtype=torch.bfloat16)) for g in GROUPS for n in g)
        module['buffer'] = torch.ones(2)
        module['frozen'] = torch.zeros(0, dtype=torch.bfloat16)
        fragment = tensor([[500, 501], [502, 503], [-1, -1]][rank])  # of 2 x 2, for three ranks
        save(folder, f'zero_pp_rank_{rank}_mp_rank_00_model_states.pt', {'module': module,
             'buffer_names': ['buffer'], 'param_shapes': shapes(), 'shared_params': {}, 'ds_version': '0.14.0',
             'frozen_param_shapes': OrderedDict(frozen=torch.Size((2, 2))),
             'frozen_param_fragments': OrderedDict(frozen=fragment)})
        def part(group, more):
            values = []
            for name, shape in group.items():
                size = -(-math.prod(shape) // world)
                padded = elements(name, shape, more) + [-1] * (size * world - math.prod(shape))
                values += padded[rank * size:(rank + 1) * size]
            return tensor(values)
        state = {i: {'step': 2, 'exp_avg': part(g, 1000), 'exp_avg_sq': part(g, 2000)} for i, g in enumerate(GROUPS)}
        save(folder, f'zero_pp_rank_{rank}_mp_rank_00_optim_states.pt', {'optimizer_state_dict': {
            'zero_stage': ZeroStageEnum.weights, 'loss_scaler': LossScaler(), 'partition_count': world,
            'optimizer_state_dict': {'state': state, 'param_groups': []},
            'fp32_flat_groups': [part(g, 0) for g in GROUPS]}, 'ds_version': '0.14.0'})

out = sys.argv[1]
stage2(f'{out}/zero2/global_step2', 2)
with open(f'{out}/zero2/latest', 'w') as latest:
    latest.write('global_step2')
stage3(f'{out}/zero3', 3)
