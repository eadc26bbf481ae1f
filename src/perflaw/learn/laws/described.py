"""A plausible law in numbers and words: slope, coefficients, mean, distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.band import Fitted
from perflaw.learn.laws.expression import distribution_text, mean_text, number
from perflaw.learn.laws.families import Exponential
from perflaw.learn.laws.learnt import Plausible
from perflaw.types import Alternative


@dataclass(frozen=True, slots=True)
class Described:
    """One plausible law of one series in numbers."""

    plausible: Plausible
    """The law."""
    delta: float
    """Score difference to the chosen law."""
    slope: tuple[float, float, float]
    """Local exponent at the largest x with its limits."""
    intercept: float
    """Intercept of the mean."""
    coefficient: float
    """Coefficient of the leading term of the mean."""

    @property
    def law(self) -> Fitted:
        """The law itself."""
        return self.plausible.law

    @property
    def family(self) -> str:
        """Name of its family."""
        return self.plausible.several.model.term.name

    @property
    def exponents(self) -> tuple[float | None, float | None]:
        """Exponents of x and of log x in the leading term; None for an exponential, which has none."""
        term = self.law.model.term
        if isinstance(term, Exponential):
            return None, None
        return float(self.law.theta[2]) if term.free else term.exponent, term.log_exponent


def described(names: Sequence[str], several: Fitted, deltas: Sequence[float]) -> list[Described]:
    """Every law of a batch of one model; its feature (empty for a constant) and score difference, in its order."""
    slopes = np.stack(several.slope(), axis=-1).tolist()
    intercepts, coefficients = _coefficients(several)
    return [
        Described(Plausible(name, several, i), delta, tuple(slopes[i]), intercepts[i], coefficients[i])
        for i, (name, delta) in enumerate(zip(names, deltas, strict=True))
    ]


def words(one: Described) -> tuple[str, str]:
    """Mean and whole expression in the annotation language."""
    law = one.law
    exponent = float(law.model.term.printed(law.theta[2], law.range.top[0]))
    mean = mean_text(law.model, one.plausible.feature, one.intercept, one.coefficient, exponent)
    return mean, distribution_text(law.model, mean, float(np.sqrt(law.variance)))


def alternatives(mine: Sequence[Described], delta: float) -> tuple[Alternative, ...]:
    """Other families (or features) than the first law's among plausible ones, the best variant of each, best first."""
    seen = {(mine[0].plausible.feature, mine[0].family)}
    out = []
    for one in mine[1:]:
        key = (one.plausible.feature, one.family)
        if key in seen or one.delta >= delta:
            continue
        seen.add(key)
        slope = {key[0]: one.slope[0]} if key[0] else {}
        out.append(Alternative(key[1], words(one)[1], slope, one.delta))
    return tuple(out)


def _coefficients(several: Fitted) -> tuple[list[float], list[float]]:
    """Intercepts and coefficients of the means, for the exponent as it is printed."""
    theta = several.parameters
    if several.model.term.free:
        term, top = several.model.term, several.range.top
        printed = np.array([float(number(r)) for r in term.printed(theta[2], top)[:, 0]])[:, None]
        theta = (theta[0], theta[1], term.learnt(printed, top))
    smear = several.smear
    intercept, coefficient = several.model.coefficients(theta, several.range)
    return (intercept * smear)[:, 0].tolist(), (coefficient * smear)[:, 0].tolist()
