"""Specifications in the terminal: a table of functions, then the paper's Table 1 for each whose call paths matter.

All outputs share the words: clusters of durations, edges, shares.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from perflaw.report.quantity import NOTHING, count, counted, percent, quantity, significant
from perflaw.report.tables import broken, column, paragraph, printable, text_table, width
from perflaw.specs.call_paths import edge_text, excluded_callee, expression_text
from perflaw.types.documents import Document
from perflaw.types.specifications import Edge, MergeStep, PathGroup, PathSpec, SpecFile


@dataclass(frozen=True, slots=True)
class MineView:
    """Specifications, and how consistent the models are that were merged into them."""

    file: SpecFile
    """The specifications, the first shown first."""
    steps: tuple[MergeStep, ...] = ()
    """Models merged one after the other; empty where nothing was merged."""
    journal: Sequence[Mapping[str, Any]] = ()
    """Journal of mining in a running program; empty where none was mined."""


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


def condition_text(group: PathGroup, spec: PathSpec, names: Mapping[Edge, str]) -> str:
    """When a call belongs to a group: its expression with the edges' short names, or why there is none.

    A group that only lacks edges is all others: its callers are named.
    """
    if group.standing:
        return f"({group.standing})"
    callee = excluded_callee(group.expression)
    if callee is None:
        return expression_text(group.expression, names)
    callers = _callers(spec, group.paths, callee)
    if not callers:
        # Its call paths do not even reach what the others call.
        callee, callers = spec.component, _callers(spec, group.paths, spec.component)
        elsewhere = [path for other in spec.groups if other is not group for path in other.paths]
        if not callers or set(callers) & set(_callers(spec, elsewhere, callee)):
            return "all other call paths"
    of = "" if callee == spec.component else f" of {callee}"
    more = f" and {len(callers) - MAX_CALLERS} more" if len(callers) > MAX_CALLERS else ""
    return f"all other callers{of}: {', '.join(callers[:MAX_CALLERS])}{more}"


def _callers(spec: PathSpec, paths: Sequence[int], callee: str) -> list[str]:
    """Callers of a function on some call paths, that of most calls first."""
    calls: Counter[str] = Counter()
    for place in paths:
        for caller in {one for one, other in pairwise(spec.paths[place]) if other == callee}:
            calls[caller] += sum(spec.path_counts[place])
    return sorted(calls, key=lambda caller: (-calls[caller], caller))


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


def comparable(functions: Sequence[Document]) -> list[Document]:
    """Functions about which two models can disagree; with one group in each model, chance agrees on all calls."""
    return [one for one in functions if one["chance_points"] < 1.0 or one["points"] < 1.0]


def shown_spec(spec: PathSpec) -> Document:
    """What the table and the page both say of a specification, in words; ``when`` has the condition of each group."""
    names = edge_names(spec)
    return {
        "borders": borders_text(spec.borders, spec.unit),
        "clusters": cluster_texts(spec),
        "when": [condition_text(group, spec, names) for group in spec.groups],
        "edges": [{"name": name, "edge": edge_text(edge)} for edge, name in names.items()],
        "platforms": [
            {"host": spec.platforms[place].host, "borders": borders_text(borders, spec.unit)}
            for place, borders in sorted((spec.platform_borders or {}).items())
        ],
    }


def shown_merges(steps: Sequence[MergeStep]) -> Document:
    """What the table and the page both say of merged models: their names, and the functions that were not compared."""
    return {
        "steps": [step.name for step in steps],
        "missing": sorted({name for step in steps for name in step.missing}),
        "unsettled": sorted({name for step in steps for name in step.unsettled}),
    }


MAX_CALLERS = 4
"""Callers of a group that are named."""
MAX_FUNCTIONS, MAX_FULL, MAX_NAMED = 30, 10, 8
"""Rows of the table, specifications shown in full, and functions of one side that are named."""
_NOTHING_KNOWN: Final = {
    "too short": "calls take less than 1 µs, of which recording takes a part",
    "perturbed": "recording the calls within distorts it",
}
"""Reasons why no call of a function counts, by the first words of its note."""
_NAME_WIDTH, _CONDITION_WIDTH, _BORDERS_WIDTH = 30, 40, 18


def mine_text(document: Document, colour: bool = False, every: bool = False) -> str:
    """The table of functions, then every specification that has borders (all where ``every`` one is asked for).

    ``document``: ``perflaw.mine/1``.
    """
    specs: list[Document] = document["specs"]
    if not specs:
        return "no specification: no function was called often enough\n"
    called = [spec for spec in specs if spec["calls"]]
    shown = called if every else called[:MAX_FUNCTIONS]
    several = specs if every else [spec for spec in specs if spec["borders"]]
    full = several if every else several[:MAX_FULL]
    headings = ["share", "function", "calls", "borders", "groups", "edges", "stable"]
    rows = [
        [
            percent(spec["share"]),
            broken(printable(spec["component"]), [".", "::", "_"], column(_NAME_WIDTH)),
            count(spec["calls"]),
            broken(spec["shown"]["borders"], ", ", column(_BORDERS_WIDTH)),
            str(len(spec["groups"])),
            str(len(spec["shown"]["edges"])),
            "yes" if spec["stable"] else "no",
        ]
        for spec in shown
    ]
    text = text_table(headings, rows, right=(0, 2, 4, 5), colour=colour) if rows else ""
    text += "".join("\n" + _spec_text(spec, colour) for spec in full)
    if not several:
        # The most frequent reason why functions have no borders, where their notes hold one.
        notes = Counter(note for spec in called for note in spec["notes"]).most_common(1)
        reason = "".join(f"; {n} of {len(called)}: {printable(note)}" for note, n in notes)
        text += "\n" + paragraph(f"every function's calls are of one kind{reason}") if called else ""
    text += "".join("\n" + paragraph(line) for line in _without_calls(specs))
    more = [
        counted(left, noun)
        for left, noun in (
            (len(called) - len(shown), "more function"),
            (len(several) - len(full), "more specification"),
        )
        if left
    ]
    if more:
        text += "\n" + paragraph(f"{', '.join(more)} (--all lists all)")
    return text


def _without_calls(specs: Sequence[Document]) -> list[str]:
    """Of functions none of whose calls count, a sentence for each reason."""
    reasons: dict[str, list[str]] = {}
    for spec in specs:
        if not spec["calls"]:
            note = spec["notes"][0] if spec["notes"] else ""
            reasons.setdefault(_NOTHING_KNOWN.get(note.partition(": ")[0], note), []).append(
                printable(spec["component"])
            )
    lines = []
    for reason, names in reasons.items():
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        lines.append(
            f"nothing is specified of {', '.join(names[:MAX_NAMED])}{more}: {reason or 'no call was observed'}"
        )
    return lines


def _spec_text(spec: Document, colour: bool) -> str:
    """One specification: groups with their conditions and shares, the edges' names, and notes."""
    said = spec["shown"]
    stable = "stable" if spec["stable"] else "not stable"
    head = f"{printable(spec['component'])}: {spec['metric']}, {counted(spec['calls'], 'call')}, {stable} over "
    head += counted(spec["observations"], "observation")
    headings = ["group", "when", "calls", *said["clusters"]]
    rows = []
    for place, (group, condition) in enumerate(zip(spec["groups"], said["when"], strict=True), 1):
        when = broken(printable(condition), [" or ", " and ", " "], column(_CONDITION_WIDTH))
        if group["mislabelled"]:
            when += f"\n ({share_text(group['mislabelled'])} of its calls otherwise)"
        rows.append([str(place), when, count(sum(group["counts"])), *map(share_text, group["distribution"])])
    lines = [paragraph(head), text_table(headings, rows, right=tuple(range(2, len(headings))), colour=colour)]
    for edge in said["edges"]:
        name = edge["name"]
        text = broken(printable(edge["edge"]), [" -> ", ".", "_"], width() - len(name) - 3)
        lines.append(f"{name}  " + text.replace("\n", "\n" + " " * (len(name) + 2)) + "\n")
    if spec["unknown"]:
        calls = sum(sum(path["counts"]) for path in spec["unknown"])
        paths = f"{counted(len(spec['unknown']), 'call path')} with {counted(calls, 'call')}"
        lines.append(paragraph(f"unknown: {paths}, too few to belong to a group"))
    lines += [paragraph(f"on {printable(one['host'])}: borders {one['borders']}") for one in said["platforms"]]
    return "".join([*lines, *(paragraph(f"note: {printable(note)}") for note in spec["notes"])])


