"""What is claimed of a component: blocks of a law file, with intervals and run effects where its JSON twin says the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from perflaw.check.evalues import Effects
from perflaw.laws.evaluation import bound, names
from perflaw.laws.printing import show
from perflaw.laws.reading import parse_distribution, parse_expression
from perflaw.laws.tree import Clause, LawFile, Part
from perflaw.laws.units import factor_of
from perflaw.types import Annotation, Metric

# ---- Effects of the runs a law was learnt from: what its JSON twin keeps, so that a check knows how far runs differ.


@dataclass(frozen=True, slots=True)
class Baseline:
    """How the runs a law was learnt from lie about it, in several views."""

    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Feature → values at which records are split by size, increasing."""
    effects: Mapping[str, Effects] = field(default_factory=dict)
    """View → logarithms of observed over expected cost, one a run."""
    scatter: float = 0.0
    """Mean squared relative deviation of single invocations: what a run of few records may be off by."""


def baseline_document(baseline: Baseline) -> dict[str, Any]:
    """The baseline for the JSON twin."""
    return {
        "cuts": {name: list(values) for name, values in baseline.cuts.items()},
        "views": {
            view: {"effect": _rounded(one.value), "variance": _rounded(one.variance)}
            for view, one in baseline.effects.items()
        },
        "scatter": float(f"{baseline.scatter:.6g}"),
    }


def baseline_from(document: Mapping[str, Any] | None) -> Baseline | None:
    """The baseline of a JSON twin; None where it has none."""
    if not document:
        return None
    effects = {
        view: Effects(np.array(one["effect"], dtype=np.float64), np.array(one["variance"], dtype=np.float64))
        for view, one in document["views"].items()
    }
    return Baseline(
        {name: tuple(values) for name, values in document["cuts"].items()}, effects, float(document["scatter"])
    )


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """A law of one component and metric, ready to be held against records."""

    component: str
    """Qualified name."""
    metric: Metric
    """What it speaks of, in the unit of recordings."""
    clauses: tuple[Clause, ...]
    """Its scopes in order; the first whose condition is true counts."""
    factor: float = 1.0
    """Units of recordings in one unit of the text: 1000 where it says ``[us]``."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Smallest and largest value learnt from; empty for a hand-written law."""
    baseline: Baseline | None = None
    """Effects of the runs it was learnt from; None where the law is taken at its word."""
    document: Document | None = None
    """The twin's annotation, with intervals; None for text alone."""
    line: int = 0
    """Line of the block, 0 where there is no file."""

    @property
    def names(self) -> frozenset[str]:
        """Features its conditions and distributions use."""
        return frozenset(name for one in self.clauses for name in clause_names(one))

    @property
    def own_names(self) -> frozenset[str]:
        """Features of its calls that runs have under the same name, with other values; none are known of text alone."""
        return frozenset((self.document or {}).get("own_features", ()))

    def condition(self, number: int) -> str:
        """Condition of a clause as text; empty for everywhere."""
        condition = self.clauses[number].condition
        return show(condition) if condition is not None else ""


def clause_names(clause: Clause) -> set[str]:
    """Names a clause uses."""
    found = set() if clause.condition is None else set(names(clause.condition))
    for part in clause.parts:
        for argument in part.distribution.arguments:
            found |= names(argument)
    return found


def claims_of_text(file: LawFile, twin: Document | None = None) -> list[Claim]:
    """The claims of a law file; the twin lends its intervals to the blocks that it says the same of."""
    known = {(one["component"], one["metric"]): one for one in twin["annotations"]} if twin else {}
    claims = []
    for block in file.blocks:
        factor, unit = factor_of(block)
        claim = Claim(block.component, Metric(block.metric, unit), bound(block).clauses, factor, line=block.line)
        one = known.get((block.component, block.metric))
        if one is not None and clauses_of(one, claim.clauses) == claim.clauses:
            learnt = claim_of_document(one, claim.clauses)
            claim = replace(claim, metric=learnt.metric, ranges=learnt.ranges, baseline=learnt.baseline, document=one)
        claims.append(claim)
    return claims


def claim_of_document(one: Document, clauses: tuple[Clause, ...] | None = None) -> Claim:
    """The claim of an annotation in a JSON twin; ``clauses`` are those of the annotation where it is at hand."""
    told = (one.get("check") or {}).get("ranges")
    if told is not None:
        ranges = {name: (low, high) for name, (low, high) in told.items()}
    else:
        found: dict[str, tuple[float, float]] = {}
        for scope in one["scopes"]:
            for name, (low, high) in scope["law"]["range"].items():
                if low is not None and high is not None:
                    before = found.get(name, (low, high))
                    found[name] = (min(before[0], low), max(before[1], high))
        ranges = found
    return Claim(
        one["component"],
        Metric(one["metric"], one["unit"]),
        clauses_of(one) if clauses is None else clauses,
        ranges=ranges,
        baseline=baseline_from(one.get("check")),
        document=one,
    )


def clauses_of(one: Document, likely: Sequence[Clause] = ()) -> tuple[Clause, ...]:
    """Scopes of a document as clauses: neighbours of one condition are the parts of a mixture.

    What is written as in the ``likely`` clauses is taken from these and not parsed again.
    """
    conditions = {show(clause.condition): clause.condition for clause in likely if clause.condition is not None}
    known = {show(part.distribution): part.distribution for clause in likely for part in clause.parts}
    clauses = []
    for text, scopes in groupby(one["scopes"], key=lambda scope: scope["condition"]):
        parts = []
        for scope in scopes:
            written = scope["law"]["expression"]
            parts.append(Part(scope["probability"], known.get(written) or parse_distribution(written)))
        condition = (conditions.get(text) or parse_expression(text)) if text else None
        clauses.append(Clause(condition, tuple(parts)))
    return tuple(clauses)


def claims_of_document(document: Document, annotations: Sequence[Annotation] = ()) -> list[Claim]:
    """All claims of a document of ``perflaw annotate --json``; ``annotations`` are those it was made of, if at hand."""
    clauses = {(one.component.name, one.metric.name): one.clauses for one in reversed(annotations)}
    return [claim_of_document(one, clauses.get((one["component"], one["metric"]))) for one in document["annotations"]]
