"""New evidence in the terms of a law: for every sampled invocation its scope, its expected cost, its probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.check.claims import Claim
from perflaw.laws import distributions
from perflaw.laws.evaluation import evaluate, truth
from perflaw.laws.tree import Clause
from perflaw.types import Evidence

Array = NDArray[np.float64]
Values = Mapping[str, NDArray[np.float64] | NDArray[np.str_]]

BEYOND = 0.05
"""Inputs this part beyond the smallest and largest learnt from still count as inside."""


@dataclass(frozen=True, slots=True)
class Records:
    """Sampled invocations of a component under its law; n of them, every array has one entry a record."""

    cost: Array
    """Cost, unit of the metric."""
    weight: Array
    """How many invocations each stands for."""
    run: NDArray[np.str_]
    """Run of each."""
    values: Values
    """Feature → values, NaN or "" where not read."""
    clause: NDArray[np.intp]
    """Number of the law's first clause whose condition is true; −1 where none is, or where it was not learnt."""
    expected: Array
    """Mean cost by the law, unit of the metric; NaN outside."""

    @property
    def inside(self) -> NDArray[np.bool_]:
        """(n,) whether the law says something of the record."""
        return self.clause >= 0

    def take(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> Records:
        """Some of the records."""
        values = {name: column[keep] for name, column in self.values.items()}
        return Records(
            self.cost[keep], self.weight[keep], self.run[keep], values, self.clause[keep], self.expected[keep]
        )


def columns_of(evidence: Evidence) -> dict[str, NDArray[np.float64] | NDArray[np.str_]]:
    """Everything a law may ask of an invocation: arguments, types, branches, call edges, features of the run."""
    by_run = {cost.run.id: cost.run.features for cost in evidence.runs}
    names = dict.fromkeys(name for features in by_run.values() for name in features)
    found: dict[str, NDArray[np.float64] | NDArray[np.str_]] = {
        name: np.array([by_run[str(run)].get(name, np.nan) for run in evidence.run], dtype=np.float64) for name in names
    }
    found.update(evidence.branches)
    found.update(evidence.edges)
    found.update(evidence.categories)
    found.update(evidence.features)
    return found


def missing(claim: Claim, evidence: Evidence) -> list[str]:
    """Features that the law needs and no record has, sorted."""
    there, count = columns_of(evidence), evidence.cost.size
    return sorted(name for name in claim.names if not _read(_column(there, name, count)).any())


def hold(claim: Claim, evidence: Evidence) -> Records:
    """The evidence under the claim, whose features must be there (:func:`missing`)."""
    there = columns_of(evidence)
    count = evidence.cost.size
    values = {name: _column(there, name, count) for name in claim.names}
    clause = np.full(count, -1, dtype=np.intp)
    expected = np.full(count, np.nan)
    read = np.ones(count, dtype=bool)
    for name, column in values.items():
        read &= _read(column) & _within(column, claim.ranges.get(name))
    with np.errstate(all="ignore"):
        for number, one in enumerate(claim.clauses):
            rows = np.flatnonzero(read & (clause < 0))
            some = {name: column[rows] for name, column in values.items()}
            true = _true(one, some, rows.size)
            rows, some = rows[true], {name: column[true] for name, column in some.items()}
            mean = np.broadcast_to(distributions.mean(one, some), rows.shape) * claim.factor
            sound = np.isfinite(mean) & (mean >= 0)
            clause[rows[sound]] = number
            expected[rows[sound]] = mean[sound]
    return Records(evidence.cost, evidence.weight, evidence.run, values, clause, expected)


def probability(claim: Claim, records: Records) -> Callable[[Array], Array]:
    """Probability under the law, at each record, of costs (…, n) up to those given (probability integral transform)."""
    laws = []
    for number, one in enumerate(claim.clauses):
        rows = np.flatnonzero(records.clause == number)
        if rows.size:
            some = {name: column[rows] for name, column in records.values.items()}
            laws.append((rows, distributions.cdf_at(one, some)))

    def of(cost: Array) -> Array:
        with np.errstate(all="ignore"):
            if len(laws) == 1 and laws[0][0].size == cost.shape[-1]:
                return laws[0][1](cost / claim.factor)
            out = np.full(cost.shape, np.nan)
            for rows, law in laws:
                out[..., rows] = law(cost[..., rows] / claim.factor)
            return out

    return of


def _true(clause: Clause, values: Values, count: int) -> NDArray[np.bool_]:
    """Where a clause's condition is true, (count,)."""
    if clause.condition is None:
        return np.ones(count, dtype=bool)
    return np.broadcast_to(truth(evaluate(clause.condition, values)), (count,))


def _column(there: Values, name: str, count: int) -> NDArray[np.float64] | NDArray[np.str_]:
    """A feature's values; a callee that was never called was called 0 times."""
    unread = np.zeros(count) if name.startswith("calls.") else np.full(count, np.nan)
    return there.get(name, unread)


def _read(column: NDArray[np.float64] | NDArray[np.str_]) -> NDArray[np.bool_]:
    """Where a feature was read."""
    return np.asarray(column != "" if column.dtype.kind == "U" else np.isfinite(column), dtype=bool)


def _within(column: NDArray[np.float64] | NDArray[np.str_], ends: tuple[float, float] | None) -> NDArray[np.bool_]:
    """Where a feature is inside what the law was learnt from; everywhere for a law that does not say."""
    if ends is None or column.dtype.kind == "U":
        return np.ones(column.size, dtype=bool)
    low, high = ends
    slack = BEYOND * max(abs(low), abs(high))
    lowest = low * (1 - BEYOND) if low > 0 else low - slack
    numbers = np.asarray(column, dtype=np.float64)
    return np.asarray((numbers >= lowest) & (numbers <= high + slack), dtype=bool)
