"""From sampled invocations to cells: points of equal standing, one for each run and combination of feature values.

Samples of an invocation stratum are drawn by duration, so taken one by one they would bias a law towards slow calls.
Within a run and a cell of (nearly) equal features their weighted mean does not. Runs stay apart: they are the replicates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.series import LARGEST, blocks, evenly, numbered
from perflaw.types import Evidence

Array = NDArray[np.float64]

STEPS_PER_E = 25.0
"""Feature values within about 4 % of each other share a cell."""
MAX_CELLS = 400
"""Number of cells that a law is learnt from; more are thinned evenly, run by run."""
MIN_PRESENT = 0.9
"""Share of the invocations in which a feature must have been read to explain a law."""
MIN_TOGETHER = 0.5
"""Share of the invocations in which all features of a law must have been read."""
COLLINEAR = 0.999
"""Two features are redundant from this correlation of their logarithms on; the earlier one stays."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Points to learn from; every array has one entry for each cell."""

    y: Array
    """Weighted mean cost."""
    features: dict[str, Array]
    """Weighted mean of each feature."""
    run: NDArray[np.str_]
    """Run of each cell."""


def make_cells(evidence: Evidence, preferred: Collection[str] = ()) -> Cells:
    """The cells of a component's sampled invocations; see :func:`explaining_features` for the features."""
    features, present = _read_together(explaining_features(evidence, preferred), evidence.uniform)
    if present.any() and np.ptp(evidence.weight[present]) == 0:
        # All invocations have the same weight, so there is no bias to average out: only equal inputs share a cell.
        cell = np.zeros(int(present.sum()), dtype=np.int64)
        for column in (evidence.run, *features.values()):
            if cell.size and int(cell.max()) == cell.size - 1:
                break  # every invocation has a cell of its own already
            code = np.unique(column[present], return_inverse=True)[1].reshape(-1)
            cell = np.unique(cell * (int(code.max()) + 1) + code, return_inverse=True)[1].reshape(-1)
        return _cells(evidence, features, present, cell.astype(np.int64))
    near = [np.round(_log(values) * STEPS_PER_E) for values in features.values()]
    cell = _nearly_equal(evidence.run, near, present)
    if present.any() and np.unique(cell).size > present.sum() / 2:
        # Too few share a cell to average: only the uniform part of the sample is unbiased.
        present = present & evidence.uniform if (present & evidence.uniform).any() else present
        cell = _nearly_equal(evidence.run, near, present)
    return _cells(evidence, features, present, cell)


def explaining_features(evidence: Evidence, preferred: Collection[str] = ()) -> dict[str, Array]:
    """Features that vary and were mostly read: those of the arguments, then those of the runs (``preferred`` first).

    A feature that is collinear with an earlier one is left out; an argument replaces a run's feature of its name.
    """
    of_runs = run_features(evidence)
    of_runs = {name: of_runs[name] for name in sorted(of_runs, key=lambda name: name not in preferred)}
    kept: dict[str, Array] = {}
    scaled: list[_Scaled] = []
    for name in dict.fromkeys([*evidence.features, *of_runs]):
        columns = (evidence.features.get(name), of_runs.get(name))
        values = next((one for one in columns if one is not None and _mostly_read(one, evidence.uniform)), None)
        if values is None or np.ptp(values[~np.isnan(values)]) == 0:
            continue
        if not 1.0 / LARGEST <= float(np.nanmax(np.abs(values))) <= LARGEST:
            continue  # whole numbers of Python may be so large that sums of squares fit no float
        logs = _log(values)
        direction = None
        if not np.isnan(logs).any():
            centred = logs - logs.mean()
            length = float(np.sqrt(centred @ centred))
            direction = centred / length if length > 0 and np.ptp(logs) > 0 else np.zeros_like(centred)
        if not any(_collinear((logs, direction), other) for other in scaled):
            kept[name] = values
            scaled.append((logs, direction))
    return kept


