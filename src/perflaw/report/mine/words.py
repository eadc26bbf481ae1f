"""Words that all outputs of specifications share: clusters of durations, edges by short names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perflaw.report.quantity import quantity, significant
from perflaw.specs.call_paths import expression_text
from perflaw.types.specifications import Edge, MergeStep, PathGroup, PathSpec, SpecFile


def cluster_texts(spec: PathSpec) -> list[str]:
    """Names of the clusters, from the quickest on: ``t <= 70 ms``, ``t > 70 ms``."""
    texts = [quantity(border, spec.unit) for border in spec.borders]
    if not texts:
        return ["all"]
    middle = [f"<= {text}" for text in texts[1:]]
    return [f"t <= {texts[0]}", *middle, f"t > {texts[-1]}"]


def legend(spec: PathSpec) -> dict[Edge, str]:
    """Short names of the edges that the expressions use: e1 for the first and so on."""
    used = dict.fromkeys(edge for group in spec.groups for term in group.expression for edge, _ in term)
    return {edge: f"e{number}" for number, edge in enumerate(used, 1)}


def behaviour_text(group: PathGroup, names: Mapping[Edge, str]) -> str:
    """When a call belongs to the group: its expression over short names, or why there is none."""
    if group.standing:
        return f"({group.standing})"
    return expression_text(group.expression, names)


def share_text(share: float) -> str:
    """A share of the calls with two digits, near 0 and near 1 as many as tell it from them.

    >>> share_text(0.41), share_text(0.9962), share_text(1.0), share_text(0.0004)
    ('41 %', '99.6 %', '100 %', '0.04 %')
    """
    if share in (0.0, 1.0) or 0.01 <= share <= 0.985:
        return f"{share * 100:.0f} %"
    if share > 0.5:
        return f"{100 - float(f'{(1 - share) * 100:.1g}'):.6g} %"
    return f"{significant(float(f'{share * 100:.1g}')) if share > 1e-6 else '<0.0001'} %"


# ---- What a page of specifications is made from.


@dataclass(frozen=True, slots=True)
class MineView:
    """Specifications, and what merging them found."""

    file: SpecFile
    """The specifications, the first shown first."""
    steps: tuple[MergeStep, ...] = ()
    """Merged one after the other; empty where nothing was merged."""
