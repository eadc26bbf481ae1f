"""What drives a varying part: the feature of the arguments that its calls or its cost follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.printing import learnt_text
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.series import Series, learn
from perflaw.learn.variance.moments import Floats
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.parts import OWN, Parts, SampledInvocations, parts_matrix, parts_of, sampled_invocations
from perflaw.learn.variance.tree import Tree
from perflaw.types.variance import Driver

MAX_PARTS: Final = 3
"""Number of parts whose driver is looked for, those of the largest shares."""
MAX_ROWS: Final = 300
"""Number of sampled invocations that a law is learnt from."""
MAX_SLOWEST: Final = 32
"""Number of the slowest invocations that are always among them."""
MIN_ROWS: Final = 20
"""Number of sampled invocations from which on a law is learnt."""
MIN_READ: Final = 0.9
"""Fraction of the sample in which a feature must have been read."""
MAX_VALUES: Final = 6
"""Number of distinct values of a feature that are too few for a law."""
MIN_PER_VALUE: Final = 3
"""Number of invocations of each of these values."""
MIN_R2: Final = 0.5
"""Share of the variance that a driver must explain."""


def drivers(tree: Tree, heads: Sequence[int], options: Options) -> tuple[Driver, ...]:
    """Drivers of the largest parts of some contexts of one function, by the law learner; none if no law holds."""
    sampled = sampled_invocations(tree, heads)
    if sampled is None or not sampled.has_callee_costs:
        return ()
    read = np.zeros(len(sampled), np.bool_)
    for values in sampled.samples.features.values():
        read |= ~np.isnan(values[sampled.places])
    rows = np.flatnonzero(read)
    if len(rows) < MIN_ROWS:
        return ()
    if len(rows) > MAX_ROWS:  # the slowest, and others spread evenly over the sorted costs
        spread = np.linspace(0, len(rows) - 1, MAX_ROWS - MAX_SLOWEST).astype(np.intp)
        rows = np.unique(np.concatenate([rows[-MAX_SLOWEST:], rows[spread]]))
    features = _features(sampled, rows)
    parts = parts_of(tree, heads)
    if not features or parts.total.spread <= 0:
        return ()
    responses = _responses(tree, sampled, parts, options)
    series = [Series(name, y[rows], features, weights=sampled.weight[rows]) for name, y in responses]
    laws = [one.law for one in learn(series, options=LawOptions(several=False, regimes=False))] if series else []
    found: list[Driver | None] = []
    for one, law in zip(series, laws, strict=True):
        if law.verdict == "law" and law.features and law.r2 is not None and law.r2 >= MIN_R2:
            found.append(Driver(law.features[0], one.name, law.r2, learnt_text(law.expression)))
        else:
            found.append(_driver_by_value(one))
    return tuple(driver for driver in found if driver)


def _features(sampled: SampledInvocations, rows: NDArray[np.intp]) -> dict[str, Floats]:
    """Features (len(rows),) that were read in (nearly) all rows and vary; the median stands for missing values."""
    found = {}
    for name, values in sampled.samples.features.items():
        mine = values[sampled.places][rows]
        read = ~np.isnan(mine)
        if read.mean() >= MIN_READ and len(np.unique(mine[read])) > 1:
            found[name] = np.where(read, mine, np.median(mine[read]))
    return found


def _responses(tree: Tree, sampled: SampledInvocations, parts: Parts, options: Options) -> list[tuple[str, Floats]]:
    """What varies of each of the largest significant parts, in words, and its values (n,)."""
    samples = sampled.samples
    costs = parts_matrix(tree, sampled, parts.keys, np.nan_to_num(samples.y), sampled.x)
    calls = parts_matrix(tree, sampled, parts.keys, samples.k.astype(np.float64), np.zeros(len(sampled)))
    metric, net = tree.call_tree.metric.name, parts.net
    significant = [place for place, each in enumerate(net) if each >= options.theta * parts.total.spread]
    found = []
    for place in sorted(significant, key=lambda place: -net[place])[:MAX_PARTS]:
        mechanism, name = parts.mechanism(place), tree.name(parts.keys[place][1])
        if parts.keys[place] == OWN:
            found.append((f"own {metric}", costs[:, place]))
        elif mechanism == "cost per call":
            found.append((f"{metric} in {name}", costs[:, place]))
        else:
            found.append((f"calls of {name}", calls[:, place]))
    return found


def _driver_by_value(series: Series) -> Driver | None:
    """A feature with too few values for a law, whose means at each value explain most of the variance."""
    y, weight = series.y, series.weights if series.weights is not None else np.ones(len(series.y))
    best: Driver | None = None
    for name, x in series.features.items():
        values, group = np.unique(x, return_inverse=True)
        if len(values) > MAX_VALUES or np.bincount(group).min() < MIN_PER_VALUE:
            continue
        means = np.bincount(group, weight * y) / np.bincount(group, weight)
        centred = y - weight @ y / weight.sum()
        whole = float(weight @ centred**2)
        r2 = 1 - float(weight @ (y - means[group]) ** 2) / whole if whole > 0 else 0.0
        if r2 >= MIN_R2 and (best is None or r2 > best.r2):
            words = ", ".join(f"{mean:.3g} at {value:g}" for value, mean in zip(values, means, strict=True))
            best = Driver(name, series.name, r2, words)
    return best
