"""Terms of the logarithm of a response: logarithms of numbers, bends in them, settings without order, products of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from perflaw.learn.exploring.spaces import Array
from perflaw.learn.laws.expression import number
from perflaw.learn.laws.naming import name

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
    def text(self) -> str:
        """In the annotation language."""
        feature = name(self.feature)
        if self.kind == "plain":
            return feature if self.at == 1 else f"{feature}/{number(self.at)}"
        inner = f"log({feature})" if self.at == 1 else f"log({feature}/{number(self.at)})"
        return f"max(0, {inner})" if self.kind == "bend" else inner

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


def text_of(coefficient: float, term: Term) -> str:
    """Sign, number and product: ``- 0.3*log(n/4)``."""
    sign = "-" if coefficient < 0 else "+"
    return f" {sign} {number(abs(coefficient))}*{'*'.join(factor.text for factor in term)}"


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
