"""How much calls that follow each other are worth: the machine's speed drifts, and so do the residuals of their law.

A law whose inputs grow with time, round after round, takes such a drift for growth: as if each call told something new,
its exponent was told as 1.08 (1.08–1.08) of a linear function on a busy machine. Calls of equal inputs at different times
show the drift whatever the shape of the law is.
"""

from __future__ import annotations

import numpy as np

from perflaw.learn.annotations.records import RecordTable
from perflaw.learn.cells import Array
from perflaw.learn.series import Learnt
from perflaw.special import ndtr

MIN_REPEATED = 30
"""Fewest calls, beyond the first of each combination of inputs, that can show a correlation."""
MAX_P = 0.01
"""P of the correlation of neighbours from which on it is taken for one."""


def worth_of_calls(learnt: Learnt, table: RecordTable) -> float:
    """Number of independent calls, from 0 to 1, that a call is worth for a law's growth; 1 if no correlation is seen.

    It is the inverse of 1 + 2·Σ ρ_e(j)·ρ_m(j) with the autocorrelations of residuals and of means in the order of the calls
    (Bartlett 1946, J. Roy. Stat. Soc. Suppl. 8, 27), up to the first lag j at which residuals are no longer correlated.
    Inputs in random order cost nothing. Residuals are those within calls of equal inputs of one run.
    """
    law, cost = learnt.law, table.evidence.cost
    if not law.features or cost.size <= MIN_REPEATED:
        return 1.0
    mean = learnt.mean({name: table.numbers(name) for name in law.features})
    known = np.isfinite(mean)
    if law.noise.distribution == "lognormal":
        known &= (cost > 0) & (mean > 0)
        level, residual = np.log(mean[known]), np.log(cost[known] / mean[known])
    else:
        level, residual = mean[known], cost[known] - mean[known]
    equal = np.unique(level, return_inverse=True)[1].reshape(-1)
    equal = np.unique(equal * (int(table.run.max()) + 1) + table.run[known], return_inverse=True)[1].reshape(-1)
    size = np.bincount(equal)
    n = residual.size
    if n - size.size < MIN_REPEATED:
        return 1.0
    residual = residual - (np.bincount(equal, residual) / size)[equal]
    of_residuals, of_levels = _autocorrelations(residual), _autocorrelations(level - level.mean())
    if ndtr(-of_residuals[1] * np.sqrt(n)) > MAX_P:
        return 1.0
    ends = np.flatnonzero(of_residuals[: max(n // 4, 2)] <= 0)
    last = int(ends[0]) if ends.size else max(n // 4, 2)
    factor = 1.0 + 2.0 * float(of_residuals[1:last] @ of_levels[1:last])
    return 1.0 / max(1.0, factor)


def _autocorrelations(values: Array) -> Array:
    """Autocorrelations of centred values (n,) at the lags 0 to n − 1, (n,); 0 beyond lag 0 if they do not vary."""
    n = values.size
    spectrum = np.fft.rfft(values, 2 * n)
    products = np.fft.irfft(spectrum * spectrum.conj(), 2 * n)[:n]
    # Rounding of equal numbers is no variation.
    varies = products[0] > 1e-20 * max(float(np.abs(values).max()), 1e-100) ** 2 * n and np.ptp(values) > 1e-9
    return np.asarray(products / products[0] if varies else np.eye(1, n)[0])
