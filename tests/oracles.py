"""AdamW written down a second time, slowly, for tests to compare with. Shares no code with the package."""

from __future__ import annotations

import numpy as np
import torch


class Float64AdamW:
    """Loshchilov & Hutter (2019), Algorithm 2, in float64, on copies of the given parameters."""

    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        self.weights = [p.detach().double().numpy().copy() for p in parameters]
        self.m = [np.zeros_like(w) for w in self.weights]
        self.v = [np.zeros_like(w) for w in self.weights]
        self.t = 0
        self.lr, self.betas, self.eps, self.decay = lr, betas, eps, weight_decay

    def step(self, gradients):
        self.t += 1
        b1, b2 = self.betas
        for i, g in enumerate(gradients):
            g = g.detach().double().numpy()
            self.weights[i] -= self.lr * self.decay * self.weights[i]
            self.m[i] = b1 * self.m[i] + (1 - b1) * g
            self.v[i] = b2 * self.v[i] + (1 - b2) * g * g
            mhat, vhat = self.m[i] / (1 - b1**self.t), self.v[i] / (1 - b2**self.t)
            self.weights[i] -= self.lr * mhat / (np.sqrt(vhat) + self.eps)


class MasterAdamW:
    """AdamW with a float32 master kept apart in full, in NumPy float32, the 16-bit weight rounded from it at each step."""

    def __init__(self, parameter, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        self.dtype = parameter.dtype
        self.master = parameter.detach().float().numpy().copy()
        self.m, self.v = np.zeros_like(self.master), np.zeros_like(self.master)
        self.t = 0
        self.lr, self.betas, self.eps, self.decay = lr, betas, eps, weight_decay

    def step(self, gradient):
        self.t += 1
        f = np.float32
        b1, b2 = self.betas
        g = gradient.detach().float().numpy()
        self.master = self.master * f(1 - self.lr * self.decay)
        self.m = self.m + f(1 - b1) * (g - self.m)
        self.v = self.v * f(b2) + f(1 - b2) * g * g
        denominator = np.sqrt(self.v) / f(np.sqrt(1 - b2**self.t)) + f(self.eps)
        self.master = self.master - f(self.lr / (1 - b1**self.t)) * (self.m / denominator)

    def weight(self):
        """The master rounded to the model's dtype; bfloat16 by exact comparison of the two neighbours, ties away from zero."""
        if self.dtype != torch.bfloat16:
            return torch.from_numpy(self.master.copy()).to(self.dtype)
        magnitude = np.abs(self.master)
        below = (magnitude.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        above = ((magnitude.view(np.uint32) & np.uint32(0xFFFF0000)) + np.uint32(0x10000)).view(np.float32)
        low, high = below.astype(np.float64), above.astype(np.float64)
        nearest = np.where(magnitude.astype(np.float64) - low < high - magnitude.astype(np.float64), below, above)
        return torch.from_numpy(np.copysign(nearest, self.master)).to(torch.bfloat16)
