"""Laws of one form stacked: families that share noise, intercept and free exponent are one batch for the search.

A call of NumPy costs more than the work on a few hundred numbers, so few series are fitted with many families at once
and many series family by family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, Family, powered
from perflaw.learn.series.model import BOTTOM, EXPONENT, TOP, Ends, Theta, gram
from perflaw.learn.series.series import Array

# ---- What laws are fitted to: series of one padded length with one feature each, and what all fits to them share.

LEAST_START = 0.05
"""Responses a search starts from are at least this part of the smallest one, under multiplicative noise."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Series of one padded length with one feature each; padding repeats the first row with weight 0."""

    x: Array
    """Feature, (B, n)."""
    y: Array
    """Response, (B, n)."""
    log_y: Array
    """log y (or its mean in a run), (B, n); 0 where y is not positive."""
    w: Array
    """Weights, (B, n), summing to the number of rows."""
    quantum: Array
    """Resolution of y, (B,)."""
    positive: NDArray[np.bool_]
    """All responses are positive, (B,)."""

    @cached_property
    def ends(self) -> Ends:
        """Smallest and largest x, (B, 1) each."""
        return Ends(self.x.min(axis=-1, keepdims=True), self.x.max(axis=-1, keepdims=True))

    @cached_property
    def equal(self) -> bool:
        """All weights are 1."""
        return bool((self.w == 1.0).all())

    @cached_property
    def relative(self) -> tuple[Array, Array, Array]:
        """Weights over y² times the smallest y², exp(log y), and the least response a search starts from (B, 1)."""
        weights = self.w * np.exp(2.0 * (self.log_y.min(axis=-1, keepdims=True) - self.log_y))
        y = np.exp(self.log_y)
        return weights, y, LEAST_START * y.min(axis=-1, keepdims=True)

    @cached_property
    def _available(self) -> dict[Family, NDArray[np.bool_]]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[str, str], tuple[Array, ...]]:
        return {}

    def available(self, term: Family) -> NDArray[np.bool_]:
        """Where a term is defined, (B,)."""
        if term not in self._available:
            self._available[term] = np.ones(len(self.x), dtype=bool) if term is CONSTANT else term.available(self.x)
        return self._available[term]

    def values(self, term: Family) -> Array:
        """A term of fixed exponent over its value at the largest |x|, (B, n)."""
        return self._made("value", term)[0]

    def progress(self, term: Family) -> Array:
        """The same from 0 at the smallest to 1 at the largest x, (B, n)."""
        return self._made("progress", term)[0]

    def growth(self, term: Family) -> tuple[Array, ...]:
        """What a free exponent multiplies in a term's logarithm, and in its derivative; at x and at both ends."""
        return self._made("growth", term)

    def _made(self, what: str, term: Family) -> tuple[Array, ...]:
        """What several models share is made once."""
        key = what, term.name
        if key not in self._known:
            self._known[key] = {"value": self._values, "progress": self._progress, "growth": self._growth}[what](term)
        return self._known[key]

    def _values(self, term: Family) -> tuple[Array, ...]:
        if term is CONSTANT:
            return (np.ones_like(self.x),)
        return (term.value(self.x, np.zeros(1), self.ends.top),)

    def _progress(self, term: Family) -> tuple[Array, ...]:
        ends, none = self.ends, np.zeros(1)
        first = term.value(ends.low, none, ends.top)
        return ((self.values(term) - first) / (term.value(ends.high, none, ends.top) - first),)

    def _growth(self, term: Family) -> tuple[Array, ...]:
        ends = self.ends
        at = (term.logarithm(x, ends.top) for x in (self.x, ends.low, ends.high))
        return tuple(part for pair in at for part in pair)


AT_ONCE = 32_000
"""Numbers of a stack at most, where it holds several families."""

Members = NDArray[np.intp]
Block = tuple[Family, slice]
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


def stacks(form: Form, terms: Sequence[Family], batch: Batch) -> list[tuple[list[Block], Stack]]:
    """Stacks of the series where terms are defined, each with its blocks."""
    parts = [(term, np.flatnonzero(_usable(form, term, batch))) for term in terms]
    parts = [(term, cells) for term, cells in parts if cells.size]
    together = _together(form, terms, batch.x.size)
    some = [parts[i : i + together] for i in range(0, len(parts), together)]
    return [(_blocks(part), _stack(form, part, batch)) for part in some]


def exponents(form: Form, term: Family) -> tuple[float, ...]:
    """Exponents a search starts from; one will do where a step is exact."""
    return (1.0,) if form.linear or not form.free else term.starts


