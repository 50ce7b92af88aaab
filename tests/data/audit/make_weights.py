"""Makes the files beside it: numpy 1.24, seed 0. Checkpoints small enough to look at.

weights.npz    an embedding, an ordinary matrix, one with an outlier channel and one that float16
               cannot hold, a mask, whole numbers
converted.npz  the same in float16 as a careless conversion has them: clipped, a tensor left out,
               another one transposed, one stored twice as large
broken.npz     NaN, nothing at all, zeros
state.npz      weights with Adam's moments after 1,000 steps: updates of about the learning rate
odd_state.npz  the same, where a moment is of another shape
gradients.npz  gradients over 30 binades, one of 100
"""
import pathlib

import numpy as np

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(0)


def normal(deviation, *shape):
    return rng.normal(0, deviation, shape).astype(np.float32)


weights = {
    "embed.weight": normal(1, 8, 32).astype(np.float16),
    "layers.0.attn.weight": normal(0.02, 16, 64),
    "layers.0.mlp.weight": normal(0.02, 16, 64),
    "layers.1.attn.weight": normal(1e-8, 4, 64),
    "head.weight": normal(1, 4, 64),
    "mask": np.triu(np.full((4, 4), -np.inf, np.float32), 1),
    "steps": np.array(800),
}
weights["layers.0.mlp.weight"][3] *= 60
weights["head.weight"][1, 5] = 70000
np.savez_compressed(here / "weights.npz", **weights)

converted = {name: np.clip(w, -65504, 65504).astype(np.float16) for name, w in weights.items() if w.ndim == 2}
converted["layers.0.attn.weight"] *= 2
converted["embed.weight"] = converted["embed.weight"].T.copy()
del converted["layers.1.attn.weight"]
converted["extra.bias"] = np.zeros(4, np.float16)
converted["mask"] = weights["mask"]
np.savez_compressed(here / "converted.npz", **converted)

np.savez(here / "broken.npz", nan=np.full(4, np.nan, np.float32), empty=np.zeros((0, 3), np.float32), zero=np.zeros(4, np.float32))

state = {"fc.weight": normal(0.05, 16, 32), "norm.weight": np.ones(16, np.float32)}
for name, w in list(state.items()):
    state["exp_avg." + name] = normal(1e-4, *w.shape)
    state["exp_avg_sq." + name] = np.full(w.shape, 1e-8, np.float32)
state["step"] = np.array(1000, np.float32)
np.savez_compressed(here / "state.npz", **state)
np.savez_compressed(here / "odd_state.npz", **{**state, "exp_avg.fc.weight": normal(1e-4, 32, 16)})

gradients = {"fc.weight": np.exp2(rng.uniform(-30, -1, (16, 32))).astype(np.float32), "norm.weight": normal(1e-3, 16)}
gradients["norm.weight"][3] = 100
np.savez_compressed(here / "gradients.npz", **gradients)
