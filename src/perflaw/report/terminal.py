"""What learners found, as tables that a person reads in 80 columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from perflaw.report.table import NAME_WIDTH, WIDTH, broken, printable, text_table, width
from perflaw.report.text import (
    grows_as,
    percent,
    prediction_text,
    quantity,
    scope_pairs,
    slope_interval,
    steepest,
    verdict,
)
from perflaw.types import Annotation, Run

__all__ = [
    "NAME_WIDTH",
    "SMALL_SHARE",
    "WIDTH",
    "annotations_table",
    "broken",
    "gist",
    "printable",
    "runs_table",
    "text_table",
]

SMALL_SHARE = 0.03
"""Functions below this share are counted, not listed, unless everything is asked for."""
GROWTH, GROWTH_WIDTH = "grows as", 13
LEAST_NAME, NAME_PART = 18, 0.49
"""Width of names, and their part of the room that names and laws share."""
MOST_LAWS, MOST_LINES = 4, 3
"""Laws of one component that are listed, and lines of a condition; --text and the page tell all."""
_CALLEE = re.compile(r"`calls\.[^`]*`|\bcalls\.[\w.]+")


def annotations_table(
    annotations: Sequence[Annotation], at: Mapping[str, float] | None, colour: bool, every: bool = False
) -> str:
    """The laws as a table, those of small share summed up in a last line."""
    shown = [one for one in annotations if every or _matters(one, annotations)]
    metric = annotations[0].metric.name if annotations else "time"
    headings = ["share", "function", f"{metric} per call", GROWTH, _at_heading(at)]
    table = text_table(headings, _filled(shown, at, colour), right=(0,), colour=colour)
    return table + _rest(annotations, shown)


def _matters(one: Annotation, annotations: Sequence[Annotation]) -> bool:
    """Whether a function has a share worth a line, now or at the size asked for."""
    first = annotations[0]
    if one is first or one.share >= SMALL_SHARE:
        return True
    return bool(one.predicted and first.predicted and one.predicted.mean >= SMALL_SHARE * first.predicted.mean)


def _at_heading(at: Mapping[str, float] | None) -> str:
    if not at:
        return "self"
    return "at " + ", ".join(f"{name}={value:g}" for name, value in at.items())


def _row(one: Annotation, at: Mapping[str, float] | None) -> list[str]:
    """Its cells but the name and the laws, which get what room these leave."""
    law = steepest(one)
    growth = broken(printable(grows_as(law)), [", ", "_"], GROWTH_WIDTH)
    growth = f"{growth}\n{slope_interval(law).replace(' (', chr(10) + '(')}".strip()
    last = percent(one.self_share)
    if at:
        last = prediction_text(one.predicted, one.metric.unit).replace(" (", "\n(") if one.predicted else "—"
    return [percent(one.share), growth, last]


def _filled(annotations: Sequence[Annotation], at: Mapping[str, float] | None, colour: bool) -> list[list[str]]:
    """The rows: names and laws share what the other columns leave."""
    rows = [_row(one, at) for one in annotations]
    taken = len("share") + sum(
        _widest([row[i] for row in rows] + [head]) for i, head in ((1, GROWTH), (2, _at_heading(at)))
    )
    room = width(colour) - taken - 2 * len(rows[0]) - 2 if rows else 0
    longest = max((len(printable(one.component.name)) for one in annotations), default=0)
    for_name = min(longest, max(LEAST_NAME, int(room * NAME_PART)))
    names = [broken(printable(one.component.name), [".", "_"], for_name) for one in annotations]
    laws = [_laws(one, room - max(_widest(names), len("function"))) for one in annotations]
    return [[row[0], name, law, *row[1:]] for row, name, law in zip(rows, names, laws, strict=True)]


def _widest(cells: Sequence[str]) -> int:
    return max((len(line) for cell in cells for line in cell.split("\n")), default=0)


def _laws(one: Annotation, room: int) -> str:
    """Its laws, each on lines of its own, conditions on lines before; of many the first."""
    laws = [
        "\n".join([*_condition(condition, room), broken(printable(law), [" · ", " ", "."], room)])
        for condition, law in scope_pairs(one)
    ]
    more = len(laws) - MOST_LAWS
    return "\n".join(laws if more <= 0 else [*laws[:MOST_LAWS], f"… {more} more"])


def _condition(condition: str, room: int) -> list[str]:
    """A condition in a few lines, callees by the end of their names; --text and the page tell it whole."""
    if not condition:
        return []
    lines = broken(f"[{printable(_CALLEE.sub(_shortened, condition))}]", [" && ", " ", "."], room).split("\n")
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], " …]"]


def _shortened(found: re.Match[str]) -> str:
    return "calls.…" + ".".join(found[0].strip("`").split(".")[-2:])


def _rest(annotations: Sequence[Annotation], shown: Sequence[Annotation]) -> str:
    left = len(annotations) - len(shown)
    lines = [f"{left} more under {percent(SMALL_SHARE)} of the cost (--all lists them)"] if left else []
    reasons: dict[str, int] = {}
    for one in shown:
        if verdict(one) == "inconclusive":
            reason = gist(one.scopes[0].law.reason)
            reasons[reason] = reasons.get(reason, 0) + 1
    lines += [f"? {count} inconclusive: {reason}" for reason, count in reasons.items()]
    return "".join(line + "\n" for line in lines)


def gist(reason: str) -> str:
    """What a reason says and what it asks for, without the numbers between: they differ from function to function."""
    what, _, advice = reason.partition(": ")
    return f"{what.split(',')[0]}: {advice}" if advice else what


def runs_table(runs: Sequence[Run], unfinished: Sequence[str], damaged: Mapping[str, str], colour: bool) -> str:
    """The recordings of an experiment."""
    rows = [
        [
            run.id,
            run.started[:16].replace("T", " "),
            " ".join(filter(None, [run.target, run.workload, run.parent and f"(child of {run.parent})"])),
            " ".join(f"{name}={value:g}" for name, value in run.features.items()),
            f"{run.calls:,}",
            quantity(run.wall_ns, "ns"),
            f"{run.slowdown:.1f}x" if run.metrics else "-",
            run.ended,
        ]
        for run in runs
    ]
    rows += [
        [run, "", "", "", "", "", "", "unfinished: being recorded, or its recorder was killed"] for run in unfinished
    ]
    rows += [[run, "", "", "", "", "", "", why] for run, why in damaged.items()]
    headings = ["run", "started (UTC)", "target", "features", "calls", "wall", "slow", "ended"]
    return text_table(headings, rows, right=(4, 5, 6), colour=colour)
