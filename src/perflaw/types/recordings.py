"""The nouns of a recording: components and metrics, the run, its clock and losses, and the evidence in it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from perflaw.laws.units import METRICS as METRIC_UNITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLLECTING: Final = "(garbage collection)"
"""Pseudo-component of the interpreter's collections within a call (native/python/metrics/collections.c defines it)."""
WAITING: Final = "(waiting)"
"""Pseudo-component: the time that generators and coroutines were suspended. It is no part of their own time."""
PSEUDO_COMPONENTS: Final = frozenset({COLLECTING, WAITING})
"""Pseudo-components: they are below a call and no code of the program."""


@dataclass(frozen=True, slots=True)
class NestedSpan:
    """A call within an invocation, or a segment of a generator or coroutine."""

    name: str
    """Name of the component that was called."""
    line: int
    """Source line of the call, 0 where unknown."""
    parent: int
    """Place of the span that it lies in; -1 for the invocation itself."""
    started_ns: int
    """Start, since the start of the invocation."""
    time_ns: int
    """Duration."""


@dataclass(frozen=True, slots=True)
class WorstCall:
    """One of the longest invocations of a function."""

    run: str
    """Id of its run."""
    sequence: int
    """Order of completion within the run."""
    started_ns: int
    """Start, since the first event of the run."""
    time_ns: int
    """Duration."""
    cpu_ns: float
    """CPU time in it; NaN where unknown."""
    calls: int
    """Recorded calls in it, itself included."""
    path: tuple[str, ...]
    """Names of the components on its calling context, its own last."""
    spans: tuple[NestedSpan, ...]
    """The longest calls within it, callers first."""
    features: Mapping[str, float | str] = field(default_factory=dict)
    """Features read at its entry; empty if it was not sampled."""

    @property
    def left_out(self) -> int:
        """Number of calls within it that are shorter than those kept as spans."""
        return max(self.calls - 1 - len(self.spans), 0)


@dataclass(frozen=True, slots=True)
class Component:
    """What has a cost: a function, a line, a block, a call site or a probe."""

    name: str
    """Qualified name, ``package.module.Class.function``."""
    file: str = ""
    """Source file, empty where there is none."""
    line: int = 0
    """First line of its definition, 0 where unknown."""
    language: str = "python"
    """Language it is written in."""
    origin: Literal["own", "library"] = "own"
    """Whether it is the person's own code, or of the standard library or an installed package."""
    parameters: tuple[str, ...] = ()
    """Names of its parameters, in order."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A kind of cost that is measured for every invocation."""

    name: str
    """Name on the command line and in documents: ``time``."""
    unit: str
    """Unit of its values: ``ns``."""


METRICS = {name: Metric(name, unit) for name, unit in METRIC_UNITS.items()}
"""Every metric that perflaw measures itself, by name."""
TIME = METRICS["time"]
"""Wall time of an invocation, without the tracer's own time."""
CPU = METRICS["cpu"]
"""Time during which the invocation's thread was running on a CPU."""
EVENTS = METRICS["events"]
"""Recorded calls within an invocation, itself included."""
FEATURE_NAME: Final = re.compile(r"[A-Za-z_](?:[\w.\[\]-]|::)*")
"""Names that a person may give to a feature."""
MOST_SLOWDOWN = 100.0
"""Larger slowdowns are given as this one."""
COLDER = 1.25
"""Ratio of what an event takes in a program to what it takes in the calibration, whose caches are warm."""
COLDEST = 1.75
"""The same for calls of compiled programs, whose calibration has fewer branches and functions than a program, at most."""
EXACT_NS = 50.0
"""Error of the time of a single call on a real clock, at least."""


