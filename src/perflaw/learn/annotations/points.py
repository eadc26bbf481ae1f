"""The evidence behind an annotation, thinned for charts."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.table import Table
from perflaw.learn.cells import Array, Cells
from perflaw.types import Points

MAX_POINTS: Final = 400
FEW: Final = 50
"""With fewer records in the uniform part of the sample, all are shown."""


def points_of_cells(cells: Cells, residuals: Array) -> Points:
    """The points that one law was learnt from, (n,), with their residuals."""
    keep = _evenly(np.arange(cells.y.size))
    return Points(
        {name: tuple(values[keep].tolist()) for name, values in cells.features.items()},
        tuple(cells.y[keep].tolist()),
        tuple(cells.run[keep].tolist()),
        _readable(residuals[keep]),
    )


def points_of_records(table: Table) -> Points:
    """Single records with all that conditions speak of: averages would mix the laws of several scopes.

    The uniform part of the sample, because the rest holds more slow invocations than there are.
    """
    evidence = table.evidence
    uniform = np.flatnonzero(evidence.uniform)
    keep = _evenly(uniform if uniform.size >= FEW else np.arange(evidence.cost.size))
    texts = {column.name: column.values[keep] for column in table.columns if column.kind == "category"}
    numbers = {column.name: column.values[keep] for column in table.columns if column.kind != "category"}
    return Points(
        {name: _readable(np.asarray(values, dtype=np.float64)) for name, values in numbers.items()},
        tuple(evidence.cost[keep].tolist()),
        tuple(evidence.run[keep].tolist()),
        (None,) * keep.size,
        {name: tuple(values.tolist()) for name, values in texts.items()},
    )


def _evenly(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """At most MAX_POINTS of the places."""
    count = min(places.size, MAX_POINTS)
    kept: NDArray[np.intp] = places[np.unique(np.linspace(0, places.size - 1, count).astype(np.int64))]
    return kept


def _readable(values: Array) -> tuple[float | None, ...]:
    told = values.tolist()
    return tuple(None if np.isnan(value) else value for value in told) if np.isnan(values).any() else tuple(told)
