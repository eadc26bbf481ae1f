"""Keeps what measuring costs a program within a part of its CPU time, by measuring the cost.

What a measurement costs is known from the number of recorded calls and their calibrated cost. That leaves out what the
presence of probes costs otherwise, so CPU time for each unit of work is compared as well, between times with probes and the
times without that lie before and after them. The larger account counts, also for what was spent before it was known.
Probes go in only when what they will probably cost has been saved, so the target is kept whenever the loop ends. That is known
from the calls that functions had before; where they are not known, the time is short and the cost the highest so far.
Where a window of ten seconds is beyond the target and what was saved before does not pay for it, the function with the worst
cost for its utility is observed half as long, and at last not at all, until less than 0.7 of the target is spent
(specification of mining, "Overhead budget").

The CPU time of perflaw itself is measured as well: of the process that reads records, samples stacks and thinks, and of its
children. It takes nothing from a program on a machine that has CPU time to spare, so it is only told where the budget is one
of throughput, which the comparison of times with and without probes decides. A budget of CPU time contains all of it.
"""

from __future__ import annotations

import math
import resource
import statistics
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final, Literal

from perflaw.mine.knowledge import SHORTEST_S, Decision, KnownFunction
from perflaw.mine.messages import Measurement, ProbeCost

DEFAULT_TARGET: Final = 0.05
"""Part of the program's throughput, or of its CPU time, that measuring may take."""
BudgetOf = Literal["throughput", "cpu"]
"""What the target is a part of: work that the program does with its CPU time, or CPU time, perflaw's own included."""
WINDOW_S: Final = 10.0
"""Length of the windows in which the target is to be kept."""
ENABLE_BELOW: Final = 0.7
"""Part of the target below which more is measured again."""
LEAST_SAMPLING: Final = 1 / 8
"""Part of the wanted calls below which a function is detached."""
ATTACH_NS: Final = 4_000_000
"""CPU time of the program that loading and unloading the tracer takes, once for each measurement."""
FEWEST_PAIRS, MOST_PAIRS = 4, 24
"""Pairs of times with and without probes from which on their comparison counts, and how many of the latest count."""
LEAST_PAUSE_S, LONGEST_PAUSE_S = 0.3, 10.0
"""Limits of the times without probes."""
LATEST_OWN: Final = 8
"""Measurements whose own CPU time says what the next one will probably take."""
MOST_SURPRISE: Final = 3.0
"""Factor that is expected at most because measurements took more than expected before."""
PRESUMED_ERROR: Final = 0.1
"""Standard deviation of what is presumed, by which pairs that differ much are drawn to it."""
SAVED_S: Final = 20.0
"""Time in which the cost of the longest measurement can be saved."""
LEAST_WORK: Final = 50
"""Units of work that a time needs to be compared."""
MOST_WINDOWS: Final = 1000
"""Windows that are kept."""
_CPU_CLOCK: Final = 2
"""What makes the id of a process's CPU clock of the process's id (``clock_getcpuclockid``)."""
MOST_PROBED: Final = 1000
"""Times with probes whose cost is found again as more is known; what older ones cost stays as it was found last."""


@dataclass(frozen=True, slots=True)
class WorkCounters:
    """Counters of a process at one moment."""

    cpu_ns: int
    """Its CPU time, with that of threads that have ended, as the one that loads the tracer has."""
    work: Mapping[str, int]
    """Units of work, each counted in another way."""


def work_counters(pid: int) -> WorkCounters:
    """What the kernel counts of a process that grows with its work: switches, reads and writes, packets.

    Packets are those of its network namespace: of a machine or container that serves other programs as well they say less,
    and then vary more, so that another counter is used.
    """
    cpu_ns = switches = 0
    with suppress(OSError):  # the process has ended
        cpu_ns = time.clock_gettime_ns(~pid << 3 | _CPU_CLOCK)
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError, ValueError, IndexError):  # the thread has ended
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    switches += int(line.split()[1])
    work = {"switches": switches}
    with suppress(OSError, ValueError, IndexError):  # the kernel does not count, or does not tell
        fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        work["reads and writes"] = int(fields["syscr"]) + int(fields["syscw"])
    with suppress(OSError, ValueError, IndexError):  # a kernel without this counter
        rows = [line.split() for line in Path(f"/proc/{pid}/net/snmp").read_text().splitlines() if line[:4] == "Tcp:"]
        work["packets"] = int(rows[1][rows[0].index("InSegs")])
    return WorkCounters(cpu_ns, work)


