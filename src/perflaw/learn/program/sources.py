"""Where a program's growth enters: the call sites whose calls for each call of the caller become more with the size.

Growth is the product of such sites down the tree, so a function that is called often need not be the one to look at:
its caller's loop is. A site whose calls for each call stay the same passes growth on and is no source.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.program.counts import Point
from perflaw.learn.program.forecasts import forecast
from perflaw.learn.program.laws import RunLaws
from perflaw.learn.program.model import CostModel
from perflaw.types import GrowthSource
from perflaw.types.programs import Outlook

Array = NDArray[np.float64]

MIN_EXPONENT: Final = 0.2
"""Least exponent of the calls for each call of the caller."""
MIN_FIT: Final = 0.8
"""Least correlation of the logarithms of these calls and of the feature."""
MIN_SIZES: Final = 3
"""Fewest sizes with calls."""
MIN_SHARE: Final = 0.1
"""Least share of the cost at the point asked for."""
MIN_CALLS: Final = 2.0
"""Fewest calls for each call of the caller, at the size with the most, of a loop."""
MIN_RISE: Final = 1.5
"""Least ratio of these calls at the size with the most and with the fewest."""


def growth_sources(model: CostModel, at: Point) -> tuple[GrowthSource, ...]:
    """The call sites at which growth enters a run of a given size, those with the largest share of its cost first."""
    costs = model.costs
    if costs.edge_calls is None or not model.features or not model.features.keys() <= at.keys():
        return ()
    forecasts = forecast(model, at)
    found = []
    for edge, (caller, callee) in enumerate(costs.edges):
        along = costs.edge_calls[:, edge]
        if caller < 0 or caller == callee:
            continue
        # Of the calls of the callee at the largest sizes, those along this edge.
        of_callee = costs.calls[:, callee]
        most = of_callee >= of_callee.max()
        part = float(along[most].sum() / max(of_callee[most].sum(), 1.0))
        share = part * float(forecasts.inclusive[callee]) / (forecasts.whole or 1.0)
        used = (along > 0) & (costs.calls[:, caller] > 0)
        if share < MIN_SHARE or used.sum() < MIN_SIZES:
            continue
        a_call = along[used] / costs.calls[used, caller]
        growths = [
            (*_growth(a_call, x[used]), name)
            for name, x in model.features.items()
            if x.min() > 0 and np.ptp(x[used]) > 0
        ]
        fit, exponent, name = max(growths, default=(0.0, 0.0, ""))
        ends = float(a_call.min()), float(a_call.max())
        rises = ends[1] >= max(MIN_CALLS, MIN_RISE * ends[0])
        if fit >= MIN_FIT and exponent >= MIN_EXPONENT and rises:
            line = costs.edge_lines[edge] if costs.edge_lines else -1
            caller_, callee_ = costs.components[caller], costs.components[callee]
            found.append(GrowthSource(caller_, callee_, line, name, exponent, *ends, share))
    return tuple(sorted(found, key=lambda one: -one.share))


def outlook(laws: RunLaws) -> Outlook | None:
    """The run that the laws were last predicted at: asked for, or far beyond the data; None without features of runs."""
    if not laws.forecasts or not laws.model.features:
        return None
    point, forecasts = laws.forecasts[-1]
    return Outlook(forecasts.of_whole(point), growth_sources(laws.model, point))


def _growth(calls: Array, x: Array) -> tuple[float, float]:
    """Correlation of the logarithms of calls and feature, and the exponent by which the calls grow."""
    if np.unique(x).size < MIN_SIZES or np.ptp(calls) <= 0:
        return 0.0, 0.0
    log_x, log_calls = np.log(x) - np.log(x).mean(), np.log(calls) - np.log(calls).mean()
    product = float(log_x @ log_calls)
    squares = float(log_x @ log_x)
    return product / float(np.sqrt(squares * (log_calls @ log_calls))), product / squares
