"""Null control: nothing but a constant law unless permuting the responses says that they depend on a feature.

A permutation test of the largest squared correlation over features, their transforms (log x, x, x², ranks) and those
of y (y, log y, ranks). Under "no dependence" rows are exchangeable, so its error is the nominal one whatever the
noise and whatever the design of x (Westfall & Young 1993, §2: max-T). Sample moments alone would not do: minimum BIC
calls 31 % of pure noise a law at n = 10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.ranks import ranks, student_tail
from perflaw.learn.laws.series import Array

CLEAR = 1e-3
"""Spearman's test passes a series at this p without permuting; it is valid whatever the noise."""

CLEAR_FROM = 8
"""Fewest rows for that shortcut (the t approximation of Spearman's ρ)."""

EXACT_UP_TO = 5
"""Up to so many rows all permutations are tried."""

CELLS = 2_000_000
"""Numbers held at a time."""


def level(alpha: float, n: int) -> float:
    """Error at which n units reject: ``alpha``, or what the least p of five units needs (a perfect order, or its reverse)."""
    return max(alpha, 2.0 / 120.0 + 1e-9) if n == EXACT_UP_TO else alpha


@dataclass(frozen=True, slots=True)
class Units:
    """What is exchangeable under the null: runs, or rows of the only run."""

    x: Array
    """Features, (F, n)."""
    y: Array
    """Responses, (n,)."""
    log_y: Array | None
    """Their logarithms, (n,); None where a response is not positive."""


@lru_cache(maxsize=256)
def orders(n: int, count: int) -> NDArray[np.intp]:
    """Permutations of n rows, (P, n), the identity left out: all for few rows, else seeded by n alone."""
    if n <= EXACT_UP_TO:
        return np.array(list(permutations(range(n)))[1:], dtype=np.intp).reshape(-1, n)
    rng = np.random.default_rng([n, count])
    return rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)


def p_values(units: Sequence[Units], count: int) -> Array:
    """Chance of such data under "nothing depends on a feature" for every member, (len(units),); 1 if unknown."""
    out = np.ones(len(units))
    groups: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
    for i, unit in enumerate(units):
        if unit.x.shape[0] and unit.y.size > 2:
            groups[(*unit.x.shape, unit.log_y is not None)].append(i)
    for (_, n, positive), members in groups.items():
        size = max(1, CELLS // (n * count * 3))
        for start in range(0, len(members), size):
            part = members[start : start + size]
            x = np.stack([units[i].x for i in part])
            y = np.stack([units[i].y for i in part])
            log_y = np.stack([units[i].log_y for i in part]) if positive else None  # type: ignore[misc]  # all have one
            out[part] = _group(x, y, log_y, count)
    return out


def _group(x: Array, y: Array, log_y: Array | None, count: int) -> Array:
    """Values p of members of equal shape: x (B, F, n), y (B, n) -> (B,)."""
    ranks_x, ranks_y = unit(ranks(x)), unit(ranks(y))
    p = _spearman_p(np.abs(ranks_x @ ranks_y[..., None])[..., 0], x.shape[-1]) * x.shape[1]
    out: Array = p.min(axis=-1)
    unclear = (out >= CLEAR) | (x.shape[-1] < CLEAR_FROM)
    if unclear.any():
        columns = transforms(x[unclear])
        responses = [unit(y[unclear])] + ([unit(log_y[unclear])] if log_y is not None else [])
        order = orders(x.shape[-1], count)
        out[unclear] = _permutation_p(columns, responses, ranks_x[unclear], ranks_y[unclear], order)
    return out


def transforms(x: Array) -> Array:
    """Standardised x, x² and log x (x itself where not positive): (B, F, n) -> (B, 3F, n)."""
    top = np.abs(x).max(axis=-1, keepdims=True)
    scaled = x / np.where(top > 0, top, 1.0)
    positive = (x > 0).all(axis=-1, keepdims=True)
    logs = np.where(positive, np.log(np.maximum(np.where(positive, scaled, 1.0), 1e-300)), scaled)
    return np.concatenate([unit(scaled), unit(scaled**2), unit(logs)], axis=1)


def unit(values: Array) -> Array:
    """Values centred and of unit length along the last axis; 0 where they do not vary."""
    centred = values - np.add.reduce(values, axis=-1, keepdims=True) / values.shape[-1]
    length = np.sqrt(np.add.reduce(centred**2, axis=-1, keepdims=True))
    # Rounding of equal numbers is not variation.
    size = np.abs(values).max(axis=-1, keepdims=True) * np.sqrt(values.shape[-1])
    varies = length > 1e-12 * size
    if varies.all():
        return np.asarray(np.divide(centred, length, out=centred))
    return np.where(varies, centred / np.where(varies, length, 1.0), 0.0)


def _spearman_p(rho: Array, n: int) -> Array:
    """Two-sided p of Spearman's ρ by its t approximation (Kendall & Stuart, §31.19)."""
    statistic = rho * np.sqrt((n - 2) / np.maximum(1.0 - rho**2, 1e-12))
    return np.asarray(2.0 * student_tail(statistic, n - 2))


def _permutation_p(
    columns: Array, responses: list[Array], rank_x: Array, rank_y: Array, order: NDArray[np.intp]
) -> Array:
    """Share of permutations whose largest |r| reaches the data's, the data counted as one of them."""
    observed = np.zeros(len(columns))
    permuted = np.zeros((len(columns), len(order)))
    for left, right in [*((columns, response) for response in responses), (rank_x, rank_y)]:
        here = np.abs(left @ right[..., None])[..., 0].max(axis=-1)
        observed = np.maximum(observed, here)
        there = np.abs(right[:, order] @ left.transpose(0, 2, 1)).max(axis=-1)
        permuted = np.maximum(permuted, there)
    reached = (permuted >= observed[:, None] * (1.0 - 1e-9)).sum(axis=-1)
    p = (1.0 + reached) / (1.0 + len(order))
    return np.where(observed > 0, p, 1.0)
