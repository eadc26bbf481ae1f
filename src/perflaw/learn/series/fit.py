"""Maximum likelihood fits of many laws to a batch of series at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import Family
from perflaw.learn.series.model import BOTTOM, EXPONENT, TOP, Model, NoiseModel, Theta, gram, inverse, multiply, project
from perflaw.learn.series.series import Array
from perflaw.learn.series.stacks import (
    AT_ONCE,
    ORDER,
    Batch,
    Block,
    Form,
    Members,
    Mixed,
    Stack,
    exponents,
    mixed,
    stacks,
)

# ---- The search for the parameters of stacked laws, by Levenberg–Marquardt (Marquardt 1963).

LIVELY = 0.6
"""The search goes on with those still moving alone, once they are fewer than this share."""

ITERATIONS = 14
"""Steps of the search; quadratic convergence needs 4 to 8 from the starts of :mod:`perflaw.learn.series.fit`."""


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


# ---- Where the search for stacked laws starts: the best of a grid of exponents, responses by least squares given
# those.


def start(stack: Stack, blocks: Sequence[Block], batch: Batch) -> Theta:
    """Parameters of a stack's laws, (R, 1) each."""
    zero = np.zeros((len(stack.cell), 1))
    if not stack.form.free:
        return _given_exponent(stack, batch, zero)[0]
    grids = [(exponents(stack.form, term), rows.stop - rows.start) for term, rows in blocks]
    if sum(len(grid) * count for grid, count in grids) * stack.y.shape[-1] <= AT_ONCE:
        return _best_start(stack, batch, grids)
    best, best_rss = (zero, zero, zero), np.full(len(zero), np.inf)
    for exponent in grids[0][0]:
        theta, rss = _start_from(stack, batch, zero + exponent)
        better = (rss < best_rss)[:, None]
        best = tuple(np.where(better, new, old) for new, old in zip(theta, best, strict=True))  # type: ignore[assignment]  # three, as before
        best_rss = np.minimum(rss, best_rss)
    return best


def _best_start(stack: Stack, batch: Batch, grids: Sequence[tuple[tuple[float, ...], int]]) -> Theta:
    """The same with all exponents in one stack: for few numbers the calls cost more than the work."""
    count = np.concatenate([np.full(laws, len(grid)) for grid, laws in grids])
    several = stack.take(np.repeat(np.arange(count.size), count))
    theta, rss = _start_from(several, batch, np.concatenate([np.tile(grid, laws) for grid, laws in grids])[:, None])
    table = np.full((count.size, int(count.max())), np.inf)
    table[np.arange(table.shape[1]) < count[:, None]] = rss
    best = table.argmin(axis=-1) + np.cumsum(count) - count
    return theta[TOP][best], theta[BOTTOM][best], theta[EXPONENT][best]


def _start_from(stack: Stack, batch: Batch, b: Array) -> tuple[Theta, Array]:
    """Responses and residual sum of squares for exponents b (R, 1); infinite where x = 0 would be raised to less than 0."""
    theta, rss = _given_exponent(stack, batch, b)
    return theta, np.where((b[:, 0] < 0) & (batch.ends.low[stack.cell, 0] <= 0), np.inf, rss)


def _given_exponent(stack: Stack, batch: Batch, b: Array) -> tuple[Theta, Array]:
    """Least squares in the responses (weights 1/y² stand for multiplicative noise), then made positive."""
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
    residual = stack.y - (np.log(np.maximum(mean, 1e-300)) if form.log else mean)
    return theta, squares(residual, stack.w)


@dataclass(frozen=True, slots=True)
class Fit:
    """One law fitted to a batch."""

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
    """Fit laws to every series of a batch, model by model; where one is not available its deviance is infinite."""
    forms: dict[Form, list[int]] = defaultdict(list)
    for m, model in enumerate(models):
        forms[Form(model.noise.log, model.intercept, model.family.free)].append(m)
    count, log_y = batch.w.sum(axis=-1), (batch.w * batch.log_y).sum(axis=-1)
    floors = {noise: _floor(noise, batch) for noise in dict.fromkeys(model.noise for model in models)}
    found = [_none(model, floors[model.noise]) for model in models]
    terms = {form: [models[m].family for m in members] for form, members in forms.items()}
    for blocks, stack, theta, rss in _searched(terms, batch):
        members = forms[stack.form]
        noise = models[members[0]].noise
        covariance, regular = _covariance(stack, theta)
        deviance = noise.deviance(rss, floors[noise][stack.cell], count[stack.cell], log_y[stack.cell])
        deviance = np.where(regular & np.isfinite(deviance), deviance, np.inf)
        at = {models[m].family: found[m] for m in members}
        for term, rows in blocks:
            out, cells = at[term], stack.cell[rows]
            out.theta[cells], out.covariance[cells] = theta[rows], covariance[rows]
            out.rss[cells], out.deviance[cells] = rss[rows], deviance[rows]
    return found


def _floor(noise: NoiseModel, batch: Batch) -> Array:
    """Smallest credible σ, (B,); of any size where the noise cannot be."""
    y = np.where(batch.positive[:, None], batch.y, 1.0) if noise.log else batch.y
    return noise.floor(y, batch.w, batch.quantum)


def _none(model: Model, floor: Array) -> Fit:
    """A law that is available nowhere."""
    size = len(floor)
    nothing = np.zeros((size, 3)), np.zeros((size, 3, 3)), np.full(size, np.inf)
    return Fit(model, *nothing, floor, np.full(size, np.inf))


Searched = tuple[list[Block], Stack, Array, Array]
"""A stack's blocks, the stack, its laws' parameters (R, 3) and residual sums of squares (R,)."""


def _searched(forms: Mapping[Form, Sequence[Family]], batch: Batch) -> Iterator[Searched]:
    """All stacks of all forms with what the search found; those of few laws are searched for as one."""
    together: list[tuple[list[Block], Stack, Theta]] = []
    for form in sorted(forms, key=lambda one: ORDER.index(one) if one in ORDER else -1):
        for blocks, stack in stacks(form, forms[form], batch):
            begin = start(stack, blocks, batch)
            if form in ORDER and stack.y.size <= AT_ONCE // 2:
                together.append((blocks, stack, begin))
            else:
                yield blocks, stack, *search(stack, begin)
    if not any(stack.form.free for _, stack, _ in together):
        yield from ((blocks, stack, *search(stack, begin)) for blocks, stack, begin in together)
        return
    m1, m0, b = (np.concatenate(part) for part in zip(*(theta for _, _, theta in together), strict=True))
    theta, rss = search(mixed([stack for _, stack, _ in together]), (m1, m0, b))
    ends = np.cumsum([len(stack.y) for _, stack, _ in together]).tolist()
    for (blocks, stack, _), end in zip(together, ends, strict=True):
        rows = slice(end - len(stack.y), end)
        yield blocks, stack, theta[rows], rss[rows]


def _covariance(stack: Stack, theta: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Covariances over σ² of a stack's laws (R, 3, 3), and whether they exist."""
    _, columns = stack.residual((theta[:, 0, None], theta[:, 1, None], theta[:, 2, None]))
    inverted, regular = inverse(stack.normal(columns))
    covariance = np.zeros((len(theta), 3, 3))
    places = np.array(stack.form.columns)
    covariance[:, places[:, None], places] = np.moveaxis(inverted, -1, 0)
    return covariance, regular
