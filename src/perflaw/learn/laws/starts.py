"""Where the search for stacked laws starts: the best of a grid of exponents, responses by least squares given those."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perflaw.learn.laws.batch import Batch
from perflaw.learn.laws.linear import gram, inverse, multiply, project
from perflaw.learn.laws.model import BOTTOM, EXPONENT, TOP, Theta
from perflaw.learn.laws.search import squares
from perflaw.learn.laws.series import Array
from perflaw.learn.laws.stacks import AT_ONCE, Block, Stack, exponents


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
