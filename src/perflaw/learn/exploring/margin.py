"""How sure it is that nothing untried is better by more than a margin: whole laws are drawn, and counted.

A law that fits well and is still wrong would be too sure. So its doubt is first widened by how far trials lay off what the
others said of them (leave-one-out residuals), and a share of the probability is kept back while few trials bear the law out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.acquisition import chance
from perflaw.learn.exploring.surrogate import Surrogate

Array = NDArray[np.float64]

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
