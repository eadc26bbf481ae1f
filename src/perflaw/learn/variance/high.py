"""Whether a cost varies highly (§2.1), and more than the machine makes it.

After a switch the caches are cold: the calls that follow cost more CPU time, whatever they do. On a busy machine that is
so often that it is high variance by itself; so what is high by CPU time must be so without such calls as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from perflaw.learn.variance.options import Options
from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.tree import Tree
from perflaw.types.measured import CPU

ENOUGH: Final = 0.5
"""Part of the invocations that must be undisturbed to say anything."""


def is_high(tree: Tree, heads: Sequence[int], stats: Stats, options: Options) -> bool:
    """Whether the invocations of these nodes, with these moments, are of high variance."""
    if stats.n < options.least or not stats.is_high(options.high, tree.noise):
        return False
    if tree.given.metric.name != CPU.name or not tree.noise or tree.given.samples is None:
        return True
    samples = tree.given.samples
    mine = np.isin(samples.node, np.asarray(heads, dtype=np.int64))
    quiet = mine & ~tree.disturbed
    weight, x = samples.weight[quiet], samples.x[quiet]
    if len(x) < options.least or weight.sum() < ENOUGH * samples.weight[mine].sum():
        return True
    mean = weight @ x / weight.sum()
    return bool(weight @ (x - mean) ** 2 / weight.sum() >= (options.high * mean) ** 2)
