"""What policies ask of the surrogate: where the next trial is worth most, where trials fail, and when the best is found."""

from __future__ import annotations

import numpy as np

from perflaw.learn.exploring.gaussian_process import (
    MEAN_VARIANCE,
    Array,
    Hyperparameters,
    Mask,
    Surrogate,
    covariance,
    distances,
    fit_surrogate,
)
from perflaw.special import ndtr

REFERENCES = 400
"""Largest number of points at which the remaining uncertainty of a start is computed."""
NEGLIGIBLE, WIDE = 1e-3, 3.0
"""Expected improvement, in standard deviations of the responses, that counts as none; width of the interval explored then."""
COMPARED_TARGETS, COMPARED_WORKLOADS = 8, 32
"""Largest numbers of configurations and workloads that are compared; with more workloads, all have the same reference."""
VALIDITY_DRAWS = 6
"""Draws of the hyperparameters for the validity of configurations, where less accuracy is needed."""
MIN_VALIDITY, HOPELESS = 0.02, 0.1
"""Smallest probability that a configuration is a data point: failures may have other causes. Below the second one it is not
tried while others may be better: what was never measured may always be better than anything, however often it failed."""
MAX_LIKELY = 120
"""Number of candidates that are drawn jointly: those that are most likely to be better."""
LAWS = 40
"""Laws that are drawn under each draw of the hyperparameters."""
MIN_CONFIGURATIONS = 8
"""Number of distinct configurations below which nothing is certain."""
DOUBT = 1.0
"""Weight, in trials, of the possibility that the law is wrong altogether: probability 1/(n + 1) after n trials."""


def fill_space(
    tried: Array, candidates: Array, ordered: Mask, generator: np.random.Generator, worth: Array | float = 1.0
) -> int:
    """Return the candidate (m, d) whose trial leaves the least uncertainty over the space, after ``tried`` (n, d), n ≥ 0.

    The uncertainty is that of a prior with equal curves, pairs and cliffs for all knobs (active learning, Cohn 1996). Ties are
    drawn. ``worth`` (m,) weighs candidates by the probability that they are data points.
    """
    d = ordered.size
    prior = Hyperparameters(np.full(d, 1.0 / d), np.full(d, 1.0), 1.0, 0.01, rough=True)

    def between(a: Array, b: Array) -> Array:
        return covariance(distances(a, b, ordered), prior, ordered) + MEAN_VARIANCE

    references = candidates[generator.permutation(candidates.shape[0])[:REFERENCES]]
    cross = between(candidates, references)
    own = covariance(np.zeros((d, candidates.shape[0], 1)), prior, ordered)[:, 0] + MEAN_VARIANCE
    if tried.shape[0]:
        known = between(tried, tried)
        known[np.diag_indices_from(known)] += prior.noise
        left = between(candidates, tried)
        cross = cross - left @ np.linalg.solve(known, between(references, tried).T)
        own = own - np.einsum("ij,ji->i", left, np.linalg.solve(known, left.T))
    gain = (cross * cross).mean(axis=1) / (np.maximum(own, 0.0) + prior.noise)
    return int(np.argmax(gain * worth * (1.0 + 1e-3 * generator.uniform(size=gain.size))))


def expected_improvement(means: Array, sds: Array, best: Array) -> Array:
    """Return the expected improvement (m,) over ``best`` (s, 1) or (s, m), averaged over draws (s, m) (Jones 1998)."""
    z = (means - best) / sds
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.asarray((sds * (z * ndtr(z) + density)).mean(axis=0))


def acquisition(means: Array, sds: Array, best: Array, usable: Array) -> Array:
    """Return the criterion for the next trial, (m,): the expected improvement, as long as it is above nothing.

    Where the law expects no improvement at all, the upper end of a wide interval shows where the law may be wrong.
    """
    gain = np.where(usable < HOPELESS, 0.0, expected_improvement(means, sds, best) * usable)
    if gain.max() > NEGLIGIBLE:
        return np.asarray(gain)
    upper = (means + WIDE * sds - best).mean(axis=0)
    return np.asarray(np.where(usable > 0.5, upper, upper - 1.0 / usable))


def probability_above(means: Array, sds: Array, level: Array | float) -> Array:
    """Return the probability (m,) that a candidate is above ``level``, averaged over draws (s, m)."""
    return np.asarray(ndtr((means - level) / sds).mean(axis=0))


