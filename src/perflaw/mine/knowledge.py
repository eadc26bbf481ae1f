"""What is known of a running program, and which measurement is the most useful next (Brünink & Rosenblum, FSE'16, §3).

Samples find hot functions. A hot function is timed until its borders are stable; then its calls are recorded by call path,
with callers one level further up each time, until the groups of call paths explain the borders. A function about which there
is nothing else to be learnt hands over to its callers, and is measured again as its utility grows (Algorithm 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.borders import PERTURBED, TOO_SHORT, pool_observations, without_perturbed
from perflaw.learn.paths.durations import total
from perflaw.learn.paths.edges import holds
from perflaw.learn.paths.mine import mine
from perflaw.learn.paths.selection import REPLICATES, with_like_callers
from perflaw.learn.paths.stable import stable_borders
from perflaw.mine.messages import Kind, Measurement, Request, merge_observed
from perflaw.mine.observations import by_callers, has_changed, without_callers
from perflaw.record.tree.path_tables import LEAST_SHARE, wilson
from perflaw.types import Observed, PathSpec
from perflaw.types.specifications import MIN_GROUP_WORTH, CallPath

ENOUGH_CALLS: Final = 20_000
"""Calls of a function from which on borders that are not stable are not waited for."""
ENOUGH_ROUNDS: Final = 6
"""Measurements of a function on one level from which on nothing more is waited for."""
MOST_LEVELS: Final = 8
"""Levels of callers that are recorded at most."""
ONE_WAY_CALLS: Final = 1_000
"""Calls by one call path from which on no other one is waited for."""
FRUITLESS_LEVELS: Final = 2
"""Levels in a row that explain nothing more, after which no further one is recorded."""
PURE: Final = 0.98
"""Part of a group's calls in one cluster from which on there is nothing left to explain."""
MOST_CALLERS: Final = 24
"""Callers that are recorded at once; of one function those that samples found most often."""
MOST_REPLICATES: Final = 8
"""Measurements of a settled function after which groups that few of them show are not waited for."""
MOST_MEASUREMENTS: Final = 24
"""Measurements of a function that are kept."""
DIFFERING: Final = 2
"""Measurements in a row that do not match what is known of a function, after which it is learnt anew."""
AT_ONCE: Final = 6
"""Functions that are measured together."""
SHORT_S: Final = 600.0
"""Time after which it is looked at again whether the calls of a function still are too short to be timed."""
WANTED_CALLS: Final = 4_000
"""Calls that one measurement is meant to observe: enough to compare observations of a thousand calls."""
SHORTEST_S, LONGEST_S = 0.5, 8.0
"""Limits of the length of a measurement."""
FEWEST_SAMPLES: Final = 3
"""Samples that have to find the program in a function for it to be hot."""
ENOUGH_SAMPLES: Final = 50
"""Samples up to which a program in which nothing is hot yet is sampled on: one that waits mostly gives few."""
MOST_SAMPLES: Final = 20_000
"""Samples at which all are halved, so that the newer ones count for more."""
RETOLD_S: Final = 20.0
"""Age of samples at which hot functions are looked for again, if nothing else is as useful."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The next measurement, and why it was chosen."""

    request: Request
    """What to measure."""
    why: str
    """The reason in words."""
    utility: float
    """Expected utility, 0 to 1."""
    expected_calls: float
    """Calls that will probably be recorded; 0 if that is not known of one of the functions."""

    def shortened(self, seconds: float) -> Decision:
        """The decision with a measurement of at most so many seconds."""
        request = replace(self.request, seconds=min(self.request.seconds, seconds))
        part = request.seconds / self.request.seconds if self.request.seconds else 1.0
        return replace(self, request=request, expected_calls=self.expected_calls * part)


