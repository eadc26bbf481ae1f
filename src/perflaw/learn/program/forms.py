"""The forms that a unit cost may have, and what the score of each costs for being rarer than a constant.

Costs that grow grow by powers and logarithms of a feature, by sums of two of them, with two features, or otherwise below
a size than above it. Or they settle: what a call looks at has a largest size, as a block or a directory, and rises only
until most calls meet that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from itertools import product as product_of
from math import ceil, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import number, product
from perflaw.laws.catalogue import Shape
from perflaw.laws.tree import Binary, Call, Name
from perflaw.learn.program.terms import ONE, Monomial, monomial, restricted

Array = NDArray[np.float64]

SHAPES: Final = {
    Shape(0.0, 1.0): 1.0,
    Shape(0.3): 3.0,
    Shape(0.5): 1.0,
    Shape(0.75): 3.0,
    Shape(1.0): 0.0,
    Shape(1.0, 1.0): 1.5,
    Shape(1.5): 1.5,
    Shape(2.0): 1.0,
    Shape(2.0, 1.0): 3.0,
    Shape(3.0): 2.0,
    Shape(4.0): 5.0,
    Shape(5.0): 6.0,
}
"""Shape of a dependence → what its score costs for being a rarer shape."""
EXPONENTIAL: Final = 8.0
"""Cost of an exponential: it needs evidence against every power."""
LEAST_GROWTH: Final = 2.0
"""Logarithm of the growth over the data from which an exponential is told: of less, only its first powers were seen."""
RATES: Final = 40
"""Number of rates that exponentials are tried with."""
BLEND: Final = 2.5
"""Cost of a sum of two powers."""
BLENDS: Final = (
    (Shape(1.0), Shape(1.5)),
    (Shape(1.0), Shape(2.0)),
    (Shape(1.0, 1.0), Shape(2.0)),
    (Shape(2.0), Shape(3.0)),
)
"""Shapes of such sums."""
SETTLING: Final = 1.0
"""Cost of a unit cost that settles."""
SETTLED: Final = 0.5
"""Part of its final rise that it has at the largest size, at least: before that, nothing shows that it settles."""
UNSETTLED: Final = 2.0 / 3.0
"""Part that it has at the smallest size, at most: what has settled there is constant."""
SETTLING_STEP: Final = 1.6
"""Ratio of the sizes of half the rise that are tried."""
OF_TWO: Final = 2.0
"""Cost of a dependence on two features."""
MAX_PAIRED: Final = 4
"""Most features of which pairs are tried."""
KINK: Final = 4.0
"""Cost of a kink: it may be at many places."""
MIN_TAIL: Final = 3
"""Fewest sizes above a kink."""
FREE_SIZES: Final = 2
"""Fewest sizes above a kink beyond the coefficients of the law there."""
MAX_CUTS: Final = 6
"""Most places at which a kink is tried."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One form of a unit cost: a sum of monomials of the run's features, with coefficients that are not negative."""

    terms: tuple[Monomial, ...]
    """The monomials."""
    cost: float = 0.0
    """What its score costs for being a rarer form."""
    first_call: bool = False
    """Whether ``b/N`` is added: a cost that occurs once, in N calls."""
    by_calls: bool = False
    """Whether ``b·M/N`` is added: in N calls the function makes M calls itself, each in a step of a loop."""
    governs: bool = False
    """Whether the last term has to be most of the cost at some size."""
    kinked: bool = False
    """Whether another law holds below a size than above it."""

    @property
    def parameters(self) -> int:
        """Number of its coefficients."""
        return len(self.terms) + (self.first_call or self.by_calls)

    @property
    def grows(self) -> bool:
        """Whether it depends on a feature."""
        return any(self.terms)

    @property
    def steep(self) -> bool:
        """Whether it grows by a power above the first, or exponentially."""
        factors = [factor for key in self.terms for factor in key]
        return any(
            power > 1.0 if isinstance(base, Name) else isinstance(base, Call) and base.function == "exp"
            for base, power in factors
        )

    def exponent(self, feature: str) -> float:
        """Largest exponent of a feature; 0 without one."""
        return max([power for key in self.terms for base, power in key if base == Name(feature)], default=0.0)