def merge_text(document: Document, colour: bool = False) -> str:
    """The consistency of merged models (the paper's Figure 5), a row a step; empty where nothing was merged.

    Shares are medians over functions, the least in brackets, beside the level of random groups of the same sizes.
    """
    merges, said = document["merges"], document["shown"]
    if not merges:
        return ""
    headings = ["merged", "functions", "paths consistent", "by chance", "calls consistent", "by chance"]
    rows, plain = [], 0
    for name, found in zip(said["steps"], merges, strict=True):
        functions = comparable(found)
        plain += len(found) - len(functions)
        row = [f"+ {printable(name)}", count(len(functions))]
        for share in ("paths", "chance_paths", "points", "chance_points"):
            values = [one[share] for one in functions]
            text = f"{statistics.median(values) * 100:.0f} % ({min(values) * 100:.0f})" if values else NOTHING
            row.append(text)
        rows.append(row)
    text = text_table(headings, rows, right=(1, 2, 3, 4, 5), colour=colour)
    if plain:
        text += paragraph(f"{counted(plain, 'comparison')} left out: with one group a function, models cannot disagree")
    text += _left_out("not compared, missing on one side (gone, new or inlined)", said["missing"])
    return text + _left_out("not compared, without borders or callers on one side", said["unsettled"])


def _left_out(reason: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return paragraph(f"{reason}: {', '.join(map(printable, names[:MAX_NAMED]))}{more}") if names else ""