@dataclass(slots=True)
class KnownFunction:
    """What is known of one function."""

    name: str
    """The function."""
    why: str
    """Why it is measured at all."""
    level: int = 0
    """Levels of callers that are recorded; 0 while the function is timed."""
    observed: list[Observed] = field(default_factory=list)
    """One of each measurement on this level."""
    runs: list[str] = field(default_factory=list)
    """Recordings of these measurements."""
    spec: PathSpec | None = None
    """What was learnt from them; on a new level that of the level below, until there is something better."""
    below: int = 0
    """The level before this one."""
    runs_below: list[str] = field(default_factory=list)
    """Recordings on lower levels, which are kept until there are as many on this one as tell how much they vary."""
    is_new_level: bool = False
    """Whether nothing was observed on this level yet; what is known is that of the level below."""
    rate: float = 0.0
    """Recorded calls a second when it is measured on this level, its own and its part of the others; 0 if not known."""
    rounds: int = 0
    """Measurements on this level."""
    alone: bool = False
    """Whether others that are measured at the same time distort it."""
    settled: bool = False
    """Whether everything is known for now."""
    fruitless: int = 0
    """Levels in a row that explained nothing more."""
    groups: int = 0
    """Groups that the levels below explained."""
    sampling: float = 1.0
    """Part of the wanted calls that the budget permits to observe; 0: detached."""
    last_ns: int = 0
    """When it was measured last."""
    differing: int = 0
    """Measurements in a row that did not match what was known."""
    own_calls: float = 0.0
    """Calls of the function itself a second."""
    replicates: int = 0
    """Measurements that show the group of call paths which the fewest of them show."""
    named: tuple[str, ...] = ()
    """Callers that an earlier specification of it has; they are recorded first."""

    def utility(self, now_ns: int) -> float:
        """How useful another measurement is (Algorithm 3); 1 until it is settled."""
        if not self.settled or self.lacks_replicates:
            return 1.0
        if self.is_short:
            return min(1.0, (now_ns - self.last_ns) / (SHORT_S * 1e9))
        if self.spec is None or not self.observed:
            return min(1.0, (now_ns - self.last_ns) / 60e9)  # it was not called
        ends = [(one.start_ns, one.end_ns) for each in self.observed for one in each.observations]
        start, end = min(first for first, _ in ends), max(last for _, last in ends)
        ageing = min(1.0, (now_ns - end) / max(end - start, 1))
        return 1.0 if self.differing else ageing

    @property
    def lacks_replicates(self) -> bool:
        """Whether it was measured, but too seldom to tell how much its groups vary from one measurement to the next."""
        is_known = self.settled and not self.is_short and bool(self.observed)
        return is_known and len(self.observed) < MOST_REPLICATES and self.replicates < REPLICATES

    @property
    def is_short(self) -> bool:
        """Whether its calls are too short to be timed."""
        return bool(self.spec and not self.spec.points and any(note.startswith(TOO_SHORT) for note in self.spec.notes))

    def count_replicates(self) -> None:
        """Count the measurements that show the group which the fewest of them show, with enough calls."""
        groups = [group for group in self.spec.groups if not group.standing] if self.spec else []
        shown = [0] * len(groups)
        for observed in self.observed:
            calls = [0] * len(groups)
            of_path = [[holds(group.expression, path) for group in groups] for path in observed.paths]
            for one in observed.observations:
                for place, histogram in one.paths.items():
                    number = total(histogram)
                    calls = [n + number * is_own for n, is_own in zip(calls, of_path[place], strict=True)]
            for place, group in enumerate(groups):
                # Consecutive calls resemble each other: these are worth fewer independent ones.
                worth = calls[place] * group.effective / max(sum(group.counts), 1)
                shown[place] += worth >= MIN_GROUP_WORTH
        self.replicates = min(shown, default=len(self.observed))

    @property
    def rank(self) -> int:
        """Place among functions of the same utility; of those that are not settled, the one of most own time is next.

        A specification without replicates cannot be held against the program, so they come first; then functions that had
        several groups of call paths in earlier recordings, of which there is more to know than of others.
        """
        return 0 if self.lacks_replicates else 3 if self.settled else 1 if self.named else 2

    @property
    def explained(self) -> int:
        """Groups of call paths that its expressions tell apart."""
        return sum(not group.standing for group in self.spec.groups) if self.spec else 0

    @property
    def comes_one_way(self) -> bool:
        """Whether all calls, of which there were many, came by one call path, so that these callers explain nothing."""
        return self.spec is not None and len(self.spec.paths) == 1 and self.spec.points >= ONE_WAY_CALLS

    @property
    def is_pure(self) -> bool:
        """Whether the calls of each group are of one kind."""
        groups = self.spec.groups if self.spec else ()
        return all(max(group.distribution, default=1.0) >= PURE for group in groups)


