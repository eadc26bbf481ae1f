"""The terms of a mean expression and their coefficients, with intervals from the runs behind a law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from perflaw.check.claims import Claim
from perflaw.check.records import Array, Records
from perflaw.language import evaluate, show
from perflaw.language.ast import Binary, Distribution
from perflaw.language.terms import terms_of
from perflaw.language.tree import Expression

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
    """A term's coefficient with its 95 % interval; null ends where one run alone stands behind it."""

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

    >>> from perflaw.language import parse_distribution
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
    """Half widths of the coefficients' 95 % intervals: least squares with each run left out in turn."""
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
    return [float(half) for half in stats.t.ppf(0.975, size - 1) * np.sqrt(variance)]
