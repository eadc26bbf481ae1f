"""What a recording is made of: the run, its clock, what is missing, and the evidence in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# ---- The longest invocations of a function with what happened within them, as a recording has it.


@dataclass(frozen=True, slots=True)
class NestedSpan:
    """A call within an invocation; a segment, where it is of a generator or coroutine."""

    name: str
    """Component that was called."""
    line: int
    """Source line of the call, 0 where unknown."""
    parent: int
    """Place of the span that it lies in; -1: the invocation itself."""
    started_ns: int
    """After the invocation's start."""
    time_ns: int
    """How long it took."""


@dataclass(frozen=True, slots=True)
class WorstCall:
    """One of the longest invocations of a function."""

    run: str
    """Id of its run."""
    sequence: int
    """Order of completion within the run."""
    started_ns: int
    """Start, since the run's first event."""
    time_ns: int
    """How long it took."""
    cpu_ns: float
    """Its part on the CPU; NaN where unknown."""
    calls: int
    """Recorded calls in it, itself included."""
    path: tuple[str, ...]
    """Components that led to it, itself last."""
    spans: tuple[NestedSpan, ...]
    """Calls within it, callers first: the longest of them."""
    features: Mapping[str, float | str] = field(default_factory=dict)
    """What was read at its entry; empty where it was not sampled."""

    @property
    def left_out(self) -> int:
        """Calls within it, shorter than those kept, that are no span."""
        return max(self.calls - 1 - len(self.spans), 0)


# ---- What is measured: components and metrics.


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the program whose cost is measured."""

    name: str
    """Qualified name, ``package.module.Class.function``."""
    file: str = ""
    """Source file, empty where there is none."""
    line: int = 0
    """First line of its definition, 0 where unknown."""
    language: str = "python"
    """Language it is written in."""
    origin: Literal["own", "library"] = "own"
    """The person's own code, or the standard library and installed packages."""
    parameters: tuple[str, ...] = ()
    """Names of its parameters, in order."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured of an invocation."""

    name: str
    """Name on the command line and in documents: ``time``."""
    unit: str
    """Unit of its values: ``ns``."""


TIME = Metric("time", "ns")
"""Wall time of an invocation, the tracer's own time taken out."""
CPU = Metric("cpu", "ns")
"""The part of it in which the invocation's thread was on a CPU."""
EVENTS = Metric("events", "calls")
"""Recorded calls: the invocation itself and all below it."""
FEATURE_NAME: Final = re.compile(r"[A-Za-z_][\w.\[\]-]*")
"""What a feature that a person names may be called."""

MOST_SLOWDOWN = 100.0
"""Slowdowns from here on are not told apart."""


EXACT_NS = 50.0
"""No time of a call on a real clock is more exact."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock a run was measured with, and what measuring cost."""

    name: str
    """``perf_counter`` or ``fake``."""
    tick_ns: int
    """Smallest step it can show."""
    event_ns: int
    """Calibrated cost of a call event outside the tracer's own clock reads, taken out of every open frame."""
    own_ns: int
    """All time the tracer took out of the run."""

    @property
    def exact_ns(self) -> float:
        """Times of single calls that differ by less do not differ: what is taken out for the tracer is no more exact."""
        return float(self.tick_ns) if self.name == "fake" else max(EXACT_NS, self.tick_ns, self.event_ns / 2)


