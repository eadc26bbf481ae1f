"""Records of a component as columns: what conditions and laws may speak of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.annotations.conditions import Columns, Mask
from perflaw.learn.cells import Array, run_features
from perflaw.types import Evidence

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


# ---- What a person may choose about annotations.


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of Algorithms 1 and 2 (Freud §3.2) where the paper leaves them open."""

    good_r2: float = 0.9
    """R² from which a law is good, so that its part is left whole."""
    p: float = 0.01
    """Error of a split, over all that were looked at (Holm 1979: the best of m must reach p / m)."""
    fewest: int = 20
    """Records that a part has at least."""
    depth: int = 6
    """Tests of a condition at most."""
    resolution: float = 0.0
    """Differences of single calls below this, in the unit of the metric, are the measurement's (0: unknown)."""
    paper: bool = False
    """The paper's own choices, where ours differ."""
