"""Differences between two laws of a component: family, coefficients, local exponents, features, scopes, noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, hypot, log
from typing import Any

import numpy as np

from perflaw.check.claims import Claim
from perflaw.check.law_records import Array, LawRecords
from perflaw.confidence import HIGH
from perflaw.laws.build import terms_of
from perflaw.laws.evaluation import evaluate
from perflaw.laws.printing import show
from perflaw.laws.tree import Binary, Distribution, Expression, Number
from perflaw.learn.series.series import numbered
from perflaw.special import stdtrit
from perflaw.types import Change

MAX_TERMS = 30
"""Longer sums are not taken apart."""
MIN_RATIO = 1.1
"""Coefficients and costs within this factor are equal."""
MIN_NOISE_RATIO = 1.5
"""Noise within this factor is equal."""
MIN_SLOPE_CHANGE = 0.1
"""Local exponents that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class MeanTerm:
    """One term of a mean: a coefficient times a function of features."""

    coefficient: float
    """Its coefficient, 1 if it states none."""
    basis: Expression | None
    """The function of features; None for the constant term."""

    @property
    def text(self) -> str:
        """The function as text; empty for the constant term."""
        return show(self.basis) if self.basis is not None else ""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A term's coefficient with its confidence interval; the ends are None for a law of one run."""

    term: str
    """The function that it is multiplied by; empty for the intercept."""
    value: float
    """The coefficient, unit of the metric divided by the unit of the term."""
    low: float | None
    """Lower end."""
    high: float | None
    """Upper end."""


def mean_terms(law: Distribution) -> list[MeanTerm]:
    """The terms of a distribution's mean, equal ones added up.

    >>> from perflaw.laws.reading import parse_distribution
    >>> [(one.coefficient, one.text) for one in mean_terms(parse_distribution("Norm(5 - 2*n*3 + n*log(n)/4, 1)"))]
    [(5.0, ''), (-6.0, 'n'), (0.25, 'n*log(n)')]
    """
    mean = Binary("*", law.arguments[0], law.arguments[1]) if law.name == "Binom" else law.arguments[0]
    terms: dict[str, MeanTerm] = {}
    for one in terms_of(mean):
        term = MeanTerm(one.coefficient, one.basis)
        before = terms.get(term.text, MeanTerm(0.0, term.basis))
        terms[term.text] = replace(term, coefficient=before.coefficient + term.coefficient)
    return list(terms.values())


def coefficients(claim: Claim, records: LawRecords) -> list[list[Coefficient]]:
    """Coefficients of every scope, with intervals from a jackknife over runs; none for a mixture."""
    found = []
    for number, clause in enumerate(claim.clauses):
        law, here = clause.parts[0].distribution, records.take(records.clause == number)
        terms = mean_terms(law) if len(clause.parts) == 1 else []
        of_clause = [Coefficient(term.text, term.coefficient, None, None) for term in terms]
        if 0 < len(terms) <= MAX_TERMS and len(terms) < here.cost.size:
            columns = np.ones((len(terms), here.cost.size))
            for row, term in enumerate(terms):
                if term.basis is not None:
                    columns[row] = evaluate(term.basis, here.values)
            relative = law.name == "LogNorm"
            half = _jackknife(columns, here, np.asarray(here.weight / (here.expected**2 if relative else 1.0)))
            if half is not None:
                of_clause = [
                    replace(one, low=one.value - width, high=one.value + width)
                    for one, width in zip(of_clause, half.tolist(), strict=True)
                ]
        found.append(of_clause)
    return found


def _jackknife(columns: Array, records: LawRecords, weight: Array) -> Array | None:
    """Half widths of the coefficients' confidence intervals, (k,): least squares with each run left out in turn."""
    names, run = numbered(records.run)
    runs, count = names.size, len(columns)
    if runs < 2 or not np.isfinite(columns).all():
        return None
    scale = np.sqrt(np.maximum((columns**2 * weight).sum(axis=1), 1e-300))
    scaled = columns / scale[:, None]
    grams, sides = np.zeros((runs, count, count)), np.zeros((runs, count))
    np.add.at(grams, run, np.einsum("in,jn,n->nij", scaled, scaled, weight))
    np.add.at(sides, run, (scaled * (weight * records.cost)).T)
    others, right = grams.sum(axis=0) - grams, sides.sum(axis=0) - sides
    if np.linalg.matrix_rank(others, 1e-10, hermitian=True).min() < count:
        return None
    left_out = np.linalg.solve(others, right[:, :, None])[:, :, 0] / scale
    variance = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0) * (runs - 1) / runs
    return np.asarray(stdtrit(runs - 1, HIGH) * np.sqrt(variance))


def changes_of(old: Claim, new: Claim) -> Iterator[Change]:
    """Differences of two laws, the most telling first."""
    yield from _coefficient_changes(old, new)
    yield from _family_change(old, new)
    yield from (Change("feature", name, "", name) for name in sorted(new.names - old.names))
    yield from (Change("feature", name, name, "") for name in sorted(old.names - new.names))
    yield from _slope_changes(old, new)
    yield from _scope_changes(old, new)
    yield from _noise_changes(old, new)


