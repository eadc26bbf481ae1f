"""Maximum likelihood fits of many laws to a batch of series at once, by Levenberg–Marquardt (Marquardt 1963)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import Family
from perflaw.learn.series.model import BOTTOM, EXPONENT, TOP, Model, NoiseModel, Theta
from perflaw.learn.series.series import Array
from perflaw.learn.series.stacks import (
    AT_ONCE,
    MIXED_FORMS,
    Batch,
    Block,
    Form,
    Members,
    MixedStack,
    Stack,
    gram,
    inverse,
    multiply,
    project,
    stacks,
)

LIVELY = 0.6
"""The search continues with the unfinished laws alone once they are fewer than this share."""
ITERATIONS = 14
"""Most steps of the search; quadratic convergence needs 4 to 8 from the starts chosen here."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One law fitted to a batch of series."""

    model: Model
    """The law."""
    theta: Array
    """Response at the largest x, at the smallest x, exponent; (B, 3), unused ones 0."""
    covariance: Array
    """(JᵀWJ)⁻¹ on the noise's own scale, to be multiplied by σ²; (B, 3, 3), 0 for unused parameters."""
    rss: Array
    """Weighted residual sum of squares on the noise's scale, (B,)."""
    floor: Array
    """Smallest credible σ, (B,)."""
    deviance: Array
    """−2 log likelihood, (B,); infinite where the law is not available."""


def fit(models: Sequence[Model], batch: Batch) -> list[Fit]:
    """Fit laws to every series of a batch, model by model; a law that is not available has an infinite deviance."""
    forms: dict[Form, list[int]] = defaultdict(list)
    for m, model in enumerate(models):
        forms[Form(model.noise.log, model.intercept, model.family.free)].append(m)
    count, log_y = batch.w.sum(axis=-1), (batch.w * batch.log_y).sum(axis=-1)
    floors: dict[NoiseModel, Array] = {}
    for noise in dict.fromkeys(model.noise for model in models):
        # Any number serves where responses that are not positive exclude the noise.
        y = np.where(batch.positive[:, None], batch.y, 1.0) if noise.log else batch.y
        floors[noise] = noise.floor(y, batch.w, batch.quantum)
    size = len(batch.x)
    fits = [
        Fit(
            model,
            theta=np.zeros((size, 3)),
            covariance=np.zeros((size, 3, 3)),
            rss=np.full(size, np.inf),
            floor=floors[model.noise],
            deviance=np.full(size, np.inf),
        )
        for model in models
    ]
    families = {form: [models[m].family for m in members] for form, members in forms.items()}
    for blocks, stack, theta, rss in _searched(families, batch):
        members = forms[stack.form]
        noise = models[members[0]].noise
        _, gradient = stack.residual((theta[:, 0, None], theta[:, 1, None], theta[:, 2, None]))
        inverted, regular = inverse(stack.normal_matrix(gradient))
        covariance, places = np.zeros((len(theta), 3, 3)), np.array(stack.form.places)
        covariance[:, places[:, None], places] = np.moveaxis(inverted, -1, 0)
        deviance = noise.deviance(rss, floors[noise][stack.cell], count[stack.cell], log_y[stack.cell])
        deviance = np.where(regular & np.isfinite(deviance), deviance, np.inf)
        fit_of = {models[m].family.name: fits[m] for m in members}
        for family, rows in blocks:
            out, cells = fit_of[family.name], stack.cell[rows]
            out.theta[cells], out.covariance[cells] = theta[rows], covariance[rows]
            holds = family.holds(theta[rows, EXPONENT], batch.ends.low[cells, 0])
            out.rss[cells], out.deviance[cells] = rss[rows], np.where(holds, deviance[rows], np.inf)
    return fits


def _searched(
    forms: Mapping[Form, Sequence[Family]], batch: Batch
) -> Iterator[tuple[list[Block], Stack, Array, Array]]:
    """All stacks with their blocks, and their laws' parameters (R, 3) and residual sums of squares (R,).

    Small stacks of the forms that take many steps are searched as one.
    """
    together: list[tuple[list[Block], Stack, Theta]] = []
    for form in sorted(forms, key=lambda form: MIXED_FORMS.index(form) if form in MIXED_FORMS else -1):
        for blocks, stack in stacks(form, forms[form], batch):
            begin = _start(stack, blocks, batch)
            if form in MIXED_FORMS and stack.y.size <= AT_ONCE // 2:
                together.append((blocks, stack, begin))
            else:
                yield blocks, stack, *_search(stack, begin)
    if not any(stack.form.free for _, stack, _ in together):
        yield from ((blocks, stack, *_search(stack, begin)) for blocks, stack, begin in together)
        return
    m1, m0, b = (np.concatenate(part) for part in zip(*(theta for _, _, theta in together), strict=True))
    theta, rss = _search(MixedStack.of([stack for _, stack, _ in together]), (m1, m0, b))
    ends = np.cumsum([len(stack.y) for _, stack, _ in together]).tolist()
    for (blocks, stack, _), end in zip(together, ends, strict=True):
        rows = slice(end - len(stack.y), end)
        yield blocks, stack, theta[rows], rss[rows]


def _search(stack: Stack | MixedStack, start: Theta) -> tuple[Array, Array]:
    """Parameters (R, 3) and residual sums of squares (R,); each law stops by itself, so a stack equals its members."""
    theta, rss = np.concatenate(start, axis=-1), np.empty(len(stack.y))
    members = np.arange(len(rss))
    steps = 2 if stack.linear else ITERATIONS
    state = _State.at(stack, start)
    for step in range(steps):
        state.step()
        left = np.flatnonzero(state.running)
        if left.size < LIVELY * members.size or step == steps - 1:
            theta[members], rss[members] = np.concatenate(state.theta, axis=-1), state.rss
            if left.size == 0:
                break
            members, state = members[left], state.take(left)
    return theta, rss