class Knowledge:
    """Everything that was learnt so far, and what to learn next."""

    def __init__(self, options: MiningOptions | None = None) -> None:
        self.options = options or MiningOptions()
        self.functions: dict[str, KnownFunction] = {}
        self.stacks: Counter[CallPath] = Counter()
        self.sampled_ns = 0
        """When samples were looked at last."""
        self.idle: set[str] = set()
        """Functions that are not measured, because their durations contain waits in which nobody asks for anything."""
        self.superseded: list[tuple[str, str]] = []
        """Functions, and recordings in which their durations are not needed any more."""
        self._number = 0
        self._called_by: dict[str, Counter[tuple[int, str]]] = {}
        self._above: dict[str, set[str]] = {}
        """Functions that samples found above each, at any distance."""
        self._leaves: Counter[str] = Counter()

    def start_from(self, specs: Iterable[PathSpec], now_ns: int) -> None:
        """Begin with what earlier recordings say: the functions to measure first, and the callers that told call paths apart.

        Their durations do not count: the program may be another version of itself.
        """
        for spec in specs:
            function = KnownFunction(spec.component, "known from earlier recordings")
            self.functions[spec.component] = function
            function.spec = spec
            if function.is_short:
                function.settled, function.last_ns = True, now_ns
                continue
            function.groups, function.spec = function.explained, None
            if function.groups > 1:
                counts = Counter(caller for path in spec.paths for caller in dict.fromkeys(path[:-1]))
                function.named = tuple(one for one, _ in counts.most_common(MOST_CALLERS) if one != spec.component)
            if function.named or (spec.borders and spec.stable):  # it need not be timed first
                function.level = min(max([1, *(len(path) - 1 for path in spec.paths)]), MOST_LEVELS)

    # ---- what measurements say ----

    def add(self, measurement: Measurement, request: Request) -> list[str]:
        """Learn from a measurement; gives what is new, in words."""
        self.add_samples(measurement.stacks)
        if request.kind == "samples" or measurement.stacks:
            self.sampled_ns = measurement.end_ns
        news = [*self._leave_idle(measurement.idle), *self._find_hot()]
        if request.kind == "samples":
            return news
        # Placing the probes takes time as well, in which no call is recorded.
        seconds = max(min((measurement.end_ns - measurement.start_ns) / 1e9, request.seconds), 1e-3)
        found = {one.component: one for one in measurement.observed}
        own_calls = {name: _calls(found[name]) if name in found else 0 for name in request.functions}
        of_callers = max(measurement.cost.calls - sum(own_calls.values()), 0) / len(request.functions)
        for name in request.functions:
            if name in self.idle:
                self.superseded.append((name, measurement.run))
                continue
            function = self.functions[name]
            function.rounds += 1
            function.last_ns = measurement.end_ns
            function.rate = max(own_calls[name] + of_callers, 1.0) / seconds
            if one := found.get(name):
                news += self._learn(function, one, measurement, seconds, together=len(request.functions) > 1)
            elif function.rounds >= 2 and not function.settled:
                function.settled = True
                news.append(f"{name}: no call of it began and ended while it was measured")
        return news

    def add_samples(self, stacks: Mapping[CallPath, int]) -> None:
        """Learn who calls whom, and how often the program is in which function."""
        for path, count in stacks.items():
            self.stacks[path] += count
            self._leaves[path[-1]] += count
            for place, name in enumerate(path):
                self._above.setdefault(name, set()).update(path[:place])
                callers = self._called_by.setdefault(name, Counter())
                for level in range(1, min(place, MOST_LEVELS) + 1):
                    callers[level, path[place - level]] += count
        if self.stacks.total() > MOST_SAMPLES:
            halved = {path: count // 2 for path, count in self.stacks.items() if count > 1}
            self.stacks, self._leaves, self._called_by = Counter(), Counter(), {}
            self.add_samples(halved)

    def _leave_idle(self, idle: Iterable[str]) -> list[str]:
        """Measure functions no more that wait until somebody asks: how long is decided by whoever asks."""
        new = [name for name in idle if name not in self.idle]
        self.idle.update(new)
        dropped = [function for name in new if (function := self.functions.pop(name, None))]
        for function in dropped:
            self._forget_below(function)
            self._forget(function, len(function.observed))
        return [f"{one.name}: not measured, it waits until somebody asks for something" for one in dropped]

    def _find_hot(self) -> list[str]:
        """New candidates: functions whose share of the samples is certainly large enough."""
        total = max(self.stacks.total(), 1)
        news = []
        for name, count in self._leaves.most_common():
            share = wilson(count / total, total)
            is_new = name not in self.functions and name not in self.idle
            if is_new and share >= LEAST_SHARE and count >= FEWEST_SAMPLES:
                self.functions[name] = KnownFunction(name, f"in {100 * count / total:.1f} % of {total} samples")
                news.append(f"{name}: hot, {self.functions[name].why}")
        return news

    def _learn(
        self, function: KnownFunction, observed: Observed, measurement: Measurement, seconds: float, *, together: bool
    ) -> list[str]:
        """Add what was observed of a function in so many seconds, and decide what is to be learnt of it next."""
        name, before = function.name, function.spec
        observed = replace(observed, share=self.share(name))
        callers = self._recorded_callers(function)
        observed = by_callers(observed, frozenset(callers)) if callers else without_callers(observed)
        if function.is_new_level and function.observed and self._is_distorted(observed):
            if together:
                return self._measure_alone(function)
            # What samples took for its callers is called by it: stale words on a stack look like callers.
            self.superseded.append((name, measurement.run))
            function.level, function.is_new_level, function.named = function.below, False, ()
            return self._settle(function, "recording what samples took for its callers distorts it")
        if function.settled and together and without_perturbed(observed, self.options).notes != observed.notes:
            self.superseded.append((name, measurement.run))
            return self._measure_alone(function)
        if function.is_new_level:
            function.runs_below += function.runs
            function.observed, function.runs = [], []
            function.is_new_level = False
        if not function.settled:
            spec = self._mined([*function.observed, observed], None)  # how useful more is, ``utility`` says
            if together and any(note.startswith(PERTURBED) for note in spec.notes):
                return self._measure_alone(function)
            function.spec = spec
        function.observed.append(observed)
        function.runs.append(measurement.run)
        function.count_replicates()
        if function.replicates >= REPLICATES:
            self._forget_below(function)
        if len(function.observed) > MOST_MEASUREMENTS:
            # Every second one goes, so that the first one tells for how long nothing has changed.
            self.superseded += [(name, run) for run in function.runs[1::2] if run]
            function.observed, function.runs = function.observed[::2], function.runs[::2]
        function.own_calls = _calls(observed) / seconds
        news = []
        if function.settled:
            differs = bool(before and self._shows_other_borders(before, observed))
            differs |= bool(
                before and has_changed(function.observed[: -1 - function.differing], before.borders, observed)
            )
            function.differing = function.differing + 1 if differs else 0
            if function.differing >= DIFFERING:
                self._forget_below(function)
                self._forget(function, len(function.observed) - function.differing)
                function.settled, function.rounds, function.level, function.differing = False, 0, 0, 0
                news.append(f"{name}: its durations have changed; it is learnt anew")
            return news
        assert function.spec
        if function.is_short:
            return self._settle(function, "its calls are too short to be timed")
        if before is None or _shape(before) != _shape(function.spec):
            news.append(f"{name}: {_told(function.spec)}")
        if self._is_complete(function):
            news += self._advance(function)
        return news

    def _measure_alone(self, function: KnownFunction) -> list[str]:
        """Measure a function again without others."""
        function.alone = True
        function.rounds -= 1
        return [f"{function.name}: measuring others within it distorts it; it is measured again alone"]

    def _mined(self, several: Sequence[Observed], now_ns: int | None) -> PathSpec:
        """The specification from several measurements, between which samples may have found further callers."""
        observed = with_like_callers(merge_observed(list(several)), self.options)
        return mine(observed, self.options, now_ns)

    def _is_distorted(self, observed: Observed) -> bool:
        """Whether calls that were recorded within a function distort all that was observed of it."""
        usable = without_perturbed(observed, self.options)
        return not _calls(usable) and any(note.startswith(PERTURBED) for note in usable.notes)

    def _shows_other_borders(self, known: PathSpec, observed: Observed) -> bool:
        """Whether a measurement on its own shows another number of stable borders. Those of one observation are not stable."""
        if not known.stable or len(pool_observations(observed, self.options.fewest)) < 2:
            return False
        newest = stable_borders(observed, self.options)
        return newest.stable and len(newest.borders) != len(known.borders)

    def _is_complete(self, function: KnownFunction) -> bool:
        """Whether further measurements on this level say nothing new."""
        assert function.spec
        is_as_before = not function.named or function.explained >= function.groups
        if function.spec.stable and function.spec.observations >= 3 and not function.spec.unknown and is_as_before:
            return True
        if function.level and function.comes_one_way:
            return True
        return function.rounds >= ENOUGH_ROUNDS or function.spec.points >= ENOUGH_CALLS

    def _advance(self, function: KnownFunction) -> list[str]:
        """Go on with the callers of one level more, or settle the function."""
        assert function.spec
        gained = function.explained > max(function.groups, 1)
        one_way = bool(function.level) and function.comes_one_way
        if gained or not function.level:
            function.fruitless = 0
        elif not one_way:
            function.fruitless += 1
        function.groups = max(function.groups, function.explained)
        if not function.spec.borders:
            return self._settle(function, "its durations are of one kind")
        if function.named and function.explained >= function.groups:
            return self._settle(function, "it has as many groups of call paths as before")
        if function.level and function.explained > 1 and function.is_pure:
            return self._settle(function, "its call paths explain its durations")
        if function.fruitless >= FRUITLESS_LEVELS:
            return self._settle(function, "callers further up explain nothing more")
        # Where one caller was on all call paths, the next level that says anything is one with several.
        level = self._next_level(function.name, function.level, 2 if one_way else 1)
        if not level:
            return self._settle(function, "there are no further callers")
        function.below, function.level, function.named = function.level, level, ()
        function.is_new_level, function.rounds, function.rate = True, 0, 0.0
        return [f"{function.name}: its calls are recorded by call path, callers of level {function.level}"]

    def _next_level(self, name: str, level: int, fewest: int) -> int:
        """The next level on which samples found so many callers that are not on the levels below; 0 for none."""
        known = set(self.callers(name, level))
        for above in range(level + 1, MOST_LEVELS + 1):
            found = {caller for distance, caller in self._called_by.get(name, {}) if distance == above}
            if len(found - known - {name}) >= fewest:
                return above
        return 0

    def _forget(self, function: KnownFunction, count: int) -> None:
        """Drop the oldest measurements of a function."""
        self.superseded += [(function.name, run) for run in function.runs[:count] if run]
        function.observed, function.runs = function.observed[count:], function.runs[count:]

    def _forget_below(self, function: KnownFunction) -> None:
        """Drop the recordings on lower levels."""
        self.superseded += [(function.name, run) for run in function.runs_below if run]
        function.runs_below = []

    def _settle(self, function: KnownFunction, why: str) -> list[str]:
        """Nothing more is to be learnt of a function for now; its callers are candidates."""
        function.settled = True
        news = [f"{function.name}: settled, {why}"]
        total = max(self.stacks.total(), 1)
        for caller in self.callers(function.name, 1):
            within = sum(count for path, count in self.stacks.items() if caller in path)
            is_new = caller not in self.functions and caller not in self.idle
            if is_new and wilson(min(within / total, 1.0), total) >= LEAST_SHARE:
                self.functions[caller] = KnownFunction(caller, f"it calls {function.name}")
                news.append(f"{caller}: calls {function.name}")
        return news

    # ---- what to do next ----

    def callers(self, name: str, level: int) -> tuple[str, ...]:
        """Callers up to this level that samples found, those that were found most often first."""
        counts: Counter[str] = Counter()
        for (distance, caller), count in self._called_by.get(name, {}).items():
            if distance <= level and caller != name:
                counts[caller] += count
        return tuple(caller for caller, _ in counts.most_common(MOST_CALLERS))

    def is_above(self, name: str, other: str) -> bool:
        """Whether samples found a function above another one, at any distance."""
        return name in self._above.get(other, ())

    def share(self, name: str) -> float:
        """Part of the samples that found the program in a function."""
        return self._leaves[name] / max(self.stacks.total(), 1)

    def _own_samples(self) -> Counter[str]:
        """Samples by function; those in functions that are too short to be timed count for whoever called these."""
        short = {one.name for one in self.functions.values() if one.is_short}
        if not short:
            return self._leaves
        own: Counter[str] = Counter()
        for path, count in self.stacks.items():
            own[next((name for name in reversed(path) if name not in short), path[-1])] += count
        return own

    def next(self, now_ns: int) -> Decision | None:
        """The measurement of the highest utility; None if nothing is worth measuring now."""
        age_s = (now_ns - self.sampled_ns) / 1e9
        is_first = not self.sampled_ns or (not self.functions and self.stacks.total() < ENOUGH_SAMPLES)
        if is_first or age_s > RETOLD_S:
            utility = 1.0 if is_first else min(1.0, age_s / 60)
            why = "which functions are hot" if is_first else "whether other functions have become hot"
            seconds = 3.0 if is_first else SHORTEST_S
            return Decision(self._request("samples", (), (), seconds), why, utility, 0.0)
        able = [one for one in self.functions.values() if one.sampling > 0]
        share = self._own_samples()
        ranked = sorted(able, key=lambda one: (-one.utility(now_ns), one.rank, -share[one.name], -one.level, one.name))
        if not ranked:
            return None
        best = ranked[0]
        utility = best.utility(now_ns)
        if utility <= 0:
            return None
        together = self._together(best, ranked, now_ns)
        seconds = max(map(_seconds, together))
        names = tuple(one.name for one in together)
        callers = tuple(dict.fromkeys(caller for one in together for caller in self._recorded_callers(one)))
        request = self._request("paths" if callers else "durations", names, callers, seconds)
        what = "the callers that it is known by" if best.named else f"callers of level {best.level}"
        what = what if best.level else "its durations"
        again = "how much it varies" if best.lacks_replicates else "whether it still holds"
        why = f"{what}, {again if best.settled else 'not settled yet'}"
        rates = [self.functions[name].rate for name in request.functions]
        return Decision(request, why, utility, sum(rates) * request.seconds if all(rates) else 0.0)

    def _recorded_callers(self, function: KnownFunction) -> tuple[str, ...]:
        """Callers that are recorded with a function on its level."""
        return (function.named or self.callers(function.name, function.level)) if function.level else ()

    def _together(self, best: KnownFunction, ranked: Iterable[KnownFunction], now_ns: int) -> list[KnownFunction]:
        """The best function, and others that can be measured with it: none of them is likely to be called by another one.

        Most of what a measurement costs is that probes are there at all, and most of the time passes until rare functions were
        called often enough.
        """
        chosen, callers = [best], set(self._recorded_callers(best))
        for one in ranked if not best.alone else ():
            own = set(self._recorded_callers(one))
            is_apart = one.name not in callers and all(
                other.name not in own
                and not self.is_above(one.name, other.name)
                and not self.is_above(other.name, one.name)
                for other in chosen
            )
            is_useful = one is not best and not one.alone and one.utility(now_ns) >= best.utility(now_ns)
            if is_useful and is_apart and len(callers | own) <= MOST_CALLERS:
                chosen.append(one)
                callers |= own
        return chosen[:AT_ONCE]

    def _request(self, kind: Kind, functions: Iterable[str], callers: Iterable[str], seconds: float) -> Request:
        self._number += 1
        return Request(self._number, kind, tuple(functions), tuple(callers), seconds)

    def specs(self, now_ns: int) -> list[PathSpec]:
        """What was learnt of each function from all that was observed of it, those of most own time first."""
        known = [self._mined(one.observed, now_ns) for one in self.functions.values() if one.observed]
        return sorted(known, key=lambda spec: (-(spec.share or 0.0), spec.component))


def _calls(observed: Observed) -> int:
    """Number of calls that were observed."""
    return sum(total(histogram) for one in observed.observations for histogram in one.paths.values())


def _seconds(function: KnownFunction) -> float:
    """How long to measure a function: a second as a trial, then as long as the wanted calls take."""
    if not function.own_calls:
        return 1.0 * function.sampling
    return min(max(WANTED_CALLS * function.sampling / function.own_calls, SHORTEST_S), LONGEST_S)


def _shape(spec: PathSpec) -> tuple[object, ...]:
    """What has to be the same for a specification to count as unchanged: its kinds of calls, and who makes them."""
    return len(spec.borders), spec.stable, tuple(sorted(str(group.expression) for group in spec.groups))


def _told(spec: PathSpec) -> str:
    """A specification in words."""
    borders = f"{len(spec.borders)} border{'s' * (len(spec.borders) != 1)}"
    groups = f"{len(spec.groups)} group{'s' * (len(spec.groups) != 1)}"
    edges = ", ".join(f"{caller} -> {callee}" for caller, callee in spec.atoms)
    return f"{borders}{' (stable)' * spec.stable}, {groups} of call paths{f' by {edges}' * bool(edges)}, {spec.points} calls"
