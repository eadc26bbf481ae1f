"""The budget of slow invocations: what each part adds to one at the 99th percentile, against one near the median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from perflaw.learn.variance.parts import OWN, Key, Parts, split
from perflaw.learn.variance.sampled import REST, Sampled, interval, keys_of, parts_matrix, resampled
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.weighted import Floats, quantile
from perflaw.types.recordings import CPU, TIME, Component
from perflaw.types.variance import Budget, BudgetRow, Mechanism, Source

# ---- Rows of a budget taken further down: samples hold direct callees alone, covariances know which paths below them
# matter.

LITTLE: Final = 0.02
"""What less than this part of a row is left to its call apart from deeper paths goes with those."""


def deepened(rows: Sequence[BudgetRow], parts: Parts, sources: Sequence[Source], whole: float) -> list[BudgetRow]:
    """Rows of direct callees with what underlies them further down in rows of its own; the sum stays.

    A deeper path has the part of its callee's row that it has of the callee's share of the variance. ``whole`` is what
    all rows explain.
    """
    means = {key: sums.y / parts.total.n for key, sums in zip(parts.keys, parts.sums, strict=True) if key != OWN}
    result: list[BudgetRow] = []
    for row in rows:
        deeper = [one for one in sources if len(one.path) > 1 and one.path[:1] == row.path]
        result += _split(row, deeper, _deepen_mean(row, parts, means), whole) if deeper and row.cf_net > 0 else [row]
    return result


def _deepen_mean(row: BudgetRow, parts: Parts, means: dict[tuple[int, int], float]) -> float:
    place = next(key for key in means if key[0] == row.path[0].site and key in parts.keys)
    return means[place]


def _split(row: BudgetRow, deeper: Sequence[Source], mean: float, whole: float) -> list[BudgetRow]:
    ratios = [one.cf_net / row.cf_net for one in deeper]
    left = 1 - sum(ratios)
    if abs(left) < LITTLE:
        ratios = [ratio / (1 - left) for ratio in ratios]
        left = 0.0
    rows = [_deep(row, one, ratio, mean, whole) for one, ratio in zip(deeper, ratios, strict=True)]
    if left:
        tail, near = (
            at - sum(getattr(one, name) for one in rows) for name, at in (("tail", row.tail), ("median", row.median))
        )
        share, net = row.share * left, row.cf_net * left
        rows.append(replace(_scaled(row, left), tail=tail, median=near, share=share, cf_net=net, rest=True))
    return rows


def _deep(row: BudgetRow, source: Source, ratio: float, mean: float, whole: float) -> BudgetRow:
    near = source.mean * row.median / mean if mean else 0.0
    share = row.share * ratio
    return replace(
        _scaled(row, ratio),
        component=source.component,
        path=source.path,
        tail=near + share * whole,
        median=near,
        share=share,
        cf_net=source.cf_net,
        mechanism=source.split.mechanism,
        estimated=True,
    )


def _scaled(row: BudgetRow, ratio: float) -> BudgetRow:
    """The same with a part of its interval and of its waiting."""
    ends = [None if value is None else value * ratio for value in (row.share_low, row.share_high, row.off_cpu)]
    if ratio < 0:
        ends[:2] = ends[1::-1]
    return replace(row, share_low=ends[0], share_high=ends[1], off_cpu=ends[2])


TAIL: Final = 0.99
NEAR: Final = (0.45, 0.55)
"""Between these quantiles an invocation is near the median."""
IN_NS: Final = ("gc", "lock_wait")
"""Further metrics that are parts of the time."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """The slow invocations and the middling ones, as ranges of the sorted sample."""

    tail: slice
    near: slice

    def difference(self, weight: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Weighted means of the rows of ``values`` in the tail and near the median."""
        return _mean(weight, values, self.tail), _mean(weight, values, self.near)


def _mean(weight: Floats, values: Floats, some: slice) -> Floats:
    total = weight[some].sum()
    return np.asarray(weight[some] @ values[some] / total if total else np.full(values.shape[1:], np.nan))


def budget(tree: Tree, parts: Parts, some: Sampled | None, sources: Sequence[Source]) -> Budget | None:
    """The budget; None where no sample was kept or slow invocations cost what the others do."""
    if some is None or parts.total.spread <= 0:
        return None
    groups = _groups(some.x, some.weight)
    tail, near = (float(mean) for mean in groups.difference(some.weight, some.x))
    if not tail > near:
        return None
    values = _values(some)
    rows = _estimated(tree, parts, tail, near) if values is None else _rows(tree, parts, some, groups, values)
    rows = deepened(rows, parts, sources, tail - near)
    chosen = int(np.count_nonzero(some.weight[groups.tail]))
    p99, p50 = (quantile(some.x, some.weight, p) for p in (TAIL, 0.5))
    rows.sort(key=lambda row: -row.share)
    return Budget(tail, near, p99, p50, chosen, tuple(rows), _further(tree, some, groups, tail - near))