def _together(form: Form, terms: Sequence[Family], size: int) -> int:
    """How many terms one stack holds, of series of so many numbers."""
    if sum(len(exponents(form, term)) for term in terms) * size <= AT_ONCE:
        return len(terms)
    return 1 if form.free else max(1, AT_ONCE // size)


def _blocks(part: Sequence[tuple[Family, Members]]) -> list[Block]:
    ends = np.cumsum([cells.size for _, cells in part]).tolist()
    return [(term, slice(end - cells.size, end)) for (term, cells), end in zip(part, ends, strict=True)]


def _usable(form: Form, term: Family, batch: Batch) -> NDArray[np.bool_]:
    """Series a law can be fitted to, (B,)."""
    fine = batch.available(term)
    if form.log:
        fine = fine & batch.positive
    if not form.intercept and term is not CONSTANT:
        # Under multiplicative noise μ must not reach 0 on the data.
        low = batch.ends.low[:, 0]
        fine = fine & ((low > term.zero) if form.log else (low >= min(term.zero, 0.0)))
    return fine


def _stack(form: Form, part: Sequence[tuple[Family, Members]], batch: Batch) -> Stack:
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


# ---- Laws of several forms searched for as one stack: those whose search takes many steps.
#
# Few laws are left when a search comes to its end, and each step of it costs calls of NumPy more than work. Laws
# stand in
# the order of :data:`ORDER`, so that those of one kind are slices. A parameter that a law lacks stays 0.

ORDER = (Form(True, True, False), Form(True, True, True), Form(False, True, True), Form(False, False, True))
"""Forms that one stack may hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """R laws to be found, each of one series; fields as those of :class:`Stack`."""

    fixed: int
    """Laws of fixed exponent; ``rest``, ``ends`` and ``bound`` are those of the others."""
    log: int
    """Laws under multiplicative noise, those among them."""
    intercept: int
    """Laws with an intercept, those among them."""
    y: Array
    w: Array | None
    t: Array
    rest: Array
    ends: tuple[Array, ...]
    bound: Array

    linear = False

    def take(self, some: Members) -> Mixed:
        """Some of the laws."""
        fixed, log, intercept = (int(np.count_nonzero(some < end)) for end in (self.fixed, self.log, self.intercept))
        free = some[fixed:] - self.fixed
        ends = tuple(one[free] for one in self.ends)
        w = None if self.w is None else self.w[some]
        kinds = (fixed, log, intercept)
        return Mixed(*kinds, self.y[some], w, self.t[some], self.rest[free], ends, self.bound[free])

    def residual(self, theta: Theta) -> tuple[Array, list[Array]]:
        """Residuals (R, n) and the gradient of the mean on the noise's own scale, a list of three (R, n)."""
        m1, m0, _ = theta
        t, rest, by_b = self._progress(theta)
        mean = m0 + (m1 - m0) * t
        rest[self.intercept :] = 0.0
        logs = slice(self.log)
        mean[logs] = np.maximum(mean[logs], 1e-300)
        t[logs] *= m1[logs]
        rest[logs] *= m0[logs]
        for column in (t, rest, by_b):
            column[logs] /= mean[logs]
        mean[logs] = np.log(mean[logs])
        return self.y - mean, [t, rest, by_b]

    def _progress(self, theta: Theta) -> tuple[Array, Array, Array]:
        """The term (from 0 to 1 where there is an intercept), 1 less it, and the mean's derivative by the exponent."""
        free, (low, low_by, high, _) = slice(self.fixed, None), self.ends
        m1, m0, b = (part[free] for part in theta)
        value, first = powered(b, self.t[free]), powered(b, low)
        span = powered(b, high) - first
        none = slice(self.intercept - self.fixed, None)
        first[none], span[none] = 0.0, 1.0
        t, by_b = self.t.copy(), np.zeros_like(self.t)
        t[free] = (value - first) / span
        rest = 1.0 - t
        by_b[free] = (m1 - m0) * ((value * self.rest - first * low_by * rest[free]) / span)
        return t, rest, by_b

    def normal(self, columns: Sequence[Array]) -> Array:
        """XᵀWX, (3, 3, R); 1 for a parameter that a law lacks."""
        out = gram(columns, self.w)
        out[BOTTOM, BOTTOM, self.intercept :] = 1.0
        out[EXPONENT, EXPONENT, : self.fixed] = 1.0
        return out

    def damped(self, damping: Array) -> Array:
        """What is added to the diagonal, (3, R); a parameter that a law lacks stays where it is."""
        out = np.stack([damping] * 3)
        out[BOTTOM, self.intercept :] = 0.0
        out[EXPONENT, : self.fixed] = 0.0
        return out

    def moved(self, theta: Theta, step: Array) -> Theta:
        """Parameters after a step (3, R); responses move by factors under multiplicative noise, at most e² at once."""
        b, first, last = theta[EXPONENT].copy(), self.fixed, self.intercept
        for free, intercept in ((slice(first, last), True), (slice(last, None), False)):
            bound = self.bound[last - first :] if free.stop is None else self.bound[: last - first]
            b[free] = exponent(b[free] + cut(step[EXPONENT][free, None], 1.0), bound, intercept=intercept)
        responses = []
        for place in (TOP, BOTTOM):
            move, old = step[place][:, None], theta[place]
            new = old + move
            factor = np.exp(cut(move[: self.log], 2.0))
            new[: self.log] = np.minimum(np.maximum(old[: self.log] * factor, 1e-280), 1e280)
            responses.append(new)
        return responses[0], responses[1], b


def mixed(stacks: Sequence[Stack]) -> Mixed:
    """Stacks of the forms of :data:`ORDER`, in that order, as one."""
    fixed = sum(len(one.y) for one in stacks if not one.form.free)
    log = sum(len(one.y) for one in stacks if one.form.log)
    intercept = sum(len(one.y) for one in stacks if one.form.intercept)
    w = None if stacks[0].w is None else np.concatenate([one.w for one in stacks if one.w is not None])
    y, t = np.concatenate([one.y for one in stacks]), np.concatenate([one.t for one in stacks])
    free = [one for one in stacks if one.form.free]
    rest, bound = np.concatenate([one.rest for one in free]), np.concatenate([one.bound for one in free])
    ends = tuple(np.concatenate(part) for part in zip(*(one.ends for one in free), strict=True))
    return Mixed(fixed, log, intercept, y, w, t, rest, ends, bound)
