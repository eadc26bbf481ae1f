"""What drives a varying part: the feature of the arguments that its calls or its cost follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from perflaw.laws.distributions import mean as law_mean
from perflaw.laws.printing import learnt_text
from perflaw.learn.variance.moments import Floats
from perflaw.learn.variance.parts import OWN, parts_matrix, parts_of, sampled_invocations
from perflaw.learn.variance.tree import Options, Tree
from perflaw.parts import untold
from perflaw.types.laws import Law
from perflaw.types.variance import Driver

if TYPE_CHECKING:
    from perflaw.learn.series import Series

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


@dataclass(frozen=True, slots=True)
class Response:
    """What varies of one part of a function, in some of its sampled invocations, with the features that were read of these."""

    name: str
    """What it is, in words."""
    unit: str
    """Its unit."""
    series: Series
    """Its values, the features and the weights of the invocations."""


def responses(tree: Tree, heads: Sequence[int], options: Options) -> tuple[Response, ...]:
    """What varies of the largest parts of some contexts of one function; none without features or too few samples."""
    from perflaw.learn.series import Series  # the law learner takes long to import

    sampled = sampled_invocations(tree, heads)
    if sampled is None or not sampled.has_callee_costs:
        return ()
    columns = tree.features.get(tree.component[heads[0]], {})
    read = np.zeros(len(sampled), np.bool_)
    for values in columns.values():
        read |= ~np.isnan(values[sampled.places])
    rows = np.flatnonzero(read)
    if len(rows) < MIN_ROWS:
        return ()
    if len(rows) > MAX_ROWS:  # the slowest, and others spread evenly over the sorted costs
        spread = np.linspace(0, len(rows) - 1, MAX_ROWS - MAX_SLOWEST).astype(np.intp)
        rows = np.unique(np.concatenate([rows[-MAX_SLOWEST:], rows[spread]]))

    features = {}  # those that were read in (nearly) all rows and vary; the median stands for missing values
    for name, values in columns.items():
        mine = values[sampled.places][rows]
        read = ~np.isnan(mine)
        if read.mean() >= MIN_READ and len(np.unique(mine[read])) > 1:
            features[name] = np.where(read, mine, np.median(mine[read]))

    parts = parts_of(tree, heads)
    if not features or parts.total.spread <= 0:
        return ()
    samples, of_callees = sampled.samples, sampled.callee_rows
    costs = parts_matrix(tree, sampled, parts.keys, np.nan_to_num(samples.y[of_callees]), sampled.x)
    calls = parts_matrix(tree, sampled, parts.keys, samples.k[of_callees].astype(np.float64), np.zeros(len(sampled)))
    metric, unit, net = tree.call_tree.metric.name, tree.call_tree.metric.unit, parts.net
    significant = [place for place, each in enumerate(net) if each >= options.theta * parts.total.spread]
    varying = []  # what varies of each of the largest significant parts, in words, its unit, and its values (n,)
    for place in sorted(significant, key=lambda place: -net[place])[:MAX_PARTS]:
        mechanism, name = parts.mechanism(place), tree.name(parts.keys[place][1])
        if parts.keys[place] == OWN:
            varying.append((f"own {metric}", unit, costs[:, place]))
        elif mechanism == "cost per call":
            varying.append((f"{metric} in {name}", unit, costs[:, place]))
        else:
            varying.append((f"calls of {name}", "", calls[:, place]))

    weight = sampled.weight[rows]
    return tuple(Response(name, unit, Series(name, y[rows], features, weights=weight)) for name, unit, y in varying)


def drivers(
    of_functions: Sequence[Sequence[Response]], tell: Callable[[float], None] = untold
) -> list[tuple[Driver, ...]]:
    """Drivers of the responses of each function, by the law learner; none where no law holds.

    The laws of all functions are learnt together, because the learner is made for many series. ``tell`` is told the part
    that is done.
    """
    from perflaw.learn.series import Options as LawOptions
    from perflaw.learn.series import learn

    series = [one.series for of_one in of_functions for one in of_one]
    options = LawOptions(several=False, regimes=False)
    laws = iter(learn(series, options=options, tell=lambda done: tell(done / len(series))) if series else [])
    found = [[_driver(one, next(laws).law) for one in of_one] for of_one in of_functions]
    return [tuple(driver for driver in of_one if driver) for of_one in found]


def _driver(response: Response, law: Law) -> Driver | None:
    series = response.series
    if law.verdict == "law" and law.features and law.r2 is not None and law.r2 >= MIN_R2:
        return _driver_by_law(response.name, response.unit, law, law.r2, series.features)
    weight = np.ones(series.y.size) if series.weights is None else series.weights
    return _driver_by_value(response.name, response.unit, series.y, weight, series.features)


def _pairs(x: Floats, means: Floats) -> tuple[tuple[float, float], ...]:
    return tuple((float(value), float(mean)) for value, mean in zip(x, means, strict=True))


def _driver_by_law(response: str, unit: str, law: Law, r2: float, features: Mapping[str, Floats]) -> Driver:
    """The first feature of a law, with the costs that follow from its values.

    A law has a second feature where that decides whether there is a cost at all; its median stands for it.
    """
    name = law.features[0]
    x = np.unique(np.percentile(features[name], (5, 50, 95), method="nearest"))
    point = {one: np.full(x.shape, np.median(features[one])) for one in law.features} | {name: x}
    means = np.broadcast_to(law_mean(law.expression, point), x.shape)
    return Driver(name, response, r2, learnt_text(law.expression), unit, _pairs(x, means))


def _driver_by_value(
    response: str, unit: str, y: Floats, weight: Floats, features: Mapping[str, Floats]
) -> Driver | None:
    """A feature with too few values for a law, whose means at each value explain most of the variance."""
    best: Driver | None = None
    for name, x in features.items():
        values, group = np.unique(x, return_inverse=True)
        if len(values) > MAX_VALUES or np.bincount(group).min() < MIN_PER_VALUE:
            continue
        means = np.bincount(group, weight * y) / np.bincount(group, weight)
        centred = y - weight @ y / weight.sum()
        whole = float(weight @ centred**2)
        r2 = 1 - float(weight @ (y - means[group]) ** 2) / whole if whole > 0 else 0.0
        if r2 >= MIN_R2 and (best is None or r2 > best.r2):
            best = Driver(name, response, r2, "", unit, _pairs(values, means))
    return best
