"""Records of a component as columns: the features that conditions and laws may use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Columns, Mask
from perflaw.learn.cells import Array, run_features
from perflaw.learn.series.series import blocks, numbered
from perflaw.types import Evidence

ColumnKind = Literal["category", "feature", "run", "branch", "edge"]
PREFERENCE: Final[tuple[ColumnKind, ...]] = ("category", "feature", "run", "branch", "edge")
"""Of equal splits that of the earlier kind is taken: what is known before the call comes first."""
MIN_UNIFORM: Final = 100
"""From so many records on the uniform part of the sample is used alone."""


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """A feature that conditions may compare."""

    name: str
    """Its name."""
    kind: ColumnKind
    """Its source."""
    values: Array | NDArray[np.str_]
    """Its values, (n,): numbers with NaN, or texts with "", where it was not read."""

    @property
    def numbers(self) -> Array:
        """The values of a numeric column, (n,)."""
        return np.asarray(self.values, dtype=np.float64)

    @property
    def is_read(self) -> Mask:
        """Where it was read, (n,)."""
        return np.asarray(self.values != "" if self.kind == "category" else ~np.isnan(self.numbers))

    @property
    def is_input(self) -> bool:
        """Whether it is a number that is known before the call."""
        return self.kind in ("feature", "run")

    @property
    def is_outcome(self) -> bool:
        """Whether it counts what happened within the call: branch outcomes or calls."""
        return self.kind in ("branch", "edge")


@dataclass(frozen=True, slots=True, eq=False)
class RecordTable:
    """All n records of a component."""

    evidence: Evidence
    """The evidence that they come from."""
    columns: tuple[RecordColumn, ...]
    """The columns that vary."""
    run: NDArray[np.intp]
    """Number of each record's run, (n,)."""
    preferred: tuple[str, ...] = ()
    """Features of the point that predictions are asked for."""

    @property
    def by_name(self) -> Columns:
        """Columns by name."""
        return {column.name: column.values for column in self.columns}

    def numbers(self, name: str) -> Array:
        """Values of a feature of a law, (n,), NaN where it was not read.

        A law may be learnt from more records than the table has, so that its features need not vary in the table.
        """
        column = self.by_name.get(name)
        if column is None:
            sources = (self.evidence.features, run_features(self.evidence), self.evidence.branches, self.evidence.edges)
            column = next((source[name] for source in sources if name in source), np.full(self.run.size, np.nan))
        return np.asarray(column, dtype=np.float64)


def record_table(evidence: Evidence, preferred: Collection[str] = ()) -> RecordTable:
    """The records of a component with every column that varies."""
    of_runs = {name: values for name, values in run_features(evidence).items() if name not in evidence.features}
    # Settings of the runs that are no numbers.
    by_run = {cost.run.id: cost.run for cost in evidence.runs}
    names = dict.fromkeys(name for run in by_run.values() for name in run.configuration)
    of_block, length = blocks(evidence.run)
    runs = [by_run[str(run)] for run in of_block] if names else []
    taken = {*evidence.categories, *evidence.features, *(name for run in by_run.values() for name in run.features)}
    settings = {
        name: np.repeat(np.array([run.configuration.get(name, "") for run in runs], dtype=np.str_), length)
        for name in names
        if name not in taken
    }
    columns = [
        *(RecordColumn(name, "category", values) for name, values in evidence.categories.items()),
        *(RecordColumn(name, "category", values) for name, values in settings.items()),
        *(RecordColumn(name, "feature", values) for name, values in evidence.features.items()),
        *(RecordColumn(name, "run", values) for name, values in of_runs.items()),
        *(RecordColumn(name, "branch", values) for name, values in evidence.branches.items()),
        *(RecordColumn(name, "edge", values) for name, values in evidence.edges.items()),
    ]
    run = numbered(evidence.run)[1]
    return RecordTable(evidence, tuple(column for column in columns if _varies(column)), run, tuple(preferred))


def _varies(column: RecordColumn) -> bool:
    if column.kind == "category":
        return bool((column.values != column.values[0]).any())
    read = column.numbers[~np.isnan(column.numbers)]
    return bool(read.size and np.ptp(read) > 0)


def representative(evidence: Evidence) -> Evidence:
    """The uniform part of a component's sample with equal weights if it is large enough; else the whole sample.

    Records that were sampled by duration often lack features, because it is decided at entry whether they are read.
    """
    if np.count_nonzero(evidence.uniform) < MIN_UNIFORM:
        return evidence
    uniform = select(evidence, evidence.uniform)
    return replace(uniform, weight=np.ones(uniform.cost.size))


def select(evidence: Evidence, mask: Mask) -> Evidence:
    """The records of a mask (n,), as evidence of the same component."""
    if mask.all():
        return evidence
    return replace(
        evidence,
        cost=evidence.cost[mask],
        weight=evidence.weight[mask],
        uniform=evidence.uniform[mask],
        run=evidence.run[mask],
        features={name: values[mask] for name, values in evidence.features.items()},
        categories={name: values[mask] for name, values in evidence.categories.items()},
        edges={name: values[mask] for name, values in evidence.edges.items()},
        branches={name: values[mask] for name, values in evidence.branches.items()},
    )
