"""Tables a person reads in 80 columns, by Rich; plain text where the output is no terminal."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping, Sequence

from perflaw.report.text import annotation_text, grows_as, percent, prediction_text, quantity, slope_interval, verdict
from perflaw.types import Annotation, Component, Run

WIDTH = 80
SMALL_SHARE = 0.005
"""Functions below this share are counted, not listed, unless everything is asked for."""


def annotations_table(
    annotations: Sequence[Annotation], at: Mapping[str, float] | None, colour: bool, every: bool = False
) -> str:
    """The laws as a table, those of small share summed up in a last line."""
    shown = [one for one in annotations if every or one.share >= SMALL_SHARE or one is annotations[0]]
    headings = ["share", "function", "law of time per call", "grows as", _at_heading(at)]
    rows = [_row(one, at) for one in shown]
    table = text_table(headings, rows, right=(0,), colour=colour)
    return table + _rest(annotations, shown)


def _at_heading(at: Mapping[str, float] | None) -> str:
    if not at:
        return "self"
    return "at " + ", ".join(f"{name}={value:g}" for name, value in at.items())


def _row(one: Annotation, at: Mapping[str, float] | None) -> list[str]:
    law = one.scopes[0].law
    growth = f"{grows_as(law)} {slope_interval(law)}" if law.features else grows_as(law)
    last = percent(one.self_share)
    if at:
        last = prediction_text(one.predicted, one.metric.unit) if one.predicted else "—"
    return [percent(one.share), short_name(one.component), annotation_text(one), growth, last]


def short_name(component: Component) -> str:
    """Name with its parameters, ``self`` left out: ``index.build(docs)``."""
    parameters = [name for name in component.parameters if name not in ("self", "cls")]
    return f"{component.name}({', '.join(parameters)})" if component.parameters else component.name


def _rest(annotations: Sequence[Annotation], shown: Sequence[Annotation]) -> str:
    left = len(annotations) - len(shown)
    lines = [f"{left} more under {percent(SMALL_SHARE)} of the cost (--all lists them)"] if left else []
    reasons: dict[str, int] = {}
    for one in shown:
        if verdict(one) == "inconclusive":
            reason = one.scopes[0].law.reason
            reasons[reason] = reasons.get(reason, 0) + 1
    lines += [f"{count} inconclusive: {reason}" for reason, count in reasons.items()]
    return "".join(line + "\n" for line in lines)


def runs_table(runs: Sequence[Run], unfinished: Sequence[str], damaged: Mapping[str, str], colour: bool) -> str:
    """The recordings of an experiment."""
    rows = [
        [
            run.id,
            run.started[:16].replace("T", " "),
            run.target,
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
        table.add_row(*(Text(printable(cell)) for cell in row))
    width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if colour else WIDTH
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, highlight=False).print(table)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def printable(text: str) -> str:
    """The text with control characters escaped: a name must not drive the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
