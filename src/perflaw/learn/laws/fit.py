"""Maximum likelihood fits of one law to a batch of series at once, by Levenberg–Marquardt (Marquardt 1963)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.families import CONSTANT
from perflaw.learn.laws.linear import gram, inverse, multiply, project
from perflaw.learn.laws.model import BOTTOM, EXPONENT, TOP, Ends, Model, Theta
from perflaw.learn.laws.series import Array

AT_ONCE = 20_000
"""Up to so many numbers all starts of a search are one batch."""

LIVELY = 0.6
"""The search goes on with those still moving alone, once they are fewer than this share."""

ITERATIONS = 14
"""Steps of the search; quadratic convergence needs 4 to 8 from the starts above."""


@dataclass(frozen=True, slots=True)
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
    ends: Ends = field(init=False)
    """Smallest and largest x, (B, 1) each."""

    def __post_init__(self) -> None:
        """Find the ends once."""
        object.__setattr__(self, "ends", Ends(self.x.min(axis=-1, keepdims=True), self.x.max(axis=-1, keepdims=True)))

    def take(self, members: NDArray[np.intp]) -> Batch:
        """Some of the series."""
        x, y, log_y, w, quantum = (column[members] for column in (self.x, self.y, self.log_y, self.w, self.quantum))
        return Batch(x, y, log_y, w, quantum, self.positive[members])


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


def fit(model: Model, batch: Batch) -> Fit:
    """Fit a law to every series of a batch; where it is not available its deviance is infinite."""
    usable = _usable(model, batch)
    safe = _stand_in(batch, usable)
    theta, rss = _search(model, safe)
    _, columns = _residual(model, safe, theta)
    inverted, regular = inverse(gram(columns, safe.w))
    covariance = np.zeros((len(safe.x), 3, 3))
    for i, p in enumerate(model.columns):
        for j, q in enumerate(model.columns):
            covariance[:, p, q] = inverted[i][j]
    floor = model.noise.floor(safe.y, safe.w, safe.quantum)
    deviance = model.noise.deviance(rss, floor, safe.w.sum(axis=-1), (safe.w * safe.log_y).sum(axis=-1))
    fine = usable & regular & np.isfinite(deviance)
    parameters = np.stack([p[:, 0] for p in theta], axis=-1)
    return Fit(model, parameters, covariance, rss, floor, np.where(fine, deviance, np.inf))


def _usable(model: Model, batch: Batch) -> NDArray[np.bool_]:
    """Series the law can be fitted to, (B,)."""
    fine = batch.positive.copy() if model.noise.log else np.ones(len(batch.x), dtype=bool)
    if model.term is CONSTANT:
        return fine
    fine &= model.term.available(batch.x)
    if not model.intercept:
        # Under multiplicative noise μ must not reach 0 on the data.
        low = batch.ends.low[:, 0]
        fine &= low > model.term.zero if model.noise.log else low >= min(model.term.zero, 0.0)
    return fine


def _stand_in(batch: Batch, usable: NDArray[np.bool_]) -> Batch:
    """The batch with harmless numbers where the law is not available, so that no warning or NaN arises."""
    if usable.all():
        return batch
    keep = usable[:, None]
    x = np.where(keep, batch.x, 2.0 + np.arange(batch.x.shape[1]))
    y, log_y = np.where(keep, batch.y, 1.0), np.where(keep, batch.log_y, 0.0)
    return replace(batch, x=x, y=y, log_y=log_y)


def _residual(model: Model, batch: Batch, theta: Theta) -> tuple[Array, list[Array]]:
    """Residuals (B, n) and the gradient of the mean on the noise's own scale, a list of (B, n)."""
    mean, gradient = model.mean(theta, batch.ends, batch.x)
    if not model.noise.log:
        return batch.y - mean, gradient
    mean = np.maximum(mean, 1e-300)
    return batch.log_y - np.log(mean), model.scaled(theta, mean, gradient)


def _search(model: Model, batch: Batch) -> tuple[Theta, Array]:
    """Parameters and residual sum of squares; every series stops by itself, so a batch equals its members."""
    found = np.stack([p[:, 0] for p in _start(model, batch)], axis=-1)
    members, out = np.arange(len(found)), np.empty(len(found))
    steps = 2 if _is_linear(model) else ITERATIONS
    state = _State.begin(model, batch, (found[:, 0, None], found[:, 1, None], found[:, 2, None]))
    for step in range(steps):
        state.step()
        left = np.flatnonzero(state.running)
        if left.size < LIVELY * members.size or step == steps - 1:
            found[members], out[members] = np.concatenate(state.theta, axis=-1), state.rss
            if left.size == 0:
                break
            members, state = members[left], state.take(left)
    return (found[:, 0, None], found[:, 1, None], found[:, 2, None]), out


