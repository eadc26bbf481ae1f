"""Smooth laws of two terms, such as 3·x + 0.002·x²: what a breakpoint has to beat besides the families of one term."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from perflaw.learn.laws.scan import Sorted
from perflaw.learn.laws.series import Array


def blended(rows: Sorted) -> Array:
    """Least residuals of sums of two growing terms with positive coefficients, weights 1/y², (S,); infinite if none.

    All responses have to be positive; terms with logarithms need x ≥ 1, all need x > 0.
    """
    out = np.full(len(rows.x), np.inf)
    inverse = np.exp(rows.log_y.min(axis=-1, keepdims=True) - rows.log_y)
    target = inverse.max(axis=-1, keepdims=True)
    goal, weight = np.ones_like(inverse) * target, rows.w
    for first, second in combinations(_terms(rows.x), 2):
        a, b = first * inverse, second * inverse
        aa, ab, bb = ((weight * left * right).sum(axis=-1) for left, right in ((a, a), (a, b), (b, b)))
        ay, by = (weight * a * goal).sum(axis=-1), (weight * b * goal).sum(axis=-1)
        determinant = aa * bb - ab * ab
        fine = determinant > 1e-12 * aa * bb
        safe = np.where(fine, determinant, 1.0)
        p, q = (bb * ay - ab * by) / safe, (aa * by - ab * ay) / safe
        rss = (weight * (goal - p[:, None] * a - q[:, None] * b) ** 2).sum(axis=-1) / target[:, 0] ** 2
        out = np.where(fine & (p > 0) & (q > 0), np.minimum(out, rss), out)
    return np.where((rows.x > 0).all(axis=-1), out, np.inf)


def _terms(x: Array) -> list[Array]:
    """Growing terms relative to their largest, (S, n) each."""
    ratio = x / np.maximum(x.max(axis=-1, keepdims=True), 1e-300)
    positive = np.maximum(ratio, 1e-300)
    log_x = np.log(np.maximum(x, 1.0))
    logs = log_x / np.maximum(log_x.max(axis=-1, keepdims=True), 1e-300)
    powers = [np.sqrt(positive), ratio, ratio**2, ratio**3]
    return [np.ones_like(x), logs, *powers, ratio * logs, ratio * logs**2]