def reference(law: Surrogate, x: Array, at: Array, workload: Mask) -> Array:
    """Return the best response known, by draw, under the workload of each candidate ``at`` (m, d): (s, 1) or (s, m).

    ``x`` (n, d) are the trials, ``workload`` (d,) says which knobs describe the workload.
    """
    means, _ = law.predict(x)
    workloads, place = np.unique(at[:, workload], axis=0, return_inverse=True)
    if not workload.any() or len(workloads) > COMPARED_WORKLOADS:
        return np.asarray(means.max(axis=1, keepdims=True))
    order = np.argsort(-means.mean(axis=0))[:COMPARED_TARGETS]
    points = np.repeat(x[order][None], len(workloads), axis=0)
    points[:, :, workload] = workloads[:, None, :]
    there, _ = law.predict(points.reshape(-1, x.shape[1]))
    best = there.reshape(there.shape[0], len(workloads), order.size).max(axis=2)
    return np.asarray(best[:, place.ravel()])


def validity(good: Array, failed: Array, at: Array, ordered: Mask, seed: int) -> Array:
    """Return the probability (m,) that points (m, d) are data points, after ``good`` (n, d) and ``failed`` (k, d) trials.

    A Gaussian process on labels ±1 (least-squares classification; Rasmussen and Williams, §6.5); 1 without failures. Where
    nothing ever worked with a setting of a knob without an order, it is the posterior mean after so many failures alone
    (Jeffreys' prior): one failure says little of a setting, and five say that it does not work.
    """
    if not failed.shape[0]:
        return np.ones(at.shape[0])
    if not good.shape[0]:
        return np.full(at.shape[0], 0.5)
    labels = np.concatenate([np.ones(good.shape[0]), -np.ones(failed.shape[0])])
    law = fit_surrogate(np.concatenate([good, failed]), ordered, labels, 1.0, seed, draws=VALIDITY_DRAWS)
    means, sds = law.predict(at)
    above = probability_above(means, np.hypot(sds, 0.2), law.scale.to(np.zeros(1))[0])
    for knob in np.flatnonzero(~ordered):
        for setting in np.setdiff1d(failed[:, knob], good[:, knob]):
            alone = 0.5 / (np.count_nonzero(failed[:, knob] == setting) + 1.0)
            above = np.where(at[:, knob] == setting, alone, above)
    return np.asarray(np.clip(above, MIN_VALIDITY, 1.0))


def certainty(law: Surrogate, at: Array, usable: Array, margin: float, seed: int) -> float:
    """Return the probability that no untried point ``at`` (m, d) beats the best trial by more than ``margin``, a share.

    Whole laws are drawn and counted; ``usable`` (m,) is the probability that a point is a data point. A law that fits well can
    still be wrong, so its uncertainty is widened by its leave-one-out residuals, and a part of the probability is withheld
    while few configurations support the law.
    """
    distinct = np.unique(law.x, axis=0).shape[0]
    if distinct < MIN_CONFIGURATIONS:
        return 0.0
    if not at.shape[0]:
        return 1.0
    generator = np.random.default_rng([seed, distinct, 17])
    best, _ = law.predict(law.x)
    means, sds = law.predict(at)
    widened = law.misfit()
    level = best.max(axis=1, keepdims=True) + law.scale.step(margin)
    likely = np.argsort(-probability_above(means, sds * widened, level) * usable, kind="stable")[:MAX_LIKELY]
    drawn = law.sample(np.concatenate([law.x, at[likely]]), LAWS, generator, widened)
    tried, untried = drawn[:, : law.x.shape[0]], drawn[:, law.x.shape[0] :]
    exists = generator.uniform(size=untried.shape) < usable[likely]
    top = np.where(exists, untried, -np.inf).max(axis=1)
    chosen = np.argmax(best.mean(axis=0))
    holds = float(np.mean(top <= tried[:, chosen] + law.scale.step(margin)))
    return supported(holds, distinct)


def supported(probability: float, configurations: int) -> float:
    """Return a law's probability after withholding the part for a law that is wrong; 0 after few configurations."""
    if configurations < MIN_CONFIGURATIONS:
        return 0.0
    return float(probability * configurations / (configurations + DOUBT))
