"""Records of a component as columns: what conditions and laws may speak of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Columns, Mask
from perflaw.learn.cells import Array, run_features
from perflaw.types import TIME, Evidence, Metric

Kind = Literal["category", "feature", "run", "branch", "edge"]
PREFERENCE: Final[tuple[Kind, ...]] = ("category", "feature", "run", "branch", "edge")
"""Which kind tells a split that several tell alike: what is known before the call goes first."""
FEWEST_UNIFORM: Final = 100
"""Records of the uniform part that are enough by themselves."""
MOST_LEVELS: Final = 24
"""Levels of a category that are told apart, the commonest first."""


@dataclass(frozen=True, slots=True)
class Column:
    """A feature that conditions may test."""

    name: str
    """Its name."""
    kind: Kind
    """Where it comes from."""
    values: Array | NDArray[np.str_]
    """Its values, (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """All records of a component, n of them."""

    evidence: Evidence
    """Where they come from."""
    columns: tuple[Column, ...]
    """What conditions may test."""
    run: NDArray[np.intp]
    """Number of each record's run, (n,)."""
    preferred: tuple[str, ...] = ()
    """Features that the person asks for."""

    @property
    def named(self) -> Columns:
        """Columns by name."""
        return {column.name: column.values for column in self.columns}


def table_of(evidence: Evidence, preferred: Collection[str] = ()) -> Table:
    """The records of a component with every column that varies."""
    of_runs = {k: v for k, v in run_features(evidence).items() if k not in evidence.features}
    found = [
        *(Column(name, "category", values) for name, values in evidence.categories.items()),
        *(Column(name, "category", values) for name, values in _knobs(evidence).items()),
        *(Column(name, "feature", values) for name, values in evidence.features.items()),
        *(Column(name, "run", values) for name, values in of_runs.items()),
        *(Column(name, "branch", values) for name, values in evidence.branches.items()),
        *(Column(name, "edge", values) for name, values in evidence.edges.items()),
    ]
    run = np.unique(evidence.run, return_inverse=True)[1].reshape(-1)
    return Table(evidence, tuple(column for column in found if _varies(column)), run, tuple(preferred))


def _varies(column: Column) -> bool:
    if column.kind == "category":
        return bool((column.values != column.values[0]).any())
    read = column.values[~np.isnan(column.values)]
    return bool(read.size and np.ptp(read.astype(np.float64)) > 0)


def _knobs(evidence: Evidence) -> dict[str, NDArray[np.str_]]:
    """What was asked of each run in words: values of ``--vary`` that are no numbers."""
    by_run = {cost.run.id: cost.run for cost in evidence.runs}
    names = dict.fromkeys(name for run in by_run.values() for name in run.configuration)
    taken = {*evidence.categories, *evidence.features, *(name for run in by_run.values() for name in run.features)}
    return {
        name: np.array([by_run[str(run)].configuration.get(name, "") for run in evidence.run], dtype=np.str_)
        for name in names
        if name not in taken
    }


def representative(evidence: Evidence) -> Evidence:
    """The uniform part of a component's sample, each record counting alike, where it is large enough; else all of it.

    What was sampled by duration beside it often lacks features: whether they are read is decided at entry.
    """
    if np.count_nonzero(evidence.uniform) < FEWEST_UNIFORM:
        return evidence
    uniform = part_of(evidence, evidence.uniform)
    return replace(uniform, weight=np.ones(uniform.cost.size))


def part_of(evidence: Evidence, mask: Mask) -> Evidence:
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


@dataclass(frozen=True, slots=True)
class AnnotationOptions:
    """How annotations are learnt: the metric, and the parameters of Algorithms 1 and 2 that Freud §3.2 leaves open."""

    metric: Metric = TIME
    """The metric of the costs."""
    quantum: float = 1.0
    """Smallest step of the metric (of time: the clock's tick in ns)."""
    resolution: float = 0.0
    """Smaller differences between single calls come from the measurement, in the unit of the metric (0: unknown)."""
    good_r2: float = 0.9
    """R² from which on a law is good, so that its records are not split."""
    p: float = 0.01
    """Error probability of a split, over all candidates (Holm 1979: the best of m candidates must reach p / m)."""
    fewest: int = 20
    """Smallest number of records on a side of a split."""
    depth: int = 6
    """Largest number of comparisons in a condition."""
    paper: bool = False
    """Follow the paper wherever perflaw differs from it."""
