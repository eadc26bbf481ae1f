"""From a fitted partition to a law: breakpoints with intervals, the segments' laws, words and verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.answers import FACTORS, percentile95
from perflaw.learn.laws.asked import Asked
from perflaw.learn.laws.band import Fitted
from perflaw.learn.laws.described import Described, alternatives, words
from perflaw.learn.laws.expression import number
from perflaw.learn.laws.learnt import Learnt
from perflaw.learn.laws.piecewise import Piecewise, piecewise_text
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.scan import Sorted, splits
from perflaw.learn.laws.segments import Fitting, Partition, Segment
from perflaw.learn.laws.series import Array, Options
from perflaw.learn.laws.verdict import Evidence, judge
from perflaw.types import Alternative, Breakpoint, Law, Noise, Verdict

LIKELIHOOD = 7.35
"""95 % point of the likelihood ratio of a breakpoint's place (Hansen 2000, table 1)."""

CROSSING = 64
"""Points between two sizes at which regimes are compared for their crossing."""


def regime_law(
    row: Rows,
    part: Partition,
    fitting: Fitting,
    smooth: Learnt | None,
    at: Sequence[Mapping[str, float]] | None,
    options: Options,
) -> Learnt:
    """The piecewise law of a series; ``smooth`` is the law that stays beside it, if it does."""
    laws = [list(segment.laws) for segment in fitting.segments]
    breakpoints = _breakpoints(row, part, laws, fitting.variance)
    chosen = Piecewise(breakpoints, tuple(tuple(one.plausible.law for one in mine) for mine in laws))
    law = _law(row, part, fitting, laws, breakpoints)
    plausible: tuple[Asked, ...] = (chosen, *(smooth.plausible if smooth else ()))
    if smooth:
        law = replace(law, alternatives=(_alternative(smooth.law),))
    learnt = Learnt(law, plausible, row)
    points = at if at is not None else default_points(row)
    return Learnt(replace(law, predictions=tuple(learnt.predict(points))), plausible, row)


def default_points(row: Rows) -> list[dict[str, float]]:
    """2 and 10 times the 95th percentile of every feature."""
    tops = {name: percentile95(x) for name, x in row.series.features.items()}
    return [{name: top * factor for name, top in tops.items()} for factor in FACTORS.tolist()]


def _law(
    row: Rows, part: Partition, fitting: Fitting, laws: list[list[Described]], breakpoints: tuple[Breakpoint, ...]
) -> Law:
    name, last = row.names[part.feature], laws[-1]
    scale = float(np.sqrt(last[0].plausible.law.variance))
    mean = piecewise_text(breakpoints, [words(mine[0])[0] for mine in laws])
    slopes = min(one.slope[1] for one in last), max(one.slope[2] for one in last)
    verdict, reason = _verdict(row, part, slopes)
    return Law(
        family="piecewise",
        expression=f"{'LogNorm' if part.log else 'Norm'}({mean}, {number(scale)})",
        mean=mean,
        features=(name,),
        slope={name: last[0].slope[0]},
        slope_low={name: slopes[0]},
        slope_high={name: slopes[1]},
        noise=Noise("lognormal" if part.log else "normal", scale),
        n=row.series.y.size,
        runs=row.runs,
        r2=_r2(row, part, fitting),
        verdict=verdict,
        reason=reason,
        exponent=None,
        log_exponent=None,
        coefficient=last[0].coefficient,
        intercept=None,
        range={key: (float(x.min()), float(x.max())) for key, x in row.series.features.items()},
        breakpoints=breakpoints,
        segments=tuple(_segment_law(row, part, one, mine) for one, mine in zip(fitting.segments, laws, strict=True)),
    )