def _coefficient_changes(old: Claim, new: Claim) -> Iterator[Change]:
    """Changed coefficients of terms that both laws have."""
    for number, (one, other) in enumerate(zip(old.clauses, new.clauses, strict=False)):
        if len(one.parts) != 1 or len(other.parts) != 1:
            continue
        before, after = coefficients_of(old, number), coefficients_of(new, number)
        for term in sorted(before.keys() & after.keys(), key=lambda text: (not text, text)):
            first, second = before[term], after[term]
            a, b = first.value * old.factor, second.value * new.factor
            if a == b or a == 0 or b / a <= 0 or (not term and len(before) > 1):
                continue
            ratio, low, high = b / a, None, None
            if abs(log(ratio)) < log(MIN_RATIO):
                continue
            if first.low is not None and first.high is not None and second.low is not None and second.high is not None:
                # The interval of the ratio, by the relative errors of both.
                errors = (first.high - first.low) / first.value, (second.high - second.low) / second.value
                half = min(hypot(*errors) / 2, 50.0)
                low, high = ratio * exp(-half), ratio * exp(half)
            yield Change("coefficient", term, f"{a:.4g}", f"{b:.4g}", ratio, low, high)


def coefficients_of(claim: Claim, number: int) -> dict[str, Coefficient]:
    """Coefficients of a scope by term, with intervals if the twin has them."""
    in_twin = ((claim.document or {}).get("check") or {}).get("coefficients") or []
    if number < len(in_twin) and in_twin[number]:
        return {one["term"]: Coefficient(**one) for one in in_twin[number]}
    terms = mean_terms(claim.clauses[number].parts[0].distribution)
    return {one.text: Coefficient(one.text, one.coefficient, None, None) for one in terms}


def _family_change(old: Claim, new: Claim) -> Iterator[Change]:
    """Another family of a single law; of texts that share a term the coefficients and features tell enough."""

    def terms(claim: Claim) -> set[str]:
        return {one.text for one in mean_terms(claim.clauses[0].parts[0].distribution) if one.text}

    def family(claim: Claim) -> str:
        if claim.document:
            return str(claim.document["scopes"][0]["law"]["family"])
        return " + ".join(sorted(terms(claim))) or "constant"

    if not (old.document and new.document) and terms(old) & terms(new):
        return
    if family(old) != family(new) and len(old.clauses) == len(new.clauses) == 1:
        yield Change("family", "", family(old), family(new))


def _slope_changes(old: Claim, new: Claim) -> Iterator[Change]:
    """Local exponents of single laws whose intervals do not overlap."""

    def only_law(claim: Claim) -> Mapping[str, Any] | None:
        scopes = claim.document["scopes"] if claim.document else []
        return scopes[0]["law"] if len(scopes) == 1 else None

    before, after = only_law(old), only_law(new)
    if not before or not after:
        return
    for name in sorted(before["slope"].keys() & after["slope"].keys()):
        a, b = before["slope"][name], after["slope"][name]
        a_low, a_high = before["slope_low"].get(name), before["slope_high"].get(name)
        b_low, b_high = after["slope_low"].get(name), after["slope_high"].get(name)
        if None in (a, b, a_low, a_high, b_low, b_high) or abs(a - b) < MIN_SLOPE_CHANGE:
            continue
        if a_high < b_low or b_high < a_low:
            yield Change("slope", name, f"{name}^{a:.2f}", f"{name}^{b:.2f}")


def _scope_changes(old: Claim, new: Claim) -> Iterator[Change]:
    """Conditions that appeared or disappeared, and mixtures with another number of modes."""

    def text(conditions: list[str]) -> str:
        return "; ".join(f"[{one}]" if one else "everywhere" for one in conditions)

    before = [old.condition(number) for number in range(len(old.clauses))]
    after = [new.condition(number) for number in range(len(new.clauses))]
    if before != after:
        yield Change("scope", "", text(before), text(after))
        return
    for name, one, other in zip(before, old.clauses, new.clauses, strict=True):
        if len(one.parts) != len(other.parts):
            yield Change("scope", name, f"{len(one.parts)} modes", f"{len(other.parts)} modes")


def _noise_changes(old: Claim, new: Claim) -> Iterator[Change]:
    """Noise of another size, if both laws state it as a number of the same kind."""
    for one, other in zip(old.clauses, new.clauses, strict=False):
        first, second = one.parts[0].distribution, other.parts[0].distribution
        before, after = first.arguments[-1], second.arguments[-1]
        if first.name != second.name or first.name not in ("Norm", "LogNorm"):
            continue  # additive and multiplicative noise say much the same if the scatter is small
        if not isinstance(before, Number) or not isinstance(after, Number) or not before.value:
            continue
        scale = new.factor / old.factor if first.name == "Norm" else 1.0
        ratio = after.value / before.value * scale
        if ratio > 0 and abs(log(ratio)) > log(MIN_NOISE_RATIO):
            yield Change("noise", first.name, f"{before.value:.4g}", f"{after.value * scale:.4g}", ratio)
