"""Measures what layers with adapters keep for the backward pass: the figures of
src/step/adapters_test.cc. A module for each kind does the operations that peft's forward does; the
storages that its graph still holds afterwards are counted, without parameters, buffers and what
comes in. Needs PyTorch (1.13.1 was used, Debian's python3-torch); no part of the build or the tests.

    OMP_NUM_THREADS=1 /usr/bin/python3 tests/truth/measure_adapters.py
"""

import weakref

import torch
import torch.nn.functional as F

SAMPLES, TOKENS, INPUTS, OUTPUTS, RANK = 2, 8, 24, 40, 4
HEADS, WIDTH, TRAINED_TOKENS, VOCABULARY = 2, 12, 5, 30


class Box:
    """What the graph holds: gone when the graph lets go of it."""

    def __init__(self, tensor):
        self.tensor = tensor


def kept_bytes(run, given):
    boxes = []

    def pack(tensor):
        box = Box(tensor)
        boxes.append(weakref.ref(box))
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        output = run()
    alive = [box().tensor for box in boxes if box() is not None]
    known = {tensor.storage().data_ptr() for tensor in given if tensor is not None}
    storages = {}
    for tensor in alive:
        if tensor.dim() > 0 and tensor.storage().data_ptr() not in known:
            storages[tensor.storage().data_ptr()] = tensor.storage().nbytes()
    del output
    return sum(storages.values())


def trained(*shape):
    return torch.randn(*shape, requires_grad=True)


def linear_case(kind, bias, dropout, dtype, needs_gradient):
    x = torch.randn(SAMPLES, TOKENS, INPUTS).to(dtype)
    x.requires_grad_(needs_gradient)
    weight = torch.randn(OUTPUTS, INPUTS).to(dtype)
    offset = torch.randn(OUTPUTS).to(dtype) if bias else None
    down, up = trained(RANK, INPUTS), trained(OUTPUTS, RANK)
    lengths = trained(OUTPUTS)
    of_rank, of_output = trained(RANK), trained(OUTPUTS)
    of_input = trained(1, INPUTS)
    random_down, random_up = torch.randn(RANK, INPUTS + 3), torch.randn(OUTPUTS + 5, RANK)

    def drop(tensor):
        return F.dropout(tensor, dropout) if dropout else tensor

    def lora():
        y = F.linear(x, weight, offset)
        z = F.linear(F.linear(drop(x.to(down.dtype)), down), up) * 2.0
        return (y + z).to(dtype)

    def dora():
        y = F.linear(x, weight, offset)
        wide = drop(x.to(down.dtype))
        whole = F.linear(F.linear(torch.eye(INPUTS, dtype=wide.dtype), down), up).T.detach()
        copy = weight.to(wide.dtype)
        norm = torch.linalg.norm(copy + 2.0 * whole, dim=1).detach()
        factor = (lengths / norm).view(1, -1)
        product = F.linear(F.linear(wide, down), up)
        if dropout:
            base = F.linear(wide, copy)
        else:
            base = y if offset is None else y - offset
        return (y + ((factor - 1) * base + factor * product * 2.0)).to(dtype)

    def vera():
        y = F.linear(x, weight, offset)
        z = of_rank * F.linear(drop(x.to(of_rank.dtype)), random_down[:, :INPUTS])
        return (y + of_output * F.linear(z, random_up[:OUTPUTS])).to(dtype)

    def ia3_output():
        factor = 1 * of_output.view(-1, 1).flatten()
        return (F.linear(x, weight, offset) * factor).to(dtype)

    def ia3_input():
        factor = 1 * of_input.flatten()
        return F.linear((x.to(of_input.dtype) * factor).to(dtype), weight, offset)

    run = {'lora': lora, 'dora': dora, 'vera': vera, 'ia3 output': ia3_output,
           'ia3 input': ia3_input}[kind]
    given = [x, weight, offset, down, up, lengths, of_rank, of_output, of_input, random_down,
             random_up]
    return kept_bytes(run, given)


def prefix_case(key_value_heads, dtype, needs_gradient):
    x = torch.randn(SAMPLES, TOKENS, INPUTS).to(dtype)
    x.requires_grad_(needs_gradient)
    q_weight = torch.randn(HEADS * WIDTH, INPUTS).to(dtype)
    k_weight = torch.randn(key_value_heads * WIDTH, INPUTS).to(dtype)
    v_weight = torch.randn(key_value_heads * WIDTH, INPUTS).to(dtype)
    table = trained(TRAINED_TOKENS, 2 * key_value_heads * WIDTH)

    def heads(weight, count):
        return F.linear(x, weight).view(SAMPLES, TOKENS, count, WIDTH).transpose(1, 2)

    def repeated(tensor):
        if key_value_heads == HEADS:
            return tensor
        tokens = tensor.shape[2]
        shape = (SAMPLES, key_value_heads, HEADS // key_value_heads, tokens, WIDTH)
        return tensor[:, :, None].expand(*shape).reshape(SAMPLES, HEADS, tokens, WIDTH)

    def attention():
        numbers = torch.arange(TRAINED_TOKENS).unsqueeze(0).expand(SAMPLES, -1).contiguous()
        before = F.embedding(numbers, table).to(dtype)
        before = before.view(SAMPLES, TRAINED_TOKENS, 2, key_value_heads, WIDTH)
        before = before.permute(2, 0, 3, 1, 4)
        k = repeated(torch.cat([before[0], heads(k_weight, key_value_heads)], dim=-2))
        v = repeated(torch.cat([before[1], heads(v_weight, key_value_heads)], dim=-2))
        scores = torch.matmul(heads(q_weight, HEADS), k.transpose(2, 3)) * 0.3
        mixed = torch.matmul(torch.softmax(scores, -1), v)
        return mixed.transpose(1, 2).contiguous().view(SAMPLES, TOKENS, HEADS * WIDTH)

    return kept_bytes(attention, [x, q_weight, k_weight, v_weight, table])


def embedding_cases(dtype):
    weight = torch.randn(VOCABULARY, INPUTS).to(dtype)
    down, up = trained(RANK, VOCABULARY), trained(INPUTS, RANK)
    prompt = trained(TRAINED_TOKENS, INPUTS)
    tokens = torch.randint(0, VOCABULARY, (SAMPLES, TOKENS))

    def lora():
        y = F.embedding(tokens, weight)
        return (y + (F.embedding(tokens, down.T) @ up.T) * 2.0).to(dtype)

    def prepend():
        numbers = torch.arange(TRAINED_TOKENS).unsqueeze(0).expand(SAMPLES, -1).contiguous()
        return torch.cat([F.embedding(numbers, prompt).to(dtype), F.embedding(tokens, weight)], 1)

    return kept_bytes(lora, [weight, down, up, tokens]), kept_bytes(
        prepend, [weight, prompt, tokens])


def main():
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        for needs_gradient in (True, False):
            for kind in ('lora', 'dora', 'vera', 'ia3 output', 'ia3 input'):
                for dropout in (0.0,) if kind.startswith('ia3') else (0.0, 0.1):
                    for bias in (False, True):
                        print(dtype, 'gradient' if needs_gradient else 'start', kind, dropout,
                              'bias' if bias else 'plain',
                              linear_case(kind, bias, dropout, dtype, needs_gradient))
            for key_value_heads in (2, 1):
                print(dtype, 'gradient' if needs_gradient else 'start', 'prefix', key_value_heads,
                      prefix_case(key_value_heads, dtype, needs_gradient))
        print(dtype, 'embedding lora, prompt', embedding_cases(dtype))


if __name__ == '__main__':
    main()
