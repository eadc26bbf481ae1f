"""Sampled invocations to points of equal standing: one per run and combination of feature values.

Samples of an invocation stratum are drawn by duration, so taken one by one they would bias a law towards slow calls.
Within a run and a cell of (nearly) equal features their weighted mean does not. Runs stay apart: they are the replicates.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.types import Evidence

Array = NDArray[np.float64]

STEPS_PER_E = 25.0
"""Features within about 4 % of each other share a cell."""
MAX_CELLS = 400
"""Points that a law is learnt from; more are thinned evenly, run by run."""
MIN_PRESENT = 0.9
"""Share of the invocations a feature must have been read in to be a candidate."""
COLLINEAR = 0.999
"""Correlation of logarithms from which two features say the same; the earlier one stays."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Points to learn from; every array has one entry a cell."""

    y: Array
    """Weighted mean cost."""
    features: dict[str, Array]
    """Weighted mean of each feature."""
    run: NDArray[np.str_]
    """Run of each cell."""


def make_cells(evidence: Evidence, preferred: Collection[str] = ()) -> Cells:
    """The cells of a component's sampled invocations; see :func:`candidates` for the features."""
    features = candidates(evidence, preferred)
    present = np.ones(evidence.cost.size, dtype=bool)
    for values in features.values():
        present &= ~np.isnan(values)
    if present.any() and np.ptp(evidence.weight[present]) == 0:
        # Every invocation stands for as many: no bias to average out, so nothing but equal inputs is put together.
        return _thinned(_averaged(evidence, features, present, _exact_codes(evidence, features, present)))
    codes = _codes(evidence, features, present)
    if present.any() and np.unique(codes).size > present.sum() / 2:
        present &= evidence.uniform  # nothing to average over: only the uniform part of the sample is free of bias
        codes = _codes(evidence, features, present)
    return _thinned(_averaged(evidence, features, present, codes))


def candidates(evidence: Evidence, preferred: Collection[str] = ()) -> dict[str, Array]:
    """Features that vary and were mostly read: the arguments', then the runs' (the preferred ones first).

    Those that say the same as an earlier one are left out; an argument goes before a run's feature of its name.
    """
    of_runs = run_features(evidence)
    order = sorted(of_runs, key=lambda name: name not in preferred)
    named = {name: values for name, values in evidence.features.items() if _mostly_read(values, evidence.uniform)}
    named = {**{name: of_runs[name] for name in order}, **named}
    kept: dict[str, Array] = {}
    told: list[_Scaled] = []
    for name in dict.fromkeys([*evidence.features, *order]):
        values = named.get(name)
        if values is None or not _mostly_read(values, evidence.uniform) or np.ptp(values[~np.isnan(values)]) == 0:
            continue
        mine = _scaled(values)
        if not any(_collinear(mine, other) for other in told):
            kept[name] = values
            told.append(mine)
    return kept


def _mostly_read(values: Array, uniform: NDArray[np.bool_]) -> bool:
    """Whether a feature was read of most invocations: of the uniform part, for others' features are read by chance."""
    read = ~np.isnan(values[uniform] if uniform.any() else values)
    return bool(np.count_nonzero(read) >= max(1.0, MIN_PRESENT * read.size) and not np.isnan(values).all())


def run_features(evidence: Evidence) -> dict[str, Array]:
    """Features of the whole run, given to each of its invocations."""
    names = dict.fromkeys(name for cost in evidence.runs for name in cost.run.features)
    by_run = {cost.run.id: cost.run.features for cost in evidence.runs}
    return {
        name: np.array([by_run[str(run)].get(name, np.nan) for run in evidence.run], dtype=np.float64) for name in names
    }


_Scaled = tuple[Array, Array | None]
"""Logarithms of a feature, and these centred and of unit length where it was read everywhere."""


def _scaled(values: Array) -> _Scaled:
    logs = _log(values)
    if np.isnan(logs).any():
        return logs, None
    centred = logs - logs.mean()
    length = float(np.sqrt(centred @ centred))
    varies = length > 0 and np.ptp(logs) > 0
    return logs, centred / length if varies else np.zeros_like(centred)


def _collinear(a: _Scaled, b: _Scaled) -> bool:
    if a[1] is not None and b[1] is not None:
        return bool(abs(float(a[1] @ b[1])) >= COLLINEAR)
    both = ~(np.isnan(a[0]) | np.isnan(b[0]))
    x, z = a[0][both], b[0][both]
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(z) == 0:
        return False
    return bool(abs(np.corrcoef(x, z)[0, 1]) >= COLLINEAR)


def _log(values: Array) -> Array:
    """Logarithm that takes any number: near-linear around zero, odd."""
    return np.asarray(np.arcsinh(values), dtype=np.float64)


def _codes(evidence: Evidence, features: dict[str, Array], present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number of the cell of each present invocation."""
    columns = [np.unique(evidence.run[present], return_inverse=True)[1]]
    columns += [np.round(_log(values[present]) * STEPS_PER_E) for values in features.values()]
    if not present.any():
        return np.zeros(0, dtype=np.int64)
    return np.asarray(np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel(), dtype=np.int64)


def _exact_codes(evidence: Evidence, features: dict[str, Array], present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The same with cells of equal features alone."""
    columns = [evidence.run[present], *(values[present] for values in features.values())]
    codes = np.zeros(int(present.sum()), dtype=np.int64)
    for column in columns:
        if codes.size and int(codes.max()) == codes.size - 1:
            break  # all are told apart already
        code = np.unique(column, return_inverse=True)[1].reshape(-1)
        codes = np.unique(codes * (int(code.max()) + 1) + code, return_inverse=True)[1].reshape(-1)
    return codes.astype(np.int64)


def _averaged(
    evidence: Evidence, features: dict[str, Array], present: NDArray[np.bool_], codes: NDArray[np.int64]
) -> Cells:
    weight = evidence.weight[present]
    total = np.bincount(codes, weights=weight)
    first = np.unique(codes, return_index=True)[1]

    def mean(values: Array) -> Array:
        return np.bincount(codes, weights=weight * values[present]) / total

    averaged = {name: _exact(mean(values), values[present][first]) for name, values in features.items()}
    return Cells(mean(evidence.cost), averaged, evidence.run[present][first])


def _exact(mean: Array, first: Array) -> Array:
    """Means that differ from a value of the cell by rounding alone become that value."""
    return np.where(np.abs(mean - first) <= 1e-12 * np.abs(first), first, mean)


def _thinned(cells: Cells) -> Cells:
    """At most MAX_CELLS cells, every run keeping its share; deterministic."""
    if cells.y.size <= MAX_CELLS:
        return cells
    order = (
        np.lexsort((*cells.features.values(), cells.run)) if cells.features else np.argsort(cells.run, kind="stable")
    )
    keep = np.sort(order[np.linspace(0, order.size - 1, MAX_CELLS).astype(np.int64)])
    return Cells(cells.y[keep], {name: values[keep] for name, values in cells.features.items()}, cells.run[keep])
