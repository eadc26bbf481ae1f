"""Mixtures whose modes hold while their probabilities changed: a claim about the workload, not about the calls.

A law says ``{0.9} 1 µs; {0.1} 30 µs`` of the workload it was learnt from. Where every call still costs what one of the modes
says and only their shares differ, the law is violated if the inputs are those it was learnt from (more misses of a cache);
with other inputs its probabilities claim nothing, and it is out of scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from perflaw.check.claims import Claim
from perflaw.check.effect import Margin, totals
from perflaw.check.evalues import NOTHING, Spread, e_value
from perflaw.check.records import Array, Records, columns_of, hold
from perflaw.check.twin import sampled
from perflaw.laws import distributions
from perflaw.laws.tree import Clause
from perflaw.types import Evidence

MIX_CHANGED = "mix changed"
"""What messages about shares begin with."""
ROUNDS = 30
"""Rounds of expectation and maximisation in which shares of modes are estimated."""
STRAY, MOST_STRAY = 1e-4, 0.02
"""Records less probable than that under their mode fit none; so many of them may."""
FEWEST = 10
"""Records of a mode that its own cost is judged by."""
OTHER = 0.15
"""Distance (Kolmogorov's) of a feature's values from those learnt from, above which inputs are others."""
CHANCE = 1.95
"""Times √(1/n + 1/m): what samples of n and m records of one distribution exceed once in a thousand (Smirnov 1948)."""


@dataclass(frozen=True, slots=True)
class Mix:
    """A mixture whose modes hold."""

    text: str
    """What changed: ``{10 %} 30 µs is now 30 %``, shares of the modes before and now."""
    other_inputs: str
    """Features whose values are not those learnt from; empty where all are, or none is known."""


def changed_mix(claim: Claim, evidence: Evidence, records: Records, spread: Spread, margin: Margin) -> Mix | None:
    """What changed where only probabilities did; None where a mode's own cost did, or there are no modes."""
    told = []
    for number, clause in enumerate(claim.clauses):
        some = records.take(records.clause == number)
        if some.cost.size < FEWEST:
            continue
        old = _own(claim, number)
        if len(clause.parts) < 2:
            if not _same(some, old, spread, margin):
                return None
            continue
        shares, modes = _modes(claim, clause, some)
        if modes is None or not all(_same(*pair, spread, margin) for pair in _by_mode(claim, clause, some, modes, old)):
            return None
        told += _moved(claim, number, shares)
    return Mix("; ".join(told), ", ".join(_others(claim, evidence))) if told else None


def _modes(claim: Claim, clause: Clause, records: Records) -> tuple[Array, NDArray[np.intp] | None]:
    """Shares of the modes now, (M,), and the mode of every record (n,); None where too many fit none."""
    logs, stray = [], np.ones(records.cost.size, dtype=bool)
    y = records.cost / claim.factor
    for part in clause.parts:
        below = distributions.cdf(part.distribution, y, records.values)
        logs.append(distributions.log_density(part.distribution, y, records.values) + np.zeros(y.size))
        stray &= np.minimum(below, 1.0 - below) < STRAY
    density = np.exp(np.clip(np.stack(logs) - np.max(logs, axis=0), -600.0, 0.0))
    shares = np.array([part.probability for part in clause.parts])
    weight = records.weight / records.weight.sum()
    for _ in range(ROUNDS):
        joint = shares[:, None] * density
        member = joint / np.maximum(joint.sum(axis=0), 1e-300)
        shares = np.maximum(member @ weight, 1e-9)
    fits = float(weight[stray].sum()) <= MOST_STRAY
    return shares, member.argmax(axis=0) if fits else None


def _by_mode(
    claim: Claim, clause: Clause, records: Records, modes: NDArray[np.intp], old: Records | None
) -> Iterator[tuple[Records, Records | None]]:
    """Records of every mode, expected to cost what it says; now, and of the runs of the law."""
    before = _modes(claim, clause, old)[1] if old is not None and old.cost.size else None
    for number, part in enumerate(clause.parts):
        law = Clause(None, (replace(part, probability=1.0),))
        now = _expected(claim, law, records.take(modes == number))
        if now.cost.size >= FEWEST:
            yield (
                now,
                _expected(claim, law, old.take(before == number)) if old is not None and before is not None else None,
            )


def _expected(claim: Claim, law: Clause, records: Records) -> Records:
    mean = np.broadcast_to(distributions.mean(law, records.values), records.cost.shape) * claim.factor
    return replace(records, expected=np.asarray(mean, dtype=np.float64))


def _same(now: Records, old: Records | None, spread: Spread, margin: Margin) -> bool:
    """Whether the records cost what is expected of them, as far as those of the law did."""
    effects = []
    for records in (old, now):
        if records is None or records.cost.size < FEWEST:
            effects.append(NOTHING)
            continue
        names, run = np.unique(records.run, return_inverse=True)
        effects.append(totals(records, run, names.size))
    found = e_value(effects[0], effects[1], spread, margin.up, margin.down)
    return not margin.beyond(found.low, found.high)


def _own(claim: Claim, number: int) -> Records | None:
    """Records of a clause that the law's twin keeps of its own runs."""
    kept = sampled(claim)
    records = hold(claim, kept) if kept is not None else None
    return records.take(records.clause == number) if records is not None else None


def _moved(claim: Claim, number: int, shares: Array) -> list[str]:
    """The mode whose share moved most, in words."""
    clause, condition = claim.clauses[number], claim.condition(number)
    by = [share - part.probability for share, part in zip(shares, clause.parts, strict=True)]
    most = int(np.argmax(np.abs(by)))
    if abs(by[most]) < 0.01:
        return []
    place = f" where {condition}" if condition else ""
    return [
        f"mode {most + 1} of {len(by)}{place}: {clause.parts[most].probability:.0%} of the calls, now {shares[most]:.0%}"
    ]


def _others(claim: Claim, evidence: Evidence) -> Iterator[str]:
    """Features whose values are distributed otherwise than in the twin's sample."""
    kept = sampled(claim)
    if kept is None:
        return
    now = columns_of(evidence)
    for name, values in columns_of(kept).items():
        column = now.get(name)
        if values.dtype.kind == "U" or column is None or column.dtype.kind == "U":
            continue
        old = values[np.isfinite(values)]
        new = column[np.isfinite(column)]
        if min(old.size, new.size) < FEWEST:
            continue
        chance = CHANCE * np.sqrt(1.0 / old.size + 1.0 / new.size)
        if stats.ks_2samp(old, new, method="asymp").statistic > max(OTHER, chance):
            yield name
