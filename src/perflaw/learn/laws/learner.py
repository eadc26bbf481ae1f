"""The law learner's front door: thousands of series in, one law each out.

Order of the work: prepare (runs are the replicates) → gate (may it be anything but constant?) → candidates (fit and
score all laws of a batch) → choose → describe (intervals over all laws not told apart, verdict, expression).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from perflaw.learn.laws.candidates import candidates
from perflaw.learn.laws.choose import choose
from perflaw.learn.laws.describe import describe
from perflaw.learn.laws.gate import level, p_values
from perflaw.learn.laws.learnt import Learnt
from perflaw.learn.laws.prepare import Rows, prepare
from perflaw.learn.laws.series import Options, Series, quiet
from perflaw.learn.laws.within import within_p

CELLS = 40_000
"""Numbers a batch holds an array; what stays in the cache is fast."""

FEWEST_RUNS = 5
"""From so many runs on, permuting runs can reject at all."""


def learn(
    series: Sequence[Series], at: Sequence[Mapping[str, float]] | None = None, options: Options | None = None
) -> list[Learnt]:
    """Learn a law for every series; same input, same output.

    ``at`` are the points predictions are made for; without it 2 and 10 times the 95th percentile (linear
    interpolation) of every feature. Raises DataError where a point lacks a feature that a law depends on.

    >>> x = np.array([10.0, 20, 50, 100, 200, 500, 1000])
    >>> law = learn([Series("f", 3.0 * x**2, {"n": x})])[0].law
    >>> law.family, law.verdict, law.mean
    ('quadratic', 'law', '3*n^2')
    """
    options = options or Options()
    rows = [prepare(one) for one in series]
    established = _established(rows, options)
    out: dict[int, Learnt] = {}
    for members in _batches(rows):
        with quiet():
            found = candidates([rows[i] for i in members])
            choices = [choose(found, b, established[i], options) for b, i in enumerate(members)]
            out.update(zip(members, describe(found, choices, at, options), strict=True))
    return [out[i] for i in range(len(rows))]


def _established(rows: Sequence[Rows], options: Options) -> list[np.ndarray]:
    """Features a dependence is established for, (F,) of bool a series.

    Where features vary within runs, permutations within runs and of whole runs share the error (Bonferroni).
    """
    between = p_values([row.between for row in rows], options.permutations)
    out = []
    for row, p in zip(rows, between, strict=True):
        if row.clusters is None:
            out.append(np.full(len(row.x), p <= level(options.alpha, row.between.y.size)))
            continue
        inside = np.flatnonzero(row.varying)
        log_y = row.log_y if row.positive else None
        p_inside = within_p(row.x[inside], row.y, log_y, row.clusters, options.permutations)
        both = row.runs >= FEWEST_RUNS
        alpha = options.alpha / 2.0 if both else options.alpha
        out.append((row.varying & (p_inside <= alpha)) | (both and p <= alpha))
    return out


def _batches(rows: Sequence[Rows]) -> Iterator[list[int]]:
    """Places of series that are fitted together: equally many features, similar length."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[len(row.x), padded(row.y.size)].append(i)
    for (features, length), members in groups.items():
        size = max(1, CELLS // (features * length))
        for start in range(0, len(members), size):
            yield members[start : start + size]


def padded(n: int) -> int:
    """Length that series of n rows are padded to: at most an eighth longer.

    >>> [padded(n) for n in (5, 16, 17, 30, 1000)]
    [5, 16, 18, 30, 1024]
    """
    step = 1 << max(n.bit_length() - 4, 0)
    return -(-n // step) * step
