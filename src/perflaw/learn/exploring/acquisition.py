"""Where the next trial tells most: a start that fills the space, then the improvement that is expected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from perflaw.learn.exploring.surrogate import LEVEL, Curves, Surrogate, covariance, distances, fit_surrogate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

REFERENCES = 400
"""Points at most by which a start is judged."""
NOTHING, WIDE = 1e-3, 3.0
"""Improvement, in the responses' spread, that is none; standard deviations a law may be wrong by."""


def filling(
    tried: Array, candidates: Array, ordered: Mask, generator: np.random.Generator, worth: Array | float = 1.0
) -> int:
    """Return the candidate (m, d) that leaves the least doubt over the space beside the ``tried`` (n, d), n ≥ 0.

    The doubt is that of a prior with curves, pairs and cliffs, alike for all knobs (active learning, Cohn 1996); ties are
    drawn. ``worth`` (m,) weighs candidates: the probability that they are data points.
    """
    d = ordered.size
    curves = Curves(np.full(d, 1.0 / d), np.full(d, 1.0), 1.0, 0.01, rough=True)
    some = generator.permutation(candidates.shape[0])[:REFERENCES]
    references = candidates[some]
    cross = covariance(distances(candidates, references, ordered), curves, ordered) + LEVEL
    own = covariance(np.zeros((d, candidates.shape[0], 1)), curves, ordered)[:, 0] + LEVEL
    if tried.shape[0]:
        matrix = covariance(distances(tried, tried, ordered), curves, ordered) + LEVEL
        matrix[np.diag_indices_from(matrix)] += curves.noise
        left = covariance(distances(candidates, tried, ordered), curves, ordered) + LEVEL
        right = covariance(distances(references, tried, ordered), curves, ordered) + LEVEL
        weights = np.linalg.solve(matrix, right.T)
        cross = cross - left @ weights
        own = own - np.einsum("ij,ji->i", left, np.linalg.solve(matrix, left.T))
    gain = (cross * cross).mean(axis=1) / (np.maximum(own, 0.0) + curves.noise)
    return int(np.argmax(gain * worth * (1.0 + 1e-3 * generator.uniform(size=gain.size))))


def improvement(means: Array, sds: Array, best: Array) -> Array:
    """Return the expected improvement (m,) over ``best`` (s, 1) or (s, m), averaged over draws (s, m) (Jones 1998)."""
    z = (means - best) / sds
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.asarray((sds * (z * ndtr(z) + density)).mean(axis=0))


def promise(means: Array, sds: Array, best: Array, usable: Array) -> Array:
    """Return by what to choose the next trial (m,): the expected improvement, while there is any to speak of.

    After that the law says that nothing is left; worth a trial is where it may be wrong: the upper end of a wide interval.
    """
    gain = improvement(means, sds, best) * usable
    if gain.max() > NOTHING:
        return np.asarray(gain)
    upper = (means + WIDE * sds - best).mean(axis=0)
    return np.asarray(np.where(usable > 0.5, upper, upper - 1.0 / usable))


def chance(means: Array, sds: Array, level: Array | float) -> Array:
    """Return the probability (m,) that a candidate is above ``level``, averaged over draws."""
    return np.asarray(ndtr((means - level) / sds).mean(axis=0))


# ---- What a candidate is compared with: the best configuration known, under the candidate's own workload.

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


# ---- Where configurations are data points: learnt from those that were not (a value refused, a target that does not
# start).

DRAWS = 6
"""Draws of the covariance: less is at stake than with the responses."""
LEAST = 0.02
"""Probability that is left to everything: failures may have other causes."""


def validity(good: Array, failed: Array, at: Array, ordered: Mask, seed: int) -> Array:
    """Return the probability (m,) that points (m, d) are data points, after ``good`` (n, d) and ``failed`` (k, d) trials.

    A Gaussian process on labels ±1 (least-squares classification; Rasmussen & Williams, §6.5); 1 without failures.
    """
    if not failed.shape[0]:
        return np.ones(at.shape[0])
    if not good.shape[0]:
        return np.full(at.shape[0], 0.5)
    labels = np.concatenate([np.ones(good.shape[0]), -np.ones(failed.shape[0])])
    law = fit_surrogate(np.concatenate([good, failed]), ordered, labels, 1.0, seed, draws=DRAWS)
    means, sds = law.predict(at)
    return np.asarray(np.clip(chance(means, np.hypot(sds, 0.2), law.scale.to(np.zeros(1))[0]), LEAST, 1.0))


# ---- How sure it is that nothing untried is better by more than a margin: whole laws are drawn, and counted.
#
# A law that fits well and is still wrong would be too sure. So its doubt is first widened by how far trials lay off
# what the
# others said of them (leave-one-out residuals), and a share of the probability is kept back while few trials bear the
# law out.

LOOKED_AT = 120
"""Candidates drawn jointly: those most likely to be better."""
LAWS = 40
"""Laws drawn for each draw of the covariance."""
SOONEST = 8
"""Distinct configurations before which nothing is known."""
KEPT_BACK = 1.0
"""Trials' worth of a law that may be wrong altogether: probability 1/(n + 1) for n trials."""


def certainty(law: Surrogate, at: Array, usable: Array, margin: float, seed: int) -> float:
    """Return the probability that none of the points ``at`` (m, d) is better than the best trial by more than ``margin``.

    Args:
        law: fitted to all trials.
        at: what was not tried.
        usable: probability that each is a data point, (m,).
        margin: share (0.05: 5 %).
        seed: of the draws.
    """
    distinct = np.unique(law.x, axis=0).shape[0]
    if distinct < SOONEST:
        return 0.0
    if not at.shape[0]:
        return 1.0
    generator = np.random.default_rng([seed, distinct, 17])
    best, _ = law.predict(law.x)
    means, sds = law.predict(at)
    wide = law.misfit()
    level = best.max(axis=1, keepdims=True) + law.scale.step(margin)
    likely = np.argsort(-chance(means, sds * wide, level) * usable, kind="stable")[:LOOKED_AT]
    drawn = law.joint(np.concatenate([law.x, at[likely]]), LAWS, generator)
    middle = law.predict(np.concatenate([law.x, at[likely]]))[0].repeat(LAWS, axis=0)
    drawn = middle + wide * (drawn - middle)
    tried, untried = drawn[:, : law.x.shape[0]], drawn[:, law.x.shape[0] :]
    exists = generator.uniform(size=untried.shape) < usable[likely]
    top = np.where(exists, untried, -np.inf).max(axis=1)
    chosen = np.argmax(best.mean(axis=0))
    holds = float(np.mean(top <= tried[:, chosen] + law.scale.step(margin)))
    return float(holds * distinct / (distinct + KEPT_BACK))