def run_features(evidence: Evidence) -> dict[str, Array]:
    """Features of the whole run, given to each of its invocations; NaN in runs without the feature."""
    names = dict.fromkeys(name for cost in evidence.runs for name in cost.run.features)
    if not names:
        return {}
    by_run = {cost.run.id: cost.run.features for cost in evidence.runs}
    of_block, length = blocks(evidence.run)
    runs = [by_run[str(run)] for run in of_block]
    return {
        name: np.repeat(np.array([run.get(name, np.nan) for run in runs], dtype=np.float64), length) for name in names
    }


def _mostly_read(values: Array, uniform: NDArray[np.bool_]) -> bool:
    """Whether a feature was read in most invocations of the uniform part; in the others it is read by chance."""
    read = ~np.isnan(values[uniform] if uniform.any() else values)
    return bool(np.count_nonzero(read) >= max(1.0, MIN_PRESENT * read.size) and not np.isnan(values).all())


def _read_together(
    features: dict[str, Array], uniform: NDArray[np.bool_]
) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """The features that were read together in most of the uniform part, and the invocations that have all of them.

    Each feature may be missing in other invocations than the others; those that are missing most are left out.
    """
    read = {name: ~np.isnan(values) for name, values in features.items()}
    sample = uniform if uniform.any() else np.ones_like(uniform)
    while True:
        present = np.logical_and.reduce([np.ones_like(uniform), *read.values()])
        if not read or np.mean(present[sample]) >= MIN_TOGETHER:
            return {name: features[name] for name in read}, present
        del read[min(reversed(read), key=lambda name: int(read[name][sample].sum()))]


_Scaled = tuple[Array, Array | None]
"""Logarithms of a feature, and the same centred and of unit length; None for a feature with missing values."""


def _collinear(a: _Scaled, b: _Scaled) -> bool:
    if a[1] is not None and b[1] is not None:
        return bool(abs(float(a[1] @ b[1])) >= COLLINEAR)
    both = ~(np.isnan(a[0]) | np.isnan(b[0]))
    x, z = a[0][both], b[0][both]
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(z) == 0:
        return False
    return bool(abs(np.corrcoef(x, z)[0, 1]) >= COLLINEAR)


def _log(values: Array) -> Array:
    """A logarithm of any number: nearly linear around zero, odd."""
    return np.asarray(np.arcsinh(values), dtype=np.float64)


def _nearly_equal(run: NDArray[np.str_], near: Iterable[Array], present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number of the cell of each present invocation: equal runs and equal rounded logarithms ``near`` (n,)."""
    if not present.any():
        return np.zeros(0, dtype=np.int64)
    columns = [numbered(run[present])[1], *(values[present] for values in near)]
    return np.asarray(np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel(), dtype=np.int64)


def _cells(
    evidence: Evidence, features: Mapping[str, Array], present: NDArray[np.bool_], cell: NDArray[np.int64]
) -> Cells:
    """Weighted means over each cell; at most ``MAX_CELLS`` cells, every run keeping its share."""
    weight = evidence.weight[present]
    total = np.bincount(cell, weights=weight)
    first = np.unique(cell, return_index=True)[1]

    def mean(values: Array) -> Array:
        return np.bincount(cell, weights=weight * values[present]) / total

    means = {}
    for name, values in features.items():
        averaged, value = mean(values), values[present][first]
        # A mean that differs from a value of its cell by rounding alone becomes that value.
        means[name] = np.where(np.abs(averaged - value) <= 1e-12 * np.abs(value), value, averaged)
    y, run = mean(evidence.cost), evidence.run[present][first]
    if y.size <= MAX_CELLS:
        return Cells(y, means, run)
    order = np.lexsort((*means.values(), run)) if means else np.argsort(run, kind="stable")
    kept = np.sort(evenly(order, MAX_CELLS))
    return Cells(y[kept], {name: values[kept] for name, values in means.items()}, run[kept])
