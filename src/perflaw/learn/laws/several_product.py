"""Power products ``c·x^a·z^b``: exponents learnt, and snapped to plain ones where the data allow.

Under multiplicative noise a product is a straight line in logarithms, so one Gram matrix serves every way of snapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from perflaw.learn.laws.score import LEAST
from perflaw.learn.laws.several_fit import Sample, solve
from perflaw.learn.laws.several_terms import LINEAR, Factor, Term, surprise

SNAPS = (
    LINEAR,
    Factor(2.0),
    Factor(0.5, surprise=1.0),
    Factor(1.0, 1.0, 1.5),
    Factor(-1.0, surprise=1.0),
    Factor(3.0, surprise=1.0),
    Factor(-0.5, surprise=2.0),
)
"""Plain factors an exponent may be snapped to."""

NEAR, NEAR_ERRORS = 0.35, 3.5
"""How far from the learnt exponent: absolutely, and in its standard errors."""

LEAST_ERROR = 0.02
"""Standard error that is taken at least: the noise may not be that of the straight line in logarithms."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product to fit."""

    term: Term
    """Its factors; those with a free exponent at their estimate."""
    free: tuple[int, ...]
    """Features whose exponent is learnt."""
    score: float
    """Rough score; smaller is better."""


def products(sample: Sample, most: int) -> list[Product]:
    """The best few of the product with all exponents learnt and its snapped variants; none where a feature is not positive."""
    count = len(sample.x)
    if (sample.x <= 0).any() or count > 6:
        return []
    z = np.stack([np.ones(sample.y.size), *np.log(sample.x / sample.top[:, None])])
    gram = (z * sample.w) @ z.T
    right = (z * sample.w) @ sample.log_y
    estimate = solve(gram[None], right[None])[0]
    residual = sample.log_y - estimate @ z
    freedom = max(sample.y.size - len(z), 1)
    scale = sample.y.size / sample.worth * float(sample.w @ residual**2) / freedom
    error = np.sqrt(np.maximum(np.diag(np.linalg.pinv(gram)) * scale, LEAST_ERROR**2))
    exponents = np.clip(estimate[1:], -8.0, 8.0)
    options = [_options(f, float(exponents[f]), float(error[1 + f]), sample) for f in range(count)]
    out = []
    for choice in product(*options):
        free = tuple(f for f, factor in enumerate(choice) if factor is None)
        fixed = [_shift(sample, f, factor) for f, factor in enumerate(choice) if factor is not None]
        kept = [0, *(1 + f for f in free)]
        target = sample.log_y - sum(fixed, np.zeros(sample.y.size))
        part = solve(gram[np.ix_(kept, kept)][None], ((z[kept] * sample.w) @ target)[None])[0]
        rss = max(float(sample.w @ (target - part @ z[kept]) ** 2), 1e-16)
        learnt = dict(zip(free, np.clip(part[1:], -8.0, 8.0).tolist(), strict=True))
        term = tuple(g or Factor(learnt[f]) for f, g in enumerate(choice))
        cost = len(free) * (np.log(max(sample.worth, 1.0)) + LEAST) + surprise(term)
        out.append(Product(term, free, float(sample.worth * np.log(rss) + cost)))
    return sorted(out, key=lambda one: one.score)[:most]


def _options(f: int, exponent: float, error: float, sample: Sample) -> list[Factor | None]:
    """A free exponent, and the two nearest plain factors."""
    low = float(sample.bottom[f])
    near: list[tuple[float, Factor]] = []
    for snap in SNAPS:
        if snap.log_exponent and not (low >= 1.0 and sample.top[f] > 1.0):
            continue
        local = (
            float(np.mean(snap.elasticity(sample.x[f]))) if not snap.log_exponent else _mean_slope(snap, sample.x[f])
        )
        away = abs(exponent - local)
        if away <= min(NEAR, NEAR_ERRORS * error) or away <= 0.05:
            near.append((away, snap))
    return [None, *(snap for _, snap in sorted(near, key=lambda pair: pair[0])[:2])]


def _mean_slope(factor: Factor, x: np.ndarray) -> float:
    """Slope of log factor over log x."""
    u = np.log(x)
    v = factor.exponent * u + factor.log_exponent * np.log(np.log(np.maximum(x, 1.0 + 1e-3)))
    u = u - u.mean()
    return float(u @ v / max(float(u @ u), 1e-300))


def _shift(sample: Sample, f: int, factor: Factor) -> np.ndarray:
    """Logarithm of a fixed factor over its value at the top."""
    return np.log(np.maximum(factor.value(sample.x[f], sample.top[f]), 1e-300))
