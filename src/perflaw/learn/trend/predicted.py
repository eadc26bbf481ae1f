"""The predicted cost that clusters are ranked by: what the law says where it is one, else what the paper's power law says.

A law that is inconclusive is one of several shapes, which a hundred times beyond the data are worlds apart; its mean is
that of the shape that happened to score best. Of seven kinds of cost, 12 runs over two decades, asked at 300 times the data,
the worst hundredth was wrong by a factor of 890; with the power law in place of inconclusive ones by 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perflaw.learn.trend.asked import Asked
from perflaw.learn.trend.laws import ClusterLaws
from perflaw.learn.trend.options import TrendOptions
from perflaw.types import PowerLaw, Prediction


def predicted(
    powers: Mapping[str, PowerLaw], laws: ClusterLaws, points: Asked, options: TrendOptions
) -> Prediction | None:
    """Cost of a cluster at the point that ranks, None where there is no law; in the paper's reading by its power law."""
    said = laws.predicted(points.rank)
    simple = _of_power(powers, points)
    if options.paper or said is None:
        return simple
    answer, law = said
    if law.verdict != "inconclusive" or simple is None:
        return answer
    return Prediction(
        answer.features,
        simple.mean,
        min(answer.mean_low, simple.mean_low),
        max(answer.mean_high, simple.mean_high),
        min(answer.new_low, simple.new_low),
        max(answer.new_high, simple.new_high),
    )


def _of_power(powers: Mapping[str, PowerLaw], points: Asked) -> Prediction | None:
    """What the power law that fits best expects there, runs without the cluster counted as well."""
    there = [one for name, one in powers.items() if name in points.rank]
    if not there:
        return None
    law = max(there, key=lambda one: one.r2 or 0.0)
    share = law.n / (law.n + law.zeros)
    answer = law.predictions[-1]
    return replace(answer, mean=share * answer.mean, mean_low=share * answer.mean_low, new_low=share * answer.new_low)
