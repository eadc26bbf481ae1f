"""A clock that the measured function itself advances, with noise: growth is known exactly, and no machine is."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


class Machine:
    """A function of known cost on a machine of known noise."""

    def __init__(self, cost: Callable[[int], float], noise: float = 0.0, bursts: float = 0.0, seed: int = 0) -> None:
        """``noise``: standard deviation of the logarithm of a call's time; ``bursts``: share of calls 10 times as long."""
        self.cost, self.noise, self.bursts = cost, noise, bursts
        self.random = np.random.default_rng(seed)
        self.now = 0.0

    def clock(self) -> int:
        """Time, ns."""
        return math.floor(self.now)

    def run(self, n: int) -> None:
        """A call at size n."""
        factor = math.exp(self.noise * self.random.standard_normal()) if self.noise else 1.0
        if self.bursts and self.random.random() < self.bursts:
            factor *= 10.0
        self.now += self.cost(n) * factor
