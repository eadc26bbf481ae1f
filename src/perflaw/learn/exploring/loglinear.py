"""Laws of what knobs multiply: the logarithm of a response as a sum of terms, chosen forwards and checked by folds.

The law learner's families know no settings without order and no bends of products; a configuration's effects are both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from perflaw.confidence import HIGH
from perflaw.laws.build import combination, number
from perflaw.laws.tree import Binary, Call, Expression, Name, Number
from perflaw.learn.exploring.observations import Array

# ---- Terms of the logarithm of a response: logarithms of numbers, bends in them, settings without order, products of
# two.

WIDEST = 1e-12
"""Least over greatest value of a feature whose logarithm is looked at; of others the value itself."""
MOST_BENDS = 6
"""Bends looked for along a feature."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One column: ``log(x/at)``, ``max(0, log(x/at))``, x itself (0 or 1, or where 0 is among the values)."""

    feature: str
    """Its feature."""
    kind: str
    """``log``, ``bend`` or ``plain``."""
    at: float = 1.0
    """Value at which a logarithm is 0."""

    def value(self, x: Array) -> Array:
        """The column at values of the feature, (n,)."""
        if self.kind == "plain":
            return x / self.at
        logs = np.log(np.maximum(x, 1e-300) / self.at)
        return np.maximum(0.0, logs) if self.kind == "bend" else logs

    @property
    def expression(self) -> Expression:
        """The column as an expression."""
        feature = Name(self.feature)
        relative = feature if self.at == 1 else Binary("/", feature, number(self.at))
        if self.kind == "plain":
            return relative
        logarithm = Call("log", (relative,))
        return Call("max", (Number(0.0), logarithm)) if self.kind == "bend" else logarithm

    def slope(self, x: float) -> float:
        """Derivative after log x."""
        if self.kind == "plain":
            return x / self.at
        return 1.0 if self.kind == "log" or x > self.at else 0.0


Term = tuple[Factor, ...]
"""A product of one factor or two."""


def column(term: Term, features: Mapping[str, Array]) -> Array:
    """The product at values of the features, (n,)."""
    found = term[0].value(features[term[0].feature])
    for factor in term[1:]:
        found = found * factor.value(features[factor.feature])
    return np.asarray(found)


def singles(features: Mapping[str, Array]) -> list[Term]:
    """All terms of one feature that vary: straight in the logarithm first, then bends."""
    straight: list[Term] = []
    bends: list[Term] = []
    for feature, values in features.items():
        levels = np.unique(values)
        if levels.size < 2:
            continue
        if levels[0] <= WIDEST * levels[-1]:
            straight.append((Factor(feature, "plain", 1.0 if levels[-1] <= 1 else float(levels[-1])),))
            continue
        straight.append((Factor(feature, "log", float(levels[0])),))
        inner = levels[1:-1]
        some = (
            inner
            if inner.size <= MOST_BENDS
            else np.quantile(inner, np.linspace(0.1, 0.9, MOST_BENDS), method="nearest")
        )
        bends += [(Factor(feature, "bend", float(at)),) for at in np.unique(some)]
    return straight + bends


def products(several: list[Term]) -> list[Term]:
    """Products of two single terms of different features; settings of one knob without order exclude one another."""
    return [
        (*a, *b) for a, b in combinations(several, 2) if a[0].feature != b[0].feature and _knob(a[0]) != _knob(b[0])
    ]


def _knob(factor: Factor) -> str:
    return factor.feature.partition("=")[0]


MOST_TERMS = 10
LARGEST = 700.0
"""Largest logarithm of a response whose exponential is computed."""
PER_TERM = 4
"""Configurations that a term takes."""
FOLDS = 5
PRODUCTS_COST = 0.7
"""Added to the score, in logarithms of the number of candidates, for each term (extended BIC, Chen and Chen 2008)."""


@dataclass(frozen=True, slots=True, eq=False)
class LogLinear:
    """log y = c + Σ bᵢ·termᵢ, with normal noise."""

    terms: tuple[Term, ...]
    """The terms."""
    coefficients: Array
    """(1 + terms,) the constant first."""
    covariance: Array
    """(1 + terms, 1 + terms) of the coefficients, noise included."""
    scale: float
    """Standard deviation of log y about the sum."""
    freedom: int
    """Degrees of freedom of the scale."""
    score: float
    """Extended BIC; smaller is better."""

    def design(self, features: Mapping[str, Array], count: int) -> Array:
        """Columns at values of the features, (count, 1 + terms)."""
        return np.stack([np.ones(count), *(column(term, features) for term in self.terms)], axis=1)

    def mean(self, features: Mapping[str, Array], count: int) -> Array:
        """Expected response (not its logarithm), (count,)."""
        return np.asarray(np.exp(self.design(features, count) @ self.coefficients + self.scale**2 / 2))

    def expression(self) -> Expression:
        """The mean as an expression: ``exp(3.2 + 0.5*log(n))``."""
        coefficients = self.coefficients.tolist()
        terms = [
            (b, [factor.expression for factor in term]) for b, term in zip(coefficients[1:], self.terms, strict=True)
        ]
        return Call("exp", (combination([(coefficients[0] + self.scale**2 / 2, []), *terms]),))

    def limits(self, features: Mapping[str, Array], count: int) -> tuple[Array, Array, Array, Array, Array]:
        """Mean, the ends of its confidence interval, and those of a new run's, (count,) each."""
        design = self.design(features, count)
        middle = design @ self.coefficients + self.scale**2 / 2
        variance = np.einsum("ij,jk,ik->i", design, self.covariance, design)
        wide = float(stdtrit(max(self.freedom, 1), HIGH))
        own, new = wide * np.sqrt(variance), wide * np.sqrt(variance + self.scale**2)
        centre = middle - self.scale**2 / 2
        return tuple(
            np.exp(np.minimum(end, LARGEST)) for end in (middle, middle - own, middle + own, centre - new, centre + new)
        )  # type: ignore[return-value]  # five of them

    @property
    def features(self) -> tuple[str, ...]:
        """Features in it, in the order of the terms."""
        return tuple(dict.fromkeys(factor.feature for term in self.terms for factor in term))