def smooth_forms(features: Mapping[str, Array]) -> list[Candidate]:
    """The forms that every unit cost may have, those without a dependence on a feature first."""
    # First calls and loops are common, but the constant is the plainer claim.
    forms = [Candidate((ONE,)), Candidate((ONE,), 2.0, first_call=True), Candidate((ONE,), 2.0, by_calls=True)]
    for name, x in features.items():
        keys = {shape: monomial(name, shape.exponent, shape.log_exponent) for shape in SHAPES if bool(shape.defined(x))}
        for shape, key in keys.items():
            forms += [Candidate((ONE, key), 2.0 * SHAPES[shape]), Candidate((key,), 2.0 * SHAPES[shape])]
        for shapes in BLENDS:
            powers = tuple(keys[shape] for shape in shapes if shape in keys)
            if len(powers) == 2:
                forms += [Candidate(powers, 2.0 * BLEND), Candidate((ONE, *powers), 2.0 * BLEND)]
        settling = _settling(name, x)
        for key in settling:
            # One form at several places: each has its part of the probability.
            cost = 2.0 * (SETTLING + log(len(settling)))
            forms += [Candidate((ONE, key), cost), Candidate((key,), cost)]
    names = [name for name, x in features.items() if x.min() >= 1]
    for first, second in combinations(names if len(names) <= MAX_PAIRED else [], 2):
        one, other = monomial(first, 1.0), monomial(second, 1.0)
        largest: Monomial = ((Call("max", (Name(first), Name(second))), 1.0),)
        both: Monomial = (*one, *other)
        products: list[Monomial] = [
            both,
            (*one, *monomial(second, 0.0, 1.0)),
            (*other, *monomial(first, 0.0, 1.0)),
            largest,
        ]
        sets: list[tuple[Monomial, ...]] = [(one, other), *((key,) for key in products), (one, both), (other, both)]
        forms += [Candidate((*start, *keys), 2.0 * OF_TWO) for keys in sets for start in ((), (ONE,))]
    return forms


def _settling(name: str, x: Array) -> list[Monomial]:
    """Rises of a feature that end, ``x / (x + half)``: its values are below 1 and reach a half at ``half``."""
    low, high = float(x.min()), float(x.max())
    first, last = low * (1.0 / UNSETTLED - 1.0), high * (1.0 / SETTLED - 1.0)
    if low <= 0 or last < first:
        return []
    halves = np.geomspace(first, last, 1 + ceil(log(last / first) / log(SETTLING_STEP)))
    feature = Name(name)
    return [((Binary("/", feature, Binary("+", feature, number(half))), 1.0),) for half in halves.tolist()]


def exponential_forms(features: Mapping[str, Array]) -> list[Candidate]:
    """Exponentials of each feature x, at rates that differ by less than a tenth, and its factorial.

    The factorial has no free rate: its powers would imitate any steep power of a few sizes. It is written as
    √x·exp(x log x - x), by Stirling's formula.
    """
    forms = []
    for name, x in features.items():
        feature = Name(name)
        rates = np.geomspace(LEAST_GROWTH, 60.0, RATES) / np.ptp(x)
        keys: list[Monomial] = [((Call("exp", (Binary("*", number(rate), feature),)), 1.0),) for rate in rates]
        if x.min() >= 1:
            stirling = Binary("-", product([feature, Call("log", (feature,))]), feature)
            keys.append(((Call("exp", (stirling,)), 1.0), (feature, 0.5)))
        for key in keys:
            forms += [Candidate((key,), 2.0 * EXPONENTIAL), Candidate((ONE, key), 2.0 * EXPONENTIAL)]
    return forms


def kinked_forms(features: Mapping[str, Array]) -> list[Candidate]:
    """Forms with another law below a size than above it.

    The law of the largest sizes need not be that of the smallest: there a fixed cost, a cache or another algorithm
    governs. One or two sizes below the limit have a cost of their own, which says nothing of how the cost grows.
    """
    forms = []
    for name, x in features.items():
        sizes = np.unique(x)
        if sizes.size <= MIN_TAIL or sizes[0] < 1:
            continue
        powers = {exponent: monomial(name, exponent) for exponent in (1.0, 2.0, 3.0)}
        plain, quadratic, cubic = powers.values()
        plain_log = monomial(name, 1.0, 1.0)
        starts: list[tuple[Monomial, ...]] = [(ONE,), (plain,), (ONE, plain), (quadratic,), (monomial(name, 1.5),)]
        ends = [
            *starts[:4],
            (plain_log,),
            (ONE, quadratic),
            (plain, quadratic),
            (cubic,),
            (ONE, cubic),
            (quadratic, cubic),
        ]
        places = np.arange(1, sizes.size - MIN_TAIL + 1)
        for place in np.unique(places[np.linspace(0, places.size - 1, MAX_CUTS).astype(np.intp)]):
            limit = float(np.sqrt(sizes[place - 1] * sizes[place]))
            for left, right in product_of(starts[: 1 if place == 1 else 5], ends):
                if len(right) + FREE_SIZES > sizes.size - place or len(left) > place or left == right == (ONE, plain):
                    continue
                below, above = (
                    tuple(restricted(dict.fromkeys(keys, 1.0), name, relation, limit))
                    for keys, relation in ((left, "<="), (right, ">"))
                )
                forms.append(Candidate((*below, *above), 2.0 * KINK, governs=len(right) > 1, kinked=True))
    return forms
