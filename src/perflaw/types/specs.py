"""Performance specifications: what durations a function shows on which call paths (Brünink & Rosenblum, FSE'16, §3.4, §3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from perflaw.types.durations import CallPath, Platform

Edge = tuple[str, str]
"""A call: names of caller and callee; the caller of a program's first function is ``(start)``."""

Term = tuple[tuple[Edge, bool], ...]
"""A conjunction: each edge lies on the call path (True) or does not (False). The empty one holds for every path."""

Standing = Literal["", "inseparable", "quarantined"]
"""Of a group: told apart by its expression; not told apart from another group; conflicting between models that were merged."""


@dataclass(frozen=True, slots=True)
class PathGroup:
    """Call paths on which a function behaves alike."""

    id: str
    """Short name, stable under the order of input: a digest of the function and the paths' expression."""
    paths: tuple[int, ...]
    """Places in ``PathSpec.paths``."""
    distribution: tuple[float, ...]
    """Share of the calls in each cluster, the quickest first; sums to 1."""
    counts: tuple[int, ...]
    """Calls in each cluster."""
    effective: float
    """Independent calls that these are worth: fewer than the calls where durations are autocorrelated."""
    expression: tuple[Term, ...]
    """When a call belongs here: any of these conjunctions (disjunctive normal form); empty where the standing says why."""
    standing: Standing = ""
    """Whether the expression tells it apart."""
    mislabelled: float = 0.0
    """Share of its calls that come by paths for which the expression says otherwise (soft separation)."""
    behaviours: Mapping[int, tuple[float, ...]] | None = None
    """Platform (place in ``PathSpec.platforms``) → distribution there, by the borders there; None on one platform."""


@dataclass(frozen=True, slots=True)
class PathSpec:
    """The specification of one function by one clock: borders between clusters of durations, and groups of call paths."""

    component: str
    """Name of the function."""
    metric: str
    """Which clock: ``time`` or ``cpu``."""
    unit: str
    """Of the borders."""
    borders: tuple[float, ...]
    """Between clusters, increasing; empty where durations are of one kind."""
    quantiles: tuple[float, ...]
    """Share of all calls below each border: what is compared across platforms."""
    groups: tuple[PathGroup, ...]
    """Groups of call paths, that of most calls first; one group where call paths do not matter."""
    paths: tuple[CallPath, ...]
    """The call paths."""
    path_counts: tuple[tuple[int, ...], ...]
    """(paths, clusters) calls."""
    unknown: tuple[int, ...]
    """Paths with too few calls to belong anywhere."""
    stable: bool
    """Whether the borders are found again in the observations (Algorithm 1)."""
    observations: int
    """How many there are."""
    points: int
    """Calls in all."""
    utility: float
    """How useful further observations would be, 0 … 1 (Algorithm 3)."""
    platforms: tuple[Platform, ...] = ()
    """Where it was measured."""
    platform_borders: Mapping[int, tuple[float, ...]] | None = None
    """Platform → borders there; None on one platform."""
    platform_counts: Mapping[int, tuple[tuple[int, ...], ...]] | None = None
    """Platform → (paths, clusters) calls there; None on one platform, or where it is not known."""
    atoms: tuple[Edge, ...] = ()
    """Edges that the expressions use."""
    share: float | None = None
    """Part of the program's time spent in the function itself."""
    notes: tuple[str, ...] = ()
    """What a reader should know: too few points, perturbed by nested probes, a clock that stands still."""


@dataclass(frozen=True, slots=True)
class Consistency:
    """How far two models of a function agree (RQ1, RQ2): call paths that both group alike, those of as many calls as can be."""

    component: str
    """Name of the function."""
    paths: float
    """Share of the common call paths that are consistent."""
    points: float
    """Share of the calls that came by them."""
    chance_paths: float
    """The level that random groups of the same sizes reach, of paths."""
    chance_points: float
    """The same, of calls."""
    common: int
    """Call paths that both models have."""
