"""Specifications in the terminal: a table of functions, then the paper's Table 1 for each whose call paths matter.

All outputs share the words: clusters of durations, edges, shares.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perflaw.report.quantity import NOTHING, count, counted, percent, quantity, significant
from perflaw.report.tables import broken, paragraph, printable, text_table, width
from perflaw.specs.call_paths import edge_text, expression_text
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


MAX_FUNCTIONS, MAX_FULL, MAX_NAMED = 30, 10, 8
"""Rows of the table, specifications shown in full, and functions of one side that are named."""
_NAME_WIDTH, _CONDITION_WIDTH, _BORDERS_WIDTH = 30, 40, 18


def mine_text(specs: Sequence[PathSpec], colour: bool = False, every: bool = False) -> str:
    """The table of functions, then every specification that has borders (all where ``every`` one is asked for)."""
    if not specs:
        return "no specification: no function was called often enough\n"
    shown = specs if every else specs[:MAX_FUNCTIONS]
    several = specs if every else [spec for spec in specs if spec.borders]
    full = several if every else several[:MAX_FULL]
    headings = ["share", "function", "calls", "borders", "groups", "edges", "stable"]
    rows = [
        [
            percent(spec.share) if spec.share is not None else NOTHING,
            broken(printable(spec.component), [".", "::", "_"], _NAME_WIDTH),
            count(spec.points),
            broken(borders_text(spec.borders, spec.unit), ", ", _BORDERS_WIDTH),
            str(len(spec.groups)),
            str(len(edge_names(spec))),
            "yes" if spec.stable else "no",
        ]
        for spec in shown
    ]
    text = text_table(headings, rows, right=(0, 2, 4, 5), colour=colour)
    text += "".join("\n" + _spec_text(spec, colour) for spec in full)
    if not several:
        # The most frequent reason why functions have no borders, where their notes hold one.
        notes = Counter(note for spec in specs for note in spec.notes).most_common(1)
        reason = "".join(f"; {n} of {len(specs)}: {printable(note)}" for note, n in notes)
        text += "\n" + paragraph(f"every function's calls are of one kind{reason}")
    more = [
        counted(left, noun)
        for left, noun in ((len(specs) - len(shown), "more function"), (len(several) - len(full), "more specification"))
        if left
    ]
    if more:
        text += "\n" + paragraph(f"{', '.join(more)} (--all lists all)")
    return text


def _spec_text(spec: PathSpec, colour: bool) -> str:
    """One specification: groups with their conditions and shares, the edges' names, and notes."""
    names = edge_names(spec)
    stable = "stable" if spec.stable else "not stable"
    head = f"{printable(spec.component)}: {spec.metric}, {counted(spec.points, 'call')}, {stable} over "
    head += counted(spec.observations, "observation")
    headings = ["group", "when", "calls", *cluster_texts(spec)]
    rows = []
    for place, group in enumerate(spec.groups, 1):
        when = broken(condition_text(group, names), [" or ", " and ", " "], _CONDITION_WIDTH)
        if group.mislabelled:
            when += f"\n ({share_text(group.mislabelled)} of its calls otherwise)"
        rows.append([str(place), when, count(sum(group.counts)), *map(share_text, group.distribution)])
    lines = [paragraph(head), text_table(headings, rows, right=tuple(range(2, len(headings))), colour=colour)]
    for edge, name in names.items():
        text = broken(printable(edge_text(edge)), [" -> ", ".", "_"], width(colour) - len(name) - 3)
        lines.append(f"{name}  " + text.replace("\n", "\n" + " " * (len(name) + 2)) + "\n")
    if spec.unknown:
        calls = sum(sum(spec.path_counts[path]) for path in spec.unknown)
        paths = f"{counted(len(spec.unknown), 'call path')} with {counted(calls, 'call')}"
        lines.append(paragraph(f"unknown: {paths}, too few to belong to a group"))
    for place, borders in sorted((spec.platform_borders or {}).items()):
        host = printable(spec.platforms[place].host)
        lines.append(paragraph(f"on {host}: borders {borders_text(borders, spec.unit)}"))
    return "".join([*lines, *(paragraph(f"note: {printable(note)}") for note in spec.notes)])


def merge_text(steps: Sequence[MergeStep], colour: bool = False) -> str:
    """The consistency of merged models (the paper's Figure 5), a row a step.

    Shares are medians over functions, the least in brackets, beside the level of random groups of the same sizes.
    """
    headings = ["merged", "functions", "paths consistent", "by chance", "calls consistent", "by chance"]
    rows = []
    for step in steps:
        functions = comparable(step.found)
        columns = (
            [one.paths for one in functions],
            [one.chance_paths for one in functions],
            [one.points for one in functions],
            [one.chance_points for one in functions],
        )
        rows.append(
            [
                f"+ {printable(step.name)}",
                count(len(functions)),
                *(
                    f"{statistics.median(values) * 100:.0f} % ({min(values) * 100:.0f})" if values else NOTHING
                    for values in columns
                ),
            ]
        )
    text = text_table(headings, rows, right=(1, 2, 3, 4, 5), colour=colour)
    plain = sum(len(step.found) - len(comparable(step.found)) for step in steps)
    if plain:
        text += paragraph(f"{counted(plain, 'comparison')} left out: with one group a function, models cannot disagree")
    missing = {name for step in steps for name in step.missing}
    text += _left_out("not compared, missing on one side (gone, new or inlined)", missing)
    unsettled = {name for step in steps for name in step.unsettled}
    return text + _left_out("not compared, without borders on one side", unsettled)


def _left_out(reason: str, functions: set[str]) -> str:
    names = sorted(functions)
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return paragraph(f"{reason}: {', '.join(map(printable, names[:MAX_NAMED]))}{more}") if names else ""
