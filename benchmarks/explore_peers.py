"""A plain Gaussian process as a policy, to compare with: scikit-learn's, Matérn 5/2 with a length a knob, expected improvement.

Ten Sobol points, then the maximum of the likelihood (four restarts), on the logarithm of positive metrics, as in textbooks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from perflaw.explore.policies.designs import Sobol
from perflaw.explore.policies.law import Candidates
from perflaw.learn.exploring.gaussian_process import one_thread
from perflaw.learn.exploring.observations import evidence_of
from perflaw.types.studies import Configuration, Trial

START = 10


class GP(Sobol):
    @one_thread
    def next_config(self, history: Sequence[Trial]) -> Configuration | None:
        evidence = evidence_of(history, self.space, self.objective)
        if len(history) < START or len(evidence.values) < 3:
            return super().next_config(history)
        untried, at = Candidates(self.space, self.seed).untried(self.tried(history), [], len(history))
        if not untried:
            return None
        y = evidence.sign * (np.log(evidence.values) if (evidence.values > 0).all() else evidence.values)
        kernel = ConstantKernel() * Matern(np.ones(at.shape[1]), nu=2.5) + WhiteKernel(0.01, (1e-5, 1.0))
        law = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=4, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounds of lengths that do not matter
            mean, sd = law.fit(evidence.x, y).predict(at, return_std=True)
        z = (mean - law.predict(evidence.x).max()) / sd
        return untried[int(np.argmax(sd * (z * norm.cdf(z) + norm.pdf(z))))]
