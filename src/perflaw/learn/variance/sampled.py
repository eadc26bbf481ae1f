"""Sampled invocations of some contexts as arrays: costs, weights and the vectors of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import HIGH, LOW
from perflaw.learn.variance.parts import OWN, Key
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.weighted import Floats
from perflaw.types.call_trees import OTHER, Samples

REPLICATES: Final = 200
"""Bootstrap samples behind an interval."""
_SEED: Final = 20090726
REST: Final = (OTHER, OTHER)
"""Key of callees that are not kept apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Sampled invocations, ordered by their cost."""

    samples: Samples
    """All that the recordings hold."""
    places: NDArray[np.intp]
    """(n,) which of them, in order of their cost."""
    x: Floats
    """(n,) cost."""
    weight: Floats
    """(n,) invocations each stands for."""

    def __len__(self) -> int:
        return len(self.x)


def sampled(tree: Tree, heads: Sequence[int]) -> Sampled | None:
    """The sampled invocations of these nodes; None where there is none."""
    samples = tree.given.samples
    if samples is None:
        return None
    some = np.flatnonzero(np.isin(samples.node, np.asarray(heads, dtype=np.int64)) & ~np.isnan(samples.x))
    if not len(some):
        return None
    places = some[np.argsort(samples.x[some], kind="stable")]
    return Sampled(samples, places, samples.x[places], samples.weight[places])


def parts_matrix(tree: Tree, some: Sampled, keys: Sequence[Key], values: Floats, whole: Floats) -> Floats:
    """(n, len(keys)) what each invocation spends in each part. ``values`` are the callees' costs (C,), ``whole`` X (n,).

    Own code is what is left of X.
    """
    column = {key: place for place, key in enumerate(keys)}
    row = np.full(len(some.samples.x), -1)
    row[some.places] = np.arange(len(some))
    of, callee = row[some.samples.of], some.samples.callee
    chosen = np.flatnonzero(of >= 0)
    nodes, inverse = np.unique(callee[chosen], return_inverse=True)
    columns = np.array([column.get(tree.key(node) if node >= 0 else REST, -1) for node in nodes.tolist()], np.int64)
    at = columns[inverse] if len(nodes) else np.empty(0, np.int64)
    known = at >= 0
    matrix = np.zeros((len(some), len(keys)))
    np.add.at(matrix, (of[chosen][known], at[known]), values[chosen][known])
    matrix[:, column[OWN]] = whole - matrix.sum(axis=1)
    return matrix


def keys_of(some: Sampled, keys: Sequence[Key]) -> tuple[Key, ...]:
    """The parts, and callees not kept apart where the samples have such."""
    mine = np.isin(some.samples.of, some.places)
    return (*keys, REST) if (some.samples.callee[mine] == OTHER).any() else tuple(keys)


def resampled(some: Sampled) -> Iterator[Floats]:
    """Weights of bootstrap samples: invocations drawn again within their strata, the way the sample was."""
    rng = np.random.default_rng(_SEED)
    stratum = some.samples.stratum[some.places]
    groups = [np.flatnonzero(stratum == value) for value in np.unique(stratum)]
    for _ in range(REPLICATES):
        counts = np.empty(len(some))
        for group in groups:
            counts[group] = np.bincount(rng.integers(len(group), size=len(group)), minlength=len(group))
        yield some.weight * counts


def interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The confidence interval of bootstrap values; None where too few could be drawn."""
    finite = [value for value in values if np.isfinite(value)]
    if len(finite) < REPLICATES // 2:
        return None, None
    low, high = np.quantile(finite, [LOW, HIGH])
    return float(low), float(high)
