"""Specifications of two versions of a program side by side: which borders, edges and groups changed, and what costs more.

Files of specifications hold no durations, so what is compared are the shares of slow calls, with the number of independent
calls that these are worth and how much runs differed, and the quantiles of durations. What most functions have in common is
the machine.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from perflaw.special import ndtr, ndtri
from perflaw.specs.call_paths import edge_text, expression_text
from perflaw.specs.files import short_time
from perflaw.types import CPU, TIME, Change, Component, DiffVerdict, Outcome
from perflaw.types.specifications import MinedSpec, PathGroup, PathSpec

SAME_BORDER: Final = 1.5
"""Factor up to which two borders are the same one."""
TOLERANCE: Final = 0.05
"""Difference of shares that does not count, as in ``check``."""
LEAST_RUNS: Final = 3
"""Recordings that a group has to be mined from on both sides; with fewer, it is not known how much it varies."""
FEWEST_FOR_MACHINE: Final = 3
"""Functions that have to be on both sides for what they have in common to be the machine."""
_WEIGHTS: Final = (0.175, 0.2, 0.25, 0.2, 0.175)
"""Part of the calls that each of the quantiles at 10, 25, 50, 75 and 90 % stands for."""
_Z: Final = 1.96


@dataclass(frozen=True, slots=True)
class _Side:
    """What one version says of a function, or of a group of its call paths."""

    spec: PathSpec
    groups: tuple[PathGroup, ...]

    @property
    def calls(self) -> int:
        return sum(sum(group.counts) for group in self.groups)

    @property
    def runs(self) -> int:
        return min((group.runs for group in self.groups), default=0)

    @property
    def worth(self) -> float:
        return sum(group.effective for group in self.groups)

    def slow(self, border: int) -> tuple[float, float]:
        """Share of the calls above a border, and its standard deviation."""
        share, variance = 0.0, 0.0
        for group in self.groups:
            weight = sum(group.counts) / max(self.calls, 1)
            part = sum(group.distribution[border + 1 :])
            share += weight * part
            spread = group.share_spread[border] if border < len(group.share_spread) else 0.0
            variance += weight**2 * (part * (1 - part) / max(group.effective, 1.0) + spread**2 / max(group.runs, 1))
        return share, math.sqrt(variance)

    def cost(self, *, queued: bool) -> tuple[float, float] | None:
        """Mean duration by the quantiles, ns, and the standard deviation of its logarithm; None where not known.

        ``queued``: with the time in which calls queued for a CPU, or without.
        """
        known = [group for group in self.groups if group.durations]
        if not known or len(known) < len(self.groups):
            return None
        times = [group.durations if queued else group.cpu_durations or group.durations for group in known]
        mean = sum(
            sum(group.counts) / max(self.calls, 1) * sum(map(float.__mul__, _WEIGHTS, map(float, own)))
            for group, own in zip(known, times, strict=True)
        )
        spread = max((group.duration_spread or 0.0) / math.sqrt(max(group.runs, 1)) for group in known)
        return (mean, spread) if mean > 0 else None


@dataclass(frozen=True, slots=True)
class _Machine:
    """How many times slower all functions are: the machine, if there are enough functions."""

    queued: float
    """With the time in which calls queued for a CPU."""
    running: float
    """Without."""

    def of(self, *, queued: bool) -> float:
        return self.queued if queued else self.running


def compare_specs(
    old: Sequence[MinedSpec], new: Sequence[MinedSpec], alpha: float = 0.01, least: float = 1.1
) -> list[DiffVerdict]:
    """A verdict for each function, and for each group of call paths that both sides have; the worst first."""
    before = {(one.spec.component, one.spec.metric): one.spec for one in old}
    after = {(one.spec.component, one.spec.metric): one.spec for one in new}
    both = [key for key in before if key in after]
    pairs = [pair for key in both for pair in _pairs(before[key], after[key])]
    level = alpha / max(2 * len(pairs), 1)  # of shares and of durations
    machine = _machine([pair for pair in pairs if not pair[0]])
    verdicts = [_verdict(path, first, second, machine, level, least) for path, first, second in pairs]
    for key, where, words in (
        *((key, before, "only before") for key in before if key not in after),
        *((key, after, "only now") for key in after if key not in before),
    ):
        verdicts.append(replace(_empty(where[key], ""), verdict="out of scope", message=words))
    order: tuple[Outcome, ...] = ("violated", "inconclusive", "out of scope", "holds")
    return sorted(
        verdicts,
        key=lambda one: (order.index(one.verdict), not one.changes, -(one.effect or 0.0), one.component.name, one.path),
    )


def _pairs(old: PathSpec, new: PathSpec) -> Iterator[tuple[str, _Side, _Side]]:
    """The function as a whole, then groups that have the same condition on both sides, where there are several."""
    yield "", _Side(old, old.groups), _Side(new, new.groups)
    if len(old.groups) > 1 and len(new.groups) > 1:
        later = {expression_text(group.expression): group for group in new.groups if not group.standing}
        for group in old.groups:
            path = expression_text(group.expression)
            if path in later and not group.standing:
                yield path, _Side(old, (group,)), _Side(new, (later[path],))


def _machine(pairs: Sequence[tuple[str, _Side, _Side]]) -> _Machine:
    def common(*, queued: bool) -> float:
        costs = [(old.cost(queued=queued), new.cost(queued=queued)) for _, old, new in pairs]
        ratios = [new[0] / old[0] for old, new in costs if old and new]
        return statistics.median(ratios) if len(ratios) >= FEWEST_FOR_MACHINE else 1.0

    return _Machine(common(queued=True), common(queued=False))


def _same_borders(old: PathSpec, new: PathSpec, machine: float) -> list[tuple[int, int]]:
    """Places of borders that are the same on both sides, in increasing order."""
    found, at = [], 0
    for place, border in enumerate(old.borders):
        near = [
            (abs(math.log(other / border / machine)), number)
            for number, other in enumerate(new.borders)
            if number >= at and other > 0 and border > 0
        ]
        if near and min(near)[0] <= math.log(SAME_BORDER):
            at = min(near)[1] + 1
            found.append((place, min(near)[1]))
    return found


def _empty(spec: PathSpec, path: str) -> DiffVerdict:
    return DiffVerdict(
        Component(spec.component), CPU if spec.metric == CPU.name else TIME, path, "holds", None, None, None, None
    )


def _verdict(path: str, old: _Side, new: _Side, machine: _Machine, level: float, least: float) -> DiffVerdict:
    """What changed between two sides, and whether it is slower beyond doubt."""
    same = _same_borders(old.spec, new.spec, machine.running)
    changes = [] if path else [*_border_changes(old.spec, new.spec, same), *_structure_changes(old.spec, new.spec)]
    beyond, slower, quicker = -float(ndtri(level / 2)), False, False
    tests: list[float] = []
    for first, second in same:
        (was, was_error), (now, error) = old.slow(first), new.slow(second)
        deviation = max(math.hypot(was_error, error), 1e-9)
        z = max(abs(now - was) - TOLERANCE, 0.0) / deviation
        tests.append(2 * float(ndtr(-z)))
        if abs(now - was) >= TOLERANCE and z >= beyond:
            name = f"above {short_time(old.spec.borders[first])}"
            changes.append(
                Change("shares", name, f"{100 * was:.0f} %", f"{100 * now:.0f} %", now / was if was else None)
            )
            slower, quicker = slower or now > was, quicker or now < was
    effect = low = high = None
    if costs := _least_change(old, new, machine):
        (was, was_error), (now, error), effect = costs
        deviation = max(math.hypot(was_error, error), 1e-9)
        low, high = (effect * math.exp(sign * _Z * deviation) for sign in (-1, 1))
        z = max(abs(math.log(effect)) - math.log(least), 0.0) / deviation
        tests.append(2 * float(ndtr(-z)))
        if z >= beyond:
            changes.append(Change("times", "on average", short_time(was), short_time(now), now / was, low, high))
            slower, quicker = slower or effect > 1, quicker or effect < 1
    verdict: Outcome = "violated" if slower else "holds"
    message = (
        f"on a machine that is as a whole {machine.running:.2g} times as slow"
        if abs(math.log(machine.running)) > 0.2
        else ""
    )
    if slower and min(old.runs, new.runs) < LEAST_RUNS:
        verdict = "inconclusive"
        message = f"mined from fewer than {LEAST_RUNS} recordings, so it is not known how much it varies"
    p = min(1.0, min(tests) * len(tests)) if tests else None
    found = replace(_empty(new.spec, path), verdict=verdict, p=p, effect=effect, effect_low=low, effect_high=high)
    return replace(found, changes=tuple(changes), better=quicker and not slower, message=message)


def _least_change(
    old: _Side, new: _Side, machine: _Machine
) -> tuple[tuple[float, float], tuple[float, float], float] | None:
    """Costs of both sides, and their ratio beyond the machine; None where they are not known.

    How long calls queued for a CPU of a busy machine is no part of the program, and is not known exactly: of both readings,
    with and without that time, the one counts that says the least change.
    """
    found = []
    for queued in (True, False):
        was, now = old.cost(queued=queued), new.cost(queued=queued)
        if was and now:
            found.append((was, now, now[0] / was[0] / machine.of(queued=queued)))
    return min(found, key=lambda one: abs(math.log(one[2])), default=None)


def _border_changes(old: PathSpec, new: PathSpec, same: Sequence[tuple[int, int]]) -> Iterator[Change]:
    kept_old, kept_new = {first for first, _ in same}, {second for _, second in same}
    for place, border in enumerate(old.borders):
        if place not in kept_old:
            yield Change("border", "", short_time(border), "")
    for place, border in enumerate(new.borders):
        if place not in kept_new:
            yield Change("border", "", "", short_time(border))


def _structure_changes(old: PathSpec, new: PathSpec) -> Iterator[Change]:
    """Edges and groups that only one side has."""
    for edge in old.atoms:
        if edge not in new.atoms:
            yield Change("edge", "", edge_text(edge), "")
    for edge in new.atoms:
        if edge not in old.atoms:
            yield Change("edge", "", "", edge_text(edge))
    was, now = (
        dict.fromkeys(expression_text(group.expression) or group.standing for group in spec.groups)
        for spec in (old, new)
    )
    for text in was:
        if text not in now:
            yield Change("group", "", text, "")
    for text in now:
        if text not in was:
            yield Change("group", "", "", text)
