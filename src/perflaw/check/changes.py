"""What differs between two laws of a component: family, coefficients, slopes, features, scopes, noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log
from typing import Any

import numpy as np
from scipy.special import stdtrit

from perflaw.check.claims import Claim
from perflaw.check.records import Array, Records
from perflaw.confidence import HIGH
from perflaw.laws.evaluation import evaluate
from perflaw.laws.printing import show
from perflaw.laws.terms import terms_of
from perflaw.laws.tree import Binary, Distribution, Expression, Number
from perflaw.types import Change

# ---- The terms of a mean expression and their coefficients, with intervals from the runs behind a law.

MOST_TERMS = 30
"""Longer sums are not taken apart."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a mean: a number times a product of features."""

    coefficient: float
    """Its number, 1 where it has none."""
    basis: Expression | None
    """What the number is multiplied by; None for the constant term."""

    @property
    def text(self) -> str:
        """The basis as text; empty for the constant term."""
        return show(self.basis) if self.basis is not None else ""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A term's coefficient with its confidence interval; null ends where one run alone stands behind it."""

    term: str
    """What it is multiplied by; empty for the intercept."""
    value: float
    """The coefficient, unit of the metric by the unit of the term."""
    low: float | None
    """Lower end."""
    high: float | None
    """Upper end."""


def mean_terms(law: Distribution) -> list[Term]:
    """The terms of a distribution's mean, equal ones added up.

    >>> from perflaw.laws.reading import parse_distribution
    >>> [(one.coefficient, one.text) for one in mean_terms(parse_distribution("Norm(5 - 2*n*3 + n*log(n)/4, 1)"))]
    [(5.0, ''), (-6.0, 'n'), (0.25, 'n*log(n)')]
    """
    mean = Binary("*", law.arguments[0], law.arguments[1]) if law.name == "Binom" else law.arguments[0]
    found: dict[str, Term] = {}
    for one in terms_of(mean):
        term = Term(one.coefficient, one.basis)
        before = found.get(term.text, Term(0.0, term.basis))
        found[term.text] = replace(term, coefficient=before.coefficient + term.coefficient)
    return list(found.values())


def coefficients(claim: Claim, records: Records) -> list[list[Coefficient]]:
    """Coefficients of every scope of one part, with intervals from a jackknife over runs; () for mixtures."""
    return [
        _of_clause(clause.parts[0].distribution, records.take(records.clause == number))
        if len(clause.parts) == 1
        else []
        for number, clause in enumerate(claim.clauses)
    ]


def _of_clause(law: Distribution, records: Records) -> list[Coefficient]:
    terms = mean_terms(law)
    plain = [Coefficient(term.text, term.coefficient, None, None) for term in terms]
    if not 0 < len(terms) <= MOST_TERMS or records.cost.size <= len(terms):
        return plain
    columns = np.array(
        [
            np.broadcast_to(evaluate(term.basis, records.values), records.cost.shape) * 1.0
            if term.basis is not None
            else np.ones(records.cost.size)
            for term in terms
        ]
    )
    relative = law.name == "LogNorm"
    weight = records.weight / (records.expected**2 if relative else 1.0)
    half = _jackknife(columns, records, np.asarray(weight))
    if half is None:
        return plain
    return [
        Coefficient(one.term, one.value, one.value - width, one.value + width)
        for one, width in zip(plain, half, strict=True)
    ]


def _jackknife(columns: Array, records: Records, weight: Array) -> Sequence[float] | None:
    """Half widths of the coefficients' confidence intervals: least squares with each run left out in turn."""
    names, run = np.unique(records.run, return_inverse=True)
    size, count = names.size, len(columns)
    if size < 2 or not np.isfinite(columns).all():
        return None
    scale = np.sqrt(np.maximum((columns**2 * weight).sum(axis=1), 1e-300))
    scaled = columns / scale[:, None]
    grams, sides = np.zeros((size, count, count)), np.zeros((size, count))
    np.add.at(grams, run, np.einsum("in,jn,n->nij", scaled, scaled, weight))
    np.add.at(sides, run, (scaled * (weight * records.cost)).T)
    rest, right = grams.sum(axis=0) - grams, sides.sum(axis=0) - sides
    if min(np.linalg.matrix_rank(one, 1e-10, hermitian=True) for one in rest) < count:
        return None
    left_out = np.linalg.solve(rest, right[:, :, None])[:, :, 0] / scale
    variance = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0) * (size - 1) / size
    return [float(half) for half in stdtrit(size - 1, HIGH) * np.sqrt(variance)]


LEAST_RATIO = 1.1
"""Coefficients and costs within this factor are told as the same."""
LEAST_NOISE = 1.5
"""Noise within this factor is told as the same."""
LEAST_SLOPE = 0.1
"""Local exponents this near are told as the same."""


def changes_of(old: Claim, new: Claim) -> Iterator[Change]:
    """Differences, the most telling first."""
    yield from _coefficients(old, new)
    yield from _families(old, new)
    yield from _features(old, new)
    yield from _slopes(old, new)
    yield from _scopes(old, new)
    yield from _noise(old, new)