IMPORTED: Final = "imported"
"""Name of the clock of a trace that another tool recorded."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a run, and the cost of measuring."""

    name: str
    """``perf_counter``, ``fake``, or ``imported``: the clock of another tool's trace."""
    tick_ns: int
    """Its smallest step."""
    event_ns: int
    """Calibrated cost of a call event outside the tracer's own clock reads; it is subtracted from every open frame."""
    own_ns: int
    """All time of the tracer in the run, which is not part of any cost."""
    waited_ns: int = 0
    """Part of ``own_ns`` in which the program did not run: it waited for the recorder, or others had the CPU."""
    counting_ns: int = 0
    """Part of ``own_ns`` that is known by calibration alone: lines counted up to Python 3.11, events in pure Python."""
    counted_ns: int = 0
    """What the counted code takes without counting, by calibration; as ``counting_ns`` it is that of warm caches."""
    cpu_ns: int = 0
    """CPU time that a process which ran already took while it was recorded; 0 where ``machine`` has that of the whole."""
    profiled_percent: int = 100
    """How long the interpreter runs the program's own code while the tracer is there, in % of what it takes alone."""
    call_ns: float = 0.0
    """What a call of a function that does nothing takes without the tracer, by calibration; 0 where that is unknown."""
    recorded_call_ns: int = 0
    """CPU time of such a call that is recorded by Frida or in recordings of earlier versions; 0 where that is unknown."""
    added_ns: tuple[float, ...] = ()
    """CPU time that recording adds to a call, for each kind of call of the calibration; none where that is unknown.

    The kinds are a call of a recursion, one that mostly waits for its own results, and one before which other code filled
    the caches.
    """

    @property
    def exact_ns(self) -> float:
        """Times of single calls that differ by less are equal, for the tracer's own time is not known more exactly."""
        return float(self.tick_ns) if self.name == "fake" else max(EXACT_NS, self.tick_ns, self.event_ns / 2)


@dataclass(frozen=True, slots=True)
class HeapCosts:
    """What a machine needs to visit and to free objects of Python, by how many live: caches hold only so many."""

    blocks: tuple[int, ...]
    """Blocks of memory that lived, ascending."""
    objects: tuple[int, ...]
    """Objects that they were."""
    visit_ns: tuple[float, ...]
    """CPU time of a full collection for each object, where all of them stay."""
    free_ns: tuple[float, ...]
    """CPU time of a full collection for each block, where all of them are freed."""


@dataclass(frozen=True, slots=True)
class MachineLosses:
    """CPU time that interrupts and other guests of a hypervisor took, which nothing marks, from code that was watched."""

    watched_ns: int
    """CPU time for which the code was watched."""
    losses_ns: tuple[int, ...]
    """What was lost each time."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a program got of the machine while it ran, by the kernel's account."""

    cpus: int
    """CPUs that it may use."""
    load: float
    """Load average of the last minute, at its end."""
    user_ns: int
    """CPU time of its process in user mode, with that of children it waited for."""
    system_ns: int
    """CPU time of the same in the kernel."""
    queued_ns: int
    """Time that its main thread was ready to run and had no CPU; 0 if the kernel does not say."""
    voluntary_switches: int
    """Times that it gave up the CPU, to wait."""
    involuntary_switches: int
    """Times that the CPU was taken from it."""
    steal_ns: int
    """Time that the hypervisor gave this machine's CPUs to others."""
    others_ns: int
    """CPU time of all other processes but the recorder."""
    before_ns: int = 0
    """CPU time of the process before its tracer began: the interpreter's start. 0 if unknown, as are the next two."""
    tracer_start_ns: int = 0
    """CPU time that its tracer took to begin, and to free what it held at the end; nothing of it is recorded."""
    after_ns: int = 0
    """CPU time after the recording ended: the interpreter's end."""
    heap: HeapCosts | None = None
    """Costs of objects on this machine; None where the end of the process does not depend on them."""
    losses: MachineLosses | None = None
    """What the machine took from code that always does the same, just after the run; None if that was not measured."""

    @property
    def cpu_ns(self) -> int:
        """CPU time of its process."""
        return self.user_ns + self.system_ns

    @property
    def queued_share(self) -> float:
        """Share of the time in which its main thread wanted a CPU and had none."""
        return self.queued_ns / max(self.queued_ns + self.cpu_ns, 1)

    def steal_share(self, wall_ns: int) -> float:
        """Share of the machine's CPU time that the hypervisor gave to others during the run."""
        return self.steal_ns / max(wall_ns * self.cpus, 1)

    def is_busy(self, wall_ns: int) -> bool:
        """Whether others kept the program from running so much that wall time is misleading."""
        return self.queued_share > MOST_QUEUED or self.steal_share(wall_ns) > MOST_STEAL


