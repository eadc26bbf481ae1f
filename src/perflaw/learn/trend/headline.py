"""The law that stands for a cluster: of the laws in one feature and the law in several, the one that predicts best.

A law over all features fits the runs that it was learnt from at least as well as any other, and so does a number that
merely numbers these runs. Neither is a reason to believe it. Here every law is learnt again without some of the runs
and predicts them. The law in a size comes first, then laws in other numbers, then laws in several features; a later
law replaces an earlier one only if it predicts the runs left out better, by more than chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series import Learnt, Series, learn
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.series.series import drawn_rows
from perflaw.learn.trend.data import Array
from perflaw.special import stdtr

FOLDS = 8
"""Parts of the workloads, each of which is left out once."""
MAX_RUNS = 160
"""Runs that laws are learnt again from; of more, so many are drawn."""
MAX_SINGLE = 3
"""Laws in one feature that are compared, those that fit best; of each prior cost the best one always is."""
CHANCE = 0.01
"""Largest p of the signed ranks from which a law predicts better than the one before it."""
FLOOR = 1e-3
"""Part of a cluster's median count that is added to counts and predictions before their ratio is taken."""

Candidate = tuple[str, ...]
"""Features that a law may depend on: one of them, or all."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """The laws of one cluster among which its headline is chosen."""

    single: Mapping[str, Learnt]
    """Feature → law in this feature alone."""
    joint: Learnt
    """Law over all features; it may depend on fewer."""

    def candidates(self, costs: Mapping[str, float]) -> list[Candidate]:
        """Features of the laws that are worth comparing, given the prior costs of features."""
        found: list[Candidate] = []
        if not self.joint.law.features:
            return found
        some = [name for name, one in self.single.items() if one.law.features]
        by_fit = sorted(some, key=lambda name: _misfit(self.single[name]))
        levels = {costs.get(name, 0.0): name for name in reversed(by_fit)}  # of each level the one that fits best
        best = dict.fromkeys([*by_fit[:MAX_SINGLE], *levels.values(), *self.joint.law.features])
        found += [(name,) for name in best if name in some]
        return [*found, tuple(self.single)] if len(self.joint.law.features) > 1 else found

    def law(self, candidate: Candidate) -> Learnt:
        """The law of a candidate."""
        return self.single[candidate[0]] if len(candidate) == 1 else self.joint


def choose_headlines(
    series: Callable[[Candidate], Sequence[Series]],
    rivals: Sequence[Rivals],
    costs: Mapping[str, float],
    options: LawOptions,
) -> list[Learnt]:
    """The law that stands for each of C clusters.

    ``series`` gives the series of all clusters in some features, ``costs`` are the prior costs of features.
    """
    chosen = [one.joint for one in rivals]
    candidates = [one.candidates(costs) for one in rivals]
    groups: dict[Candidate, list[int]] = {}
    for c, found in enumerate(candidates):
        for candidate in found if len(found) > 1 else ():
            groups.setdefault(candidate, []).append(c)
    compared = [(c, candidate) for candidate, members in groups.items() for c in members]
    made = {candidate: series(candidate) for candidate in groups}
    lost = left_out_losses([made[candidate][c] for c, candidate in compared], options)
    losses = dict(zip(compared, lost, strict=True))
    for c, found in enumerate(candidates):
        if len(found) == 1:
            chosen[c] = rivals[c].law(found[0])
        elif found:
            mine = {candidate: losses[c, candidate] for candidate in found}
            chosen[c] = rivals[c].law(best_candidate(mine, rivals[c], costs))
    return chosen


def best_candidate(losses: Mapping[Candidate, Array], rivals: Rivals, costs: Mapping[str, float]) -> Candidate:
    """The candidate to believe, by what each loses in the left-out workloads, (W,)."""

    def order(candidate: Candidate) -> tuple[float, int, float]:
        features = rivals.law(candidate).law.features
        return max(costs.get(name, 0.0) for name in features), len(features), float(losses[candidate].mean())

    first, *others = sorted(losses, key=order)
    for other in others:
        if _is_better(losses[first], losses[other]):
            first = other
    return first


def left_out_losses(series: Sequence[Series], options: LawOptions) -> list[Array]:
    """|log(count/prediction)| of each workload, (W,), by the law that is learnt without it; for each series.

    Workloads are the labels of runs where there are some, else the rows; some count of each series is above 0.
    """
    thinned = [_thinned(one) for one in series]
    workloads = [_workloads(one) for one in thinned]
    folds = [_folds(one, workload) for one, workload in zip(thinned, workloads, strict=True)]
    losses = [np.zeros(one.y.size) for one in thinned]
    without = [
        (place, left_out)
        for fold in range(FOLDS)
        for place, left_out in enumerate(one == fold for one in folds)
        if left_out.any() and not left_out.all()
    ]
    learnt = learn([_rows(thinned[place], ~left_out) for place, left_out in without], [], options)
    for (place, left_out), one in zip(without, learnt, strict=True):
        y = thinned[place].y
        floor = FLOOR * float(np.median(y[y > 0]))
        predicted = one.mean({name: x[left_out] for name, x in thinned[place].features.items()})
        losses[place][left_out] = np.abs(np.log((y[left_out] + floor) / (predicted + floor)))
    return [
        np.bincount(workload, loss) / np.bincount(workload) for workload, loss in zip(workloads, losses, strict=True)
    ]


def _misfit(learnt: Learnt) -> float:
    return 1.0 - (learnt.law.r2 or 0.0) + (learnt.law.verdict != "law")


def _is_better(before: Array, after: Array) -> bool:
    """Whether the second loss (W,) is less than the first by more than chance: Student's t of signed ranks."""
    gain = before - after
    if gain.mean() <= 0 or gain.size < 3:
        return False
    ranks = np.argsort(np.argsort(np.abs(gain), kind="stable"), kind="stable") + 1.0
    signed = np.where(np.abs(gain) > 1e-9, np.sign(gain) * ranks, 0.0)
    spread = float(signed.std(ddof=1)) / np.sqrt(signed.size)
    return spread > 0 and float(stdtr(signed.size - 1, -signed.mean() / spread)) < CHANCE


def _thinned(series: Series) -> Series:
    """The series with at most ``MAX_RUNS`` rows."""
    if series.y.size <= MAX_RUNS:
        return series
    keep = np.zeros(series.y.size, dtype=bool)
    keep[drawn_rows(series.y.size, MAX_RUNS)] = True
    return _rows(series, keep)


def _rows(series: Series, keep: NDArray[np.bool_]) -> Series:
    features = {name: x[keep] for name, x in series.features.items()}
    runs = None if series.runs is None else series.runs[keep]
    return replace(series, y=series.y[keep], features=features, runs=runs)


def _workloads(series: Series) -> NDArray[np.intp]:
    """Number of each row's workload, (n,)."""
    if series.runs is None:
        return np.arange(series.y.size)
    return np.asarray(np.unique(series.runs, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def _folds(series: Series, workload: NDArray[np.intp]) -> NDArray[np.intp]:
    """Fold of each row, (n,): workloads by turns in the order of their counts, so that each fold has all sizes."""
    mean = np.bincount(workload, series.y) / np.bincount(workload)
    turn = np.empty(mean.size, dtype=np.intp)
    turn[np.argsort(mean, kind="stable")] = np.arange(mean.size) % FOLDS
    return np.asarray(turn[workload])
