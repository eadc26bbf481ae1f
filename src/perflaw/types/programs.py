"""Nouns of the cost model: what whole runs cost by calling context, and what the model says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from perflaw.types.documents import stated
from perflaw.types.laws import Law, Prediction
from perflaw.types.recordings import Component, Metric, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OUTSIDE: Final = "(start and end of the process)"
"""Pseudo-component of what a process costs before and after its recording."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCosts:
    """Calls and own costs of R executions of a program, over F components and C calling contexts.

    A context is a component together with the set of components that are active above it, so recursion to any depth
    stays in finitely many contexts. The own cost of a context is that of its calls without their recorded callees. An
    inclusive cost is a sum of own costs over contexts, so no component costs more than the components that call it.
    """

    metric: Metric
    """The metric of the costs."""
    runs: tuple[Run, ...]
    """(R,) the program's own run of each execution; costs of its child processes are included."""
    components: tuple[Component, ...]
    """(F,) the components."""
    calls: NDArray[np.float64]
    """(R, F) calls of each component: exact counts."""
    own: NDArray[np.float64]
    """(R, F) cost of these calls without their recorded callees, in the unit of the metric."""
    context: NDArray[np.intp]
    """(C,) component of each context."""
    context_calls: NDArray[np.float64]
    """(R, C) calls in each context."""
    context_made: NDArray[np.float64]
    """(R, C) calls of recorded components that are made directly from each context."""
    context_own: NDArray[np.float64]
    """(R, C) own cost in each context; those of a component sum to its own cost."""
    active: tuple[tuple[int, ...], ...]
    """(C,) components that are active in each context, its own included."""
    edges: tuple[tuple[int, int], ...] = ()
    """(E,) caller and callee by component number of each pair that calls; caller -1 for the program's entry."""
    edge_calls: NDArray[np.float64] | None = None
    """(R, E) calls along each edge; None where they are not known."""
    edge_lines: tuple[int, ...] = ()
    """(E,) line of the call site with most of these calls, in the caller's file; -1 where it is not known."""
    queued: NDArray[np.float64] | None = None
    """(R,) time that the runs queued for a CPU and that is left out of their own costs; None where none is."""
    per: Component | None = None
    """The function of which the executions are single calls (``--per``); None where they are runs of the program."""


@dataclass(frozen=True, slots=True)
class GrowthSource:
    """A call site whose calls for each call of the caller become more as the runs grow: where growth enters."""

    caller: Component = field(metadata=stated(caller="name", file="file"))
    """The calling function."""
    callee: Component = field(metadata=stated(callee="name"))
    """The function that is called more and more often."""
    line: int
    """Line of the call site in the caller's file; -1 where it is not known."""
    feature: str
    """Feature of the runs that the calls grow with."""
    exponent: float
    """By which power of the feature they grow, over the recorded sizes."""
    few: float
    """Calls for each call of the caller at the smallest size."""
    many: float
    """The same at the largest size."""
    share: float
    """Share of the cost of a run, at the point asked for, that lies below these calls."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """A run far beyond the data: what it costs, and where its growth enters."""

    predicted: Prediction
    """Cost of the whole run at the point asked for, else at ten times the 95th percentile of every feature."""
    sources: tuple[GrowthSource, ...] = ()
    """Call sites at which growth enters it."""


@dataclass(frozen=True, slots=True)
class ProgramPart:
    """A part of the cost of whole runs that is no function of the program: garbage collection, start and end."""

    component: Component
    """Its name, in brackets."""
    share: float
    """Its share of the cost of the recorded runs."""
    law: Law
    """Its cost in a run."""
    predicted: Prediction
    """The same at the point asked for."""


@dataclass(frozen=True, slots=True)
class ProgramForecast:
    """The cost of whole runs as composed by the cost model, beside what was measured."""

    features: Mapping[str, float]
    """Features of the largest executions that were recorded."""
    composed: float
    """What the model says of these executions, at the speeds that they ran at: counts times unit costs, summed."""
    measured: float
    """What they cost; composed and measured are medians, in the unit of the metric."""
    unrecorded: float
    """What the model says of the start and end of these processes, before and after the recording: part of the sums."""
    executions: int
    """Number of executions that the model was learnt from."""
    predicted: Prediction | None
    """Cost of a run at the point asked for; None without a point, or if it lacks a feature of the model."""
    queued: float = 0.0
    """Time that these executions queued for a CPU of a busy machine, median; all other figures are without it."""
    parts: tuple[ProgramPart, ...] = ()
    """Parts of the cost that are no function of the program, where a point is asked for."""
    per: str = ""
    """Name of the function of which the executions are single calls; empty where they are runs of the program."""
