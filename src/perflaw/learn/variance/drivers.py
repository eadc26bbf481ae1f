"""What drives a varying part: the feature of the arguments that its calls or its cost follow, by the law learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from perflaw.laws.printing import learnt_text
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.series import Series, learn
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.parts import OWN, Parts, parts_of, split
from perflaw.learn.variance.sampled import Sampled, interval, parts_matrix, resampled, sampled
from perflaw.learn.variance.sums import Stats
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.weighted import Floats
from perflaw.types import Law
from perflaw.types.recordings import CPU, EVENTS, TIME
from perflaw.types.variance import Cause, Driver

MOST_PARTS: Final = 3
"""Parts whose driver is looked for, those of the largest shares."""
MOST_ROWS: Final = 300
"""Sampled invocations that a law is learnt from."""
LEAST_ROWS: Final = 20
READ: Final = 0.9
"""A feature counts where it was read of at least this part of the sample."""
FEW_VALUES: Final = 6
"""Values of a feature that are too few for a law."""
EACH: Final = 3
"""Invocations of each of them."""
GOOD: Final = 0.5
"""Share of the variance that a driver explains."""


def drivers(tree: Tree, heads: Sequence[int], options: Options) -> tuple[Driver, ...]:
    """Drivers of the largest parts of some contexts of one function; none where no law holds."""
    some = sampled(tree, heads)
    if some is None or np.isnan(some.samples.y[np.isin(some.samples.of, some.places)]).any():
        return ()
    rows = _rows(some)
    if len(rows) < LEAST_ROWS:
        return ()
    features = {name: values[rows] for name, values in _features(some, rows).items()}
    parts = parts_of(tree, heads)
    if not features or parts.total.spread <= 0:
        return ()
    chosen = _largest(parts, options)
    series = [
        Series(name, y[rows], features, weights=some.weight[rows]) for name, y in _responses(tree, some, parts, chosen)
    ]
    laws = [one.law for one in learn(series, options=LawOptions(several=False, regimes=False))] if series else []
    found = (_by_law(one, law) or _by_value(one) for one, law in zip(series, laws, strict=True))
    return tuple(one for one in found if one)


def _by_law(series: Series, law: Law) -> Driver | None:
    """The feature of a law that holds."""
    if law.verdict != "law" or not law.features or law.r2 is None or law.r2 < GOOD:
        return None
    return Driver(law.features[0], series.name, law.r2, learnt_text(law.expression))


def _by_value(series: Series) -> Driver | None:
    """A feature of few values, too few for a law: the mean at each explains most of the variance."""
    y, weight = series.y, series.weights if series.weights is not None else np.ones(len(series.y))
    best: Driver | None = None
    for name, x in series.features.items():
        values, group = np.unique(x, return_inverse=True)
        if len(values) > FEW_VALUES or np.bincount(group).min() < EACH:
            continue
        means = np.bincount(group, weight * y) / np.bincount(group, weight)
        centred = y - weight @ y / weight.sum()
        whole = float(weight @ centred**2)
        r2 = 1 - float(weight @ (y - means[group]) ** 2) / whole if whole > 0 else 0.0
        if r2 >= GOOD and (best is None or r2 > best.r2):
            words = ", ".join(f"{mean:.3g} at {value:g}" for value, mean in zip(values, means, strict=True))
            best = Driver(name, series.name, r2, words)
    return best


def _rows(some: Sampled) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Rows to learn from: all, or as many spread evenly over the ordered costs; the dearest are kept."""
    read = np.zeros(len(some), np.bool_)
    for values in some.samples.features.values():
        read |= ~np.isnan(values[some.places])
    rows = np.flatnonzero(read)
    if len(rows) <= MOST_ROWS:
        return rows
    return np.unique(np.concatenate([rows[-32:], rows[np.linspace(0, len(rows) - 1, MOST_ROWS - 32).astype(np.intp)]]))


def _features(some: Sampled, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> dict[str, Floats]:
    """Features that were read of (nearly) all these invocations and are not the same in all; (n,) each."""
    found = {}
    for name, values in some.samples.features.items():
        mine = values[some.places]
        seen = ~np.isnan(mine[rows])
        if seen.mean() >= READ and len(np.unique(mine[rows][seen])) > 1:
            found[name] = np.where(np.isnan(mine), np.median(mine[rows][seen]), mine)
    return found


def _largest(parts: Parts, options: Options) -> list[int]:
    places = [place for place, net in enumerate(parts.net) if net >= options.theta * parts.total.spread]
    return sorted(places, key=lambda place: -parts.net[place])[:MOST_PARTS]


def _responses(tree: Tree, some: Sampled, parts: Parts, places: Sequence[int]) -> list[tuple[str, Floats]]:
    """What of each part varies, in words, and its values (n,)."""
    costs = parts_matrix(tree, some, parts.keys, np.nan_to_num(some.samples.y), some.x)
    calls = parts_matrix(tree, some, parts.keys, some.samples.k.astype(np.float64), np.zeros(len(some)))
    found = []
    for place in places:
        if parts.keys[place] == OWN:
            found.append((f"own {tree.given.metric.name}", costs[:, place]))
            continue
        name = tree.name(parts.keys[place][1])
        if split(parts.sums[place], parts.total.n).mechanism == "cost per call":
            found.append((f"{tree.given.metric.name} in {name}", costs[:, place]))
        else:
            found.append((f"calls of {name}", calls[:, place]))
    return found


# ---- Work or interference: whether time varies while the thread is on a CPU, or while it is not.

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
    """The same with a confidence interval where samples give one."""
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
