"""What responses are looked at over, where one of several behaviours follows a feature: the view of least entropy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.tree import Node

Array = NDArray[np.float64]

BETTER = 20.0
"""Twice the log likelihood that a view over a feature gains at least over y itself."""


def best_view(node: Node, rows: NDArray[np.intp], y: Array) -> Array | None:
    """Logarithm of what y is looked at over, (n,); None for y itself."""
    if (y <= 0).any():
        return None
    log_y = np.log(y)
    least, best = _entropy(log_y), None
    margin = BETTER / 2.0 / y.size
    for over in _scales(node, rows):
        entropy = _entropy(log_y - over)
        if entropy < least - (margin if best is None else 0.0):
            least, best = entropy, over
    return best


def _scales(node: Node, rows: NDArray[np.intp]) -> Iterator[Array]:
    """Logarithms of what y may be over: the law's mean, and functions of the features."""
    law = node.learnt.law
    columns = {
        c.name: np.asarray(c.values, np.float64)[rows] for c in node.table.columns if c.kind in ("feature", "run")
    }
    if law.features and all(name in columns for name in law.features):
        mean = node.learnt.mean({name: np.nan_to_num(columns[name]) for name in law.features})
        if (mean > 0).all():
            yield np.log(mean)
    for x in columns.values():
        if not np.isnan(x).any() and (x > 0).all() and np.ptp(x) > 0:
            log = np.log(x)
            yield from (log, log + np.log(np.maximum(log, 0.1)), 2.0 * log)


def _entropy(values: Array) -> float:
    """Differential entropy by spacings of order m = √n (Vasicek 1976), those below a thousandth as one."""
    ordered = np.sort(values)
    m = max(int(np.sqrt(ordered.size)), 1)
    spacing = np.maximum(ordered[2 * m :] - ordered[: -2 * m], 1e-3)
    return float(np.log(spacing).mean())
