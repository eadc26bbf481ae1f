"""Laws of one form stacked: families that share noise, intercept and free exponent are one batch for the search.

A call of NumPy costs more than the work on a few hundred numbers, so few series are fitted with many families at once
and many series family by family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.batch import Batch
from perflaw.learn.laws.families import Term, powered
from perflaw.learn.laws.linear import gram
from perflaw.learn.laws.model import BOTTOM, EXPONENT, TOP, Theta
from perflaw.learn.laws.series import Array

AT_ONCE = 32_000
"""Numbers of a stack at most, where it holds several families."""

Members = NDArray[np.intp]
Block = tuple[Term, slice]
"""A term and where its laws stand in a stack."""


@dataclass(frozen=True, slots=True)
class Form:
    """What stacked laws have in common."""

    log: bool
    """Noise is multiplicative."""
    intercept: bool
    """They have a constant part."""
    free: bool
    """Their exponent is learnt."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Places of the parameters that are learnt."""
        return (TOP, *((BOTTOM,) if self.intercept else ()), *((EXPONENT,) if self.free else ()))

    @property
    def linear(self) -> bool:
        """Residuals are linear in the parameters: one full step is exact."""
        return not self.intercept if self.log else not self.free


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """R laws to be found, each of one series."""

    form: Form
    """Their form."""
    cell: Members
    """Series of each, (R,)."""
    y: Array
    """What residuals are taken from: responses, or their logarithms under multiplicative noise; (R, n)."""
    w: Array | None
    """Weights, (R, n); None where all are 1."""
    t: Array
    """Fixed exponent: the term, 0 to 1 where there is an intercept; free: what the exponent multiplies; (R, n)."""
    rest: Array
    """Fixed exponent: 1 − t; free: derivative of the term by its exponent over the term; (R, n)."""
    ends: tuple[Array, ...]
    """Free: the two at the smallest x, then at the largest, (R, 1) each."""
    bound: Array
    """Free: largest exponent, (R, 1)."""

    def take(self, some: Members) -> Stack:
        """Some of the laws."""
        rest = self.rest[some] if self.rest.size else self.rest
        ends = tuple(one[some] for one in self.ends)
        bound = self.bound[some] if self.form.free else self.bound
        w = None if self.w is None else self.w[some]
        return Stack(self.form, self.cell[some], self.y[some], w, self.t[some], rest, ends, bound)

    @property
    def linear(self) -> bool:
        """One full step is exact."""
        return self.form.linear

    def residual(self, theta: Theta) -> tuple[Array, list[Array]]:
        """Residuals (R, n) and the gradient of the mean on the noise's own scale, a list of (R, n)."""
        mean, gradient = self.mean(theta)
        if not self.form.log:
            return self.y - mean, gradient
        mean = np.maximum(mean, 1e-300)
        scaled = [theta[TOP] * gradient[0] / mean]
        if self.form.intercept:
            scaled.append(theta[BOTTOM] * gradient[1] / mean)
        if self.form.free:
            scaled.append(gradient[-1] / mean)
        return self.y - np.log(mean), scaled

    def mean(self, theta: Theta) -> tuple[Array, list[Array]]:
        """Mean (R, n) and its derivatives by the parameters that are learnt; as :meth:`Model.mean`."""
        m1, m0, b = theta
        t, rest, by_b = self._progress(b)
        if not self.form.intercept:
            return m1 * t, [t, m1 * by_b] if self.form.free else [t]
        change = m1 - m0
        mean = m0 + change * t
        return mean, [t, rest, change * by_b] if self.form.free else [t, rest]

    def shape(self, b: Array) -> tuple[Array, Array]:
        """The term (from 0 to 1 where there is an intercept) at exponents b (R, 1), and 1 less it."""
        if not self.form.free:
            return self.t, self.rest
        value = powered(b, self.t)
        if not self.form.intercept:
            return value, value
        first = powered(b, self.ends[0])
        t = (value - first) / (powered(b, self.ends[2]) - first)
        return t, 1.0 - t

    def _progress(self, b: Array) -> tuple[Array, Array, Array]:
        """The same and the term's derivative by the exponent."""
        if not self.form.free:
            return self.t, self.rest, self.t
        value = powered(b, self.t)
        by_b = value * self.rest
        if not self.form.intercept:
            return value, value, by_b
        low, low_by, high, _ = self.ends
        first = powered(b, low)
        span = powered(b, high) - first
        t = (value - first) / span
        rest = 1.0 - t
        return t, rest, (by_b - first * low_by * rest) / span

    def normal(self, columns: Sequence[Array]) -> Array:
        """XᵀWX of the gradient's columns, (p, p, R)."""
        return gram(columns, self.w)

    def damped(self, damping: Array) -> Array:
        """What is added to its diagonal for a damping (R,)."""
        return damping

    def moved(self, theta: Theta, step: Array) -> Theta:
        """Parameters after a step (p, R); responses move by factors under multiplicative noise, at most e² at once."""
        out, reach = list(theta), 600.0 if self.linear else 1.0
        for place, delta in zip(self.form.columns, step, strict=True):
            move = delta[:, None]
            if place == EXPONENT:
                out[place] = exponent(out[place] + cut(move, reach), self.bound, intercept=self.form.intercept)
            elif self.form.log:
                out[place] = np.minimum(np.maximum(out[place] * np.exp(cut(move, 2.0 * reach)), 1e-280), 1e280)
            else:
                out[place] = out[place] + move
        return out[TOP], out[BOTTOM], out[EXPONENT]


