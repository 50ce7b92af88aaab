"""Makes step.pt, a small training checkpoint of PyTorch, and step.json, what bfloat16 and float16
weights would lose of its updates and float16 of its gradients, counted with NumPy in float64; and
groups.bin, two groups of AdamW as PyTorch 2.7 saves them.

python3 with numpy 1.24 and torch 1.13.1: make_step.py FOLDER
"""
import json
import os
import sys

import numpy as np
import torch

folder = sys.argv[1]
torch.manual_seed(0)
BETAS, EPS, STEPS = (0.9, 0.95), 1e-8, 3

weights = {
    "a.weight": torch.randn(24, 16) * 0.1,
    "a.bias": torch.zeros(16),
    "nan": torch.full((5,), float("nan")),
    "empty": torch.zeros(0, 4),
}
parameters = [torch.nn.Parameter(w.clone()) for w in weights.values()]
optimizer = torch.optim.Adam(parameters, lr=1e-3, betas=BETAS, eps=EPS)
for _ in range(STEPS):
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter) * torch.exp(4 * torch.randn_like(parameter) - 8)
    parameters[2].grad[:] = float("nan")
    optimizer.step()
model = dict(zip(weights, (p.detach() for p in parameters)))
gradients = {name: p.grad for name, p in zip(weights, parameters)}
torch.save({"model": model, "optimizer": optimizer.state_dict(), "gradients": gradients},
           os.path.join(folder, "step.pt"))


def to_bfloat16(x):
    mantissa, exponent = np.frexp(x)
    scale = np.ldexp(1.0, 8 - np.maximum(exponent, -125))
    return np.rint(x * scale) / scale


ROUND = {"bfloat16": to_bfloat16, "float16": lambda x: x.astype(np.float16).astype(np.float64)}


def losses(name, index, rate, rounded):
    state = optimizer.state[parameters[index]]
    w, m, v = (t.numpy().astype(np.float64) for t in (model[name], state["exp_avg"], state["exp_avg_sq"]))
    dw = -rate * (m / (1 - BETAS[0] ** STEPS)) / (np.sqrt(v / (1 - BETAS[1] ** STEPS)) + EPS)
    finite = np.isfinite(w) & np.isfinite(dw)
    w, dw = rounded(w[finite]), dw[finite]
    lost = (rounded(w + dw) == w) & (dw != 0)
    return {"lost": int(lost.sum()), "nonzero": int((dw != 0).sum()),
            "not_finite": int((~finite).sum()),
            "mass": float(np.abs(dw).sum()), "lost_mass": float(np.abs(dw[lost]).sum())}


def gradient_counts(exponent):
    g = np.concatenate([t.numpy().astype(np.float64).ravel() for t in gradients.values()])
    g = g[np.isfinite(g) & (g != 0)]
    h = np.abs((g * 2.0**exponent).astype(np.float16).astype(np.float64))
    return {"vanished": int((h == 0).sum()), "subnormal": int(((h > 0) & (h < 2.0**-14)).sum()),
            "overflow": int(np.isinf(h).sum())}


np.seterr(over="ignore")
json.dump({"rates": [{"rate": rate, "formats": {
    fmt: {name: losses(name, i, rate, rounded) for i, name in enumerate(weights)}
    for fmt, rounded in ROUND.items()}} for rate in (1e-2, 1e-3, 1e-4)],
    "gradients": [gradient_counts(k) for k in range(25)]},
    open(os.path.join(folder, "step.json"), "w"), indent=1)

GROUP = {"lr": 2e-4, "betas": (0.9, 0.95), "eps": 1e-8, "decoupled_weight_decay": True}
torch.save({"optimizer": {"state": {}, "param_groups": [
    {**GROUP, "weight_decay": 0.1, "params": [0]}, {**GROUP, "weight_decay": 0, "params": [1]}]}},
    os.path.join(folder, "groups.bin"), _use_new_zipfile_serialization=False)