@dataclass(frozen=True, slots=True)
class Losses:
    """What a recording does not contain, counted."""

    open_invocations: int = 0
    """Invocations that had not ended when the recording did; they give no sample."""
    missed_calls: int = 0
    """Calls that no record was made of: at the recursion limit, or for want of memory."""
    library_functions: int = 0
    """Functions of libraries that only libraries called: left out by default."""
    unselected_functions: int = 0
    """Functions left out by ``--select`` and ``--exclude``."""
    reason: str = ""
    """Why the recording stopped before the program did; empty if it did not."""
    folded_calls: int = 0
    """Calls from further contexts than are kept apart: put together by function."""
    unlinked: int = 0
    """How often a descendant's part in an invocation was not kept, because there were too many pairs of the two."""
    probe_records: int = 0
    """Records of probes that were overwritten before the collector came to them, or found no place."""


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run of a target: the manifest beside its tables."""

    id: str
    """Name of the run within its experiment, such as ``0001``."""
    command: tuple[str, ...]
    """What was run, secrets masked."""
    target: str
    """Short name of what was run: ``app.py``."""
    features: Mapping[str, float]
    """Features of the whole run: ``--vary`` values, argument numbers, sizes of files, declared ones."""
    started: str
    """Start, UTC, ISO 8601."""
    wall_ns: int
    """Wall time of the target's process as the person felt it."""
    span_ns: int
    """Wall time from first to last event, the tracer's own time taken out."""
    status: int
    """Exit status of the target, 128 + signal when it was killed."""
    complete: bool
    """Whether the program ended by itself with status 0 and every record arrived."""
    ended: str
    """How it ended, in words."""
    tracer: str
    """Which tracer recorded it, and why that one."""
    python: str
    """Version of the target's interpreter."""
    clock: Clock
    """The clock and its cost."""
    lost: Losses
    """What is missing."""
    host: str
    """Machine it ran on."""
    environment: Mapping[str, str]
    """Environment variables of the allow-list."""
    configuration: Mapping[str, str]
    """What was asked of the recorder: values of ``--vary``, selection, clock."""
    calls: int
    """Completed invocations."""
    functions: int
    """Functions recorded."""
    nodes: int
    """Nodes of its call tree."""
    metrics: tuple[Metric, ...] = (TIME, EVENTS)
    """What was measured of every invocation."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What the tracer says of its measurements, by topic: ``clock``, ``cpu``, ``tracer``."""
    pid: int = 0
    """Process id of the target, 0 where the tracer does not say."""
    parent: str = ""
    """Id of the run of the process that started this one; empty for the program that was recorded."""
    workload: str = ""
    """Name of its workload in the workload file, empty without one."""
    planned: str = ""
    """Digest of what was planned, by which ``record --resume`` knows the run again; empty for child processes."""

    @property
    def slowdown(self) -> float:
        """Estimated ratio of the run's wall time to what it would have been untraced, from the tracer's own time.

        At most ``MOST_SLOWDOWN``: with several threads the tracer's time may exceed the wall's.
        """
        return self.wall_ns / max(self.wall_ns - self.clock.own_ns, self.wall_ns / MOST_SLOWDOWN, 1.0)


@dataclass(frozen=True, slots=True)
class RunCost:
    """What one run spent in a component."""

    run: Run
    """The run."""
    calls: int
    """Completed invocations of the component in it."""
    total: int
    """Cost of them, recursion counted once, unit of the metric."""
    self_total: int
    """The same without callees that are components themselves."""
    cost: int
    """Cost of the whole run, all threads together."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the recordings of an experiment say of one component: sampled invocations, and every run's totals."""

    component: Component
    """The part of the program."""
    cost: NDArray[np.float64]
    """(n,) cost of each sampled invocation, unit of the metric."""
    weight: NDArray[np.float64]
    """(n,) how many invocations each stands for."""
    uniform: NDArray[np.bool_]
    """(n,) whether it belongs to the uniform part of the sample."""
    run: NDArray[np.str_]
    """(n,) id of its run."""
    features: Mapping[str, NDArray[np.float64]]
    """Feature → (n,) values of the invocations' arguments, NaN where not read."""
    runs: tuple[RunCost, ...]
    """Every run in which the component was called."""
    categories: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    """Feature → (n,) text of the invocations: dynamic types (``x.type``), "" where not read."""
    edges: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """``calls.<component>`` → (n,) calls of that direct callee in each invocation, 0 where there was none."""
    branches: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """``branch.L12.taken`` → (n,) how often the branch went that way, NaN where it was not counted."""
