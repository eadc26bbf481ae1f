"""Whether a cost varies highly (§2.1), and more than the machine makes it.

After a switch the caches are cold: the calls that follow cost more CPU time, whatever they do. And in phases the machine is
slower, for all code. On a busy machine that is high variance by itself; so what is high by CPU time must be so without calls
after a switch as well, after the machine's speed is divided out, and more than all other code of that length varies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from perflaw.learn.variance.options import Options
from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.weighted import Floats
from perflaw.types.measured import CPU

ENOUGH: Final = 0.5
"""Part of the invocations that must be undisturbed to say anything."""


def is_high(tree: Tree, heads: Sequence[int], stats: Stats, options: Options) -> bool:
    """Whether the invocations of these nodes, with these moments, are of high variance."""
    if stats.n < options.least or not stats.is_high(options.high, tree.noise):
        return False
    if tree.given.metric.name != CPU.name or not tree.noise or tree.given.samples is None:
        return True
    bound = 1 + options.high**2
    assert tree.nodewise is not None and tree.alike is not None
    mean = max(stats.x / stats.n, 1.0)
    if stats.xx / stats.n / mean**2 / tree.alike.squares(mean) < bound:
        return False
    x, speed, weight = _quiet(tree, heads)
    if weight.sum() < ENOUGH * stats.n or (len(x) < options.least and not tree.nodewise.complete):
        return True
    machine = max(_squares(speed, weight), tree.alike.squares(mean, quiet=True))
    most = _squares(x, weight) / machine  # of a product of independent factors they multiply
    return min(most, _squares(x / speed, weight)) >= bound


def _squares(x: Floats, weight: Floats) -> float:
    """E[x²]/E[x]², 1 + CoV²."""
    mean = float(weight @ x / weight.sum())
    return float(weight @ (x * x) / weight.sum()) / mean**2 if mean > 0 else 1.0


def _quiet(tree: Tree, heads: Sequence[int]) -> tuple[Floats, Floats, Floats]:
    """Costs of undisturbed invocations, the machine's factor then, and how many invocations each speaks for."""
    samples, by_node = tree.given.samples, tree.nodewise
    assert samples is not None and by_node is not None
    nodes = np.asarray(heads, dtype=np.int64)
    quiet = np.isin(samples.node, nodes) & ~tree.disturbed
    unseen = np.isin(by_node.node, nodes)
    x = np.concatenate([samples.x[quiet], by_node.value[unseen]])
    speed = np.concatenate([tree.speed[quiet], np.ones(np.count_nonzero(unseen))])
    return x, speed, np.concatenate([by_node.weight[quiet], by_node.count[unseen]])
