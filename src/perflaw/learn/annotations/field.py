"""From a part of a component's records and its law to the field on which splits are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Mask
from perflaw.learn.annotations.scan import Field, moments_of, standard, whole
from perflaw.learn.annotations.table import AnnotationOptions, Column, Table
from perflaw.learn.series import Learnt

Array = NDArray[np.float64]

MOST_RECORDS = 1500
"""Records that splits are searched on; more are thinned evenly."""
MOSTLY, SOMETIMES = 0.9, 0.05
"""Share of the records a feature must have been read in to be tested, and to explain a part."""
MOST_BASES = 36
"""Bases of simple laws."""
MIN_EFFECT = 0.1
"""What a split explains is at least this part of the response's size: less matters to nobody."""
RESOLVED = 1e-4
"""What is smaller than this part of a response is not told from nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of the records with the residuals of its law; n records after thinning."""

    field: Field
    """What splits are searched on."""
    y: Array
    """Costs, (n,)."""
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
    """Information criterion of the law, or of the best simple law where that is better."""
    unexplained: Array
    """What these leave of every response, standardised, (R,)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Residuals:
    """How far records are from a law."""

    y: Array
    log_y: Array | None
    """Logarithms of the costs; None where one is not positive."""
    values: Array
    """Residuals, logarithmic where ``log``."""
    log: bool
    taken: float
    """Parameters of the law's mean."""


def field_of(table: Table, mask: Mask, learnt: Learnt, options: AnnotationOptions) -> Part | None:
    """The field of a part; None where there are too few records for two sides."""
    rows = np.flatnonzero(mask)
    if rows.size < 2 * options.fewest:
        return None
    if rows.size > MOST_RECORDS:
        rows = rows[np.linspace(0, rows.size - 1, MOST_RECORDS).astype(np.intp)]
    columns = [replace(column, values=column.values[rows]) for column in table.columns]
    tested = {column.name for column in columns if column.kind == "category" or _read(column) >= MOSTLY}
    read = np.ones(rows.size, dtype=bool)
    for column in columns:
        if column.name in tested and column.kind in ("feature", "run"):
            read &= ~np.isnan(_numbers(column))
    if read.sum() < 2 * options.fewest:
        return None
    columns = [replace(column, values=column.values[read]) for column in columns]
    return _part(table, rows[read], columns, tested, learnt, options)


def _numbers(column: Column) -> Array:
    return np.asarray(column.values, dtype=np.float64)


def _read(column: Column) -> float:
    """Share of the records in which a number was read."""
    return float(np.mean(~np.isnan(_numbers(column))))


def _part(
    table: Table,
    rows: NDArray[np.intp],
    columns: Sequence[Column],
    tested: set[str],
    learnt: Learnt,
    options: AnnotationOptions,
) -> Part:
    weight = table.evidence.weight[rows]
    weight = weight * (rows.size / weight.sum())
    residuals = _residuals(table.evidence.cost[rows], columns, learnt)
    some = [column for column in columns if column.name in tested]
    variance = float(weight @ residuals.values**2) / rows.size
    size = 1.0 if residuals.log else float(np.sqrt(weight @ residuals.y**2 / rows.size)) or 1.0
    scatter = float(np.sqrt(variance)) / size
    # A part that no split matters to is asked for its columns alone, unless a feature of its law may be a choice.
    told = columns if scatter >= MIN_EFFECT or len(learnt.law.features) > 1 else []
    field, bases = _field(some, told, residuals, weight, learnt.rows.series.quantum, options.fewest)
    target = residuals.log_y if residuals.log and residuals.log_y is not None else residuals.y
    spread = float(weight @ (target - weight @ target / rows.size) ** 2) / rows.size
    simple, own = whole(field), variance * rows.size / field.sizes**2
    unexplained = simple.rss[0].copy()
    same = [1 if residuals.log else 0, -1]
    unexplained[same] = np.minimum(unexplained[same], own[same])
    of_law = field.criterion(np.array(own)[None], np.ones((1, own.size)))[0, -1]
    return Part(
        field,
        residuals.y,
        residuals.values,
        table.run[rows],
        bases,
        r2=1.0 - variance / spread if spread > field.floors[-1] else 1.0,
        scatter=scatter,
        criterion=min(float(of_law), float(field.criterion(simple.rss, simple.parameters)[0, :-1].min())),
        unexplained=unexplained,
    )


def _residuals(y: Array, columns: Sequence[Column], learnt: Learnt) -> _Residuals:
    """Residuals of the law; of its features those that were not read count as 0."""
    law = learnt.law
    at = {column.name: np.nan_to_num(_numbers(column)) for column in columns if column.name in law.features}
    mean = learnt.mean(at or {"": np.zeros(y.size)})
    log_y = np.log(y) if (y > 0).all() else None
    log = law.noise.distribution == "lognormal" and log_y is not None
    values = log_y - np.log(np.maximum(mean, 1e-300)) if log and log_y is not None else y - mean
    return _Residuals(y, log_y, values, log, float(len(law.features) + (law.intercept is not None)))


def _field(
    tested: Sequence[Column], columns: Sequence[Column], of: _Residuals, weight: Array, quantum: float, fewest: int
) -> tuple[Field, Array]:
    """The field of n records, and the bases of its simple laws."""
    n = weight.size
    rows = [of.y, *([of.log_y] if of.log_y is not None else []), of.values]
    responses, sizes = standard(np.stack(rows), weight)
    # The law's residuals are about the law, not about their own mean.
    responses[-1] = of.values / sizes[-1]
    middle = float(np.median(np.abs(of.y))) or 1.0
    floor = max(quantum**2 / 12.0, (RESOLVED * middle) ** 2)
    of_scale = [(0.0, floor)]
    if of.log_y is not None:
        of_scale.append((2.0 * float(weight @ of.log_y) / n, floor / middle**2))
    of_scale.append(of_scale[1 if of.log else 0])
    bases = _bases(columns, weight)
    field = Field(
        columns=tested,
        moments=moments_of(responses, bases, weight),
        scales=np.array([scale for scale, _ in of_scale]),
        sizes=sizes,
        floors=np.array([floor for _, floor in of_scale]),
        extra=np.array([0.0] * (len(rows) - 1) + [of.taken]),
        weight=weight,
        worth=float(n / (weight @ weight)),
        fewest=fewest,
    )
    return field, bases


def _bases(columns: Sequence[Column], weight: Array) -> Array:
    """Bases of simple laws, (K, n): x, x² and log x of every number that was read at least sometimes."""
    out: list[Array] = []
    for column in columns:
        if column.kind == "category" or len(out) >= MOST_BASES:
            continue
        x = _numbers(column)
        read = x[~np.isnan(x)]
        if read.size < SOMETIMES * x.size or np.ptp(read) == 0:
            continue
        positive = bool(read.size == x.size and (read > 0).all())
        x = np.nan_to_num(x) / max(float(np.abs(read).max()), 1e-300)
        out.append(x)
        if column.kind in ("feature", "run"):
            out += [x * x, np.log(x) if positive else np.arcsinh(30.0 * x)]
    return standard(np.stack(out), weight)[0] if out else np.zeros((0, weight.size))