@dataclass(slots=True)
class _State:
    """Where the search of some series stands."""

    model: Model
    batch: Batch
    theta: Theta
    residual: Array
    columns: list[Array]
    rss: Array
    damping: Array
    running: NDArray[np.bool_]

    @classmethod
    def begin(cls, model: Model, batch: Batch, theta: Theta) -> _State:
        """At the start."""
        residual, columns = _residual(model, batch, theta)
        rss = (batch.w * residual**2).sum(axis=-1)
        damping = np.full(len(rss), 0.0 if _is_linear(model) else 1e-4)
        return cls(model, batch, theta, residual, columns, rss, damping, np.ones(len(rss), dtype=bool))

    def take(self, members: NDArray[np.intp]) -> _State:
        """Some of the series."""
        theta = (self.theta[TOP][members], self.theta[BOTTOM][members], self.theta[EXPONENT][members])
        columns = [column[members] if len(column) > 1 else column for column in self.columns]
        batch, residual, rss = self.batch.take(members), self.residual[members], self.rss[members]
        return _State(self.model, batch, theta, residual, columns, rss, self.damping[members], self.running[members])

    def step(self) -> None:
        """Propose a step, take it where it lowers the residuals."""
        batch, running = self.batch, self.running
        inverted, _ = inverse(gram(self.columns, batch.w), self.damping)
        step = multiply(inverted, project(self.columns, batch.w, self.residual))
        proposal = _moved(self.model, self.theta, step, running)
        residual, columns = _residual(self.model, batch, proposal)
        rss = (batch.w * residual**2).sum(axis=-1)
        better = running & (rss <= self.rss)
        self.running = running & ~(better & (rss >= self.rss * (1.0 - 1e-10))) & (self.damping < 1e8)
        self.damping = np.where(better, self.damping * 0.1, np.maximum(self.damping, 1e-3) * 8.0)
        take = better[:, None]
        new = [np.where(take, fresh, old) for fresh, old in zip(proposal, self.theta, strict=True)]
        self.theta = (new[TOP], new[BOTTOM], new[EXPONENT])
        self.residual = np.where(take, residual, self.residual)
        self.columns = [np.where(take, fresh, old) for fresh, old in zip(columns, self.columns, strict=True)]
        self.rss = np.where(better, rss, self.rss)


def _is_linear(model: Model) -> bool:
    """Residuals are linear in the parameters: one full step is exact."""
    return not model.intercept if model.noise.log else not model.term.free


def _moved(model: Model, theta: Theta, step: list[Array], running: NDArray[np.bool_]) -> Theta:
    """Parameters after a step; responses move by factors under multiplicative noise, at most e² at once."""
    out, reach = list(theta), 600.0 if _is_linear(model) else 1.0
    for place, delta in zip(model.columns, step, strict=True):
        move = np.where(running, delta, 0.0)[:, None]
        if place == EXPONENT:
            b = np.clip(out[place] + np.clip(move, -reach, reach), -model.term.bound, model.term.bound)
            # t is not defined at exponent 0; its limit (the logarithm) is reached closely enough.
            out[place] = np.where(np.abs(b) < 1e-3, 1e-3, b) if model.intercept else b
        elif model.noise.log:
            out[place] = np.clip(out[place] * np.exp(np.clip(move, -2.0 * reach, 2.0 * reach)), 1e-280, 1e280)
        else:
            out[place] = out[place] + move
    return out[TOP], out[BOTTOM], out[EXPONENT]


def _start(model: Model, batch: Batch) -> Theta:
    """Best of a grid of exponents, responses by weighted least squares given the exponent."""
    zero = np.zeros((len(batch.x), 1))
    if not model.term.free:
        return _given_exponent(model, batch, zero)[0]
    starts = model.term.starts if model.intercept or not model.noise.log else (1.0,)
    if len(starts) * batch.x.size <= AT_ONCE:
        return _best_start(model, batch, np.array(starts))
    best, best_rss = (zero, zero, zero), np.full(len(batch.x), np.inf)
    for exponent in starts:
        theta, rss = _start_from(model, batch, zero + exponent)
        better = (rss < best_rss)[:, None]
        best = tuple(np.where(better, new, old) for new, old in zip(theta, best, strict=True))  # type: ignore[assignment]  # three, as before
        best_rss = np.minimum(rss, best_rss)
    return best


def _best_start(model: Model, batch: Batch, starts: Array) -> Theta:
    """The same with all exponents in one batch: for few numbers the calls cost more than the work."""
    count = len(batch.x)
    several = batch.take(np.repeat(np.arange(count), starts.size))
    theta, rss = _start_from(model, several, np.tile(starts, count)[:, None])
    best = rss.reshape(count, -1).argmin(axis=-1) + np.arange(count) * starts.size
    return theta[TOP][best], theta[BOTTOM][best], theta[EXPONENT][best]


def _start_from(model: Model, batch: Batch, b: Array) -> tuple[Theta, Array]:
    """Responses and residual sum of squares for exponents b (B, 1); infinite where x = 0 would be raised to less than 0."""
    theta, rss = _given_exponent(model, batch, b)
    return theta, np.where((b[:, 0] < 0) & (batch.ends.low[:, 0] <= 0), np.inf, rss)


def _given_exponent(model: Model, batch: Batch, b: Array) -> tuple[Theta, Array]:
    """Least squares in the responses (weights 1/y² stand for multiplicative noise), then made positive."""
    zero = np.zeros_like(b)
    one = zero + 1.0
    _, columns = model.mean((one, zero, b), batch.ends, batch.x)
    linear = columns[: 1 + model.intercept]
    w = batch.w * np.exp(2.0 * (batch.log_y.min(axis=-1, keepdims=True) - batch.log_y)) if model.noise.log else batch.w
    y = np.exp(batch.log_y) if model.noise.log else batch.y
    inverted, _ = inverse(gram(linear, w))
    solved = [value[:, None] for value in multiply(inverted, project(linear, w, y))]
    if model.noise.log:
        least = 0.05 * y.min(axis=-1, keepdims=True)
        solved = [np.maximum(value, least) for value in solved]
    theta = (solved[0], solved[1] if model.intercept else zero, b)
    residual, _ = _residual(model, batch, theta)
    return theta, (batch.w * residual**2).sum(axis=-1)
