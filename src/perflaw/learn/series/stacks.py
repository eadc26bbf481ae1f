"""Many laws fitted at once: families that share noise, intercept and free exponent are one stack for the search.

A call of NumPy costs more than the work on a few hundred numbers. Few series are therefore fitted with many families at
once, and many series family by family. For the same reason symmetric systems of up to three unknowns are solved here by
formula: LAPACK takes a microsecond or two per matrix, the formulas take nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, Family, powered
from perflaw.learn.series.model import BOTTOM, EXPONENT, TOP, Ends, Theta, parameter_places
from perflaw.learn.series.series import Array

LEAST_START = 0.05
"""Smallest response a search starts from, relative to the smallest one measured, under multiplicative noise."""
AT_ONCE = 32_000
"""Most numbers in an array of a stack that holds several families."""
Members = NDArray[np.intp]
"""Places of laws or series, (k,)."""
Block = tuple[Family, slice]
"""A family and the places of its laws in a stack."""


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
    """Weights, (B, n); their sum is the number of rows."""
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
        """Weights over y² times the smallest y², exp(log y), and the smallest response a search starts from (B, 1)."""
        weights = self.w * np.exp(2.0 * (self.log_y.min(axis=-1, keepdims=True) - self.log_y))
        y = np.exp(self.log_y)
        return weights, y, LEAST_START * y.min(axis=-1, keepdims=True)

    @cached_property
    def _shared(self) -> dict[tuple[str, str], tuple[NDArray[Any], ...]]:
        return {}

    def _once(
        self, name: str, family: Family, make: Callable[[], tuple[NDArray[Any], ...]]
    ) -> tuple[NDArray[Any], ...]:
        """Arrays that several models share, made once."""
        key = name, family.name
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def usable(self, form: Form, family: Family) -> NDArray[np.bool_]:
        """Series that a family can be fitted to in that form, (B,)."""
        if family is CONSTANT:
            return self.positive if form.log else np.ones(len(self.x), dtype=bool)
        fine: NDArray[np.bool_]
        (fine,) = self._once("available", family, lambda: (family.available(self.x),))
        if form.log:
            fine = fine & self.positive
        if not form.intercept:
            # Under multiplicative noise μ must not reach 0 on the data.
            low = self.ends.low[:, 0]
            fine = fine & ((low > family.zero) if form.log else (low >= min(family.zero, 0.0)))
        return fine

    def values(self, family: Family) -> Array:
        """A term of fixed exponent over its value at the largest |x|, (B, n)."""
        if family is CONSTANT:
            return np.ones_like(self.x)
        return self._once("values", family, lambda: (family.value(self.x, np.zeros(1), self.ends.top),))[0]

    def progress(self, family: Family) -> Array:
        """A term of fixed exponent, scaled to rise from 0 at the smallest to 1 at the largest x, (B, n)."""

        def make() -> tuple[Array, ...]:
            ends, none = self.ends, np.zeros(1)
            first = family.value(ends.low, none, ends.top)
            return ((self.values(family) - first) / (family.value(ends.high, none, ends.top) - first),)

        return self._once("progress", family, make)[0]

    def growth(self, family: Family) -> tuple[Array, ...]:
        """Factors of a free exponent in the logarithm of a term and in its derivative: at x and at both ends."""

        def make() -> tuple[Array, ...]:
            at = (family.logarithm(x, self.ends.top) for x in (self.x, self.ends.low, self.ends.high))
            return tuple(part for pair in at for part in pair)

        return self._once("growth", family, make)


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
    def places(self) -> tuple[int, ...]:
        """Places of the parameters that are learnt."""
        return parameter_places(intercept=self.intercept, exponent=self.free)

    @property
    def linear(self) -> bool:
        """Residuals are linear in the parameters: one full step is exact."""
        return not self.intercept if self.log else not self.free

    def starts(self, family: Family) -> tuple[float, ...]:
        """Exponents a search starts from; a single one if a step is exact."""
        return (1.0,) if self.linear or not self.free else family.starts


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """R laws of one form to be fitted, each to one series."""

    form: Form
    """Their form."""
    cell: Members
    """Series of each, (R,)."""
    y: Array
    """Responses, or their logarithms under multiplicative noise; (R, n)."""
    w: Array | None
    """Weights, (R, n); None if all are 1."""
    t: Array
    """Fixed exponent: the term, scaled from 0 to 1 with an intercept; free: what the exponent multiplies; (R, n)."""
    rest: Array
    """Fixed exponent: 1 − t; free: derivative of the term by its exponent over the term; (R, n)."""
    ends: tuple[Array, ...]
    """Free: t and ``rest`` at the smallest x, then at the largest, (R, 1) each."""
    bound: Array
    """Free: largest exponent, (R, 1)."""

    @classmethod
    def of(cls, form: Form, parts: Sequence[tuple[Family, Members]], batch: Batch) -> Stack:
        """Laws of some families, each in the series it can be fitted to."""
        cell = np.concatenate([cells for _, cells in parts])
        whole = len(parts) == 1 and cell.size == len(batch.x)

        def joined(columns: Sequence[Array]) -> Array:
            picked = (column[cells] for column, (_, cells) in zip(columns, parts, strict=True))
            return columns[0] if whole else np.concatenate(list(picked))

        y, none = batch.log_y if form.log else batch.y, np.zeros((0, 0))
        y, w = y if whole else y[cell], None if batch.equal else batch.w if whole else batch.w[cell]
        if not form.free:
            t = joined([(batch.progress if form.intercept else batch.values)(family) for family, _ in parts])
            return cls(form, cell, y, w, t, 1.0 - t if form.intercept else none, (), none)
        growths = zip(*(batch.growth(family) for family, _ in parts), strict=True)
        t, rest, *ends = (joined(columns) for columns in growths)
        bound = np.concatenate([np.full((cells.size, 1), family.bound) for family, cells in parts])
        return cls(form, cell, y, w, t, rest, tuple(ends), bound)

    def take(self, members: Members) -> Stack:
        """Some of the laws."""
        rest = self.rest[members] if self.rest.size else self.rest
        ends = tuple(end[members] for end in self.ends)
        bound = self.bound[members] if self.form.free else self.bound
        w = None if self.w is None else self.w[members]
        return Stack(self.form, self.cell[members], self.y[members], w, self.t[members], rest, ends, bound)

    @property
    def linear(self) -> bool:
        """Residuals are linear in the parameters: one full step is exact."""
        return self.form.linear

    def shape(self, b: Array) -> tuple[Array, Array]:
        """The term (scaled from 0 to 1 with an intercept) at exponents b (R, 1), and 1 less it."""
        if not self.form.free:
            return self.t, self.rest
        value = powered(b, self.t)
        if not self.form.intercept:
            return value, value
        first = powered(b, self.ends[0])
        t = (value - first) / (powered(b, self.ends[2]) - first)
        return t, 1.0 - t

    def mean(self, theta: Theta) -> tuple[Array, list[Array]]:
        """Mean (R, n) and its derivatives by the parameters that are learnt, like :meth:`Model.mean`."""
        m1, m0, b = theta
        change = m1 - m0
        if not self.form.free:
            return (m0 + change * self.t, [self.t, self.rest]) if self.form.intercept else (m1 * self.t, [self.t])
        value = powered(b, self.t)
        by_b = value * self.rest
        if not self.form.intercept:
            return m1 * value, [value, m1 * by_b]
        low, low_by, high, _ = self.ends
        first = powered(b, low)
        span = powered(b, high) - first
        t = (value - first) / span
        rest = 1.0 - t
        return m0 + change * t, [t, rest, change * ((by_b - first * low_by * rest) / span)]

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

    def normal_matrix(self, gradient: Sequence[Array]) -> Array:
        """XᵀWX of the gradient's columns, (p, p, R)."""
        return gram(gradient, self.w)

    def damping(self, factor: Array) -> Array:
        """Relative increase of the diagonal of the normal matrix for damping factors (R,)."""
        return factor

    def after_step(self, theta: Theta, step: Array) -> Theta:
        """Parameters after a step (p, R); responses move by factors under multiplicative noise, at most e² at once."""
        out, reach = list(theta), 600.0 if self.linear else 1.0
        for place, delta in zip(self.form.places, step, strict=True):
            move = delta[:, None]
            if place == EXPONENT:
                out[place] = _exponent(out[place] + _bounded(move, reach), self.bound, intercept=self.form.intercept)
            elif self.form.log:
                out[place] = np.minimum(np.maximum(out[place] * np.exp(_bounded(move, 2.0 * reach)), 1e-280), 1e280)
            else:
                out[place] = out[place] + move
        return out[TOP], out[BOTTOM], out[EXPONENT]