def exponent(b: Array, bound: Array, *, intercept: bool) -> Array:
    """An exponent within its bounds; from 0 to 1 no law is defined at 0, the limit (the logarithm) is close enough."""
    b = cut(b, bound)
    return np.where(np.abs(b) < 1e-3, 1e-3, b) if intercept else b


def cut(values: Array, reach: Array | float) -> Array:
    """Values within ± a reach."""
    return np.minimum(np.maximum(values, -reach), reach)


def stacks(form: Form, terms: Sequence[Term], batch: Batch) -> list[tuple[list[Block], Stack]]:
    """Stacks of the series where terms are defined, each with its blocks."""
    parts = [(term, np.flatnonzero(_usable(form, term, batch))) for term in terms]
    parts = [(term, cells) for term, cells in parts if cells.size]
    together = _together(form, terms, batch.x.size)
    some = [parts[i : i + together] for i in range(0, len(parts), together)]
    return [(_blocks(part), _stack(form, part, batch)) for part in some]


def exponents(form: Form, term: Term) -> tuple[float, ...]:
    """Exponents a search starts from; one will do where a step is exact."""
    return (1.0,) if form.linear or not form.free else term.starts


def _together(form: Form, terms: Sequence[Term], size: int) -> int:
    """How many terms one stack holds, of series of so many numbers."""
    if sum(len(exponents(form, term)) for term in terms) * size <= AT_ONCE:
        return len(terms)
    return 1 if form.free else max(1, AT_ONCE // size)


def _blocks(part: Sequence[tuple[Term, Members]]) -> list[Block]:
    ends = np.cumsum([cells.size for _, cells in part]).tolist()
    return [(term, slice(end - cells.size, end)) for (term, cells), end in zip(part, ends, strict=True)]


def _usable(form: Form, term: Term, batch: Batch) -> NDArray[np.bool_]:
    """Series a law can be fitted to, (B,)."""
    fine = batch.available(term)
    if form.log:
        fine = fine & batch.positive
    if not form.intercept and term.name != "constant":
        # Under multiplicative noise μ must not reach 0 on the data.
        low = batch.ends.low[:, 0]
        fine = fine & ((low > term.zero) if form.log else (low >= min(term.zero, 0.0)))
    return fine


def _stack(form: Form, part: Sequence[tuple[Term, Members]], batch: Batch) -> Stack:
    """Laws of some terms in the series where each is defined."""
    none = np.zeros((0, 0))
    cell = np.concatenate([cells for _, cells in part])
    whole = len(part) == 1 and cell.size == len(batch.x)
    y = batch.log_y if form.log else batch.y
    own = y if whole else y[cell], None if batch.equal else batch.w if whole else batch.w[cell]
    if not form.free:
        made = batch.progress if form.intercept else batch.values
        t = _joined([(made(term), cells) for term, cells in part], whole)
        return Stack(form, cell, *own, t, 1.0 - t if form.intercept else none, (), none)
    growth = [(batch.growth(term), cells) for term, cells in part]
    t, rest, *ends = (_joined([(made[i], cells) for made, cells in growth], whole) for i in range(6))
    bound = np.concatenate([np.full((cells.size, 1), term.bound) for term, cells in part])
    return Stack(form, cell, *own, t, rest, tuple(ends), bound)


def _joined(parts: Sequence[tuple[Array, Members]], whole: bool) -> Array:
    return parts[0][0] if whole else np.concatenate([values[cells] for values, cells in parts])
