"""The search for the parameters of stacked laws, by Levenberg–Marquardt (Marquardt 1963)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.linear import inverse, multiply, project
from perflaw.learn.laws.mixed import Mixed
from perflaw.learn.laws.model import BOTTOM, EXPONENT, TOP, Theta
from perflaw.learn.laws.series import Array
from perflaw.learn.laws.stacks import Members, Stack

LIVELY = 0.6
"""The search goes on with those still moving alone, once they are fewer than this share."""

ITERATIONS = 14
"""Steps of the search; quadratic convergence needs 4 to 8 from the starts of :mod:`perflaw.learn.laws.starts`."""


def search(stack: Stack | Mixed, start: Theta) -> tuple[Array, Array]:
    """Parameters (R, 3) and residual sums of squares (R,); every law stops by itself, so a stack equals its members."""
    found, out = np.concatenate(start, axis=-1), np.empty(len(stack.y))
    members = np.arange(len(out))
    steps = 2 if stack.linear else ITERATIONS
    state = _State.begin(stack, start)
    for step in range(steps):
        state.step()
        left = np.flatnonzero(state.running)
        if left.size < LIVELY * members.size or step == steps - 1:
            found[members], out[members] = np.concatenate(state.theta, axis=-1), state.rss
            if left.size == 0:
                break
            members, state = members[left], state.take(left)
    return found, out


@dataclass(slots=True)
class _State:
    """Where the search of some laws stands."""

    stack: Stack | Mixed
    theta: Theta
    residual: Array
    columns: list[Array]
    rss: Array
    damping: Array
    running: NDArray[np.bool_]

    @classmethod
    def begin(cls, stack: Stack | Mixed, theta: Theta) -> _State:
        """At the start."""
        residual, columns = stack.residual(theta)
        rss = squares(residual, stack.w)
        damping = np.full(len(rss), 0.0 if stack.linear else 1e-4)
        return cls(stack, theta, residual, columns, rss, damping, np.ones(len(rss), dtype=bool))

    def take(self, some: Members) -> _State:
        """Some of the laws."""
        theta = (self.theta[TOP][some], self.theta[BOTTOM][some], self.theta[EXPONENT][some])
        columns = [column[some] for column in self.columns]
        residual, rss = self.residual[some], self.rss[some]
        return _State(self.stack.take(some), theta, residual, columns, rss, self.damping[some], self.running[some])

    def step(self) -> None:
        """Propose a step, take it where it lowers the residuals."""
        stack, running = self.stack, self.running
        inverted, _ = inverse(stack.normal(self.columns), stack.damped(self.damping))
        weighted = self.residual if stack.w is None else stack.w * self.residual
        step = multiply(inverted, project(self.columns, weighted))
        proposal = stack.moved(self.theta, np.where(running, step, 0.0))
        residual, columns = stack.residual(proposal)
        rss = squares(residual, stack.w)
        better = running & (rss <= self.rss)
        self.running = running & ~(better & (rss >= self.rss * (1.0 - 1e-10))) & (self.damping < 1e8)
        self.damping = np.where(better, self.damping * 0.1, np.maximum(self.damping, 1e-3) * 8.0)
        if better.all():
            self.theta, self.residual, self.columns, self.rss = proposal, residual, columns, rss
            return
        take = better[:, None]
        new = [np.where(take, fresh, old) for fresh, old in zip(proposal, self.theta, strict=True)]
        self.theta = (new[TOP], new[BOTTOM], new[EXPONENT])
        self.residual = np.where(take, residual, self.residual)
        self.columns = [np.where(take, fresh, old) for fresh, old in zip(columns, self.columns, strict=True)]
        self.rss = np.where(better, rss, self.rss)


def squares(residual: Array, w: Array | None) -> Array:
    """Weighted residual sums of squares, (R,)."""
    return np.asarray(np.add.reduce(residual**2 if w is None else w * residual**2, axis=-1))
