"""What learners found, as tables that a person reads in 80 columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

from perflaw.confidence import WORDS
from perflaw.laws.printing import learnt_text
from perflaw.report.law_words import grows_as, prediction_text, scope_pairs, slope_interval, steepest, verdict
from perflaw.report.quantity import count, number, percent, quantity
from perflaw.report.tables import NAME_WIDTH, WIDTH, broken, printable, text_table, width
from perflaw.types import Annotation, Law, Prediction, Run

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


# ---- Laws of a person's own numbers as a table of 80 columns, with what the data leave open below it.

MOST = 200
"""Series a table lists; more are counted below it."""

_NUMBER = re.compile(r"(?<![\w.])\d+\.?\d*(?:e-?\d+)?")


def fit_table(laws: Sequence[tuple[str, Law]], colour: bool) -> str:
    """Series, law, growth, first prediction and verdict of each; reasons and alternatives follow."""
    shown = laws[:MOST]
    headings = ["series", "law", "grows as", "verdict", "predicted"]
    rows = [[name, short(learnt_text(law.mean)), _growth(law), law.verdict, _first(law)] for name, law in shown]
    if len(laws) == 1:
        return text_table(headings[:4], [rows[0][:4]], right=(), colour=colour) + _details(laws[0][1], colour)
    text = text_table(headings, rows, right=(), colour=colour)
    text += _wrapped(f"{name}: {note}" for name, law in shown for note in _notes(law))
    return text + _fit_table_rest(laws)


def short(expression: str) -> str:
    """Expression with three significant digits.

    >>> short("LogNorm(3.14159*n^1.98765, 0.05)")
    'LogNorm(3.14*n^1.99, 0.05)'
    """
    return _NUMBER.sub(lambda found: f"{float(found.group()):.3g}".replace("e+", "e"), expression)


def _growth(law: Law) -> str:
    return f"{grows_as(law)} {slope_interval(law)}".strip()


def _first(law: Law) -> str:
    if not law.predictions:
        return ""
    one = law.predictions[0]
    where = _where(law, one)
    return f"{_estimate(one)} at {where}" if where else _estimate(one)


def _where(law: Law, one: Prediction) -> str:
    """The law's features there; all of a constant's."""
    return ", ".join(f"{name}={_round(one.features[name])}" for name in law.features or one.features)


def _estimate(one: Prediction) -> str:
    return f"{_round(one.mean)} ({_round(one.mean_low)}–{_round(one.mean_high)})"


def _round(value: float) -> str:
    """Three digits, thousands grouped."""
    return number(float(f"{value:.3g}"))


def _details(law: Law, colour: bool) -> str:
    """Everything about the only law."""
    rows = [
        [_where(law, one), _estimate(one), f"{_round(one.new_low)}–{_round(one.new_high)}"] for one in law.predictions
    ]
    table = text_table(["at", f"predicted ({WORDS})", f"one new run ({WORDS})"], rows, right=(), colour=colour)
    evidence = f"distribution {short(learnt_text(law.expression))}, from {count(law.n)} rows, {count(law.runs)} runs"
    return "\n" + table + _wrapped([evidence, *_notes(law)])


def _wrapped(lines: Iterable[str]) -> str:
    """Lines of at most 80 columns."""
    return "".join(
        fill(printable(line), WIDTH, subsequent_indent="  ", break_on_hyphens=False) + "\n" for line in lines
    )


def _notes(law: Law) -> list[str]:
    """Why it is no law, and which others fit as well."""
    notes = [f"{law.verdict}: {law.reason}"] if law.reason else []
    notes += [f"{name} might as well be {', '.join(others)} in these data" for name, others in law.collinear.items()]
    if law.alternatives:
        others = ", ".join(short(learnt_text(one.expression)) for one in law.alternatives)
        notes.append(f"the data cannot tell it from {others}")
    return notes


def _fit_table_rest(laws: Sequence[tuple[str, Law]]) -> str:
    verdicts = Counter(law.verdict for _, law in laws)
    total = ", ".join(f"{verdicts[name]} {name}" for name in ("law", "none", "inconclusive") if verdicts[name])
    more = f" · {len(laws) - MOST} more than listed, --json gives all" if len(laws) > MOST else ""
    return f"{len(laws)} series: {total}{more}\n"
