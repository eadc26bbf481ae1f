"""Quantiles of weighted samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.variance.sums import middle
from perflaw.types.call_trees import CallTree

Floats = NDArray[np.float64]


def quantile(x: Floats, weight: Floats, p: float) -> float:
    """The least of the sorted ``x`` with at least the part ``p`` of all weight up to it.

    >>> quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    total = np.cumsum(weight)
    return float(x[min(int(np.searchsorted(total, p * total[-1] * (1 - 1e-12))), len(x) - 1)])


# ---- What is known of the distribution of one calling context, where samples were drawn over all contexts of its
# function.
#
# A sampled invocation stands for the invocations of its stratum, whichever context they belong to. How many of them
# are of
# its own context the histogram of that context tells exactly: weights that add up to its counts (post-stratification,
# Cochran,
# "Sampling Techniques", 5A.9) are off by far less, and say what no sample does.

PER_POWER = 4
"""Buckets of the histogram in a power of two."""


@dataclass(frozen=True, slots=True, eq=False)
class Nodewise:
    """Samples weighted context by context, and invocations that no sample is like."""

    weight: Floats
    """(S,) invocations of its own context each sampled invocation stands for."""
    node: NDArray[np.int64]
    """(U,) contexts of invocations whose stratum has no sample in that context."""
    value: Floats
    """(U,) their wall time, to an eighth."""
    count: Floats
    """(U,) how many they are."""
    complete: bool
    """Whether a histogram was kept: every invocation is then like a sample or without one."""


def nodewise(tree: CallTree) -> Nodewise:
    """Weights and invocations without a sample; the samples' own weights where no histogram was kept."""
    assert tree.samples is not None
    samples, nothing = tree.samples, np.zeros(0)
    if tree.histogram is None:
        return Nodewise(samples.weight, nothing.astype(np.int64), nothing, nothing, complete=False)
    node, bucket, count = tree.histogram
    strata = int(max(bucket.max(initial=0) // PER_POWER, samples.stratum.max(initial=0))) + 1
    sampled, cell = samples.node * strata + samples.stratum, node * strata + bucket // PER_POWER
    keys, inverse = np.unique(np.concatenate([sampled, cell]), return_inverse=True)
    mine, theirs = inverse[: len(sampled)], inverse[len(sampled) :]
    counts = np.bincount(theirs, count, len(keys))
    held = np.bincount(mine, minlength=len(keys))
    alone = held[theirs] == 0
    middles = np.array([middle(one) for one in bucket[alone].tolist()])
    weight = np.where(counts[mine] > 0, counts[mine] / held[mine], samples.weight)
    return Nodewise(weight, node[alone], middles, count[alone].astype(np.float64), complete=True)
