"""Rows of a budget taken further down: samples hold direct callees alone, covariances know which paths below them matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from perflaw.learn.variance.parts import OWN, Parts
from perflaw.types.explanations import BudgetRow, Source

LITTLE: Final = 0.02
"""What less than this part of a row is left to its call apart from deeper paths goes with those."""


def deepened(rows: Sequence[BudgetRow], parts: Parts, sources: Sequence[Source], whole: float) -> list[BudgetRow]:
    """Rows of direct callees with what underlies them further down in rows of its own; the sum stays.

    A deeper path has the part of its callee's row that it has of the callee's share of the variance. ``whole`` is what
    all rows explain.
    """
    means = {key: sums.y / parts.total.n for key, sums in zip(parts.keys, parts.sums, strict=True) if key != OWN}
    result: list[BudgetRow] = []
    for row in rows:
        deeper = [one for one in sources if len(one.path) > 1 and one.path[:1] == row.path]
        result += _split(row, deeper, _mean(row, parts, means), whole) if deeper and row.cf_net > 0 else [row]
    return result


def _mean(row: BudgetRow, parts: Parts, means: dict[tuple[int, int], float]) -> float:
    place = next(key for key in means if key[0] == row.path[0].site and key in parts.keys)
    return means[place]


def _split(row: BudgetRow, deeper: Sequence[Source], mean: float, whole: float) -> list[BudgetRow]:
    ratios = [one.cf_net / row.cf_net for one in deeper]
    left = 1 - sum(ratios)
    if abs(left) < LITTLE:
        ratios = [ratio / (1 - left) for ratio in ratios]
        left = 0.0
    rows = [_deep(row, one, ratio, mean, whole) for one, ratio in zip(deeper, ratios, strict=True)]
    if left:
        tail, near = (
            at - sum(getattr(one, name) for one in rows) for name, at in (("tail", row.tail), ("median", row.median))
        )
        share, net = row.share * left, row.cf_net * left
        rows.append(replace(_scaled(row, left), tail=tail, median=near, share=share, cf_net=net, rest=True))
    return rows


def _deep(row: BudgetRow, source: Source, ratio: float, mean: float, whole: float) -> BudgetRow:
    near = source.mean * row.median / mean if mean else 0.0
    share = row.share * ratio
    return replace(
        _scaled(row, ratio),
        component=source.component,
        path=source.path,
        tail=near + share * whole,
        median=near,
        share=share,
        cf_net=source.cf_net,
        mechanism=source.split.mechanism,
        estimated=True,
    )


def _scaled(row: BudgetRow, ratio: float) -> BudgetRow:
    """The same with a part of its interval and of its waiting."""
    ends = [None if value is None else value * ratio for value in (row.share_low, row.share_high, row.off_cpu)]
    if ratio < 0:
        ends[:2] = ends[1::-1]
    return replace(row, share_low=ends[0], share_high=ends[1], off_cpu=ends[2])