def _exponent(b: Array, bound: Array, *, intercept: bool) -> Array:
    """An exponent within its bounds; with an intercept 0 has no law, and an exponent near its limit, log x, stands in."""
    b = _bounded(b, bound)
    return np.where(np.abs(b) < 1e-3, 1e-3, b) if intercept else b


def _bounded(values: Array, reach: Array | float) -> Array:
    """Values within ± a reach; faster than np.clip."""
    return np.minimum(np.maximum(values, -reach), reach)


def stacks(form: Form, families: Sequence[Family], batch: Batch) -> list[tuple[list[Block], Stack]]:
    """Stacks of the series that families of one form can be fitted to, each with its blocks."""
    parts = [(family, np.flatnonzero(batch.usable(form, family))) for family in families]
    parts = [(family, cells) for family, cells in parts if cells.size]
    together = 1 if form.free else max(1, AT_ONCE // batch.x.size)
    if sum(len(form.starts(family)) for family in families) * batch.x.size <= AT_ONCE:
        together = len(families)
    out = []
    for start in range(0, len(parts), together):
        part = parts[start : start + together]
        ends = np.cumsum([cells.size for _, cells in part]).tolist()
        blocks = [(family, slice(end - cells.size, end)) for (family, cells), end in zip(part, ends, strict=True)]
        out.append((blocks, Stack.of(form, part, batch)))
    return out


MIXED_FORMS = (Form(True, True, False), Form(True, True, True), Form(False, True, True), Form(False, False, True))
"""Forms that a mixed stack may hold, in this order: those whose search takes many steps."""


@dataclass(frozen=True, slots=True, eq=False)
class MixedStack:
    """R laws of several forms to be fitted, each to one series; arrays as in :class:`Stack`.

    Few laws are left towards the end of a search, where each step costs calls of NumPy rather than work. Laws stand in
    the order of :data:`MIXED_FORMS`, so that those of one kind are slices. A parameter that a law lacks stays 0.
    """

    fixed: int
    """Number of laws of fixed exponent; ``rest``, ``ends`` and ``bound`` are those of the others."""
    log: int
    """Number of laws under multiplicative noise, those of fixed exponent among them."""
    intercept: int
    """Number of laws with an intercept, those under multiplicative noise among them."""
    y: Array
    w: Array | None
    t: Array
    rest: Array
    ends: tuple[Array, ...]
    bound: Array

    linear = False

    @classmethod
    def of(cls, stacks: Sequence[Stack]) -> MixedStack:
        """Stacks of the forms of :data:`MIXED_FORMS`, in that order, as one."""
        fixed = sum(len(one.y) for one in stacks if not one.form.free)
        log = sum(len(one.y) for one in stacks if one.form.log)
        intercept = sum(len(one.y) for one in stacks if one.form.intercept)
        w = None if stacks[0].w is None else np.concatenate([one.w for one in stacks if one.w is not None])
        y, t = np.concatenate([one.y for one in stacks]), np.concatenate([one.t for one in stacks])
        free = [one for one in stacks if one.form.free]
        rest, bound = np.concatenate([one.rest for one in free]), np.concatenate([one.bound for one in free])
        ends = tuple(np.concatenate(part) for part in zip(*(one.ends for one in free), strict=True))
        return cls(fixed, log, intercept, y, w, t, rest, ends, bound)

    def take(self, members: Members) -> MixedStack:
        """Some of the laws."""
        fixed, log, intercept = (int(np.count_nonzero(members < end)) for end in (self.fixed, self.log, self.intercept))
        free = members[members >= self.fixed] - self.fixed
        ends = tuple(end[free] for end in self.ends)
        w = None if self.w is None else self.w[members]
        columns = self.y[members], w, self.t[members], self.rest[free], ends, self.bound[free]
        return MixedStack(fixed, log, intercept, *columns)

    def residual(self, theta: Theta) -> tuple[Array, list[Array]]:
        """Residuals (R, n) and the gradient of the mean on the noise's own scale, a list of three (R, n)."""
        m1, m0, b = theta
        free, (low, low_by, high, _) = slice(self.fixed, None), self.ends
        value, first = powered(b[free], self.t[free]), powered(b[free], low)
        span = powered(b[free], high) - first
        without_intercept = slice(self.intercept - self.fixed, None)
        first[without_intercept], span[without_intercept] = 0.0, 1.0
        t, by_b = self.t.copy(), np.zeros_like(self.t)
        t[free] = (value - first) / span
        rest = 1.0 - t
        by_b[free] = (m1[free] - m0[free]) * ((value * self.rest - first * low_by * rest[free]) / span)

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

    def normal_matrix(self, gradient: Sequence[Array]) -> Array:
        """XᵀWX, (3, 3, R); 1 for a parameter that a law lacks."""
        out = gram(gradient, self.w)
        out[BOTTOM, BOTTOM, self.intercept :] = 1.0
        out[EXPONENT, EXPONENT, : self.fixed] = 1.0
        return out

    def damping(self, factor: Array) -> Array:
        """Relative increase of the diagonal, (3, R), for damping factors (R,); 0 for a parameter that a law lacks."""
        out = np.stack([factor] * 3)
        out[BOTTOM, self.intercept :] = 0.0
        out[EXPONENT, : self.fixed] = 0.0
        return out

    def after_step(self, theta: Theta, step: Array) -> Theta:
        """Parameters after a step (3, R); responses move by factors under multiplicative noise, at most e² at once."""
        b, first, last = theta[EXPONENT].copy(), self.fixed, self.intercept
        for free, intercept in ((slice(first, last), True), (slice(last, None), False)):
            bound = self.bound[: last - first] if intercept else self.bound[last - first :]
            b[free] = _exponent(b[free] + _bounded(step[EXPONENT][free, None], 1.0), bound, intercept=intercept)
        responses = []
        for place in (TOP, BOTTOM):
            move, old = step[place][:, None], theta[place]
            new = old + move
            factor = np.exp(_bounded(move[: self.log], 2.0))
            new[: self.log] = np.minimum(np.maximum(old[: self.log] * factor, 1e-280), 1e280)
            responses.append(new)
        return responses[0], responses[1], b


def gram(columns: Sequence[Array], w: Array | None) -> Array:
    """XᵀWX of p columns (B, n) with weights (B, n) or None for all 1, (p, p, B)."""
    size = len(columns)
    out = np.empty((size, size, len(columns[0])))
    for i in range(size):
        weighted = columns[i] if w is None else columns[i] * w
        for j in range(i, size):
            np.add.reduce(weighted * columns[j], axis=-1, out=out[i, j])
            out[j, i] = out[i, j]
    return out


def project(columns: Sequence[Array], weighted: Array) -> Array:
    """XᵀWy of p columns (B, n) and w·y (B, n), (p, B)."""
    out = np.empty((len(columns), len(weighted)))
    for i, column in enumerate(columns):
        np.add.reduce(column * weighted, axis=-1, out=out[i])
    return out


def inverse(matrix: Array, damping: Array | float = 0.0) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse (p, p, B) of ``A + damping·diag(A)`` and whether it exists numerically, (B,); damping (p, B) or (B,).

    Systems are scaled to a unit diagonal first, so that parameters of unlike size do no harm. A singular system gives
    zeros, so that a step along it is no step.
    """
    size = len(matrix)
    diagonal = matrix.reshape(size**2, -1)[:: size + 1]
    positive = diagonal > 0
    scale = 1.0 / np.sqrt(np.where(positive, diagonal, 1.0))
    a = matrix * scale[:, None] * scale
    a.reshape(size**2, -1)[:: size + 1] += damping
    cofactors, determinant = _adjugate(a)
    regular = np.isfinite(determinant) & (determinant > 1e-13) & positive.all(axis=0)
    factor = np.where(regular, 1.0 / np.where(regular, determinant, 1.0), 0.0)
    return cofactors * factor * scale[:, None] * scale, regular


def _adjugate(a: Array) -> tuple[Array, Array]:
    """Cofactors (p, p, B) and determinant (B,) of symmetric matrices, whose upper halves are read."""
    if len(a) == 1:
        return np.ones_like(a), a[0, 0]
    out = np.empty_like(a)
    if len(a) == 2:
        out[0, 0], out[1, 1] = a[1, 1], a[0, 0]
        out[0, 1] = out[1, 0] = -a[0, 1]
        return out, a[0, 0] * a[1, 1] - a[0, 1] ** 2
    out[0, 0] = a[1, 1] * a[2, 2] - a[1, 2] ** 2
    out[0, 1] = out[1, 0] = a[0, 2] * a[1, 2] - a[0, 1] * a[2, 2]
    out[0, 2] = out[2, 0] = a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]
    out[1, 1] = a[0, 0] * a[2, 2] - a[0, 2] ** 2
    out[1, 2] = out[2, 1] = a[0, 1] * a[0, 2] - a[0, 0] * a[1, 2]
    out[2, 2] = a[0, 0] * a[1, 1] - a[0, 1] ** 2
    return out, a[0, 0] * out[0, 0] + a[0, 1] * out[0, 1] + a[0, 2] * out[0, 2]


def multiply(matrix: Array, vector: Array) -> Array:
    """Matrix (p, p, B) times vector (p, B), batch element by batch element, (p, B)."""
    products = matrix * vector
    out: Array = products[:, 0]
    for j in range(1, len(vector)):
        out = out + products[:, j]
    return out
