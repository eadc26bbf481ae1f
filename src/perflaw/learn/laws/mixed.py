"""Laws of several forms searched for as one stack: those whose search takes many steps.

Few laws are left when a search comes to its end, and each step of it costs calls of NumPy more than work. Laws stand in
the order of :data:`ORDER`, so that those of one kind are slices. A parameter that a law lacks stays 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.families import powered
from perflaw.learn.laws.linear import gram
from perflaw.learn.laws.model import BOTTOM, EXPONENT, TOP, Theta
from perflaw.learn.laws.series import Array
from perflaw.learn.laws.stacks import Form, Members, Stack, cut, exponent

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