def _segment_law(row: Rows, part: Partition, segment: Segment, mine: list[Described]) -> Law:
    """One regime as a law of its own."""
    name, chosen = row.names[part.feature], mine[0]
    x = row.x[part.feature][segment.rows]
    mean, expression = words(chosen)
    exponent, log_exponent = chosen.exponents
    slopes = [one.slope for one in mine]
    return Law(
        family=chosen.family,
        expression=expression,
        mean=mean,
        features=(name,) if chosen.plausible.feature else (),
        slope={name: slopes[0][0]},
        slope_low={name: min(one[1] for one in slopes)},
        slope_high={name: max(one[2] for one in slopes)},
        noise=Noise("lognormal" if part.log else "normal", float(np.sqrt(chosen.law.variance))),
        n=int(segment.rows.size),
        runs=int(segment.rows.size if row.clusters is None else np.unique(row.clusters[segment.rows]).size),
        r2=None,
        verdict="law" if chosen.plausible.feature else "none",
        reason="",
        exponent=exponent,
        log_exponent=log_exponent,
        coefficient=chosen.coefficient,
        intercept=chosen.intercept if chosen.law.model.intercept else None,
        range={name: (float(x.min()), float(x.max()))},
        alternatives=alternatives(mine, np.inf),
    )


def _alternative(law: Law) -> Alternative:
    return Alternative(law.family, law.expression, law.slope, 0.0)


def _verdict(row: Rows, part: Partition, slopes: tuple[float, float]) -> tuple[Verdict, str]:
    name, x = row.names[part.feature], row.x[part.feature]
    return judge(
        Evidence(
            established=True,
            constant=False,
            varies=True,
            units=row.y.size,
            runs=row.runs,
            sizes=int(np.unique(x).size),
            slopes=slopes,
            feature=name,
        )
    )


def _r2(row: Rows, part: Partition, fitting: Fitting) -> float | None:
    """1 − RSS/TSS on the scale of the noise."""
    values = row.log_y if part.log else row.y
    total = float((row.w * (values - np.average(values, weights=row.w)) ** 2).sum())
    return 1.0 - fitting.rss / total if total > 0 else None


def _breakpoints(row: Rows, part: Partition, laws: list[list[Described]], variance: float) -> tuple[Breakpoint, ...]:
    """Every breakpoint with its interval: places whose likelihood ratio is small, the other breakpoints held."""
    out, ends = [], [0, *part.cuts, part.order.size]
    for i, cut in enumerate(part.cuts):
        rows, x = part.order[ends[i] : ends[i + 2]], row.x[part.feature]
        parameters = sum(len(mine[0].law.model.columns) for mine in laws[i : i + 2])
        inside = _interval(_sorted(row, x, rows), part.log, cut - ends[i], min(max(parameters, 2), 4), variance)
        low, high = (float(x[rows[k]]) for k in inside)
        below, above = float(x[part.order[cut - 1]]), float(x[part.order[cut]])
        value = _crossing(laws[i][0].law, laws[i + 1][0].law, below, above)
        out.append(Breakpoint(row.names[part.feature], value, low, high))
    return tuple(out)


def _sorted(row: Rows, x: Array, rows: NDArray[np.intp]) -> Sorted:
    return Sorted(*(column[rows][None] for column in (x, row.y, row.log_y, row.w)))


def _interval(rows: Sorted, log: bool, cut: int, parameters: int, variance: float) -> tuple[int, int]:
    """Last row surely before the breakpoint and first row surely after it, by Hansen's likelihood ratio."""
    rss = splits(rows, log)[parameters][0]
    near = np.flatnonzero(rss - rss[cut] <= LIKELIHOOD * variance)
    return int(min(near.min(initial=cut), cut)) - 1, int(max(near.max(initial=cut), cut))


def _crossing(left: Fitted, right: Fitted, below: float, above: float) -> float:
    """Where two regimes meet between the sizes beside a breakpoint; else the middle, geometric where that is one."""
    geometric = below > 0
    middle = float(np.sqrt(below * above)) if geometric else (below + above) / 2.0
    grid = np.geomspace(below, above, CROSSING) if geometric else np.linspace(below, above, CROSSING)
    difference = left.mean(grid) - right.mean(grid)
    crossed = np.flatnonzero(difference[:-1] * difference[1:] <= 0)
    inner = crossed[(crossed > 0) & (crossed < CROSSING - 2)]
    return float((grid[inner[0]] + grid[inner[0] + 1]) / 2.0) if inner.size else middle