MOST_QUEUED: Final = 0.1
MOST_STEAL: Final = 0.03
"""Larger shares mean that the machine was busy."""


@dataclass(frozen=True, slots=True)
class Collections:
    """Garbage collections of CPython in a run, as far as they follow from the number of objects that survive."""

    middle: int
    """Collections of the generations above the youngest."""
    promoted: int
    """Objects that reached the oldest generation."""
    full: int
    """Collections of all generations that the interpreter began by itself."""
    visited: int
    """Objects of the oldest generation that these visited."""
    wall_ns: int
    """Their wall time."""
    cpu_ns: int
    """Their CPU time."""
    blocks: int = 0
    """Blocks of memory that live when the recording ends, which the interpreter then visits and frees; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Counts of what a recording does not contain."""

    open_invocations: int = 0
    """Invocations that had not ended when the recording did; they are not sampled."""
    missed_calls: int = 0
    """Calls without a record, at the recursion limit or for lack of memory."""
    library_functions: int = 0
    """Library functions called only by libraries: recordings of earlier versions of perflaw left them out by default."""
    unselected_functions: int = 0
    """Functions left out by ``--select`` and ``--exclude``."""
    reason: str = ""
    """Why the recording stopped before the program; empty if it did not."""
    counted_functions: int = 0
    """Functions of which most calls were counted and not timed, to keep to the budget."""
    folded_calls: int = 0
    """Calls from contexts beyond the limit, which are put together by function."""
    unlinked: int = 0
    """Number of times a descendant's part in an invocation was not kept, because there were too many such pairs."""
    probe_records: int = 0
    """Records of probes that were overwritten before the collector read them, or for which there was no room."""
    subinterpreters: int = 0
    """Subinterpreters that ran, whose code is not recorded; 1 for several where the pure-Python tracer recorded."""


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run of a target: the manifest of its tables."""

    id: str
    """Id of the run within its experiment, such as ``0001``."""
    command: tuple[str, ...]
    """The command line, secrets masked."""
    target: str
    """Short name of the program: ``app.py``."""
    features: Mapping[str, float]
    """Features of the whole run: values of ``--vary``, numbers in arguments, sizes of files, and declared features."""
    started: str
    """Start, UTC, ISO 8601."""
    wall_ns: int
    """Wall time of the target's process, the tracer's own time included."""
    span_ns: int
    """Wall time from the first to the last event, without the tracer's own time."""
    status: int
    """Exit status of the target, 128 + signal if a signal killed it."""
    complete: bool
    """Whether the program ended by itself with status 0 and every record arrived."""
    ended: str
    """How it ended, in words."""
    tracer: str
    """The tracer that recorded it, and why that one was chosen."""
    python: str
    """Version of the target's interpreter."""
    clock: Clock
    """The clock and its cost."""
    lost: Losses
    """What the recording does not contain."""
    host: str
    """Machine it ran on."""
    environment: Mapping[str, str]
    """Environment variables that are on the allow-list."""
    configuration: Mapping[str, str]
    """Settings of the recorder: values of ``--vary``, selection, clock."""
    calls: int
    """Completed invocations."""
    functions: int
    """Functions recorded."""
    nodes: int
    """Nodes of its call tree."""
    metrics: tuple[Metric, ...] = (TIME, EVENTS)
    """Metrics of every invocation."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Remarks of the tracer on its measurements, by topic: ``clock``, ``cpu``, ``tracer``."""
    pid: int = 0
    """Process id of the target; 0 where unknown."""
    parent: str = ""
    """Id of the run of the parent process; empty for the program itself."""
    workload: str = ""
    """Name of its workload in the workload file; empty without one."""
    planned: str = ""
    """Digest of the planned run, by which ``record --resume`` recognises it; empty for child processes."""
    machine: Machine | None = None
    """What it got of the machine; None for child processes, imported traces and older recordings."""
    collections: Collections | None = None
    """Its full garbage collections; None where the tracer does not know them, and in older recordings."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Digests of the program's own files that ran, by file; empty for imported traces and in older recordings."""
    typed: tuple[str, ...] = ()
    """The command as it was typed, secrets masked; empty if nobody typed one, and in older recordings."""
    DOCUMENTED: ClassVar = ("slowdown", "slowdown_low", "slowdown_high")

    @property
    def per(self) -> str:
        """The function that ``--per`` named, of which each call is an observation; empty: the run is one."""
        return self.configuration.get("per", "")

    @property
    def slowdown(self) -> float:
        """Ratio of the CPU time of the program's process, as measured, to that without what the tracer added to it.

        What it added is the start of the tracer, its calibrated own time, and what it makes the interpreter slower. Where
        the CPU time is not known, the ratio is that of wall times. The program took at least what its calls
        take if they do nothing, and what ran before and after the tracer. The ratio is at most ``MOST_SLOWDOWN``.
        Where what is added to a call lies between two bounds, this is the geometric mean of the ratios that they give.
        """
        return math.sqrt(self.slowdown_low * self.slowdown_high)

    @property
    def is_suite(self) -> bool:
        """Whether it ran the tests of a suite: it has no size, and its tests call the functions at several."""
        return self.target.split()[-1:] == ["pytest"]

    @property
    def is_imported(self) -> bool:
        """Whether it comes from a trace that another tool made."""
        return self.clock.name == IMPORTED

    @property
    def slowdown_low(self) -> float:
        """The slowdown if recording adds to each call of the program what it adds to that kind of call which hides most."""
        return self._slowdown(min(self.clock.added_ns, default=None))

    @property
    def slowdown_high(self) -> float:
        """The slowdown if it adds what it adds to that kind of call which shows most, and programs are still colder."""
        added_ns = max(self.clock.added_ns, default=None)
        return self._slowdown(None if added_ns is None else added_ns * COLDEST)

    def _slowdown(self, added_ns: float | None) -> float:
        """The slowdown if recording adds this CPU time to each call; None: as much as stamps leave out."""
        whole, own = float(self.wall_ns), float(self.clock.own_ns)
        clock, machine = self.clock, self.machine
        least = clock.call_ns * self.calls + (machine.before_ns + machine.after_ns if machine else 0)
        cpu_ns = machine.cpu_ns if machine else clock.cpu_ns
        if cpu_ns > 0:
            whole, own = cpu_ns, own - clock.waited_ns + (machine.tracer_start_ns if machine else 0)
            if clock.recorded_call_ns:
                added_ns = clock.recorded_call_ns - clock.call_ns
            if added_ns is not None:
                # Stamps leave out what a call takes in a quiet moment, which is not the CPU time that calls take.
                own += (added_ns - clock.event_ns) * self.calls
            outside_ns = machine.before_ns + machine.after_ns if machine else 0
            if clock.counting_ns:
                # Caches and neighbours lengthen counting as much as the code that is counted, and both fit the CPU time.
                ran = whole - own - outside_ns + clock.counting_ns
                most = max(ran, 0) / (clock.counting_ns + clock.counted_ns)
                own += round(clock.counting_ns * (min(COLDER, most) - 1.0))
            own += round(max(whole - own - outside_ns, 0) * (1 - 100 / clock.profiled_percent))
        return whole / max(whole - own, min(least, whole), whole / MOST_SLOWDOWN, 1.0)


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a component in one run."""

    run: Run
    """The run."""
    calls: int
    """Completed invocations of the component in it."""
    total: int
    """Inclusive cost of these invocations, recursion counted once, in the unit of the metric."""
    self_total: int
    """Cost of these invocations without their recorded callees."""
    cost: int
    """Cost of the whole run, all threads together."""
    counted: int = 0
    """Calls among ``calls`` that were counted and not timed: their cost is estimated from the others."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of an experiment on one component: sampled invocations, and the totals of every run."""

    component: Component
    """The component."""
    cost: NDArray[np.float64]
    """(n,) cost of each sampled invocation, in the unit of the metric."""
    weight: NDArray[np.float64]
    """(n,) number of invocations that each stands for."""
    uniform: NDArray[np.bool_]
    """(n,) whether each belongs to the uniform part of the sample."""
    run: NDArray[np.str_]
    """(n,) id of the run of each."""
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
