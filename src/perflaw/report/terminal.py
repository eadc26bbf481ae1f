"""Tables a person reads in 80 columns, by Rich; plain text where the output is no terminal."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping, Sequence

from perflaw.report.text import (
    grows_as,
    percent,
    prediction_text,
    quantity,
    scope_texts,
    slope_interval,
    steepest,
    verdict,
)
from perflaw.types import Annotation, Run

WIDTH = 80
SMALL_SHARE = 0.03
"""Functions below this share are counted, not listed, unless everything is asked for."""
NAME_WIDTH, LAW_WIDTH, GROWTH_WIDTH = 23, 18, 13
MOST_LAWS = 4
"""Laws of one component that are listed; --text and the page tell all."""


def annotations_table(
    annotations: Sequence[Annotation], at: Mapping[str, float] | None, colour: bool, every: bool = False
) -> str:
    """The laws as a table, those of small share summed up in a last line."""
    shown = [one for one in annotations if every or _matters(one, annotations)]
    metric = annotations[0].metric.name if annotations else "time"
    headings = ["share", "function", f"{metric} per call", "grows as", _at_heading(at)]
    table = text_table(headings, [_row(one, at) for one in shown], right=(0,), colour=colour)
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
    law = steepest(one)
    growth = broken(printable(grows_as(law)), ", ", GROWTH_WIDTH)
    growth = f"{growth}\n{slope_interval(law).replace(' (', chr(10) + '(')}".strip()
    last = percent(one.self_share)
    if at:
        last = prediction_text(one.predicted, one.metric.unit).replace(" (", "\n(") if one.predicted else "—"
    return [percent(one.share), broken(printable(one.component.name), ".", NAME_WIDTH), _laws(one), growth, last]


def _laws(one: Annotation) -> str:
    """Its laws, each on lines of its own; of many modes the most frequent."""
    laws = [broken(printable(law), " · ", LAW_WIDTH) for law in scope_texts(one)]
    more = len(laws) - MOST_LAWS
    return "\n".join(laws if more <= 1 else [*laws[:MOST_LAWS], f"… {more} more"])


def broken(text: str, separator: str, width: int) -> str:
    """The text in lines of at most ``width``, broken at its separators, else anywhere; continued lines are indented by one.

    >>> print(broken("package.module.Class.function", ".", 20))
    package.module.
     Class.function
    """
    lines, line = [], ""
    for part in [piece + separator for piece in text.split(separator)]:
        if line and len(line) + len(part.rstrip()) > width:
            lines.append(line)
            line = " "
        line += part
    lines = [one.rstrip() for one in [*lines, line[: -len(separator)]]]
    return "\n".join("\n ".join(_pieces(one, width)) for one in lines)


def _pieces(line: str, width: int) -> list[str]:
    """A line cut where it is too long; the pieces after the first are indented by whoever joins them."""
    if len(line) <= width:
        return [line]
    return [line[:width], *_pieces(line[width:], width - 1)]


def _rest(annotations: Sequence[Annotation], shown: Sequence[Annotation]) -> str:
    left = len(annotations) - len(shown)
    lines = [f"{left} more under {percent(SMALL_SHARE)} of the cost (--all lists them)"] if left else []
    reasons: dict[str, int] = {}
    for one in shown:
        if verdict(one) == "inconclusive":
            reason = _gist(one.scopes[0].law.reason)
            reasons[reason] = reasons.get(reason, 0) + 1
    lines += [f"? {count} inconclusive: {reason}" for reason, count in reasons.items()]
    return "".join(line + "\n" for line in lines)


def _gist(reason: str) -> str:
    """What a reason says and what it asks for, without the numbers between: they differ from function to function."""
    what, _, advice = reason.partition(": ")
    return f"{what.split(',')[0]}: {advice}" if advice else what


def runs_table(runs: Sequence[Run], unfinished: Sequence[str], damaged: Mapping[str, str], colour: bool) -> str:
    """The recordings of an experiment."""
    rows = [
        [
            run.id,
            run.started[:16].replace("T", " "),
            run.target + (f" (child of {run.parent})" if run.parent else ""),
            " ".join(f"{name}={value:g}" for name, value in run.features.items()),
            f"{run.calls:,}",
            quantity(run.wall_ns, "ns"),
            f"{run.slowdown:.1f}x",
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


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], colour: bool) -> str:
    """A table without lines; cells wrap where the width (80, or the terminal's) does not hold them. Text is literal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold" if colour else None)
    for index, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("\n".join(map(printable, cell.split("\n")))) for cell in row))
    width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if colour else WIDTH
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, highlight=False).print(table)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def printable(text: str) -> str:
    """The text with control characters escaped: a name must not drive the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
