"""What a report of specifications shows, and the words that its outputs share: clusters of durations, edges, shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perflaw.report.quantity import quantity, significant
from perflaw.specs.call_paths import expression_text
from perflaw.types import Consistency
from perflaw.types.specifications import Edge, MergeStep, PathGroup, PathSpec, SpecFile


@dataclass(frozen=True, slots=True)
class MineView:
    """Specifications, and how consistent the models are that were merged into them."""

    file: SpecFile
    """The specifications, the first shown first."""
    steps: tuple[MergeStep, ...] = ()
    """Models merged one after the other; empty where nothing was merged."""


def borders_text(borders: Sequence[float], unit: str) -> str:
    """Borders between clusters of durations, ``none`` without any."""
    return ", ".join(quantity(border, unit) for border in borders) or "none"


def cluster_texts(spec: PathSpec) -> list[str]:
    """Names of the clusters, the quickest first: ``t <= 70 ms``, ``t > 70 ms``."""
    texts = [quantity(border, spec.unit) for border in spec.borders]
    if not texts:
        return ["all"]
    return [f"t <= {texts[0]}", *(f"<= {text}" for text in texts[1:]), f"t > {texts[-1]}"]


def edge_names(spec: PathSpec) -> dict[Edge, str]:
    """Short names of the edges in the expressions: e1 for the first and so on."""
    used = dict.fromkeys(edge for group in spec.groups for term in group.expression for edge, _ in term)
    return {edge: f"e{number}" for number, edge in enumerate(used, 1)}


def condition_text(group: PathGroup, names: Mapping[Edge, str]) -> str:
    """When a call belongs to a group: its expression with the edges' short names, or why there is none."""
    return f"({group.standing})" if group.standing else expression_text(group.expression, names)


def assertions(spec: PathSpec) -> list[str]:
    """The performance assertion (§3.5): for each group its condition and its shares, in words."""
    clusters = cluster_texts(spec)
    return [
        f"{expression_text(group.expression) or group.standing}: "
        + ", ".join(f"{share_text(share)} {name}" for share, name in zip(group.distribution, clusters, strict=True))
        for group in spec.groups
    ]


def share_text(share: float) -> str:
    """A share of the calls with two digits; near 0 and near 1 with enough digits to differ from them.

    >>> share_text(0.41), share_text(0.9962), share_text(1.0), share_text(0.0004)
    ('41 %', '99.6 %', '100 %', '0.04 %')
    """
    if share in (0.0, 1.0) or 0.01 <= share <= 0.985:
        return f"{share * 100:.0f} %"
    if share > 0.5:
        return f"{100 - float(f'{(1 - share) * 100:.1g}'):.6g} %"
    return f"{significant(float(f'{share * 100:.1g}')) if share > 1e-6 else '<0.0001'} %"


def comparable(functions: Sequence[Consistency]) -> list[Consistency]:
    """Functions about which two models can disagree; with one group in each model, chance agrees on all calls."""
    return [one for one in functions if one.chance_points < 1.0 or one.points < 1.0]