def _middle_mean(pairs: list[tuple[float, int]]) -> tuple[float, float]:
    """Trimmed mean of values that count by their weights, and its standard error.

    The fifth of the weight at either end is left out, because neighbours on the machine disturb some pairs. The error is that
    of a trimmed mean, for which the values that are left out count as the outermost that are not (Tukey & McLaughlin 1963):
    the spread of the middle alone would make it half as large. As many values of equal weight as these are worth decide it
    (Kish 1965, §11.2).

    >>> round(_middle_mean([(0.1, 1), (0.2, 1), (0.3, 1), (0.2, 1), (9.0, 1)])[0], 4)
    0.2333
    """
    ordered = sorted(pairs)
    whole = sum(weight for _, weight in ordered)
    # The weight of each value that is within the middle three fifths.
    ends = [0, *accumulate(weight for _, weight in ordered)]
    low, high = whole / 5, whole * 4 / 5
    inside = [max(min(end, high) - max(begin, low), 0.0) for begin, end in pairwise(ends)]
    mean = sum(value * weight for (value, _), weight in zip(ordered, inside, strict=True)) / (high - low)
    used = [value for (value, _), weight in zip(ordered, inside, strict=True) if weight]
    drawn = [(min(max(value, used[0]), used[-1]), weight) for value, weight in ordered]
    centre = sum(value * weight for value, weight in drawn) / whole
    variance = sum(weight * (value - centre) ** 2 for value, weight in drawn) / whole
    worth = whole**2 / sum(weight**2 for _, weight in ordered)
    return mean, math.sqrt(variance / (worth - 1)) * whole / (high - low) if worth > 1 + 1e-9 else math.inf


def own_cpu_ns() -> int:
    """CPU time of this process since it began, with that of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round(1e9 * (children.ru_utime + children.ru_stime))


@dataclass(frozen=True, slots=True)
class _Phase:
    """Growth of the counters over a time with or without probes."""

    probes: bool
    cpu_ns: int
    work: Mapping[str, int]
    direct_ns: float
    """CPU time that recording took by the number of calls."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What recorded calls cost in one measurement."""

    seconds: float
    """How long calls were to be recorded."""
    placing_s: float
    """How much longer probes were in: placing them takes its time."""
    calls: int
    """Recorded calls."""
    cost_ns: float
    """What these cost."""
    surprise: float
    """Ratio of the recorded calls to those that were expected; 1 if none were."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent in one window."""

    start_s: float
    """When it began, seconds after the loop."""
    seconds: float
    """How long it was."""
    cpu_ns: int
    """CPU time of the program."""
    spent_ns: float
    """Part of it that measuring took."""
    own_ns: int
    """CPU time of perflaw itself; that of its start is in the first window."""
    counts_own: bool
    """Whether it counts against the target."""
    probes_s: float
    """Time in which probes were in."""
    measurements: int
    """Number of measurements."""
    paired: float | None
    """CPU time for each unit of work with probes over that without, by all recent pairs, minus 1; None if not known."""
    end_ns: int = 0
    """When it ended, ns since 1970."""
    action: str = ""
    """What was changed to keep the budget."""

    @property
    def share(self) -> float:
        """What counts against the target, as a part of the program's CPU time."""
        return (self.spent_ns + self.own_ns * self.counts_own) / self.cpu_ns if self.cpu_ns else 0.0

    @property
    def own_share(self) -> float:
        """CPU time of perflaw itself over that of the program."""
        return self.own_ns / self.cpu_ns if self.cpu_ns else 0.0


