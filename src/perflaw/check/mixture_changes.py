"""Mixtures whose modes hold while their probabilities changed: a claim about the workload, not about the calls.

A law says ``{0.9} 1 µs; {0.1} 30 µs`` of the workload it was learnt from. If every call still costs what one of the modes
says and only their shares differ, the law is violated if the inputs are those it was learnt from (more misses of a cache);
with other inputs its probabilities claim nothing, and it is out of scope.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.check.claims import Claim
from perflaw.check.evalues import NO_RUNS, Effects, RunSpread, e_value
from perflaw.check.law_records import Array, LawRecords, columns_of, law_records
from perflaw.check.run_effects import Margin, total_effects
from perflaw.check.twin import sampled
from perflaw.laws import distributions
from perflaw.laws.tree import Clause
from perflaw.types import Evidence

MIX_CHANGED = "mix changed"
"""The beginning of messages about changed shares."""
EM_ROUNDS = 30
"""Rounds of expectation and maximisation that estimate the shares of modes."""
STRAY, MAX_STRAY = 1e-4, 0.02
"""Records less probable than the first under every mode fit none; the second is the largest share of them."""
MIN_RECORDS = 10
"""Smallest number of records by which a mode's cost is judged."""
MIN_SHARE_CHANGE = 0.01
"""Smaller changes of a mode's share are not reported."""
MIN_DISTANCE = 0.15
"""Kolmogorov's distance of a feature's values from those learnt from, above which inputs differ."""
CHANCE = 1.95
"""Times √(1/n + 1/m): the distance that samples of one distribution exceed once in a thousand (Smirnov 1948)."""


@dataclass(frozen=True, slots=True)
class MixChange:
    """A mixture whose modes hold while their shares changed."""

    text: str
    """What changed: shares of the modes before and now."""
    other_inputs: str
    """Features whose values are not those learnt from; empty if all are, or if nothing is known of them."""


def mix_change(
    claim: Claim, evidence: Evidence, records: LawRecords, spread: RunSpread, margin: Margin
) -> MixChange | None:
    """What changed if only probabilities did; None if the cost of a mode did, or without modes."""
    sample = sampled(claim)
    old_records = law_records(claim, sample) if sample is not None else None
    changes = []
    for number, clause in enumerate(claim.clauses):
        new = records.take(records.clause == number)
        if new.cost.size < MIN_RECORDS:
            continue
        old = old_records.take(old_records.clause == number) if old_records is not None else None
        if len(clause.parts) < 2:
            if not _holds(new, old, spread, margin):
                return None
            continue
        shares, modes = _modes(claim, clause, new)
        if modes is None or not _modes_hold(claim, clause, new, modes, old, spread, margin):
            return None
        difference = [share - part.probability for share, part in zip(shares, clause.parts, strict=True)]
        most = int(np.argmax(np.abs(difference)))
        if abs(difference[most]) >= MIN_SHARE_CHANGE:
            condition = claim.condition(number)
            where = f" where {condition}" if condition else ""
            before, now = clause.parts[most].probability, shares[most]
            mode = f"mode {most + 1} of {len(shares)}{where}"
            changes.append(f"{mode}: {100 * before:.0f} % of the calls, now {100 * now:.0f} %")
    if not changes:
        return None
    return MixChange("; ".join(changes), ", ".join(_other_inputs(sample, evidence)) if sample is not None else "")


def _modes(claim: Claim, clause: Clause, records: LawRecords) -> tuple[Array, NDArray[np.intp] | None]:
    """Shares of the modes, (M,), and the mode of every record, (n,); None if too many records fit no mode."""
    logs, stray = [], np.ones(records.cost.size, dtype=bool)
    y = records.cost / claim.factor
    for part in clause.parts:
        below = distributions.cdf(part.distribution, y, records.values)
        logs.append(distributions.log_density(part.distribution, y, records.values) + np.zeros(y.size))
        stray &= np.minimum(below, 1.0 - below) < STRAY
    highest = np.max(logs, axis=0)
    # A cost that no mode can have (0 of a lognormal distribution) is a stray: it belongs to each mode by that mode's share.
    highest = np.where(np.isfinite(highest), highest, 0.0)
    density = np.exp(np.clip(np.stack(logs) - highest, -600.0, 0.0))
    shares = np.array([part.probability for part in clause.parts])
    weight = records.weight / records.weight.sum()
    for _ in range(EM_ROUNDS):
        joint = shares[:, None] * density
        member = joint / np.maximum(joint.sum(axis=0), 1e-300)
        shares = np.maximum(member @ weight, 1e-9)
    fit = float(weight[stray].sum()) <= MAX_STRAY
    return shares, member.argmax(axis=0) if fit else None


def _modes_hold(
    claim: Claim,
    clause: Clause,
    new: LawRecords,
    modes: NDArray[np.intp],
    old: LawRecords | None,
    spread: RunSpread,
    margin: Margin,
) -> bool:
    """Whether the records of every mode cost what it says, as far as those of the law's own runs do."""
    old_modes = _modes(claim, clause, old)[1] if old is not None and old.cost.size else None
    for number, part in enumerate(clause.parts):
        mode = Clause(None, (replace(part, probability=1.0),))

        def under_mode(records: LawRecords, mode: Clause = mode) -> LawRecords:
            mean = np.broadcast_to(distributions.mean(mode, records.values), records.cost.shape) * claim.factor
            return replace(records, expected=np.asarray(mean, dtype=np.float64))

        now = under_mode(new.take(modes == number))
        before = None
        if old is not None and old_modes is not None:
            before = under_mode(old.take(old_modes == number))
        if now.cost.size >= MIN_RECORDS and not _holds(now, before, spread, margin):
            return False
    return True


def _holds(now: LawRecords, before: LawRecords | None, spread: RunSpread, margin: Margin) -> bool:
    """Whether the records cost what is expected of them, as far as those of the law's own runs did."""

    def effects(records: LawRecords | None) -> Effects:
        return total_effects(records) if records is not None and records.cost.size >= MIN_RECORDS else NO_RUNS

    found = e_value(effects(before), effects(now), spread, margin.up, margin.down)
    return not margin.beyond(found.low, found.high)


def _other_inputs(sample: Evidence, evidence: Evidence) -> list[str]:
    """Features whose values are distributed otherwise than in the sample that the law's twin keeps."""
    now = columns_of(evidence)
    found = []
    for name, values in columns_of(sample).items():
        column = now.get(name)
        if values.dtype.kind == "U" or column is None or column.dtype.kind == "U":
            continue
        old, new = values[np.isfinite(values)], column[np.isfinite(column)]
        if min(old.size, new.size) < MIN_RECORDS:
            continue
        places = np.concatenate([old, new])
        shares = [np.searchsorted(np.sort(one), places, side="right") / one.size for one in (old, new)]
        chance = CHANCE * np.sqrt(1.0 / old.size + 1.0 / new.size)
        if np.abs(shares[0] - shares[1]).max() > max(MIN_DISTANCE, chance):
            found.append(name)
    return found
