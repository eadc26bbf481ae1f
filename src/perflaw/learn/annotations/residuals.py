"""What a law leaves unexplained of a part of the records: the residuals, and the field on which splits are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.annotations.records import RecordColumn, RecordTable
from perflaw.learn.annotations.split_search import RecordProducts, SplitField, standardised
from perflaw.learn.series import Learnt
from perflaw.learn.series.series import evenly
from perflaw.learn.series.terms import simple_shapes

Array = NDArray[np.float64]

MAX_RECORDS = 1500
"""Number of records that splits are searched on; more are thinned evenly."""
MIN_READ, MIN_READ_BASIS = 0.9, 0.05
"""Share of the records in which a feature must have been read to be compared, and to be a basis of simple laws."""
MAX_BASES = 36
"""Number of bases of simple laws."""
MIN_EFFECT = 0.1
"""What a split explains must be at least this part of the response's size: less matters to nobody."""
RESOLVED = 1e-4
"""Differences below this part of a response are nothing."""
ROUNDING = 1e-9
"""Part of a shape's variance that is rounding: shapes that depend on each other linearly differ by less."""


@dataclass(frozen=True, slots=True, eq=False)
class LawResiduals:
    """A part of the records, n after thinning, with the residuals of its law."""

    field: SplitField
    """The field on which splits are searched."""
    residual: Array
    """Residuals of the law on the scale of its noise, (n,)."""
    run: NDArray[np.intp]
    """Run of each record, (n,)."""
    bases: Array
    """Bases of simple laws, (K, n), standardised."""
    r2: float
    """Share of the variance of single records that the law explains, on the scale of its noise."""
    scatter: float
    """Size of the residuals relative to that of the response."""
    criterion: float
    """Information criterion of the law, or of the best simple law if that is better."""
    unexplained: Array
    """Sum of squares that these leave of every response, standardised, (R,)."""


def law_residuals(table: RecordTable, mask: Mask, learnt: Learnt, options: AnnotationOptions) -> LawResiduals | None:
    """The residuals of a law on its records; None for fewer records than two sides need."""
    rows = np.flatnonzero(mask)
    if rows.size < 2 * options.fewest:
        return None
    rows = evenly(rows, MAX_RECORDS)
    columns = [replace(column, values=column.values[rows]) for column in table.columns]
    compared, complete = set(), np.ones(rows.size, dtype=bool)
    for column in columns:
        # Neither side of a split has the records in which its column was not read.
        if np.mean(column.is_read) >= MIN_READ:
            compared.add(column.name)
            complete &= column.is_read
    if complete.sum() < 2 * options.fewest:
        return None
    rows = rows[complete]
    columns = [replace(column, values=column.values[complete]) for column in columns]
    weight = table.evidence.weight[rows]
    weight = weight * (rows.size / weight.sum())

    y = table.evidence.cost[rows]
    log_y = np.log(y) if (y > 0).all() else None
    law = learnt.law
    logarithmic = law.noise.distribution == "lognormal" and log_y is not None
    # Features of the law that were not read count as 0.
    at = {name: np.nan_to_num(table.numbers(name)[rows]) for name in law.features}
    mean = learnt.mean(at or {"": np.zeros(y.size)})
    target = log_y if logarithmic and log_y is not None else y
    residual = target - (np.log(np.maximum(mean, 1e-300)) if logarithmic else mean)
    variance = float(weight @ residual**2) / rows.size
    size = 1.0 if logarithmic else float(np.sqrt(weight @ y**2 / rows.size)) or 1.0
    scatter = float(np.sqrt(variance)) / size

    # If no split can matter, simple laws are constants, unless a feature of the law may be a choice.
    simple = columns if scatter >= MIN_EFFECT or len(law.features) > 1 else []
    bases = _bases(simple, weight)
    fields = [column for column in columns if column.name in compared]
    split_field = _split_field(fields, bases, y, log_y, residual, logarithmic, learnt, weight, options.fewest)
    whole, own = split_field.whole(), variance * rows.size / split_field.sizes**2
    unexplained = whole.rss[0].copy()
    same = [1 if logarithmic else 0, -1]
    unexplained[same] = np.minimum(unexplained[same], own[same])
    of_law = split_field.criterion(np.array(own)[None], np.ones((1, own.size)))[0, -1]
    of_simple = split_field.criterion(whole.rss, whole.parameters)[0, :-1].min()
    total = float(weight @ (target - weight @ target / rows.size) ** 2) / rows.size
    return LawResiduals(
        split_field,
        residual,
        table.run[rows],
        bases,
        r2=1.0 - variance / total if total > split_field.floors[-1] else 1.0,
        scatter=scatter,
        criterion=min(float(of_law), float(of_simple)),
        unexplained=unexplained,
    )