def _groups(x: Floats, weight: Floats) -> _Groups:
    tail, low, high = (quantile(x, weight, p) for p in (TAIL, *NEAR))
    first = slice(int(np.searchsorted(x, tail)), len(x))
    return _Groups(first, slice(int(np.searchsorted(x, low)), int(np.searchsorted(x, high, side="right"))))


def _values(some: Sampled) -> Floats | None:
    """Costs of the callees; None where samples do not say them in this metric."""
    mine = np.isin(some.samples.of, some.places)
    return None if np.isnan(some.samples.y[mine]).any() else np.nan_to_num(some.samples.y)


def _rows(tree: Tree, parts: Parts, some: Sampled, groups: _Groups, values: Floats) -> list[BudgetRow]:
    keys = keys_of(some, parts.keys)
    matrix = parts_matrix(tree, some, keys, values, some.x)
    tail, near = groups.difference(some.weight, matrix)
    whole = float((tail - near).sum())
    drawn = np.array([_shares(weight, matrix, some.x) for weight in resampled(some)])
    off = _off_cpu(tree, some, keys, groups)
    rows = []
    for place, key in enumerate(keys):
        low, high = interval(drawn[:, place].tolist())
        share = float(tail[place] - near[place]) / whole
        waiting = float(off[place]) / whole if off is not None else None
        figures = (float(tail[place]), float(near[place]), share, low, high, waiting)
        rows.append(_row(tree, parts, key, figures))
    return rows


def _shares(weight: Floats, matrix: Floats, x: Floats) -> Floats:
    """Shares of one bootstrap sample, its percentiles drawn anew."""
    tail, near = _groups(x, weight).difference(weight, matrix)
    whole = (tail - near).sum()
    return (tail - near) / whole if whole > 0 else np.full(len(tail), np.nan)


def _off_cpu(tree: Tree, some: Sampled, keys: Sequence[Key], groups: _Groups) -> Floats | None:
    """What each part spends more off the CPU in the tail than near the median; None where that is not known."""
    samples = some.samples
    mine = np.isin(samples.of, some.places)
    cpu = samples.cpu[some.places]
    if tree.given.metric.name != TIME.name or np.isnan(cpu).any() or np.isnan(samples.y_cpu[mine]).any():
        return None
    matrix = parts_matrix(tree, some, keys, np.nan_to_num(samples.y - samples.y_cpu), some.x - cpu)
    tail, near = groups.difference(some.weight, matrix)
    return tail - near


_Figures = tuple[float, float, float, float | None, float | None, float | None]
"""tail, median, share with its interval, off the CPU."""


def _row(tree: Tree, parts: Parts, key: Key, figures: _Figures, estimated: bool = False) -> BudgetRow:
    """The row of a direct callee or of own code."""
    if key == REST:
        return BudgetRow(Component("(other callees)", language=""), (), *figures, 0.0, "cost per call")
    place = parts.keys.index(key)
    share = parts.net[place] / parts.total.spread
    path = tree.steps(parts.nodes[place][:1])
    component = tree.given.components[parts.function if key == OWN else key[1]]
    return BudgetRow(component, path, *figures, share, mechanism(parts, place), estimated)


def mechanism(parts: Parts, place: int) -> Mechanism:
    """What of a part varies."""
    return "own code" if parts.keys[place] == OWN else split(parts.sums[place], parts.total.n).mechanism


def _estimated(tree: Tree, parts: Parts, tail: float, near: float) -> list[BudgetRow]:
    """Rows by the straight line of Y_i in X: E[Y_i | X] = E[Y_i] + cf_net·(X − E[X])."""
    rows = []
    for key, sums, net in zip(parts.keys, parts.sums, parts.net, strict=True):
        share, mean = net / parts.total.spread, sums.y / parts.total.n
        low, high = (mean + share * (x - parts.total.mean) for x in (near, tail))
        rows.append(_row(tree, parts, key, (high, low, share, None, None, None), estimated=True))
    return rows


def _further(tree: Tree, some: Sampled, groups: _Groups, whole: float) -> dict[str, float]:
    """Shares of garbage collection and of waiting for locks, where they were measured."""
    found = {}
    for name in IN_NS:
        cost = some.samples.costs.get(name)
        if cost is not None and tree.given.metric.name in (TIME.name, CPU.name):
            tail, near = groups.difference(some.weight, cost[some.places])
            found[name] = float(tail - near) / whole
    return found
