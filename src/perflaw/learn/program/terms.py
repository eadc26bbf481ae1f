"""Sums of monomials: what the laws of the cost model are made of, so that their products and sums are exact.

A monomial is a product of powers of features and of their logarithms. Counts and unit costs are sums of monomials; the
cost of a part of the program is the product of two of them, an inclusive cost a sum of such products.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product as product_of
from sys import float_info
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import combination, number, terms_of
from perflaw.laws.evaluation import evaluate
from perflaw.laws.tree import Binary, Call, Expression, Name, Number, Unary

Array = NDArray[np.float64]
Monomial = tuple[tuple[Expression, float], ...]
"""Bases with their exponents, in a fixed order; a base is a feature, the logarithm of one, or another expression."""
TermSum = Mapping[Monomial, float]
"""Monomial → coefficient."""

ONE: Final[Monomial] = ()
"""The monomial of a constant term."""
PLAIN: Final = (
    (0.0, 0.0),
    (0.0, 1.0),
    (0.5, 0.0),
    (1.0, 0.0),
    (1.0, 1.0),
    (1.5, 0.0),
    (2.0, 0.0),
    (2.0, 1.0),
    (3.0, 0.0),
)
"""Exponents of x and of log x of the monomials that other laws of one feature are approximated by."""
MAX_MISFIT: Final = 0.01
"""Largest relative error of such an approximation."""
LARGEST: Final = 1e100
"""Largest value of a monomial: products with costs and calls, their sums and the squares of these are numbers."""
BEYOND: Final = 10.0
"""Approximations hold up to so many times the largest value of the feature."""


def monomial(feature: str, exponent: float, log_exponent: float = 0.0) -> Monomial:
    """``feature^exponent · log(feature)^log_exponent``."""
    name = Name(feature)
    bases = [(name, exponent), (Call("log", (name,)), log_exponent)]
    return tuple((base, power) for base, power in bases if power)


def terms_from(expression: Expression) -> dict[Monomial, float]:
    """A law's mean as a sum of monomials; what is no power of a feature is a base of its own.

    >>> from perflaw.laws.reading import parse_expression
    >>> sorted((coefficient, len(key)) for key, coefficient in terms_from(parse_expression("3 + 2*n*log(n)")).items())
    [(2.0, 2), (3.0, 0)]
    """
    out: dict[Monomial, float] = {}
    for term in terms_of(expression):
        powers: dict[Expression, float] = {}
        for factor, below in term.factors:
            match factor:
                case Binary("^", base, Number(exponent)):
                    pass
                case Binary("^", base, Unary("-", Number(value))):
                    exponent = -value
                case Call("sqrt", (base,)):
                    exponent = 0.5
                case base:
                    exponent = 1.0
            powers[base] = powers.get(base, 0.0) + (-exponent if below else exponent)
        key = _ordered(powers)
        out[key] = out.get(key, 0.0) + term.coefficient
    return out


def _ordered(powers: Mapping[Expression, float]) -> Monomial:
    kept = [(base, round(power, 6)) for base, power in powers.items() if round(power, 6)]
    return tuple(sorted(kept, key=lambda item: (_is_condition(item[0]), isinstance(item[0], Call), str(item[0]))))


def product(left: TermSum, right: TermSum) -> dict[Monomial, float]:
    """The product of two sums."""
    out: dict[Monomial, float] = {}
    for first, a in left.items():
        for second, b in right.items():
            powers = dict(first)
            for base, power in second:
                powers[base] = 1.0 if _is_condition(base) else powers.get(base, 0.0) + power
            if not _contradicts(powers):
                key = _ordered(powers)
                out[key] = out.get(key, 0.0) + a * b
    return out


def restricted(terms: TermSum, feature: str, relation: str, limit: float) -> dict[Monomial, float]:
    """The sum where a feature is ``<=`` or ``>`` a limit, 0 elsewhere: a condition is a base of value 1 or 0.

    >>> [str(key[-1][0]) for key in restricted({monomial("n", 1.0): 3.0}, "n", ">", 64.0)]
    ["Binary('>', Name('n'), Number(64.0))"]
    """
    condition = Binary(relation, Name(feature), number(limit))
    return product(terms, {((condition, 1.0),): 1.0})


def joined(terms: TermSum) -> dict[Monomial, float]:
    """The same sum, where what stands below and above one limit becomes a term everywhere and a difference above it.

    >>> n = monomial("n", 1.0)
    >>> pieces = {**restricted({n: 3.0}, "n", "<=", 64.0), **restricted({n: 3.5}, "n", ">", 64.0)}
    >>> list(joined(pieces).values())
    [3.0, 0.5]
    """
    out = dict(terms)
    for key in terms:
        for condition, _ in key:
            if key in out and isinstance(condition, Binary) and condition.op == "<=":
                everywhere = tuple(factor for factor in key if factor[0] != condition)
                opposite = Binary(">", condition.left, condition.right)
                for above in product({everywhere: 1.0}, {((opposite, 1.0),): 1.0}):
                    if above in out:
                        low, high = out.pop(key), out.pop(above)
                        out[everywhere] = out.get(everywhere, 0.0) + low
                        out[above] = high - low
    return out


def without_conditions(key: Monomial) -> Monomial:
    """The monomial where its conditions hold."""
    return tuple((base, power) for base, power in key if not _is_condition(base))


def _is_condition(base: Expression) -> bool:
    return isinstance(base, Binary) and base.op in ("<=", ">")


def _contradicts(bases: Iterable[Expression]) -> bool:
    """Whether two conditions exclude each other: ``x <= 5`` and ``x > 7``."""
    tests = [base for base in bases if isinstance(base, Binary) and _is_condition(base)]
    for below, above in product_of(tests, tests):
        if (below.op, above.op) == ("<=", ">") and below.left == above.left:
            match below.right, above.right:
                case Number(high), Number(low) if low >= high:
                    return True
    return False


def values(keys: list[Monomial], features: Mapping[str, Array], count: int) -> Array:
    """Values of monomials at ``count`` points, (T, count); those beyond the largest are the largest."""
    out = np.ones((len(keys), count))
    known: dict[tuple[Expression, float], Array] = {}
    """Values of the factors: monomials of one law have many in common."""
    with np.errstate(all="ignore"):
        for row, key in zip(out, keys, strict=True):
            for factor in key:
                column = known.get(factor)
                if column is None:
                    base, power = factor
                    column = (features[base.text] if isinstance(base, Name) else evaluate(base, features)) ** power
                    known[factor] = column
                row *= column
    return np.minimum(np.maximum(np.where(np.isnan(out), 0.0, out), -float_info.max), LARGEST)


def values_by_key(
    sums: Iterable[Iterable[Monomial]], features: Mapping[str, Array], count: int
) -> dict[Monomial, Array]:
    """Values of all monomials of some sums at ``count`` points, (count,) each: sums have many in common."""
    keys = list(dict.fromkeys(key for one in sums for key in one))
    return dict(zip(keys, values(keys, features, count), strict=True))


def expression_of(terms: TermSum) -> Expression:
    """The sum as an expression, constant term first and then by growth."""
    ordered = sorted(terms.items(), key=lambda item: [abs(power) for _, power in item[0]] or [0.0])
    written = []
    for key, coefficient in ordered:
        factors = [base if power == 1 else Binary("^", base, number(power)) for base, power in key]
        written.append((coefficient, factors))
    return combination(written or [(0.0, [])])


def in_plain_terms(terms: TermSum, feature: str, low: float, high: float) -> TermSum:
    """The sum in monomials of the catalogue's plain shapes where that is possible within 1 %, else the sum itself.

    Without this step the cost of a whole program would be a sum of as many powers as functions have learnt exponents.
    The coefficients are not negative, so costs stay positive wherever they are asked.
    """
    plain = {monomial(feature, *exponents) for exponents in PLAIN}
    if low < 1.0 or high <= low or all(key in plain for key in terms):
        return terms
    x = np.geomspace(low, BEYOND * high, 60)
    y = sum(c * values([key], {feature: x}, x.size)[0] for key, c in terms.items())
    if not (np.isfinite(y).all() and (y > 0).all()):
        return terms
    keys = [monomial(feature, *exponents) for exponents in PLAIN]
    design = values(keys, {feature: x}, x.size).T / y[:, None]
    scale = design.max(axis=0)
    scale[scale <= 0] = 1.0
    coefficients = _non_negative(design / scale, np.ones(x.size)) / scale
    if np.abs(design @ coefficients - 1.0).max() > MAX_MISFIT:
        return terms
    return {key: float(c) for key, c in zip(keys, coefficients, strict=True) if c > 0}


def _non_negative(design: Array, y: Array) -> Array:
    """Least squares with coefficients ≥ 0 (Lawson and Hanson 1974, chapter 23), for designs of a few columns.

    >>> _non_negative(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), np.array([3.0, 2.0, 1.0])).round(6).tolist()
    [2.0, 0.0]
    """
    count = design.shape[1]
    kept = np.zeros(count, dtype=np.bool_)
    out: Array = np.zeros(count)
    for _ in range(3 * count):
        gradient = design.T @ (y - design @ out)
        gradient[kept] = -np.inf
        entering = int(gradient.argmax())
        if gradient[entering] <= 1e-10:
            break
        kept[entering] = True
        while True:
            trial: Array = np.zeros(count)
            trial[kept] = np.linalg.lstsq(design[:, kept], y, rcond=None)[0]
            if (trial[kept] > 0).all():
                break
            falling = kept & (trial <= 0)
            step = (out[falling] / np.maximum(out[falling] - trial[falling], 1e-300)).min()
            out = out + step * (trial - out)
            kept &= out > 1e-14
            out[~kept] = 0.0
            if not kept.any():
                return out
        out = trial
    return out
