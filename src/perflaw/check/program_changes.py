"""Two summaries of a program's runs compared: which calls became more, which unit costs changed, and where it enters.

Counts that repeat themselves are exact: one new run shows a change. Unit costs are compared at equal sizes after the
speeds of the runs are removed: the machine may be faster or slower today, and that is one number for all functions.
A function on whose call path a cause lies costs more as well: by how much follows from the counts and unit costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from perflaw.check.claims import Claim
from perflaw.check.judge import DOUBT, CheckOptions, EvidenceByKey, judge
from perflaw.check.program_summary import MIN_SHARE, PSEUDO, ProgramSummary
from perflaw.check.unit_costs import MIN_FUNCTIONS, compare_units, medians
from perflaw.confidence import HIGH
from perflaw.learn.series.series import numbered
from perflaw.special import stdtr, stdtrit
from perflaw.types import CheckVerdict, DiffVerdict, Evidence

Array = NDArray[np.float64]
Places = NDArray[np.intp]

LARGE: Final = 0.005
"""Share of the cost from which a function gets a large part of the allowed false alarms."""
FOR_LARGE: Final = 0.9
"""That part."""
MIN_TIME: Final = 20.0
"""Change of an own cost, ns for a call and for each call that it makes, that the tracer may be off by: where too few
functions tell how far it is."""
MIN_FREEDOM: Final = 3.0
"""Degrees of freedom without which a unit cost is not tested."""
ENTERS: Final = 0.25
"""Part of a function's additional calls from which a caller that calls it more often is where the change enters."""
GRAVITY: Final = ("violated", "inconclusive", "out of scope", "holds")
"""Verdicts, the gravest first."""
MAX_LOG: Final = 20.0
"""Logarithms of ratios end here."""


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """What changed of a function, apart from the machine's speed."""

    changed: Literal["", "calls", "unit cost"] = ""
    """``calls``, ``unit cost``, or empty."""
    violated: bool = False
    """Whether the function's cost changed beyond the minimum effect, here or in a function that it calls."""
    root: bool = False
    """Whether the change enters here."""
    effect: float = 1.0
    """New over old."""
    low: float = 1.0
    """Lower end of its confidence interval."""
    high: float = 1.0
    """Upper end of it."""
    p: float = 1.0
    """Probability of such a change or a larger one if nothing changed, corrected for the number of functions."""
    caller: str = ""
    """Function from which it is called more or less often; empty where the change is not in the calls."""
    cause: str = ""
    """The change in words, with its place on the call path."""
    settled: bool = False
    """Whether nothing changed and a doubling is excluded."""
    likely_effect: float = 1.0
    """New over old own cost of a call, if its interval excludes 1 although not the correction for all functions."""
    likely_cause: str = ""
    """The same in words: the cause, if the function's law is violated anyway; else it may be chance."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramComparison:
    """Changes of all functions that both sides have."""

    changes: Mapping[str, ProgramChange]
    """Function → what changed of it."""
    speed: float
    """Factor by which the new runs are slower for the machine's sake."""


def compare_programs(
    old: ProgramSummary, new: ProgramSummary, options: CheckOptions | None = None
) -> ProgramComparison | None:
    """What changed of each function from the old runs to the new ones; None where they have no size in common."""
    options = options or CheckOptions()
    sizes = [(g, new.sizes.index(size)) for g, size in enumerate(old.sizes) if size in new.sizes]
    if not sizes or old.metric != new.metric:
        return None
    return _Comparison(old, new, [g for g, _ in sizes], [g for _, g in sizes], options).result()


