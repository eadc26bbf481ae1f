"""What a candidate is compared with: the best configuration known, under the candidate's own workload."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.surrogate import Surrogate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

TARGETS, WORKLOADS = 8, 32
"""Configurations of the target, and workloads, that are compared; beyond that one reference serves all."""


def reference(law: Surrogate, x: Array, at: Array, workload: Mask) -> Array:
    """Return the law's best by draw for candidates ``at`` (m, d): (s, 1), or (s, m) where knobs of the workload differ.

    ``x`` (n, d) are trials, ``workload`` (d,) tells which knobs describe the workload.
    """
    means, _ = law.predict(x)
    workloads, place = np.unique(at[:, workload], axis=0, return_inverse=True)
    if not workload.any() or len(workloads) > WORKLOADS:
        return np.asarray(means.max(axis=1, keepdims=True))
    order = np.argsort(-means.mean(axis=0))[:TARGETS]
    points = np.repeat(x[order][None], len(workloads), axis=0)
    points[:, :, workload] = workloads[:, None, :]
    there, _ = law.predict(points.reshape(-1, x.shape[1]))
    best = there.reshape(there.shape[0], len(workloads), order.size).max(axis=2)
    return np.asarray(best[:, place.ravel()])
