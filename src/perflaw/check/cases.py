"""Claims brought together with the records they are held against, or the reason why they cannot be."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.check.claims import Baseline, Claim
from perflaw.check.effect import FEWEST, Margin, View, cuts_of, margin_of, views
from perflaw.check.records import Records, hold, missing
from perflaw.types import CheckVerdict, Component, Evidence, Outcome

Found = Mapping[tuple[str, str], Evidence]
"""New evidence by component and metric."""

MOSTLY_OUTSIDE = 0.5
"""From this share of invocations outside the scope on, the law was not put to the test."""


@dataclass(frozen=True, slots=True)
class Case:
    """A claim with the records it is held against."""

    claim: Claim
    """The law."""
    evidence: Evidence
    """The new evidence."""
    records: Records
    """Its invocations under the law."""
    baseline: Baseline
    """The runs of the law; without effects for a law taken at its word."""
    views: tuple[View, ...]
    """Ways to look at the new runs, the whole component first."""
    outside: float
    """Share of the invocations outside the law's scope."""
    margin: Margin
    """The smallest changes that matter."""


def prepare(claim: Claim, found: Found, min_effect: float) -> Case | CheckVerdict:
    """A claim with its records, or at once the verdict where they cannot be compared."""
    evidence = found.get((claim.component, claim.metric.name))
    if evidence is None:
        return _untested(claim, None, "inconclusive", _gone(claim, found))
    if not evidence.cost.size:
        return _untested(claim, evidence, "inconclusive", "no call of it was completed in the new recordings")
    lacking = missing(claim, evidence)
    if lacking:
        return _untested(claim, evidence, "inconclusive", _lacking(claim, lacking))
    records = hold(claim, evidence)
    baseline = claim.baseline or Baseline(cuts_of(claim, records))
    several = tuple(views(claim, records, baseline.cuts, baseline.scatter))
    outside = float(records.weight[~records.inside].sum() / max(records.weight.sum(), 1e-300))
    if outside > MOSTLY_OUTSIDE:
        return _untested(claim, evidence, "out of scope", _outside(claim, records), records, outside)
    if not several or several[0].name != "total":
        few = f"{int(records.inside.sum())} calls recorded, at least {FEWEST} are wanted"
        return _untested(claim, evidence, "inconclusive", few, records, outside)
    return Case(claim, evidence, records, baseline, several, outside, margin_of(claim, records, min_effect))


def _untested(
    claim: Claim,
    evidence: Evidence | None,
    verdict: Outcome,
    message: str,
    records: Records | None = None,
    outside: float = 0.0,
) -> CheckVerdict:
    component = evidence.component if evidence else Component(claim.component)
    count = int(records.inside.sum()) if records else 0
    return CheckVerdict(
        component, claim.metric, "", verdict, None, None, None, None, records=count, outside=outside, message=message
    )


def _gone(claim: Claim, found: Found) -> str:
    """No such component: what is there under a similar name."""
    names = sorted({component for component, metric in found if metric == claim.metric.name})
    last = claim.component.rsplit(".", 1)[-1]
    near = difflib.get_close_matches(claim.component, names, 3)
    near += [name for name in names if name.rsplit(".", 1)[-1] == last and name not in near][:3]
    there = f"; similar: {', '.join(near[:3])}" if near else ""
    return f"not in the new recordings: never called, renamed or left out{there}"


def _lacking(claim: Claim, names: Sequence[str]) -> str:
    """Features that no new record has, and how they are recorded."""
    told = ", ".join(name for name in names)
    if any(name.startswith("branch.") for name in names):
        return f"{told} was not recorded: record with --collect branches"
    return (
        f"{told} was not recorded: neither an argument nor a feature of the runs (perflaw annotate --json lists them)"
    )


def _outside(claim: Claim, records: Records) -> str:
    """What the inputs were, and what the law speaks of."""
    told = []
    for name in sorted(claim.names):
        column = records.values[name]
        ends = claim.ranges.get(name)
        if ends is None or column.dtype.kind == "U":
            continue
        values = np.asarray(column, dtype=np.float64)
        low, high = np.nanmin(values), np.nanmax(values)
        if low < ends[0] or high > ends[1]:
            told.append(f"{name} {low:.6g}–{high:.6g}, learnt from {ends[0]:.6g}–{ends[1]:.6g}")
    return "; ".join(told) or "none of the law's conditions is true"