def fit_loglinear(features: Mapping[str, Array], log_y: Array) -> LogLinear | None:
    """The law of logarithms (n,) in features (n,) each; None where there is nothing to learn from."""
    if log_y.size < 2 * PER_TERM or np.ptp(log_y) <= 0:
        return None
    terms = _chosen(features, log_y)
    return _fitted(terms, features, log_y, _candidates(features)) if terms else None


def foreseen(features: Mapping[str, Array], log_y: Array, groups: NDArray[np.intp]) -> float:
    """Share of the variance foreseen in folds left out, terms chosen anew in each; may be negative."""
    folds = groups % FOLDS
    missed = np.zeros(log_y.size)
    for fold in np.unique(folds):
        inside, outside = folds != fold, folds == fold
        part = {name: values[inside] for name, values in features.items()}
        terms = _chosen(part, log_y[inside])
        design = np.stack([np.ones(log_y.size), *(column(term, features) for term in terms)], axis=1)
        solution = np.linalg.lstsq(design[inside], log_y[inside], rcond=None)[0]
        missed[outside] = log_y[outside] - design[outside] @ solution
    return float(1 - np.sum(missed**2) / max(np.sum((log_y - log_y.mean()) ** 2), 1e-300))


def _candidates(features: Mapping[str, Array]) -> int:
    alone = singles(features)
    return len(alone) + len(products(alone))


def _chosen(features: Mapping[str, Array], log_y: Array) -> tuple[Term, ...]:
    """Terms added one by one while the score falls, then left out again where it falls without them."""
    alone = singles(features)
    candidates = [*alone, *products(alone)]
    if not candidates:
        return ()
    columns = np.stack([column(term, features) for term in candidates])
    chosen = _forwards(columns, log_y, len(candidates))
    return tuple(candidates[i] for i in _backwards(chosen, columns, log_y, len(candidates)))


def _forwards(columns: Array, y: Array, candidates: int) -> list[int]:
    """Places of the columns (P, n) that explain most of what is left, each made orthogonal to those before."""
    left = y - y.mean()
    rest = columns - columns.mean(axis=1, keepdims=True)
    size = np.maximum((rest**2).sum(axis=1), 1e-300)
    chosen: list[int] = []
    best, found = _score(left, 0, y.size, candidates), []
    most = min(MOST_TERMS, y.size // PER_TERM)
    for count in range(1, most + 1):
        norm = (rest**2).sum(axis=1)
        usable = norm > 1e-8 * size
        gain = np.where(usable, (rest @ left) ** 2 / np.maximum(norm, 1e-300), -1.0)
        place = int(np.argmax(gain))
        if gain[place] <= 1e-12 * float(y @ y):
            break
        axis = rest[place] / np.sqrt(norm[place])
        left = left - axis * (axis @ left)
        rest = rest - np.outer(rest @ axis, axis)
        chosen.append(place)
        score = _score(left, count, y.size, candidates)
        if score < best - 1e-9:
            best, found = score, list(chosen)
        elif count > len(found) + 2:  # a term may pay off with its partner alone
            break
    return found


def _backwards(chosen: list[int], columns: Array, y: Array, candidates: int) -> list[int]:
    def score(places: list[int]) -> float:
        design = np.vstack([np.ones(y.size), columns[places]]).T
        return _score(y - design @ np.linalg.lstsq(design, y, rcond=None)[0], len(places), y.size, candidates)

    best = score(chosen)
    while len(chosen) > 1:
        several = [(score([one for one in chosen if one != place]), place) for place in chosen]
        least, place = min(several)
        if least > best:
            break
        best, chosen = least, [one for one in chosen if one != place]
    return chosen


def _score(left: Array, terms: int, n: int, candidates: int) -> float:
    """Extended BIC of residuals."""
    variance = max(float(left @ left) / n, 1e-12)
    return float(n * np.log(variance) + terms * (np.log(n) + 2 * PRODUCTS_COST * np.log(max(candidates, 2))))


def _fitted(terms: tuple[Term, ...], features: Mapping[str, Array], log_y: Array, candidates: int) -> LogLinear:
    design = np.stack([np.ones(log_y.size), *(column(term, features) for term in terms)], axis=1)
    inverse = np.linalg.pinv(design.T @ design)
    solution = inverse @ design.T @ log_y
    left = log_y - design @ solution
    freedom = max(log_y.size - len(terms) - 1, 1)
    scale = float(np.sqrt(left @ left / freedom))
    score = _score(left, len(terms), log_y.size, candidates)
    return LogLinear(terms, np.asarray(solution), np.asarray(inverse * scale**2), scale, freedom, score)
