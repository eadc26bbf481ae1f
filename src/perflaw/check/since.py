"""From which size on a law is violated."""

from __future__ import annotations

import numpy as np

from perflaw.check.cases import Case
from perflaw.check.effect import FEWEST_APART, totals
from perflaw.check.evalues import Effects
from perflaw.check.records import Array, Records

BINS = 12
"""Sizes are told apart in so many groups of equally many records."""


def since(case: Case, base: float, sign: float) -> tuple[str, Records] | None:
    """Size from which on the cost is beyond the minimum effect, and the records from there on.

    ``base`` is the log effect of the law's own runs, ``sign`` the side of the violation. None where small inputs are
    violated as well, or where sizes do not tell.
    """
    records = case.records.take(case.records.inside)
    for name in sorted(case.claim.names):
        column = records.values[name]
        if column.dtype.kind == "U" or np.unique(column).size < 3:
            continue
        values = np.asarray(column, dtype=np.float64)
        start = _start(records, values, base, case.margin.towards(sign), sign)
        if start is not None:
            return f"{name} = {start:.6g}", records.take(values >= start)
    return None


def _start(records: Records, values: Array, base: float, least: float, sign: float) -> float | None:
    """Smallest value from which on every group of sizes is beyond ``least``, and below which none is."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[:-1], method="inverted_cdf"))
    group = np.searchsorted(edges, values, side="right") - 1
    sizes = np.bincount(group, minlength=edges.size)
    if edges.size < 2 or sizes.min() < FEWEST_APART:
        return None
    weight = records.weight
    ratio = np.bincount(group, weight * records.cost) / np.bincount(group, weight * records.expected)
    beyond = sign * (np.log(np.maximum(ratio, 1e-12)) - base) > least
    first = int(np.argmax(beyond))
    return float(edges[first]) if first > 0 and beyond[first:].all() else None


def effects_of(records: Records) -> Effects:
    """Effects of the runs over these records."""
    names, run = np.unique(records.run, return_inverse=True)
    return totals(records, run, names.size)