class _Comparison:
    """The sides brought to the same functions (F,), sizes (G,) and edges; functions of one side alone have zeros."""

    def __init__(
        self, old: ProgramSummary, new: ProgramSummary, of_old: list[int], of_new: list[int], options: CheckOptions
    ) -> None:
        self.options = options
        self.names = tuple(dict.fromkeys((*old.names, *new.names)))
        place = {name: f for f, name in enumerate(self.names)}
        self.clock = old.metric.unit == "ns"
        columns = [np.array([place[name] for name in side.names], dtype=np.intp) for side in (old, new)]
        self.both = np.isin(np.arange(len(self.names)), columns[0]) & np.isin(np.arange(len(self.names)), columns[1])

        def spread(values: tuple[Array, Array], empty: float = 0.0) -> Array:
            out = np.full((2, *values[0].shape[:-1], len(self.names)), empty)
            for side, (column, one) in enumerate(zip(columns, values, strict=True)):
                out[side][..., column] = one
            return out

        self.runs = np.array([old.runs[of_old], new.runs[of_new]])
        self.calls = spread((old.calls[of_old], new.calls[of_new]))
        self.exact = spread((old.exact.astype(float), new.exact.astype(float)))[0] > 0
        if new.runs.sum() - len(new.runs) > 0:
            # Counts of several new runs of a size that differ are no exact ones, whatever the old runs say.
            self.exact &= ~(spread((old.call_variance, new.call_variance))[1] > 1e-12)
        self.call_variance = spread((old.call_variance, new.call_variance)).max(axis=0)
        self.repeats = float(old.runs.sum() - len(old.runs) + new.runs.sum() - len(new.runs))
        self.unit = spread((old.unit[of_old], new.unit[of_new]), np.nan)
        # Unit costs of the single runs of both sides, (R, F), with the number of the size of each.
        sizes = {tuple(sorted(size.items())): g for g, size in enumerate(old.sizes)}
        number = np.array([sizes.setdefault(tuple(sorted(size.items())), len(sizes)) for size in new.sizes])
        self.run_size = np.r_[old.run_size, number[new.run_size]]
        self.run_new = np.r_[np.zeros(old.run_size.size, dtype=bool), np.ones(new.run_size.size, dtype=bool)]
        self.run_unit = np.full((self.run_size.size, len(self.names)), np.nan)
        self.run_unit[np.ix_(~self.run_new, columns[0])] = old.run_unit
        self.run_unit[np.ix_(self.run_new, columns[1])] = new.run_unit
        self.share = spread((old.share, new.share)).max(axis=0)
        self.program = np.array([name not in PSEUDO for name in self.names])
        edges: dict[tuple[int, int], int] = {}
        along = []
        for side, (summary, rows) in enumerate(((old, of_old), (new, of_new))):
            for (caller, callee), calls in zip(summary.edges.tolist(), summary.edge_calls[rows].T, strict=True):
                key = (int(columns[side][caller]) if caller >= 0 else -1, int(columns[side][callee]))
                along.append((side, edges.setdefault(key, len(edges)), calls))
        self.edges = np.array(list(edges), dtype=np.intp).reshape(-1, 2)
        self.edge_calls = np.zeros((2, len(rows), len(edges)))
        for side, edge, calls in along:
            self.edge_calls[side, :, edge] += calls
        self.above = [
            (columns[side][one.above[0]], columns[side][one.above[1]], one.above[2])
            for side, one in enumerate((old, new))
        ]

    def result(self) -> ProgramComparison:
        """The changes of all functions."""
        # Logarithm of the new runs' speed relative to the old ones, (G,): the median over functions that matter.
        difference = self.unit[1] - self.unit[0]
        usable = np.isfinite(difference) & (self.share > MIN_SHARE) & self.program
        speeds = np.zeros(len(difference))
        if self.clock:
            for g, row in enumerate(usable):
                if row.sum() >= MIN_FUNCTIONS:
                    speeds[g] = np.median(difference[g, row])
        self._test_units()
        self._test_calls()
        roots = self._roots()
        changes = {self.names[f]: change for f, change in roots.items()}
        changed = {f for f, change in roots.items() if change.violated}
        for f, change in self._ancestors(changed, roots).items():
            known = changes.get(self.names[f])
            if known is None or not known.violated:
                changes[self.names[f]] = change
        both = {self.names[f] for f in np.flatnonzero(self.both)}
        return ProgramComparison(
            {name: one for name, one in changes.items() if name in both}, float(np.exp(np.median(speeds)))
        )

    def _test_units(self) -> None:
        """Change of the logarithm of each unit cost, (F,), with its interval and p."""
        known = np.isfinite(self.run_unit).all(axis=0)
        matters = known & (self.share > MIN_SHARE) & self.program & self.both
        cost = np.exp(medians(self.run_unit))
        callees = np.zeros(cost.size)
        inside = self.edges[:, 0] >= 0
        np.add.at(callees, self.edges[inside, 0], self.edge_calls.mean(axis=(0, 1))[inside])
        events = 1.0 + callees / np.maximum(self.calls.mean(axis=(0, 1)), 1.0)
        rate = np.nan_to_num(events / cost) if self.clock else None
        once = self.calls.max(axis=(0, 1)) <= 1
        found = compare_units(self.run_unit, self.run_size, self.run_new, matters, rate, once)
        change, error = found.change, np.where(np.isfinite(found.error), found.error, 0.0)
        enough = self.runs[0].sum() > 1 and (self.runs[1].sum() > 1 or self.options.single_run)
        self.known = np.isfinite(found.error) & (found.own_freedom >= MIN_FREEDOM) & self.program & bool(enough)
        # What costs next to nothing on both sides is a few cold calls, and no change of it matters.
        self.testable = self.known & (self.share > MIN_SHARE)
        freedom = np.maximum(found.freedom, 1.0)
        p = 2.0 * stdtr(freedom, -np.abs(change) / np.where(self.testable, error, 1.0))
        large = self.testable & (self.share > LARGE)
        allowed = np.where(large, FOR_LARGE / max(large.sum(), 1), 0.0)
        small = self.testable & ~large
        allowed[small] = (1.0 - FOR_LARGE * bool(large.any())) / max(small.sum(), 1)
        self.unit_p = np.where(self.testable, np.minimum(p / np.maximum(allowed, 1e-12), 1.0), 1.0)
        half = stdtrit(freedom, HIGH) * error
        self.unit_change, self.unit_low, self.unit_high = change, change - half, change + half
        margin = np.full(change.size, log(self.options.min_effect))
        if self.clock and not found.tracer_adjusted:
            margin = np.maximum(margin, np.log1p(np.nan_to_num(MIN_TIME * events / cost)))
        far = np.maximum(self.unit_high, -self.unit_low)
        self.unit_margin = margin
        tracer = np.abs(change) >= np.where(margin > log(self.options.min_effect) * 1.001, margin, 0.0)
        self.unit_violated = self.testable & (self.unit_p <= self.options.alpha) & (far >= margin) & tracer

    def _test_calls(self) -> None:
        """Ratio of the calls of each function, (F,), and whether it changed beyond the minimum effect."""
        sums = self.calls.sum(axis=1)
        ratio = np.log(np.maximum(sums[1], 0.5)) - np.log(np.maximum(sums[0], 0.5))
        differs = (self.calls[0] != self.calls[1]).any(axis=0)
        self.calls_change = ratio
        total = float((self.runs[0] * self.runs[1] / self.runs.sum(axis=0)).sum())
        error = np.sqrt(np.maximum(self.call_variance, 1e-4) / total)
        p = 2.0 * stdtr(max(self.repeats, 1.0), -np.abs(ratio) / error) * max(int(self.both.sum()), 1)
        noisy = ~self.exact & (self.repeats >= MIN_FREEDOM) & (p <= self.options.alpha)
        noisy &= bool(self.runs[1].sum() > 1 or self.options.single_run)
        self.calls_p = np.where(self.exact, 0.0, np.minimum(p, 1.0))
        self.calls_error = np.where(self.exact, 0.0, error)
        self.calls_differ = differs & (self.exact | noisy) & self.both & self.program
        self.calls_beyond = self.calls_differ & (np.abs(ratio) > log(self.options.min_effect) - 1e-9)

    def _roots(self) -> dict[int, ProgramChange]:
        """Functions in which a change enters; functions called more often by these, which hold; settled ones."""
        roots: dict[int, ProgramChange] = {}
        for f in np.flatnonzero(self.both & self.program).tolist():
            entry, caller, inherited = self._entry(f) if self.calls_beyond[f] else (-1, -1, False)
            words = []
            calls_text = self._calls_text(f, entry, caller, inherited) if self.calls_beyond[f] else ""
            if calls_text:
                words.append(calls_text)
            ratio = exp(min(self.unit_change[f], MAX_LOG))
            size = f"{100.0 * (ratio - 1.0):+.0f} %" if ratio < 2.0 else _times(ratio)
            unit_text = f"own cost of a call of `{self.names[f]}` {size}"
            if self.unit_violated[f]:
                words.append(unit_text)
            if self.unit_violated[f] and not (entry >= 0 and abs(self.calls_change[f]) > abs(self.unit_change[f])):
                ends = exp(self.unit_low[f]), exp(self.unit_high[f])
                effect = exp(self.unit_change[f])
                roots[f] = ProgramChange(
                    "unit cost", True, True, effect, *ends, float(self.unit_p[f]), "", "; ".join(words)
                )
            elif entry >= 0:
                half = 1.96 * float(self.calls_error[f])
                change = float(self.calls_change[f])
                ends = exp(change - half), exp(change + half)
                by = self.names[caller] if caller >= 0 else ""
                p = float(self.calls_p[f])
                roots[f] = ProgramChange("calls", True, True, exp(change), *ends, p, by, "; ".join(words))
            else:
                known = max(self.unit_high[f], -self.unit_low[f]) < DOUBT
                settled = bool(self.known[f] and known)
                roots[f] = ProgramChange(cause="; ".join(words), settled=settled)
                if self.testable[f] and (self.unit_low[f] > 0 or self.unit_high[f] < 0):
                    effect = exp(self.unit_change[f])
                    roots[f] = replace(roots[f], likely_effect=effect, likely_cause=unit_text)
        return roots

    def _entry(self, f: int) -> tuple[int, int, bool]:
        """Edge by which additional calls of a function enter and its caller; else -1 and the caller called more often."""
        edges = np.flatnonzero(self.edges[:, 1] == f)
        callers = self.edges[edges, 0]
        along = self.edge_calls[:, :, edges]
        of_callers = np.where(callers >= 0, self.calls[:, :, np.maximum(callers, 0)], 1.0)
        rate = along / np.maximum(of_callers, 1.0)
        entering = ((rate[1] - rate[0]) * of_callers[1]).sum(axis=0)
        inherited = (rate[0] * (of_callers[1] - of_callers[0])).sum(axis=0)
        whole = float((self.calls[1, :, f] - self.calls[0, :, f]).sum())
        sign = 1.0 if whole > 0 else -1.0
        if not edges.size:
            return -1, -1, False
        best = int((sign * entering).argmax())
        if sign * entering[best] >= ENTERS * abs(whole):
            return int(edges[best]), int(callers[best]), False
        return -1, int(callers[int((sign * inherited).argmax())]), True

    def _calls_text(self, f: int, edge: int, caller: int, inherited: bool) -> str:
        ratio = exp(min(self.calls_change[f], MAX_LOG))
        by = f"`{self.names[caller]}`" if caller >= 0 else "the program"
        if inherited:
            return f"called {_times(ratio)} as often, because {by} is"
        if edge < 0:
            return f"called {_times(ratio)} as often"
        old, new = self.edge_calls[:, :, edge].mean(axis=1).tolist()
        per = np.maximum(self.calls[:, :, caller].mean(axis=1), 1.0) if caller >= 0 else np.ones(2)
        counts = f"{_count(old / per[0])} → {_count(new / per[1])} a call"
        return f"calls of `{self.names[f]}` from {by}: {counts}, {_times(ratio)} in all"

    def _ancestors(self, changed: set[int], roots: Mapping[int, ProgramChange]) -> dict[int, ProgramChange]:
        """Functions whose inclusive cost changed beyond the minimum effect because of a function that they call."""
        own_old = np.nan_to_num(self.calls[0] * np.exp(self.unit[0]))
        unit = np.where(np.isfinite(self.unit[0]), self.unit[0], self.unit[1])
        unit = unit + np.where(self.unit_violated, self.unit_change, 0.0)
        counted = self.calls_differ | ~self.both
        own_new = np.nan_to_num(np.where(counted, self.calls[1], self.calls[0]) * np.exp(unit))
        before, after = own_old.sum(axis=0), own_new.sum(axis=0)
        count = len(self.names)
        inclusive = np.array([before, after])
        causes: dict[int, list[int]] = {}
        shares = [
            {(ancestor, f): share for ancestor, f, share in zip(*(column.tolist() for column in one), strict=True)}
            for one in self.above
        ]
        for ancestor, f in {**shares[0], **shares[1]}:
            old = shares[0].get((ancestor, f), 0.0)
            new = shares[1].get((ancestor, f), 0.0)
            # Where nothing changed, the shares differ by noise alone.
            moved = counted[f] or f in changed
            inclusive[0, ancestor] += before[f] * (old if moved or (ancestor, f) in shares[0] else new)
            inclusive[1, ancestor] += after[f] * (new if moved else old if (ancestor, f) in shares[0] else new)
            if f in changed or (not self.both[f] and after[f] > 0):
                causes.setdefault(ancestor, []).append(f)
        least = log(self.options.min_effect)
        found: dict[int, ProgramChange] = {}
        calls = self.calls.sum(axis=1)
        for ancestor, through in causes.items():
            if not self.both[ancestor] or ancestor >= count or inclusive[:, ancestor].min() <= 0:
                continue
            a_call = log(inclusive[1, ancestor] / inclusive[0, ancestor])
            a_call -= log(max(calls[1, ancestor], 0.5) / max(calls[0, ancestor], 0.5)) * bool(counted[ancestor])
            if abs(a_call) < least:
                continue
            largest = max(through, key=lambda f: abs(after[f] - before[f]))
            cause = roots[largest].cause if largest in roots else f"`{self.names[largest]}` is new"
            kind = roots[largest].changed if largest in roots else "calls"
            effect = exp(a_call)
            found[ancestor] = ProgramChange(
                kind, True, False, effect, effect, effect, roots[largest].p if largest in roots else 0.0,
                roots[largest].caller if largest in roots else "", f"through `{self.names[largest]}`: {cause}"
                if largest in roots else cause,
            )  # fmt: skip
        return found


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 1.095 else f"{ratio:.1f}x" if ratio < 99.5 else f"{ratio:,.0f}x"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 99.5 or number == int(number) else f"{number:.3g}"


