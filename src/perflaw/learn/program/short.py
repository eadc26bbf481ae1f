"""Short laws: sums of many terms in three or four, which stay near the sum at every size.

The cost of a whole program is a sum of as many powers as its functions have. Most of them say nothing that the others do
not: over the sizes that are asked for, ``88·n^1.89 + 644·n^2 + 27·n^2·log(n)`` is ``810·n^2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.tree import Binary, Call, Name, Number
from perflaw.learn.program.terms import PLAIN, Monomial, TermSum, monomial, restricted, values, without_conditions

Array = NDArray[np.float64]

FEW, MAX_TERMS = 3, 4
"""Terms that a person reads at a glance, and most terms of a short law between two sizes at which the sum changes."""
TOLERANCE: Final = 0.05
"""A short law is at most so much below the sum, relatively, and never above it."""
OF_INTERVAL: Final = 0.25
"""It is also at most this part of the half width of the confidence interval below the sum: the rest of it is noise."""
FAR: Final = 30.0
"""Up to so many times the largest value of the feature."""
POINTS: Final = 24
"""Sizes at which the two are compared between two changes of the sum."""
MAX_OWN: Final = 6
"""Monomials of the sum that a short law is looked for in, the largest ones; beside them the plain shapes."""
MOST_STRANGE: Final = 2
"""Most terms of a short law that are hard to read: those with a negative power, and those that level off or begin somewhere."""
FOREIGN: Final = 5.0
"""Factor of the error of a short law for each monomial that is not one of the sum."""


def short_law(terms: TermSum, feature: str, low: float, high: float, tolerance: float) -> TermSum:
    """The sum in fewer terms for values of its only feature from ``low`` to many times ``high``.

    Where the sum changes at some sizes, as few pieces of it as possible have a short law each. What cannot be said in
    fewer terms stays as it is.

    >>> sum_of = {monomial("n", 1.89): 88.0, monomial("n", 2.0): 644.0, monomial("n", 2.0, 1.0): 5.0, (): 3.0}
    >>> [(power, round(c)) for ((_, power),), c in short_law(sum_of, "n", 50.0, 100.0, 0.02).items()]
    [(2.0, 719)]
    """
    conditions = {base for key in terms for base, _ in key if isinstance(base, Binary)}
    changes = sorted(float(one.right.value) for one in conditions if isinstance(one.right, Number))
    far = FAR * high
    if low <= 0 or high <= low or (not changes and len(terms) <= FEW):
        return terms
    edges = [low, *(one for one in changes if low < one < far), far]
    out: dict[Monomial, float] = {}
    end = len(edges) - 1
    while end > 0:
        found, start = None, 0
        for start in range(end):
            x = np.geomspace(edges[start] * (1.0 if start == 0 else 1.0 + 1e-9), edges[end], POINTS * (end - start))
            found = _in_few_terms(terms, feature, x, tolerance)
            if found is not None:
                break
        piece = found or _holding(terms, feature, float(np.sqrt(edges[start] * edges[end])))
        for limit, relation, inner in ((edges[start], ">", start > 0), (edges[end], "<=", end < len(edges) - 1)):
            if inner:
                piece = restricted(piece, feature, relation, limit)
        out |= piece
        end = start
    return out


def _in_few_terms(terms: TermSum, feature: str, x: Array, tolerance: float) -> dict[Monomial, float] | None:
    """The fewest monomials, with positive coefficients, whose sum is at most ``tolerance`` below the terms at all x.

    Those without monomials that are hard to read go before those with some, even if they are more.
    """
    keys = list(terms)
    parts = np.array([terms[key] for key in keys])[:, None] * values(keys, {feature: x}, x.size)
    y = parts.sum(axis=0)
    if not (np.isfinite(y).all() and (y > 0).all()):
        return None
    largest: dict[Monomial, float] = {}
    for key, share in zip(keys, (np.abs(parts) / y).max(axis=1).tolist(), strict=True):
        bare = without_conditions(key)
        largest[bare] = max(largest.get(bare, 0.0), share)
    own = sorted(largest, key=lambda key: -largest[key])[:MAX_OWN]
    # No plain shape is steeper than the sum, so a short law goes on as the sum does.
    steepest = max((power for key in largest for base, power in key if base == Name(feature)), default=0.0)
    plain = [monomial(feature, *exponents) for exponents in PLAIN if exponents[0] <= steepest] if x[0] >= 1 else []
    candidates = [*own, *(key for key in plain if key not in own)]
    design = values(candidates, {feature: x}, x.size) / y
    scale = design.max(axis=1)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return None
    design /= scale[:, None]
    gram, side = design @ design.T, design.sum(axis=1)
    strange = np.array(
        [any(not isinstance(base, Name | Call) or power < 0 for base, power in key) for key in candidates]
    )
    for number, count in product(range(MOST_STRANGE + 1), range(1, min(MAX_TERMS, len(candidates)) + 1)):
        chosen = _subsets(len(candidates), count)
        chosen = chosen[strange[chosen].sum(axis=1) == number]
        if not chosen.size:
            continue
        grams = gram[chosen[:, :, None], chosen[:, None, :]] + 1e-12 * x.size * np.eye(count)
        coefficients = np.linalg.solve(grams, side[chosen][:, :, None])[:, :, 0]
        fitted = np.einsum("sc,scn->sn", coefficients, design[chosen])
        top = fitted.max(axis=1)
        usable = (coefficients > 0).all(axis=1) & (top > 0)
        error = np.where(usable, 1.0 - fitted.min(axis=1) / np.where(usable, top, 1.0), np.inf)
        error[error > tolerance] = np.inf
        best = int((error * FOREIGN ** (chosen >= len(own)).sum(axis=1)).argmin())
        if np.isfinite(error[best]):
            of_best = coefficients[best] / top[best] / scale[chosen[best]]
            return {candidates[place]: float(c) for place, c in zip(chosen[best], of_best, strict=True)}
    return None


@lru_cache(maxsize=64)
def _subsets(size: int, count: int) -> NDArray[np.intp]:
    return np.array(list(combinations(range(size), count)), dtype=np.intp).reshape(-1, count)


def _holding(terms: TermSum, feature: str, at: float) -> dict[Monomial, float]:
    """The terms whose conditions hold at a value of the feature, without these."""
    out: dict[Monomial, float] = {}
    for key, coefficient in terms.items():
        conditions = tuple(factor for factor in key if factor[0] not in {base for base, _ in without_conditions(key)})
        if values([conditions], {feature: np.array([at])}, 1)[0, 0]:
            bare = without_conditions(key)
            out[bare] = out.get(bare, 0.0) + coefficient
    return out


def not_above_larger(laws: Array, sums: Array, shortened: Sequence[int]) -> Array:
    """Factors, (F,), by which laws (F, n) at n sizes are lowered so that what costs less than another still does.

    ``sums`` (F, n) are the costs that they stand for, ``shortened`` the laws that are not these costs themselves: where
    a function costs no more than one of these at any size, as a callee does, its law is no more than that law.
    """
    factors = np.ones(len(laws))
    with np.errstate(all="ignore"):
        order = sorted(shortened, key=lambda place: -float(np.log(np.maximum(sums[place], 1e-300)).sum()))
        for place in order:
            below = (sums <= sums[place] * (1.0 + 1e-12)).all(axis=1)
            below[place] = False
            ratio = np.nan_to_num((laws[place] * factors[place] / laws[below]).min(axis=1), nan=1.0)
            factors[below] = np.minimum(factors[below], np.clip(ratio, 0.0, 1.0))
    return factors
