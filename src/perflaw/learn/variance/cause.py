"""Work or interference: whether a function's time varies while the thread is on a CPU, or while it is off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from perflaw.learn.variance.moments import Floats, Stats
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.parts import bootstrap_interval, resampled_weights, sampled_invocations
from perflaw.learn.variance.tree import Tree
from perflaw.types.recordings import CPU, EVENTS, TIME
from perflaw.types.variance import Cause

INTERFERENCE_SHARE: Final = 0.5
"""Share of the variance off the CPU from which on the cause is interference."""


def stats_by_metric(tree: Tree, heads: Sequence[int]) -> dict[str, Stats]:
    """Moments of the invocations of these nodes in every metric that has any."""
    nodes, found = list(heads), {}
    for name, moments in tree.call_tree.moments.items():
        n, x, xx = (sum(column[nodes].tolist()) for column in (moments.n, moments.sum_x, moments.sum_xx))
        if n:
            found[name] = Stats(n, x, xx)
    return found


def find_cause(
    stats: Mapping[str, Stats], metric: str, off_cpu: float | None, options: Options, noise: float = 0.0
) -> Cause:
    """The cause of the variance of a metric; a metric other than time varies by work.

    ``stats`` are moments by metric, ``off_cpu`` is the share of the variance off the CPU, ``noise`` that of the clock.
    """
    if metric not in stats or not stats[metric].is_high(options.high, noise):
        return "steady"
    if metric != TIME.name:
        return "work"
    if off_cpu is not None:
        return "interference" if off_cpu >= INTERFERENCE_SHARE else "work"
    return "work" if EVENTS.name in stats and stats[EVENTS.name].is_high(options.high) else "unknown"


def off_cpu_share(tree: Tree, heads: Sequence[int], stats: Mapping[str, Stats], options: Options) -> float | None:
    """Share of the variance of time that arises off the CPU; None if CPU time is unknown.

    If there are too few samples, it is computed from the two variances, as if waiting did not depend on the work.
    """
    if tree.call_tree.metric.name != TIME.name or TIME.name not in stats:
        return None
    sampled = sampled_invocations(tree, heads)
    if sampled is not None and len(sampled) >= options.least:
        share = _share(sampled.weight, sampled.x, sampled.samples.cpu[sampled.places])
        if np.isfinite(share):
            return share
    cpu, time = stats.get(CPU.name), stats[TIME.name]
    return None if cpu is None or time.variance <= 0 else max(0.0, 1 - cpu.variance / time.variance)


def off_cpu_interval(tree: Tree, heads: Sequence[int]) -> tuple[float | None, float | None]:
    """Bootstrap interval of the share of the variance of time that arises off the CPU; None without samples."""
    sampled = sampled_invocations(tree, heads)
    if sampled is None:
        return None, None
    cpu = sampled.samples.cpu[sampled.places]
    return bootstrap_interval([_share(weight, sampled.x, cpu) for weight in resampled_weights(sampled)])


def _share(weight: Floats, time: Floats, cpu: Floats) -> float:
    """Cov(time − cpu, time)/Var(time) of weighted samples (n,); NaN if the time does not vary."""
    total = weight.sum()
    deviation = time - weight @ time / total
    variance = weight @ (deviation * deviation)
    return float(weight @ ((time - cpu) * deviation) / variance) if variance > 0 else float("nan")
