"""Two or more regimes: which series have breakpoints, and the laws that say so.

A smooth law stands until a partition lowers the deviance by more than its cost (:mod:`perflaw.learn.laws.partition`).
Where not even a dependence is established, permuting the responses has to confirm the partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.candidates import CONSTANTS, Candidates, residual_of
from perflaw.learn.laws.choose import Choice
from perflaw.learn.laws.lack import MISFIT, lack_of_fit
from perflaw.learn.laws.learnt import Learnt
from perflaw.learn.laws.partition import best_partitions, confirmed, cost
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.regime_law import regime_law
from perflaw.learn.laws.scan import FEWEST_SIZES, Sorted
from perflaw.learn.laws.segments import Fitting, Partition, fit_partitions
from perflaw.learn.laws.series import Options

RELEVANT = 0.07
"""A smooth law off by less (relative root mean square) is good enough whatever fits better."""

MARGIN = 2.0
"""The search's sums stand for exact fits up to so much deviance: a partition may lack it once fitted."""

DOUBT = 4.0
"""A smooth law stays beside a partition whose gain exceeds its cost by less."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A series and the feature it may be split by."""

    series: int
    feature: int
    model: int
    established: bool


def regimes(
    found: Candidates,
    choices: Sequence[Choice],
    learnt: Sequence[Learnt],
    at: Sequence[Mapping[str, float]] | None,
    options: Options,
) -> list[Learnt]:
    """The laws of a batch, those of series with breakpoints replaced by piecewise ones; the others' fit is tested."""
    out = list(learnt)
    searched = list(_searched(found, choices, options))
    parts = [part for _, part in searched]
    for (cell, part), fitting in zip(searched, fit_partitions(found.rows, parts, options), strict=True):
        excess = _excess(found.rows[cell.series], part, fitting)
        if excess <= -MARGIN:
            continue
        smooth = learnt[cell.series] if excess < DOUBT and cell.established else None
        out[cell.series] = regime_law(found.rows[cell.series], part, fitting, smooth, at, options)
    return [_tested(found, b, choices[b], one) if one is learnt[b] else one for b, one in enumerate(out)]


def _excess(row: Rows, part: Partition, fitting: Fitting) -> float:
    """What the partition gains beyond its cost once its laws are fitted exactly."""
    n = float(row.y.size)
    jacobian = 2.0 * float((row.w * row.log_y).sum()) if part.log else 0.0
    variance = max(fitting.rss / n, fitting.floor**2)
    gain = part.smooth - (n * np.log(variance) + fitting.rss / variance + jacobian)
    return float(gain * fitting.worth / n - cost(len(part.cuts) + 1, fitting.parameters, fitting.worth))


def _tested(found: Candidates, b: int, choice: Choice, learnt: Learnt) -> Learnt:
    """A smooth law with p of its lack of fit; no law where it is off by too much to be extrapolated."""
    fit_ = lack_of_fit(found, b, choice)
    if fit_ is None:
        return learnt
    law = replace(learnt.law, lack_of_fit=fit_[0])
    if law.verdict == "law" and fit_[0] < MISFIT and fit_[1] > RELEVANT:
        why = (
            f"the law misses the shape by {fit_[1]:.0%} (p = {fit_[0]:.2g}): add --vary {law.features[0]}=… in between"
        )
        law = replace(law, verdict="inconclusive", reason=why)
    return replace(learnt, law=law)


def _searched(found: Candidates, choices: Sequence[Choice], options: Options) -> Iterator[tuple[_Cell, Partition]]:
    """Series whose best partition pays its cost, with it."""
    groups: dict[tuple[int, bool], list[_Cell]] = defaultdict(list)
    for cell in _candidates(found, choices):
        row = found.rows[cell.series]
        if row.positive:
            groups[row.y.size, True].append(cell)
        if not row.positive or not found.fits[cell.model].model.noise.log:
            groups[row.y.size, False].append(cell)
    best: dict[int, tuple[float, _Cell, Partition]] = {}
    for (_, log), cells in groups.items():
        for excess, cell, part in _paying(found, cells, log):
            if cell.series not in best or excess > best[cell.series][0]:
                best[cell.series] = (excess, cell, part)
    for series in sorted(best):
        _, cell, part = best[series]
        alpha = options.alpha / found.features
        if cell.established or confirmed(_sorted(found.rows[series : series + 1], [cell])[0], part.log, alpha):
            yield cell, part


def _candidates(found: Candidates, choices: Sequence[Choice]) -> Iterator[_Cell]:
    """What is worth a search: sizes enough, and the law is not perfect."""
    for b, choice in enumerate(choices):
        row, some = found.rows[b], choice.model >= CONSTANTS
        if not row.names or (row.clusters is not None and not some) or np.ptp(row.y) == 0:
            continue
        for f in [choice.feature] if some else range(found.features):
            if found.sizes[b, f] >= 2 * FEWEST_SIZES and not found.perfect(b, f, choice.model):
                yield _Cell(b, f, choice.model, some and choice.established)


def _relevant(found: Candidates, cell: _Cell) -> bool:
    """The smooth law is off by enough to matter: relative to itself where responses are positive, else to their size."""
    row, fit_ = found.rows[cell.series], found.fits[cell.model]
    place = cell.series * found.features + cell.feature
    residual, _ = residual_of(fit_.model, (row.x[cell.feature], row.y, row.log_y), fit_.theta[place], found.ends[place])
    if row.positive and not fit_.model.noise.log:
        residual = residual / np.maximum(row.y - residual, np.abs(residual))
    size = 1.0 if row.positive else float(np.sqrt(np.mean(row.y**2)))
    return float(np.sqrt(np.mean(residual**2))) > RELEVANT * size


def _paying(found: Candidates, cells: Sequence[_Cell], log: bool) -> Iterator[tuple[float, _Cell, Partition]]:
    """Cells with a partition that pays: by how much, the cell, the partition."""
    rows = [found.rows[cell.series] for cell in cells]
    sorted_, orders = _sorted(rows, cells)
    smooth = np.array([found.fits[c.model].deviance[c.series * found.features + c.feature] for c in cells])
    worth = np.array([row.information / row.y.size for row in rows])
    best = best_partitions(sorted_, log, smooth, worth)
    for cell, order, one in zip(cells, orders, best, strict=True):
        if one.excess > 0 and _relevant(found, cell):
            yield one.excess, cell, Partition(cell.series, cell.feature, log, order, one.cuts, one.smooth)


def _sorted(rows: Sequence[Rows], cells: Sequence[_Cell]) -> tuple[Sorted, NDArray[np.intp]]:
    """Rows of equal length sorted by their cell's feature, and the order, (S, n)."""
    x = np.stack([row.x[cell.feature] for row, cell in zip(rows, cells, strict=True)])
    order = np.argsort(x, axis=-1, kind="stable")
    columns = [x, *(np.stack([getattr(row, name) for row in rows]) for name in ("y", "log_y", "w"))]
    return Sorted(*(np.take_along_axis(column, order, axis=-1) for column in columns)), order