def largest_r2(residuals: LawResiduals) -> float:
    """Largest R² of single records that a law of the part's numbers can reach; 1 if there are more shapes than records.

    A law is a sum of shapes in y, or a product of them in log y. A least-squares fit of either to x, x² and log x of all
    numbers at once explains at least as much as a law of some of them, at a hundredth of the cost of learning it.
    """
    field = residuals.field
    shapes = [simple_shapes(column.numbers) for column in field.columns if column.kind != "category"]
    if not shapes or 3 * len(shapes) >= field.weight.size:
        return float(bool(shapes))
    rows = standardised(np.concatenate(shapes), field.weight)[0]
    weighted = rows * field.weight
    gram = weighted @ rows.T / field.weight.sum() + ROUNDING * np.eye(len(rows))
    # The responses have mean 0 and size 1; the last one is the residual.
    sums = field.products.products[:, 1 : field.products.responses].T @ rows.T / field.weight.sum()
    return float((sums * np.linalg.solve(gram, sums.T).T).sum(axis=1).max())


def _split_field(
    columns: Sequence[RecordColumn],
    bases: Array,
    y: Array,
    log_y: Array | None,
    residual: Array,
    logarithmic: bool,
    learnt: Learnt,
    weight: Array,
    fewest: int,
) -> SplitField:
    """The field of n records: responses y, log y if all costs are positive, and the residual."""
    n = weight.size
    responses, sizes = standardised(np.stack([y, *([log_y] if log_y is not None else []), residual]), weight)
    # The law's residuals are about the law, not about their own mean.
    responses[-1] = residual / sizes[-1]
    middle = float(np.median(np.abs(y))) or 1.0
    floor = max(learnt.rows.series.quantum**2 / 12.0, (RESOLVED * middle) ** 2)
    scales_and_floors = [(0.0, floor)]
    if log_y is not None:
        scales_and_floors.append((2.0 * float(weight @ log_y) / n, floor / middle**2))
    scales_and_floors.append(scales_and_floors[1 if logarithmic else 0])
    parameters = float(len(learnt.law.features) + (learnt.law.intercept is not None))
    return SplitField(
        columns=columns,
        products=RecordProducts.of(responses, bases, weight),
        scales=np.array([scale for scale, _ in scales_and_floors]),
        sizes=sizes,
        floors=np.array([floor for _, floor in scales_and_floors]),
        extra=np.array([0.0] * (len(responses) - 1) + [parameters]),
        weight=weight,
        worth=float(n / (weight @ weight)),
        fewest=fewest,
    )


def _bases(columns: Sequence[RecordColumn], weight: Array) -> Array:
    """Bases of simple laws, (K, n), standardised: the shapes of every number that was read often enough."""
    bases: list[Array] = []
    for column in columns:
        if column.kind == "category" or len(bases) >= MAX_BASES:
            continue
        x = column.numbers
        read = x[~np.isnan(x)]
        if read.size < MIN_READ_BASIS * x.size or np.ptp(read) == 0:
            continue
        if column.is_outcome and np.isin(read, (read.min(), read.max())).all():
            continue  # A line in an outcome of two values is the split by it, which is what it would be compared with.
        some = simple_shapes(np.nan_to_num(x) if read.size < x.size else x)
        bases += list(some if column.is_input else some[:1])
    return standardised(np.stack(bases), weight)[0] if bases else np.zeros((0, weight.size))
