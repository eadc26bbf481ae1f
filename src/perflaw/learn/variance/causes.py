"""Work or interference: whether time varies while the thread is on a CPU, or while it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from perflaw.learn.variance.options import Options
from perflaw.learn.variance.sampled import interval, resampled, sampled
from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.weighted import Floats
from perflaw.types.explanations import Cause
from perflaw.types.measured import CPU, EVENTS, TIME

MOSTLY: Final = 0.5
"""Share of the variance off the CPU from which on interference is the cause."""
Share = tuple[float | None, float | None, float | None]
"""A share and its interval."""


def stats_by_metric(tree: Tree, heads: Sequence[int]) -> dict[str, Stats]:
    """Moments of the invocations of these nodes in every metric."""
    nodes, found = list(heads), {}
    for name, moments in tree.given.moments.items():
        n, x, xx = (sum(column[nodes].tolist()) for column in (moments.n, moments.sum_x, moments.sum_xx))
        if n:
            found[name] = Stats(n, x, xx)
    return found


def cause(stats: Mapping[str, Stats], metric: str, off: float | None, options: Options, noise: float = 0.0) -> Cause:
    """The verdict. What varies by another metric than time varies by work."""
    if metric not in stats or not stats[metric].is_high(options.high, noise):
        return "steady"
    if metric != TIME.name:
        return "work"
    if off is not None:
        return "interference" if off >= MOSTLY else "work"
    return "work" if EVENTS.name in stats and stats[EVENTS.name].is_high(options.high) else "unknown"


def off_cpu(tree: Tree, heads: Sequence[int], stats: Mapping[str, Stats], options: Options) -> float | None:
    """Share of the variance of the time that comes about off the CPU; None where CPU time is not known."""
    if tree.given.metric.name != TIME.name or TIME.name not in stats:
        return None
    some = sampled(tree, heads)
    if some is not None and len(some) >= options.least:
        share = _share(some.weight, some.x, some.samples.cpu[some.places])
        if np.isfinite(share):
            return share
    return _by_moments(stats)


def off_cpu_interval(tree: Tree, heads: Sequence[int], stats: Mapping[str, Stats], options: Options) -> Share:
    """The same with a 95 % interval where samples give one."""
    share = off_cpu(tree, heads, stats, options)
    some = sampled(tree, heads)
    if share is None or some is None:
        return share, None, None
    cpu = some.samples.cpu[some.places]
    return (share, *interval([_share(weight, some.x, cpu) for weight in resampled(some)]))


def _share(weight: Floats, time: Floats, cpu: Floats) -> float:
    """Cov(time − cpu, time)/Var(time), of weighted samples."""
    total = weight.sum()
    apart = time - weight @ time / total
    variance = weight @ (apart * apart)
    return float(weight @ ((time - cpu) * apart) / variance) if variance > 0 else float("nan")


def _by_moments(stats: Mapping[str, Stats]) -> float | None:
    """From the two variances alone, as if waiting did not depend on the work."""
    cpu, time = stats.get(CPU.name), stats[TIME.name]
    if cpu is None or time.variance <= 0:
        return None
    return max(0.0, 1 - cpu.variance / time.variance)
