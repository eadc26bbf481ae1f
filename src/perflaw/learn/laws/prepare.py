"""From series to rows that may be fitted: runs are the replicates, invocations are not.

Where every feature is constant within each run, the rows of a run are averaged and runs are the points. Where one
varies within runs, rows stay points; their information is then discounted by Moulton's factor (Moulton 1986) and
their intervals come from the spread between runs (:mod:`perflaw.learn.laws.clusters`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.gate import Units
from perflaw.learn.laws.series import Array, Series


@dataclass(frozen=True, slots=True)
class Rows:
    """A series ready to fit: n points, F features."""

    series: Series
    """Where it comes from."""
    x: Array
    """Features, (F, n); a row of zeros where there is none."""
    y: Array
    """Responses, (n,); means over the rows of a run where those were averaged."""
    log_y: Array
    """Logarithms of the responses or their means in a run, (n,); 0 where a response is not positive."""
    w: Array
    """Weights, (n,), summing to n."""
    positive: bool
    """All responses are positive."""
    information: float
    """Independent rows the weights are worth, at most n."""
    runs: int
    """Distinct runs."""
    within: tuple[float, float]
    """Variance of rows about their run's mean that averaging hid: of y and of log y."""
    clusters: NDArray[np.intp] | None
    """Run of every point, (n,), where several points share a run and there are several runs; else None."""
    between: Units
    """What the null control permutes: runs, or the rows of the only run."""
    varying: NDArray[np.bool_]
    """Features that vary within runs, (F,); none where ``clusters`` is None."""

    @property
    def names(self) -> tuple[str, ...]:
        """Features in order."""
        return tuple(self.series.features)


def prepare(series: Series) -> Rows:
    """Rows of a series, its runs averaged where they have to be."""
    n = series.y.size
    # Without features one that never varies stands in: only the constant can be fitted to it.
    x = np.array(list(series.features.values()) or [np.zeros(n)])
    w = np.ones(n) if series.weights is None else series.weights * (n / series.weights.sum())
    positive = bool((series.y > 0).all())
    log_y = np.log(series.y) if positive else np.zeros(n)
    if series.runs is None:
        return _plain(series, x, series.y, log_y, w, positive, n)
    labels, inverse = np.unique(series.runs, return_inverse=True)
    if labels.size in (1, n):
        return _plain(series, x, series.y, log_y, w, positive, labels.size)
    return _of_runs(series, x, log_y, w, positive, inverse.reshape(-1), labels.size)


def _plain(series: Series, x: Array, y: Array, log_y: Array, w: Array, positive: bool, runs: int) -> Rows:
    """Every row is a unit of its own."""
    units = Units(x, y, log_y if positive else None)
    information = float(w.sum() ** 2 / (w * w).sum())
    none = np.zeros(len(x), dtype=bool)
    return Rows(series, x, y, log_y, w, positive, information, runs, (0.0, 0.0), None, units, none)


def _of_runs(
    series: Series, x: Array, log_y: Array, w: Array, positive: bool, run: NDArray[np.intp], runs: int
) -> Rows:
    """Several rows a run."""
    size = np.bincount(run, w)
    averaged = np.stack([np.bincount(run, row * w) / size for row in (*x, series.y, log_y)])
    mean_x, mean_y, mean_log = averaged[:-2], averaged[-2], averaged[-1]
    reach = np.abs(x).max(axis=-1, initial=0.0, keepdims=True)
    varying = (np.abs(x - mean_x[:, run]) > 1e-9 * reach).any(axis=-1)
    units = Units(mean_x, mean_y, mean_log if positive else None)
    if not varying.any():
        within = (_within(series.y - mean_y[run], w, run, runs), _within(log_y - mean_log[run], w, run, runs))
        equal = np.ones(runs)
        return Rows(series, mean_x, mean_y, mean_log, equal, positive, runs, runs, within, None, units, varying)
    information = float(w.sum() ** 2 / (w * w).sum())
    return Rows(
        series, x, series.y, log_y, w, positive, information, runs, (0.0, 0.0), run.astype(np.intp), units, varying
    )


def _within(deviation: Array, w: Array, run: NDArray[np.intp], runs: int) -> float:
    """Pooled variance within runs, less the part 1/m that a run's mean still shows."""
    freedom = run.size - runs
    pooled = float((w * deviation**2).sum() / freedom)
    rows = float(np.mean(np.bincount(run)))
    return pooled * (1.0 - 1.0 / rows)
