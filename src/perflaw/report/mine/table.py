"""Specifications in the terminal: a table of functions, then the paper's Table 1 for each whose call paths matter."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from perflaw.report.mine.words import behaviour_text, cluster_texts, legend, share_text
from perflaw.report.quantity import count, percent, quantity
from perflaw.report.tables import broken, paragraph, printable, text_table, width
from perflaw.specs.call_paths import edge_text, expression_text
from perflaw.types import Consistency
from perflaw.types.specifications import MergeStep, PathGroup, PathSpec

NAME_WIDTH, WHEN_WIDTH, BORDERS_WIDTH = 30, 40, 18
MOST_FUNCTIONS, MOST_TOLD = 30, 10
"""Rows of the table, and functions told in full, where not all are asked for."""


def mine_text(specs: Sequence[PathSpec], colour: bool = False, every: bool = False) -> str:
    """The table of functions, then every specification with borders or groups."""
    if not specs:
        return "no specification: no function was called often enough\n"
    shown = list(specs) if every else list(specs)[:MOST_FUNCTIONS]
    told = list(specs) if every else [spec for spec in specs if spec.borders]
    full = told if every else told[:MOST_TOLD]
    headings = ["share", "function", "calls", "borders", "groups", "atoms", "stable"]
    text = text_table(headings, [_row(spec) for spec in shown], right=(0, 2, 4, 5), colour=colour)
    text += "".join("\n" + spec_text(spec, colour) for spec in full)
    if not told:
        text += "\n" + paragraph(f"no function's calls are of several kinds{_why(specs)}")
    left, rest = len(specs) - len(shown), len(told) - len(full)
    if left or rest:
        text += "\n" + paragraph(f"{left} more functions, {rest} more specifications (--all tells all)")
    return text


def _why(specs: Sequence[PathSpec]) -> str:
    """What keeps most functions from having borders, where their notes say."""
    notes = [note for spec in specs for note in spec.notes]
    if not notes:
        return ""
    most = max(dict.fromkeys(notes), key=notes.count)
    return f"; {notes.count(most)} of {len(specs)}: {printable(most)}"


def _row(spec: PathSpec) -> list[str]:
    borders = ", ".join(quantity(border, spec.unit) for border in spec.borders) or "none"
    return [
        percent(spec.share) if spec.share is not None else "—",
        broken(printable(spec.component), [".", "::", "_"], NAME_WIDTH),
        count(spec.points),
        broken(borders, ", ", BORDERS_WIDTH),
        str(len(spec.groups)),
        str(len(legend(spec))),
        "yes" if spec.stable else "no",
    ]


def spec_text(spec: PathSpec, colour: bool = False) -> str:
    """One specification: behaviour, expression over short names of edges, share of the calls in each cluster."""
    names = legend(spec)
    rows = [_behaviour(place, group, names) for place, group in enumerate(spec.groups, 1)]
    headings = ["behaviour", "when", "calls", *cluster_texts(spec)]
    numbers = range(2, len(headings))
    lines = [paragraph(f"{printable(spec.component)}: {spec.metric}, {count(spec.points)} calls, {_how(spec)}")]
    lines.append(text_table(headings, rows, right=tuple(numbers), colour=colour))
    lines += [_edge(f"{name}  ", edge_text(edge), width(colour)) for edge, name in names.items()]
    lines += _rest(spec)
    return "".join(lines)


def _how(spec: PathSpec) -> str:
    found = f"{spec.observations} observation{'s' * (spec.observations != 1)}"
    return f"{'stable over' if spec.stable else 'not stable over'} {found}"


def _behaviour(place: int, group: PathGroup, names: dict[tuple[str, str], str]) -> list[str]:
    when = broken(behaviour_text(group, names), [" or ", " and ", " "], WHEN_WIDTH)
    if group.mislabelled:
        when += f"\n ({share_text(group.mislabelled)} of its calls otherwise)"
    return [str(place), when, count(sum(group.counts)), *map(share_text, group.distribution)]


def _edge(head: str, text: str, columns: int) -> str:
    body = broken(printable(text), [" -> ", ".", "_"], columns - len(head) - 1)
    return head + body.replace("\n", "\n" + " " * len(head)) + "\n"


def _rest(spec: PathSpec) -> list[str]:
    """Paths without a group, behaviour elsewhere, notes."""
    lines = []
    if spec.unknown:
        calls = sum(sum(spec.path_counts[path]) for path in spec.unknown)
        paths = f"{len(spec.unknown)} call path{'s' * (len(spec.unknown) != 1)}"
        lines.append(paragraph(f"unknown: {paths} with {count(calls)} calls, too few to belong anywhere"))
    for place, borders in sorted((spec.platform_borders or {}).items()):
        told = ", ".join(quantity(border, spec.unit) for border in borders) or "none"
        lines.append(paragraph(f"on {printable(spec.platforms[place].host)}: borders {told}"))
    return lines + [paragraph(f"note: {printable(note)}") for note in spec.notes]


def assertions(spec: PathSpec) -> list[str]:
    """The performance assertion (§3.5): for each behaviour its condition and its shares, in words."""
    clusters = cluster_texts(spec)
    return [
        f"{expression_text(group.expression) or group.standing}: "
        + ", ".join(f"{share_text(share)} {name}" for share, name in zip(group.distribution, clusters, strict=True))
        for group in spec.groups
    ]


# ---- What ``mine --merge`` found, step by step: the figures behind the paper's Figure 5.

MOST_NAMED = 8
"""Functions of one side alone that are named; more are counted."""
HEADINGS = ["merged", "functions", "paths consistent", "by chance", "calls consistent", "by chance"]


def telling(found: Sequence[Consistency]) -> list[Consistency]:
    """Functions about which models can disagree: chance does not put all calls together, as it does with one group each."""
    return [one for one in found if one.chance_points < 1.0 or one.points < 1.0]


def merge_text(steps: Sequence[MergeStep], colour: bool = False) -> str:
    """A row a step: medians over functions, the least in brackets, beside what random groups would reach."""
    rows = [_merge_table_row(step) for step in steps]
    text = text_table(HEADINGS, rows, right=(1, 2, 3, 4, 5), colour=colour)
    plain = sum(len(step.found) - len(telling(step.found)) for step in steps)
    if plain:
        text += paragraph(
            f"{plain} comparisons of functions with one group are left out: there is nothing to disagree about"
        )
    text += _left_out("not in all of them (gone, new or inlined), so not compared", [step.missing for step in steps])
    return text + _left_out(
        "without borders in one of them, so without a model to compare", [step.unsettled for step in steps]
    )


def _left_out(why: str, names: Sequence[Sequence[str]]) -> str:
    """Functions that were not compared, by name; nothing where there are none."""
    some = sorted({name for step in names for name in step})
    more = f" and {len(some) - MOST_NAMED} more" if len(some) > MOST_NAMED else ""
    return paragraph(f"{why}: {', '.join(map(printable, some[:MOST_NAMED]))}{more}") if some else ""


def _merge_table_row(step: MergeStep) -> list[str]:
    told = telling(step.found)
    columns = ([one.paths for one in told], [one.chance_paths for one in told],
               [one.points for one in told], [one.chance_points for one in told])  # fmt: skip
    return [f"+ {printable(step.name)}", count(len(told)), *map(_median, columns)]


def _median(values: Sequence[float]) -> str:
    """The median, and the least in brackets.

    >>> _median([1.0, 0.9, 0.5]), _median([])
    ('90 % (50)', '—')
    """
    if not values:
        return "—"
    return f"{statistics.median(values) * 100:.0f} % ({min(values) * 100:.0f})"