AnyVerdict = TypeVar("AnyVerdict", CheckVerdict, DiffVerdict)


def with_changes(
    verdicts: Sequence[AnyVerdict], comparison: ProgramComparison, claims: Sequence[Claim]
) -> list[AnyVerdict]:
    """Verdicts of single functions with what the program's counts and unit costs say.

    Those on laws that a person wrote or edited stay: such a law is taken at its word.
    """
    edited = {claim.component for claim in claims if claim.document is None}
    return [
        _merged(verdict, comparison.changes[verdict.component.name])
        if verdict.component.name in comparison.changes and verdict.component.name not in edited
        else verdict
        for verdict in verdicts
    ]


def _merged(verdict: AnyVerdict, change: ProgramChange) -> AnyVerdict:
    """A verdict with the change of the function's calls or unit cost."""
    if verdict.verdict == "out of scope":
        return verdict
    told: dict[str, Any] = {"changed": change.changed, "caller": change.caller, "cause": change.cause}
    if not change.violated:
        if change.settled and verdict.verdict == "inconclusive":
            numbers: dict[str, Any] = {"p": None, "effect": change.effect}
            numbers |= {"effect_low": change.low, "effect_high": change.high}
            return replace(verdict, verdict="holds", message="", cause=change.cause, **numbers)
        dearer = verdict.verdict == "violated" and verdict.effect is not None and verdict.effect > 1
        if not change.cause and dearer and change.likely_effect > 1:
            # That something changed is known from the law: no other function has to be excluded as its cause by chance.
            return replace(verdict, changed="unit cost", cause=change.likely_cause)
        return replace(verdict, cause=change.cause)
    already = verdict.verdict == "violated" or (isinstance(verdict, DiffVerdict) and verdict.better)
    if already and verdict.effect is not None and (verdict.effect > 1) == (change.effect > 1):
        # By how much a call costs more is known best from the unit costs, but for a law that breaks from a size on.
        since = isinstance(verdict, CheckVerdict) and bool(verdict.since)
        if change.root and change.changed == "unit cost" and not since:
            told |= {"effect": change.effect, "effect_low": change.low, "effect_high": change.high}
        return replace(verdict, **told)
    numbers = {"p": change.p, "effect": change.effect, "effect_low": change.low, "effect_high": change.high}
    if isinstance(verdict, DiffVerdict):
        better = change.effect < 1
        return replace(verdict, verdict="holds" if better else "violated", better=better, message="", **numbers, **told)
    return replace(verdict, verdict="violated", message="", **numbers, **told)