def _families(old: Claim, new: Claim) -> Iterator[Change]:
    before, after = _family(old), _family(new)
    if not (old.document and new.document) and _terms(old) & _terms(new):
        return  # texts: coefficients and features tell it
    if before != after and len(old.clauses) == len(new.clauses) == 1:
        yield Change("family", "", before, after)


def _family(claim: Claim) -> str:
    """Its name where the law was learnt; else the shape of its mean."""
    if claim.document:
        return str(claim.document["scopes"][0]["law"]["family"])
    return " + ".join(sorted(_terms(claim))) or "constant"


def _terms(claim: Claim) -> set[str]:
    """Terms of the first mean but its constant."""
    return {one.text for one in mean_terms(claim.clauses[0].parts[0].distribution) if one.text}


def _coefficients(old: Claim, new: Claim) -> Iterator[Change]:
    """Coefficients of terms that both laws have."""
    for number, (one, other) in enumerate(zip(old.clauses, new.clauses, strict=False)):
        if len(one.parts) != 1 or len(other.parts) != 1:
            continue
        before, after = coefficients_of(old, number), coefficients_of(new, number)
        for term in sorted(before.keys() & after.keys(), key=lambda text: (not text, text)):
            first, second = before[term], after[term]
            a, b = first.value * old.factor, second.value * new.factor
            if a == b or a == 0 or b / a <= 0 or (not term and len(before) > 1):
                continue
            if abs(log(b / a)) < log(LEAST_RATIO):
                continue
            yield Change("coefficient", term, f"{a:.4g}", f"{b:.4g}", b / a, *_ratio_interval(b / a, first, second))


def coefficients_of(claim: Claim, number: int) -> dict[str, Coefficient]:
    """Coefficients of a scope by term, with intervals where the twin has them."""
    document = ((claim.document or {}).get("check") or {}).get("coefficients") or []
    if number < len(document) and document[number]:
        return {one["term"]: Coefficient(**one) for one in document[number]}
    terms = mean_terms(claim.clauses[number].parts[0].distribution)
    return {one.text: Coefficient(one.text, one.coefficient, None, None) for one in terms}


def _ratio_interval(ratio: float, old: Coefficient, new: Coefficient) -> tuple[float | None, float | None]:
    """Confidence interval of a ratio of two coefficients, by their relative errors; none where one has no interval."""
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return None, None
    half = hypot((old.high - old.low) / (2 * abs(old.value)), (new.high - new.low) / (2 * abs(new.value)))
    return ratio * exp(-min(half, 50.0)), ratio * exp(min(half, 50.0))


def _features(old: Claim, new: Claim) -> Iterator[Change]:
    for name in sorted(new.names - old.names):
        yield Change("feature", name, "", name)
    for name in sorted(old.names - new.names):
        yield Change("feature", name, name, "")


def _slopes(old: Claim, new: Claim) -> Iterator[Change]:
    """Local exponents whose intervals lie apart."""
    before, after = _law(old), _law(new)
    if not before or not after:
        return
    for name in sorted(before["slope"].keys() & after["slope"].keys()):
        a, b = before["slope"][name], after["slope"][name]
        ends = [before["slope_low"].get(name), before["slope_high"].get(name)]
        ends += [after["slope_low"].get(name), after["slope_high"].get(name)]
        if a is None or b is None or None in ends or abs(a - b) < LEAST_SLOPE:
            continue
        if ends[1] < ends[2] or ends[3] < ends[0]:
            yield Change("slope", name, f"{name}^{a:.2f}", f"{name}^{b:.2f}")


def _law(claim: Claim) -> Mapping[str, Any] | None:
    """The only law of a learnt claim."""
    if not claim.document or len(claim.document["scopes"]) != 1:
        return None
    law: Mapping[str, Any] = claim.document["scopes"][0]["law"]
    return law


def _scopes(old: Claim, new: Claim) -> Iterator[Change]:
    """Conditions that appeared or went, and mixtures with other parts."""
    before = [old.condition(number) for number in range(len(old.clauses))]
    after = [new.condition(number) for number in range(len(new.clauses))]
    if before != after:
        yield Change("scope", "", _told(before), _told(after))
        return
    for name, one, other in zip(before, old.clauses, new.clauses, strict=True):
        if len(one.parts) != len(other.parts):
            yield Change("scope", name, f"{len(one.parts)} modes", f"{len(other.parts)} modes")


def _told(conditions: list[str]) -> str:
    return "; ".join(f"[{one}]" if one else "everywhere" for one in conditions)


def _noise(old: Claim, new: Claim) -> Iterator[Change]:
    """Scatter of another size, where it is a number of the same kind."""
    for one, other in zip(old.clauses, new.clauses, strict=False):
        first, second = one.parts[0].distribution, other.parts[0].distribution
        before, after = first.arguments[-1], second.arguments[-1]
        if first.name != second.name or first.name not in ("Norm", "LogNorm"):
            continue  # additive or multiplicative: two ways to say much the same where the scatter is small
        if not isinstance(before, Number) or not isinstance(after, Number) or not before.value:
            continue
        scale = new.factor / old.factor if first.name == "Norm" else 1.0
        ratio = after.value / before.value * scale
        if ratio > 0 and abs(log(ratio)) > log(LEAST_NOISE):
            yield Change("noise", first.name, f"{before.value:.4g}", f"{after.value * scale:.4g}", ratio)
