"""Laws that exact counts obey without any error: polynomials, and polynomials with a kink.

A law is believed by its evidence: whenever it passes through a count that it was not fitted to, it hits one of as many
whole numbers as the counts range over. The logarithm of that number is the evidence of one such size. Counts that
hardly vary therefore establish nothing, however many sizes there are, and a kink, which has many places to be at, needs
more evidence than a polynomial. A curve that gives the counts only when it is rounded is compared with a straight line:
any smooth curve hits small numbers that lie close to a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.tree import Call, Name
from perflaw.learn.program.terms import ONE, Monomial, TermSum, monomial, restricted, values

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

EXACT: Final = 0.5
"""Counts that differ by less from a law are what it gives, rounded."""
UNROUNDED: Final = 1e-6
"""Relative difference up to which a polynomial gives counts without rounding."""
MIN_EVIDENCE: Final = 7.0
"""Evidence that a polynomial needs: by chance one in a thousand would have it."""
FAR: Final = 10.0
"""A law of counts is not negative up to so many times the largest size."""
MAX_CUTS: Final = 30
"""Most places at which a kink is tried."""


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The monomials that polynomials are made of at some runs, computed once for all polynomials."""

    place: Mapping[Monomial, int]
    """Monomial → its column."""
    design: Array
    """(r, T) their values in the runs."""
    far: Array
    """(T, 2) their values at the largest sizes, and as far beyond as laws of counts are not negative."""
    points: int
    """Number of different combinations of the features' values."""
    different: NDArray[np.intp]
    """(T,) number of different values of each monomial."""

    @classmethod
    def of(cls, polynomials: Sequence[Sequence[Monomial]], features: Mapping[str, Array]) -> _Columns:
        """The monomials of some polynomials in runs with features (r,)."""
        keys = list(dict.fromkeys(key for one in polynomials for key in one))
        x = np.array(list(features.values()))
        design = values(keys, features, x.shape[1]).T
        far = {name: np.array([column.max(), FAR * column.max()]) for name, column in features.items()}
        different = np.array([np.unique(column).size for column in design.T])
        place = {key: number for number, key in enumerate(keys)}
        return cls(place, design, values(keys, far, 2), np.unique(x, axis=1).shape[1], different)

    def sizes(self, keys: Sequence[Monomial], places: Sequence[int]) -> int:
        """Number of sizes that polynomials of some monomials tell apart."""
        if not any(keys) or self.different[places].max() == self.points:
            return self.points
        return len(np.unique(self.design[:, places], axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class _Polynomials:
    """The polynomials of some monomials that are fitted to columns of counts."""

    keys: Sequence[Monomial]
    """The monomials."""
    coefficients: Array
    """(k, U) coefficients for each column."""
    exact: Bools
    """(U,) columns whose counts it gives."""
    residual: Array
    """(U,) largest difference."""
    spare: int
    """Sizes that it passes through without being fitted to them."""
    plain: Bools
    """(U,) columns that it gives without rounding; all columns if it is a straight line."""

    @classmethod
    def fitted(cls, keys: Sequence[Monomial], columns: _Columns, counts: Array) -> _Polynomials:
        """Fit columns of counts (r, U) by monomials of the runs."""
        places = [columns.place[key] for key in keys]
        design = columns.design[:, places]
        scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
        coefficients = np.linalg.lstsq(design / scale, counts, rcond=None)[0] / scale[:, None]
        difference = np.abs(design @ coefficients - counts)
        exact = (difference < np.maximum(EXACT, 1e-10 * counts)).all(axis=0)
        exact &= (columns.far[places].T @ coefficients > -EXACT).all(axis=0)
        residual = difference.max(axis=0)
        line = all(len(key) <= 1 and sum(power for _, power in key) <= 1.0 for key in keys)
        plain = line | (residual <= UNROUNDED * np.maximum(counts.max(axis=0), 1.0))
        return cls(keys, coefficients, exact, residual, columns.sizes(keys, places) - len(keys), plain)

    def terms(self, column: int | np.intp) -> dict[Monomial, float]:
        """The polynomial of a column."""
        return {key: float(c) for key, c in zip(self.keys, self.coefficients[:, column], strict=True) if c}


def exact_laws(counts: Array, features: Mapping[str, Array]) -> list[TermSum | None]:
    """The law that each column of counts (R, U) over features (R,) obeys exactly; None where there is none.

    A polynomial with the fewest coefficients is taken that passes through two sizes or more that it was not fitted to.
    Columns without one are taken apart at a kink.

    >>> n = np.array([100.0, 200, 400, 800, 1500, 3000])
    >>> exact_laws(np.array([n * (n - 1) / 2, np.round(n**1.3)]).T, {"n": n})[1] is None
    True
    """
    laws = _exact(counts, features)
    # What is called 100 times for each of n steps is a multiple of 100, and the steps have the law.
    whole = np.round(counts).astype(np.int64)
    exact = np.abs(whole - counts).max(axis=0, initial=0.0) < 1e-6
    steps = np.where(exact, np.maximum(np.gcd.reduce(whole, axis=0), 1), 1).astype(np.float64)
    stepped = np.array([place for place, law in enumerate(laws) if law is None and steps[place] > 1], dtype=np.intp)
    for place, law in zip(stepped, _exact(counts[:, stepped] / steps[stepped], features), strict=True):
        laws[place] = None if law is None else {key: c * float(steps[place]) for key, c in law.items()}
    return laws


def _exact(counts: Array, features: Mapping[str, Array]) -> list[TermSum | None]:
    """Polynomials of columns of counts (R, U), and pieces of polynomials for columns that have none."""
    ranges, bent = np.log(np.ptp(counts, axis=0) + 1.0), _bends(counts, features)
    laws: list[TermSum | None] = [None] * counts.shape[1]
    residuals: Array = np.full(counts.shape[1], np.inf)
    coefficients = np.full(counts.shape[1], 9)
    polynomials = sorted(_polynomials(features), key=len)
    longer = sum(len(keys) > 2 for keys in polynomials)
    columns = _Columns.of(polynomials, features)
    for keys in polynomials:
        waiting = np.flatnonzero(coefficients >= len(keys))
        if not waiting.size:
            continue
        fits = _Polynomials.fitted(keys, columns, counts[:, waiting])
        evidence = fits.spare * np.where(fits.plain, ranges[waiting], bent[waiting])
        needed = MIN_EVIDENCE + (log(longer) if len(keys) > 2 else 0.0)  # the more are tried, the more hit by chance
        believed = fits.exact & (fits.spare >= 2) & (evidence >= needed)
        for column in np.flatnonzero(believed & (fits.residual < residuals[waiting])):
            place = waiting[column]
            laws[place], residuals[place], coefficients[place] = fits.terms(column), fits.residual[column], len(keys)
    waiting = np.array([place for place, law in enumerate(laws) if law is None and ranges[place] > 0], dtype=np.intp)
    for place, law in zip(waiting, _kinked(counts[:, waiting], features), strict=True):
        laws[place] = law
    return laws


def _bends(counts: Array, features: Mapping[str, Array]) -> Array:
    """Evidence of a size that a curve hits by rounding, (U,): how far counts lie from straight lines, as logarithms.

    Over one feature these lines join each size's neighbours, for a smooth curve is close to them wherever counts are
    small, as 7, 7 and 9 before 46 are.
    """
    if len(features) == 1:
        [x] = features.values()
        sizes, first = np.unique(x, return_index=True)
        if sizes.size < 3:
            return np.zeros(counts.shape[1])
        y, share = counts[first], (sizes[1:-1] - sizes[:-2]) / (sizes[2:] - sizes[:-2])
        chords = y[:-2] + share[:, None] * (y[2:] - y[:-2])
        return np.asarray(np.log(2.0 * np.abs(y[1:-1] - chords) + 1.0).mean(axis=0))
    lines = []
    for name, x in features.items():
        line = [ONE, monomial(name, 1.0)]
        lines.append(_Polynomials.fitted(line, _Columns.of([line], {name: x}), counts).residual)
    return np.asarray(np.log(2.0 * np.min([np.ptp(counts, axis=0) / 2.0, *lines], axis=0) + 1.0))


def _kinked(counts: Array, features: Mapping[str, Array]) -> list[TermSum | None]:
    """Laws of columns of counts (R, U) that are one polynomial below a size and another one above it."""
    ranges = np.log(np.ptp(counts, axis=0) + 1.0)
    best: Array = np.zeros(counts.shape[1])
    laws: list[TermSum | None] = [None] * counts.shape[1]
    for name, x in features.items() if counts.size else ():
        sizes = np.unique(x)
        polynomials = list(_of_one(name))
        cuts = np.unique(np.linspace(1, max(sizes.size - 2, 1), MAX_CUTS).astype(np.intp))
        cuts = cuts[cuts < sizes.size - 1]
        needed = MIN_EVIDENCE + log(max(len(cuts), 1) * len(polynomials))
        for cut in cuts:
            below = x < sizes[cut]
            lefts = _simplest(polynomials, {name: x[below]}, counts[below])
            bent = [column for column, left in enumerate(lefts) if left is not None]
            if not bent:
                continue
            rights = _simplest(polynomials, {name: x[~below]}, counts[~below][:, bent])
            for place, (column, right) in enumerate(zip(bent, rights, strict=True)):
                left = lefts[column]
                if left is None or right is None or right.spare < 1:
                    continue
                evidence = (left.spare + right.spare) * float(ranges[column]) - needed
                if evidence > best[column]:
                    best[column] = evidence
                    pieces = left.terms(column), right.terms(place)
                    kink = _crossing(name, pieces, float(sizes[cut - 1]), float(sizes[cut]))
                    laws[column] = {**restricted(pieces[0], name, "<=", kink), **restricted(pieces[1], name, ">", kink)}
    return laws


def _simplest(
    polynomials: Sequence[Sequence[Monomial]], features: Mapping[str, Array], counts: Array
) -> list[_Polynomials | None]:
    """The polynomial with the fewest coefficients that gives each column of counts (r, U); None where there is none."""
    found: list[_Polynomials | None] = [None] * counts.shape[1]
    columns = _Columns.of(polynomials, features)
    for keys in polynomials:
        if len(keys) > columns.points:
            continue
        if all(one is not None and len(one.keys) < len(keys) for one in found):
            break
        fits = _Polynomials.fitted(keys, columns, counts)
        if fits.spare < 0:
            continue
        for column in np.flatnonzero(fits.exact & fits.plain):
            before = found[column]
            shorter = before is None or len(keys) < len(before.keys)
            if shorter or (
                before is not None and len(keys) == len(before.keys) and fits.residual[column] < before.residual[column]
            ):
                found[column] = fits
    return found


def _crossing(name: str, pieces: tuple[TermSum, TermSum], low: float, high: float) -> float:
    """Where two pieces meet between two sizes; their middle, geometric if possible, if they do not."""
    x = np.geomspace(low, high, 64) if low > 0 else np.linspace(low, high, 64)
    below, above = (np.array(list(piece.values())) @ values(list(piece), {name: x}, x.size) for piece in pieces)
    crossed = np.flatnonzero(np.diff(np.sign(below - above)))
    if crossed.size:
        return float(x[crossed[0]])
    return sqrt(low * high) if low > 0 else (low + high) / 2.0


def _of_one(name: str) -> Iterator[list[Monomial]]:
    """Sets of powers of a feature up to the third, the constant among them, shortest sets first."""
    powers = [ONE, *(monomial(name, exponent) for exponent in (1.0, 2.0, 3.0))]
    yield from ([*chosen] for size in (1, 2, 3) for chosen in combinations(powers, size))


def _polynomials(features: Mapping[str, Array]) -> Iterator[list[Monomial]]:
    """Sets of monomials that counts are sums of: powers and the logarithm of a feature, sums, products and maxima of two."""
    for name in features:
        yield from (keys for keys in _of_one(name) if keys != [ONE])
        if features[name].min() >= 1:
            yield [ONE, monomial(name, 0.0, 1.0)]
    for first, second in combinations(features, 2):
        one, other = monomial(first, 1.0), monomial(second, 1.0)
        both = (*one, *other)
        terms = [ONE, one, other, both]
        yield from ([*chosen] for size in (1, 2, 3, 4) for chosen in combinations(terms, size) if both in chosen)
        yield from ([one, other], terms[:3])
        for which in ("max", "min"):
            key: Monomial = ((Call(which, (Name(first), Name(second))), 1.0),)
            yield from ([key], [ONE, key])
