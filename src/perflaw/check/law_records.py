"""New evidence under a law: for every sampled invocation its scope, its expected cost, and its probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.check.claims import Claim
from perflaw.laws import distributions
from perflaw.laws.evaluation import evaluate, truth
from perflaw.learn.cells import run_features
from perflaw.learn.series.series import numbered
from perflaw.types import Evidence

Array = NDArray[np.float64]
Column = NDArray[np.float64] | NDArray[np.str_]
"""Values of a feature: numbers with NaN, or texts with "", for invocations in which it was not read."""
Rows = NDArray[np.bool_] | NDArray[np.intp]
"""Some of the records: a mask, or their numbers."""

MAX_COST = 1e100
"""A law that states a higher mean states none there: sums of squares of such costs are no numbers."""
RANGE_SLACK = 0.05
"""Inputs beyond the learnt range by this part of it still count as inside."""


@dataclass(frozen=True, slots=True)
class LawRecords:
    """Sampled invocations of a component under its law; every array has one entry for each of n records."""

    cost: Array
    """Cost, unit of the metric."""
    weight: Array
    """Number of invocations that each record represents."""
    run: NDArray[np.intp]
    """Number of the run of each, in the order of the runs' names."""
    values: Mapping[str, Column]
    """Feature of the law → values."""
    clause: NDArray[np.intp]
    """Index of the law's first clause whose condition is true; −1 if none is, or outside of the learnt range."""
    expected: Array
    """Mean cost by the law, unit of the metric; NaN where ``clause`` is −1."""

    @property
    def inside(self) -> NDArray[np.bool_]:
        """(n,) whether the law applies to the record."""
        return self.clause >= 0

    def take(self, rows: Rows) -> LawRecords:
        """Some of the records."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        values = {name: column[rows] for name, column in self.values.items()}
        return LawRecords(
            self.cost[rows], self.weight[rows], self.run[rows], values, self.clause[rows], self.expected[rows]
        )

    def values_of(self, rows: Rows) -> dict[str, Column]:
        """Values of the features in some of the records."""
        return {name: column[rows] for name, column in self.values.items()}


def columns_of(evidence: Evidence) -> dict[str, Column]:
    """All features of the invocations: arguments, types, branch outcomes, call edges, features of the run."""
    return {**run_features(evidence), **evidence.branches, **evidence.edges, **evidence.categories, **evidence.features}


def missing_features(claim: Claim, evidence: Evidence, known: Mapping[str, Column] | None = None) -> list[str]:
    """Features of the law that no record has, sorted; ``known`` are the columns of the evidence, if they are known."""
    columns = law_columns(claim, evidence, known)
    return sorted(name for name, column in columns.items() if not is_read(column).any())


def law_records(claim: Claim, evidence: Evidence, known: Mapping[str, Column] | None = None) -> LawRecords:
    """The evidence under the claim, none of whose features may be missing (:func:`missing_features`)."""
    values = law_columns(claim, evidence, known)
    count = evidence.cost.size
    clause = np.full(count, -1, dtype=np.intp)
    expected = np.full(count, np.nan)
    in_range = np.ones(count, dtype=bool)
    for name, column in values.items():
        in_range &= is_read(column)
        if name in claim.ranges and column.dtype.kind != "U":
            low, high = claim.ranges[name]
            slack = RANGE_SLACK * max(abs(low), abs(high))
            lowest = low * (1 - RANGE_SLACK) if low > 0 else low - slack
            numbers = np.asarray(column, dtype=np.float64)
            in_range &= (numbers >= lowest) & (numbers <= high + slack)
    with np.errstate(all="ignore"):
        for number, one in enumerate(claim.clauses):
            rows = np.flatnonzero(in_range & (clause < 0))
            if one.condition is not None:
                true = truth(evaluate(one.condition, {name: column[rows] for name, column in values.items()}))
                rows = rows[np.broadcast_to(true, rows.shape)]
            here = {name: column[rows] for name, column in values.items()}
            mean = np.broadcast_to(distributions.mean(one, here), rows.shape) * claim.factor
            valid = (mean >= 0) & (mean <= MAX_COST)
            clause[rows[valid]] = number
            expected[rows[valid]] = mean[valid]
    return LawRecords(evidence.cost, evidence.weight, numbered(evidence.run)[1], values, clause, expected)


def law_columns(claim: Claim, evidence: Evidence, known: Mapping[str, Column] | None = None) -> dict[str, Column]:
    """Values of the law's features; a callee that was never called was called 0 times."""
    if not claim.names:
        return {}
    columns, count = columns_of(evidence) if known is None else known, evidence.cost.size
    return {
        name: columns.get(name, np.zeros(count) if name.startswith("calls.") else np.full(count, np.nan))
        for name in claim.names
    }


def is_read(column: Column) -> NDArray[np.bool_]:
    """Where a feature was read."""
    return np.asarray(column != "" if column.dtype.kind == "U" else np.isfinite(column), dtype=bool)


def cost_probability(claim: Claim, records: LawRecords) -> Callable[[Array], Array]:
    """Function from costs (…, n) to the law's probability of at most these costs (probability integral transform)."""
    clauses = []
    for number, one in enumerate(claim.clauses):
        rows = np.flatnonzero(records.clause == number)
        if rows.size:
            clauses.append((rows, distributions.cdf_at(one, records.values_of(rows))))

    def probability(cost: Array) -> Array:
        with np.errstate(all="ignore"):
            if len(clauses) == 1 and clauses[0][0].size == cost.shape[-1]:
                return clauses[0][1](cost / claim.factor)
            out = np.full(cost.shape, np.nan)
            for rows, cdf in clauses:
                out[..., rows] = cdf(cost[..., rows] / claim.factor)
            return out

    return probability
