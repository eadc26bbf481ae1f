"""What differs between two laws of a component: family, coefficients, slopes, features, scopes, noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp, hypot, log
from typing import Any

from perflaw.check.claims import Claim
from perflaw.check.terms import Coefficient, mean_terms
from perflaw.language.ast import Number
from perflaw.types import Change

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
    """95 % interval of a ratio of two coefficients, by their relative errors; none where one has no interval."""
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