@dataclass
class Budget:
    """The account of one program."""

    pid: int
    """The program."""
    target: float = DEFAULT_TARGET
    """Part of it that measuring may take."""
    presumed: float = 0.0
    """CPU time for each unit of work with probes over that without, minus 1, until there are pairs."""
    windows: deque[Spent] = field(default_factory=lambda: deque(maxlen=MOST_WINDOWS))
    """The latest complete windows, in their order; whoever reads them may take them out."""
    spent_ns: float = 0.0
    """CPU time of the program that was spent since the loop began."""
    of: BudgetOf = "throughput"
    """What the target is a part of."""
    own_before_ns: int = 0
    """CPU time of perflaw itself that an earlier account contains."""
    own_ns: int = 0
    """What it took since then, up to the end of the last window."""

    def __post_init__(self) -> None:
        self._begun = self._window_begun = time.monotonic()
        self._first = self._before = self._window_before = work_counters(self.pid)
        self._window_spent = self._window_probes_s = 0.0
        self._window_measurements = 0
        self._cycle_own = 0
        self._own_each: deque[int] = deque(maxlen=LATEST_OWN)
        """Own CPU time of the latest measurements, with what was thought about each."""
        self._phases: deque[_Phase] = deque(maxlen=2 * MOST_PAIRS)
        self._recorded: deque[_Recorded] = deque(maxlen=LATEST_OWN)
        self._costs: dict[str, tuple[float, float]] = {}
        self._probes_begun = 0.0
        self._windows_cpu_ns, self._settled_ns = 0, 0.0
        self._probed: deque[tuple[float, int]] = deque()
        """Of each time with probes the cost by the number of calls, and the CPU time of the program."""

    @property
    def least_cpu_ns(self) -> float:
        """CPU time of a program of which the target permits to load the tracer once."""
        return ATTACH_NS / self.target

    @property
    def counts_own(self) -> bool:
        """Whether CPU time of perflaw itself counts against the target."""
        return self.of == "cpu"

    # ---- times with probes, and times without ----

    def begin_probes(self) -> None:
        """Probes go in now; the time without ends."""
        self._end_phase(probes=False, direct_ns=0.0)
        own_ns = self._own_ns()
        if self._probed:
            self._own_each.append(own_ns - self._cycle_own)
        self._cycle_own = own_ns
        self._probes_begun = time.monotonic()

    def end_probes(self, decision: Decision, measurement: Measurement | None) -> float:
        """Probes are out; gives the CPU time that the measurement took, ns."""
        cost = measurement.cost if measurement else None
        recorded_ns = cost.calls * cost.call_ns if cost else 0.0
        direct_ns = ATTACH_NS + recorded_ns
        seconds, expected = decision.request.seconds, decision.expected_calls
        calls = cost.calls if cost else 0
        surprise = calls / expected if expected and cost else 1.0
        placing_s = max(time.monotonic() - self._probes_begun - seconds, 0.0)
        self._recorded.append(_Recorded(seconds, placing_s, calls, recorded_ns, surprise))
        phase = self._end_phase(probes=True, direct_ns=direct_ns)
        part = self._slowed_part()
        self._probed.append((direct_ns, phase.cpu_ns))
        spent_ns = max(direct_ns, phase.cpu_ns * part)
        if len(self._probed) > MOST_PROBED:
            direct, cpu_ns = self._probed.popleft()
            self._settled_ns += max(direct, cpu_ns * part)
        self.spent_ns = self._settled_ns + sum(max(direct, cpu_ns * part) for direct, cpu_ns in self._probed)
        self._window_spent += spent_ns
        self._window_probes_s += time.monotonic() - self._probes_begun
        self._window_measurements += 1
        for name in decision.request.functions:
            self._costs[name] = (spent_ns / len(decision.request.functions), max(decision.utility, 0.01))
        return spent_ns

    def add_samples(self, cost: ProbeCost) -> None:
        """Add what samples took, which need no probes."""
        spent_ns = cost.calls * cost.call_ns
        self._settled_ns += spent_ns
        self.spent_ns += spent_ns
        self._window_spent += spent_ns

    def _end_phase(self, *, probes: bool, direct_ns: float) -> _Phase:
        now = work_counters(self.pid)
        grown = {unit: now.work.get(unit, 0) - count for unit, count in self._before.work.items()}
        phase = _Phase(probes, max(now.cpu_ns - self._before.cpu_ns, 0), grown, direct_ns)
        self._phases.append(phase)
        self._before = now
        return phase

    def paired(self) -> float | None:
        """CPU time for each unit of work with probes over that without, minus 1; None if there are too few pairs."""
        known = self._compared()
        return math.expm1(known[0]) if known else None

    def _compared(self) -> tuple[float, float] | None:
        """Mean logarithm of the ratios of the latest pairs, by the unit of work that is the steadiest, and its error.

        Each time with probes is compared with the ones without before and after it. None if there are too few pairs. A pair
        counts by the CPU time that it takes with probes, of which its ratio says how much is theirs: those in which the program
        had hardly anything to do say nothing of the others.
        """
        phases = list(self._phases)
        best: tuple[float, float] | None = None
        for unit in self._first.work:
            cost = [
                p.cpu_ns / p.work[unit] if p.work.get(unit, 0) >= LEAST_WORK and p.cpu_ns else math.nan for p in phases
            ]
            pairs = []
            for at in range(1, len(phases) - 1):
                if phases[at].probes and not phases[at - 1].probes and not phases[at + 1].probes:
                    beside = (
                        math.sqrt(cost[at - 1] * cost[at + 1]) if cost[at - 1] > 0 and cost[at + 1] > 0 else math.nan
                    )
                    if beside > 0 and cost[at] > 0:
                        pairs.append((math.log(cost[at] / beside), phases[at].cpu_ns))
            if len(pairs) < FEWEST_PAIRS:
                continue
            mean, error = _middle_mean(pairs)
            if best is None or error < best[1]:
                best = (mean, error)
        return best

    def _slowed_part(self) -> float:
        """Part of the program's CPU time with probes that their presence takes."""
        slowdown = math.log1p(self.presumed)
        if known := self._compared():
            mean, error = known
            weight = 1 / (1 + (error / PRESUMED_ERROR) ** 2)
            slowdown = weight * mean + (1 - weight) * slowdown
        return 1 - math.exp(-max(slowdown, 0.0))

    # ---- keeping the target ----

    def affordable(self, decision: Decision) -> Decision:
        """The decision, with a measurement that is short enough for its cost to be saved in a short time."""
        if decision.request.kind == "samples" or not decision.request.seconds:
            return decision
        longest_s = self.longest_s(decision.expected_calls / decision.request.seconds)
        if not decision.expected_calls:  # a short trial says how many there are
            longest_s = min(longest_s, self.trial_s())
        return decision.shortened(max(longest_s, SHORTEST_S))

    def longest_s(self, calls_a_second: float = 0.0) -> float:
        """How long a measurement may be for its cost to be saved in a short time; ``calls_a_second``: that are expected."""
        part = max(self._slowed_part(), self._calls_ns(calls_a_second) / max(self._rate(), 1.0))
        return self.target * SAVED_S / part if part else math.inf

    def _calls_ns(self, calls: float) -> float:
        """What so many calls will probably cost; 0 if that is not known.

        They count with the largest factor by which the latest measurements recorded more calls than expected.
        """
        costs = [one.cost_ns / one.calls for one in self._recorded if one.calls]
        surprise = min(max((1.0, *(one.surprise for one in self._recorded))), MOST_SURPRISE)
        return calls * surprise * statistics.median(costs) if costs else 0.0

    def trial_s(self) -> float:
        """How long calls of an unknown number can be recorded if they are as dear as any before, for what is saved now."""
        worst = max((one.cost_ns / one.seconds for one in self._recorded if one.seconds), default=0.0)
        return max(self.saved_ns() - ATTACH_NS, 0.0) / worst if worst else math.inf

    def pause_s(self, seconds: float = 0.0, calls: float = 0.0) -> float:
        """How long probes have to stay out until what was spent, and a measurement of so many seconds, is within the target."""
        rate = self._rate()
        debt_ns = self.expected_ns(seconds, calls) - self.saved_ns()
        if debt_ns <= 0:
            return LEAST_PAUSE_S
        return min(max(debt_ns / max(self.target * rate, 1.0), LEAST_PAUSE_S), LONGEST_PAUSE_S)

    def must_wait(self, seconds: float = 0.0, calls: float = 0.0) -> bool:
        """Whether more was spent than the target permits, with a measurement of so many seconds, as ``expected_ns``."""
        return self.expected_ns(seconds, calls) > self.saved_ns()

    def expected_ns(self, seconds: float, calls: float = 0.0) -> float:
        """CPU time that a measurement of so many seconds will probably take; 0 s: nothing but samples.

        ``calls`` is the number that will probably be recorded; 0: not known, so as many a second as the dearest ones so far.
        """
        own_ns = sum(self._own_each) / len(self._own_each) if self.counts_own and self._own_each else 0.0
        if not seconds:
            return own_ns
        latest = [one for one in self._recorded if one.seconds]
        dearest = max((one.cost_ns / one.seconds for one in latest), default=0.0)
        recorded_ns = self._calls_ns(calls) or seconds * dearest
        placing_s = sum(one.placing_s for one in latest) / max(len(latest), 1)
        return max(ATTACH_NS + recorded_ns, (seconds + placing_s) * self._rate() * self._slowed_part()) + own_ns

    def saved_ns(self) -> float:
        """What the target permits to be spent now; negative if it is not kept."""
        return self.target * self._cpu_ns() - self.spent_ns - self._own_ns() * self.counts_own

    def _own_ns(self) -> int:
        """CPU time of perflaw itself."""
        return own_cpu_ns() - self.own_before_ns

    def _rate(self) -> float:
        """CPU time of the program in each second, ns."""
        return self._cpu_ns() / max(time.monotonic() - self._begun, 1e-3)

    def _cpu_ns(self) -> int:
        """CPU time of the program since the loop began."""
        return max(work_counters(self.pid).cpu_ns - self._first.cpu_ns, 0)

    def settle_window(self, functions: Mapping[str, KnownFunction], *, at_end: bool = False) -> Spent | None:
        """Close the window if it is over, and change what is observed; gives the window."""
        now = time.monotonic()
        if now - self._window_begun < WINDOW_S and not at_end:
            return None
        counters, own_ns = work_counters(self.pid), self._own_ns()
        window = Spent(
            self._window_begun - self._begun,
            now - self._window_begun,
            max(counters.cpu_ns - self._window_before.cpu_ns, 0),
            self._window_spent,
            own_ns - self.own_ns,
            self.counts_own,
            self._window_probes_s,
            self._window_measurements,
            self.paired(),
            time.time_ns(),
        )
        if not at_end:
            window = replace(window, action=self._adjusted(window.share, functions))
        self.windows.append(window)
        self._windows_cpu_ns += window.cpu_ns
        self._window_begun, self._window_before, self.own_ns = now, counters, own_ns
        self._window_spent = self._window_probes_s = 0.0
        self._window_measurements, self._costs = 0, {}
        return window

    def _adjusted(self, share: float, functions: Mapping[str, KnownFunction]) -> str:
        """Halve the worst, detach it, or observe more again; gives what was done, in words."""
        if share > self.target and self._costs and self.must_wait():
            worst = max(self._costs, key=lambda name: self._costs[name][0] / self._costs[name][1])
            function = functions.get(worst)
            if function is None or not function.sampling:
                return ""
            function.sampling /= 2
            if function.sampling < LEAST_SAMPLING:
                function.sampling = 0.0
                return f"{worst} is not observed any more"
            return f"{worst} is observed 1/{1 / function.sampling:g} as long"
        reduced = [one for one in functions.values() if one.sampling < 1]
        if share < ENABLE_BELOW * self.target and reduced:
            function = min(reduced, key=lambda one: (one.sampling, one.name))
            function.sampling = max(2 * function.sampling, LEAST_SAMPLING)
            return f"{function.name} is observed {'again' if function.sampling == LEAST_SAMPLING else 'longer again'}"
        return ""

    @property
    def share(self) -> float:
        """What counts against the target, as a part of the program's CPU time, up to the end of the last window."""
        spent_ns = self.spent_ns + self.own_ns * self.counts_own
        return spent_ns / self._windows_cpu_ns if self._windows_cpu_ns else 0.0

    @property
    def own_share(self) -> float:
        """CPU time of perflaw itself over that of the program, up to the end of the last window; infinite if that took none."""
        return self.own_ns / self._windows_cpu_ns if self._windows_cpu_ns else math.inf
