"""What a person should know before acting on a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflaw.learn.exploring.hidden import Collapse
from perflaw.learn.exploring.responses import ordered
from perflaw.learn.exploring.spaces import SpaceLike
from perflaw.types.explored import Choice, Importance, Notice
from perflaw.types.studies import StudyMetric, Trial

MOST_REASONS = 6
"""Reasons of invalid trials that are told apart."""


def notices(
    trials: Sequence[Trial],
    space: SpaceLike,
    objective: StudyMetric | None,
    best: Choice | None,
    importance: Importance | None,
    collapses: Sequence[Collapse],
) -> tuple[Notice, ...]:
    """Return the warnings, the gravest first."""
    found = [*_invalid(trials), *map(_collapse, collapses)]
    if objective is None:
        found.append(Notice("other", "no metric has a goal (goal: max or goal: min): no configuration is best"))
    if importance and importance.reason:
        found.append(Notice("null" if importance.p > 0.01 else "few", f"{importance.metric}: {importance.reason}"))
    return (*found, *_contaminated(trials), *_stopped(trials), *(_edges(best, space, importance) if best else ()))


def _invalid(trials: Sequence[Trial]) -> Iterator[Notice]:
    """Invalid trials by their reason, the most frequent first."""
    begun = [one for one in trials if one.started or one.reason]
    reasons: dict[str, list[int]] = {}
    for one in begun:
        if not one.valid and one.reason:
            reasons.setdefault(one.reason, []).append(one.number)
    several = sorted(reasons.items(), key=lambda each: (-len(each[1]), each[1][0]))
    for reason, numbers in several[:MOST_REASONS]:
        words = f"{_trials(len(numbers))} of {len(begun)} invalid: {reason}"
        yield Notice("invalid", words, tuple(numbers))
    rest = tuple(number for _, numbers in several[MOST_REASONS:] for number in numbers)
    if rest:
        yield Notice(
            "invalid", f"{_trials(len(rest))} more invalid, for {len(several) - MOST_REASONS} other reasons", rest
        )


def _collapse(one: Collapse) -> Notice:
    """A collapse, and what explains it."""
    where = f" with {one.where}" if one.where else ""
    what = f"{one.knob}: beyond {one.peak:g} it gets worse, {one.loss * 100:.0f} % at {one.top:g}{where}"
    low, high = one.switches
    if one.lock:
        much = f" {high / low:,.0f} times" if low >= 1 else ""
        told = f"voluntary context switches rise{much} to {high:,.0f} a second: threads wait for one another"
        gone = (
            f"it is gone with {one.gone}" if one.gone else "no knob of this study takes it away; look for one that does"
        )
        return Notice("hidden lock", f"hidden lock? {what}, while {told}; {gone}", one.trials)
    if one.processors:
        told = f"threads wait for processors ({one.delay[1] * 100:.0f} % of their CPU time)"
        return Notice("other", f"{what}; {told}: there are more threads than processors", one.trials)
    return Notice("other", f"{what}; context switches do not rise with it, so no lock explains it", one.trials)


def _contaminated(trials: Sequence[Trial]) -> Iterator[Notice]:
    numbers = tuple(one.number for one in trials if one.contaminated)
    if numbers:
        first = next(one.contaminated for one in trials if one.contaminated)
        words = (
            f"{_trials(len(numbers))} disturbed by others (such as: {first}): not counted where a clean one is there"
        )
        yield Notice("contaminated", words, numbers)


def _stopped(trials: Sequence[Trial]) -> Iterator[Notice]:
    stopped = [one for one in trials if one.stopped]
    if stopped:
        whole = [one.measured_s for one in trials if one.valid and not one.stopped]
        usual = max(whole, default=0.0)
        saved = sum(max(0.0, usual - one.measured_s) for one in stopped)
        words = f"{_trials(len(stopped))} ended early, for they could not win any more: about {saved:,.0f} s saved"
        yield Notice("stopped", words, tuple(one.number for one in stopped))


def _edges(best: Choice, space: SpaceLike, importance: Importance | None) -> Iterator[Notice]:
    """Knobs that matter whose best setting is the end of their range: what lies beyond was not asked."""
    matter = {name for one in (importance.shares if importance else ()) if one.sure for name in one.knobs}
    ends = []
    for knob in space.knobs:
        if knob.name not in matter or knob.workload or not ordered(knob):
            continue
        numbers = [float(one) for one in knob.values] or [float(knob.low or 0), float(knob.high or 0)]
        value = float(best.configuration[knob.name])
        if len(set(numbers)) > 1 and value in (min(numbers), max(numbers)):
            ends.append(f"{knob.name} ({'least' if value == min(numbers) else 'greatest'})")
    if ends:
        words = f"the best lies at the end of what was asked of {', '.join(ends)}: wider ranges may hold a better one"
        yield Notice("other", words)


def _trials(count: int) -> str:
    return f"{count} trial{'s' * (count != 1)}"