def compared(old: ProgramSummary | None, new: ProgramSummary | None, options: CheckOptions) -> ProgramComparison | None:
    """The comparison with half of the allowed false alarms; None where a side is unknown or no size is in common."""
    if old is None or new is None:
        return None
    return compare_programs(old, new, replace(options, alpha=options.alpha / 2))


def at_median_speed(evidence: EvidenceByKey, summary: ProgramSummary, speed: float) -> EvidenceByKey:
    """Evidence in the summary's metric with the costs of each run divided by its speed, and all by ``speed``."""

    def scaled(one: Evidence) -> Evidence:
        runs, place = numbered(one.run)
        factor = np.array([exp(summary.speed.get(str(run), 0.0)) * speed for run in runs])
        return replace(one, cost=one.cost / factor[place])

    return {key: scaled(one) if key[1] == summary.metric.name else one for key, one in evidence.items()}


def check_laws(
    claims: Sequence[Claim],
    evidence: EvidenceByKey,
    options: CheckOptions,
    old: ProgramSummary | None,
    new: ProgramSummary | None,
) -> list[CheckVerdict]:
    """Verdicts on laws from new evidence, and from the program's calls and unit costs where both sides know them.

    Each way of testing gets half of the allowed false alarms.
    """
    comparison = compared(old, new, options)
    if comparison is None or new is None:
        return judge(claims, evidence, options)
    evidence = at_median_speed(evidence, new, comparison.speed)
    verdicts = with_changes(judge(claims, evidence, replace(options, alpha=options.alpha / 2)), comparison, claims)
    return sorted(verdicts, key=lambda one: GRAVITY.index(one.verdict))