@dataclass(slots=True)
class _State:
    """State of the search for the parameters of some laws."""

    stack: Stack | MixedStack
    theta: Theta
    residual: Array
    gradient: list[Array]
    rss: Array
    damping: Array
    running: NDArray[np.bool_]

    @classmethod
    def at(cls, stack: Stack | MixedStack, theta: Theta) -> _State:
        """State at the start."""
        residual, gradient = stack.residual(theta)
        rss = _squares(residual, stack.w)
        damping = np.full(len(rss), 0.0 if stack.linear else 1e-4)
        return cls(stack, theta, residual, gradient, rss, damping, np.ones(len(rss), dtype=bool))

    def take(self, members: Members) -> _State:
        """State of some of the laws."""
        theta = (self.theta[TOP][members], self.theta[BOTTOM][members], self.theta[EXPONENT][members])
        gradient = [column[members] for column in self.gradient]
        columns = (self.rss[members], self.damping[members], self.running[members])
        return _State(self.stack.take(members), theta, self.residual[members], gradient, *columns)

    def step(self) -> None:
        """Propose a step and take it where it lowers the residuals."""
        stack, running = self.stack, self.running
        inverted, _ = inverse(stack.normal_matrix(self.gradient), stack.damping(self.damping))
        weighted = self.residual if stack.w is None else stack.w * self.residual
        step = multiply(inverted, project(self.gradient, weighted))
        proposal = stack.after_step(self.theta, np.where(running, step, 0.0))
        residual, gradient = stack.residual(proposal)
        rss = _squares(residual, stack.w)
        better = running & (rss <= self.rss)
        self.running = running & ~(better & (rss >= self.rss * (1.0 - 1e-10))) & (self.damping < 1e8)
        self.damping = np.where(better, self.damping * 0.1, np.maximum(self.damping, 1e-3) * 8.0)
        if better.all():
            self.theta, self.residual, self.gradient, self.rss = proposal, residual, gradient, rss
            return
        take = better[:, None]
        new = [np.where(take, fresh, old) for fresh, old in zip(proposal, self.theta, strict=True)]
        self.theta = (new[TOP], new[BOTTOM], new[EXPONENT])
        self.residual = np.where(take, residual, self.residual)
        self.gradient = [np.where(take, fresh, old) for fresh, old in zip(gradient, self.gradient, strict=True)]
        self.rss = np.where(better, rss, self.rss)


def _squares(residual: Array, w: Array | None) -> Array:
    """Weighted residual sums of squares, (R,)."""
    return np.asarray(np.add.reduce(residual**2 if w is None else w * residual**2, axis=-1))


def _start(stack: Stack, blocks: Sequence[Block], batch: Batch) -> Theta:
    """Parameters from which the search for a stack's laws starts, (R, 1) each.

    Exponents are the best of a grid; responses are those of least squares for that exponent.
    """
    zero = np.zeros((len(stack.cell), 1))
    if not stack.form.free:
        return _start_at_exponent(stack, batch, zero)[0]
    grids = [(stack.form.starts(family), rows.stop - rows.start) for family, rows in blocks]
    if sum(len(grid) * laws for grid, laws in grids) * stack.y.shape[-1] <= AT_ONCE:
        # All exponents are one stack: for few numbers the calls cost more than the work.
        count = np.concatenate([np.full(laws, len(grid)) for grid, laws in grids])
        repeated = stack.take(np.repeat(np.arange(count.size), count))
        b = np.concatenate([np.tile(grid, laws) for grid, laws in grids])[:, None]
        theta, rss = _start_at_exponent(repeated, batch, b)
        table = np.full((count.size, int(count.max())), np.inf)
        table[np.arange(table.shape[1]) < count[:, None]] = rss
        chosen = table.argmin(axis=-1) + np.cumsum(count) - count
        return theta[TOP][chosen], theta[BOTTOM][chosen], theta[EXPONENT][chosen]
    best, best_rss = (zero, zero, zero), np.full(len(zero), np.inf)
    for exponent in grids[0][0]:
        theta, rss = _start_at_exponent(stack, batch, zero + exponent)
        better = (rss < best_rss)[:, None]
        top, bottom, at = (np.where(better, new, old) for new, old in zip(theta, best, strict=True))
        best = (top, bottom, at)
        best_rss = np.minimum(rss, best_rss)
    return best


def _start_at_exponent(stack: Stack, batch: Batch, b: Array) -> tuple[Theta, Array]:
    """Parameters and residual sum of squares (R,) for exponents b (R, 1): least squares in the responses.

    Weights 1/y² stand for multiplicative noise; the responses are then made positive. The residual sum of squares is
    infinite where 0 would be raised to a negative exponent.
    """
    form, zero = stack.form, np.zeros_like(b)
    t, rest = stack.shape(b)
    linear = [t, rest] if form.intercept else [t]
    w, y, least = (part[stack.cell] for part in batch.relative) if form.log else (stack.w, stack.y, zero)
    inverted, _ = inverse(gram(linear, w))
    solved = [value[:, None] for value in multiply(inverted, project(linear, y if w is None else w * y))]
    if form.log:
        solved = [np.maximum(value, least) for value in solved]
    theta = (solved[0], solved[1] if form.intercept else zero, b)
    mean = theta[BOTTOM] + (theta[TOP] - theta[BOTTOM]) * t if form.intercept else theta[TOP] * t
    rss = _squares(stack.y - (np.log(np.maximum(mean, 1e-300)) if form.log else mean), stack.w)
    return theta, np.where((b[:, 0] < 0) & (batch.ends.low[stack.cell, 0] <= 0), np.inf, rss)
