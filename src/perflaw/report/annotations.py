"""Laws as tables that a person reads in 80 columns: of an experiment, and their forecasts.

Annotations are also written in the annotation language, as a ``.law`` file (Freud §2.2, Figure 2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import fill

from perflaw.laws.printing import learnt_text, show, writable_unit
from perflaw.laws.tree import Block, LawFile
from perflaw.report.law_words import features_text, short_path
from perflaw.report.quantity import NOTHING, UNKNOWN, counted, estimate, interval, number, percent, quantity
from perflaw.report.tables import NAME_WIDTH, broken, column, line_width, printable, text_table, width
from perflaw.types import Annotation
from perflaw.types.documents import Document
from perflaw.types.programs import OUTSIDE

SMALL_SHARE = 0.03
"""Functions below this share of the cost are counted and not listed, unless all are asked for."""
MAX_LAWS, MAX_CONDITION_LINES = 4, 3
"""Laws of one component that the table lists, and lines of a condition; --text and the page hold all."""
MAX_SOURCES = 3
"""Call sites at which growth enters that stand below the table."""
_GROWTH, _GROWTH_WIDTH = "grows as", 13
_MIN_NAME_WIDTH, _NAME_PART = 18, 0.49
"""Least width of names, and their part of the room that names and laws share."""
_CALLEE = re.compile(r"`calls\.[^`]*`|\bcalls\.[\w.]+")
_NUMBER = re.compile(r"(?<![\w.])\d+\.?\d*(?:e-?\d+)?")


def annotations_text(document: Document, colour: bool, every: bool = False) -> str:
    """The document of ``annotate``: its table, where growth enters, the whole program, and what was not recorded."""
    program, lost = document["program"], document["lost"]
    lines = [annotations_table(document, colour, every), growth_lines(document["sources"])]
    if program:
        unit = next((one["unit"] for one in document["annotations"]), "ns")
        lines.append(wrapped([program_text(program, unit)]))
    if counted_only := lost["counted_functions"]:
        functions = counted(counted_only, "tiny library function")
        lines.append(f"counted, few calls timed: {functions}, whose cost is estimated from these calls (--budget)\n")
    if library := lost["library_functions"]:
        lines.append(f"left out: {library} library functions that only libraries call (--select records them)\n")
    if unselected := lost["unselected_functions"]:
        lines.append(f"left out by --select or --exclude: {unselected} functions\n")
    return "".join(lines)


def annotations_table(document: Document, colour: bool, every: bool = False) -> str:
    """The laws of an experiment; functions of small share are counted in a last line, unless ``every`` is asked for."""
    annotations, at = document["annotations"], document["at"]
    first = annotations[0] if annotations else None
    if first and first["predicted"] and document["program"]:  # what is no function of the program has rows of its own
        others = [*annotations[1:], *document["program"]["parts"]]
        others.sort(key=lambda one: -one["predicted"]["mean"] if one["predicted"] else 0.0)
        annotations = [first, *others]
    # A function has a share worth a line now, or at the size asked for.
    enough = SMALL_SHARE * first["predicted"]["mean"] if first and first["predicted"] else None
    shown = [
        one
        for one in annotations
        if every
        or one is first
        or one["share"] >= SMALL_SHARE
        or (one["predicted"] is not None and enough is not None and one["predicted"]["mean"] >= enough)
    ]
    last = "at " + ", ".join(f"{name}={value:g}" for name, value in at.items()) if at else "self"
    rows = []
    for one in shown:
        # Cells of share, growth, and cost at the point asked for (without a point, share of the own cost).
        growth = broken(printable(one["shown"]["growth"]), [", ", "_"], column(_GROWTH_WIDTH))
        growth = f"{growth}\n{one['shown']['interval'].replace(' (', chr(10) + '(')}".strip()
        cost = percent(one["self_share"])
        if at:
            predicted = one["predicted"]
            cost = predicted_text(predicted, one["unit"]).replace(" (", "\n(") if predicted else NOTHING
        rows.append((percent(one["share"]), growth, cost))
    heading = f"{first['metric']} per {first['shown']['per']}" if first else "time per call"
    if first and first["shown"]["per"] == "run" and document["per"]:
        heading = f"{first['metric']} in a {execution(document['per'])}"
    # Names and laws share the room that the other columns leave.
    columns = zip(("share", _GROWTH, last), *rows, strict=True)
    taken = sum(_widest(column) for column in columns)
    room = width() - taken - 8
    longest = max((len(printable(one["component"])) for one in shown), default=0)
    name_width = min(longest, max(column(_MIN_NAME_WIDTH), min(int(room * _NAME_PART), room - len(heading))))
    names = [broken(printable(one["component"]), [".", "_"], name_width) for one in shown]
    law_width = max(room - _widest(["function", *names]), len(heading))
    cells = []
    for one, name, (share, growth, cost) in zip(shown, names, rows, strict=True):
        separators = [" + ", " (", " · ", " "] if one["shown"]["per"] == "run" else [" · ", " ", "."]
        laws = [
            "\n".join(
                [*_condition(part["condition"], law_width), broken(printable(part["law"]), separators, law_width)]
            )
            for part in one["shown"]["laws"]
        ]
        more = len(laws) - MAX_LAWS
        cells.append(
            [share, name, "\n".join(laws if more <= 0 else [*laws[:MAX_LAWS], f"… {more} more"]), growth, cost]
        )
    # Below the table: the number of functions that are not listed, and each reason for inconclusive laws once.
    left = len(annotations) - len(shown)
    lines = [f"{left} more under {percent(SMALL_SHARE)} of the cost (--all lists them)"] if left else []
    reasons = Counter(gist(one["shown"]["reason"]) for one in shown if one["shown"]["verdict"] == "inconclusive")
    lines += [f"? {n} inconclusive: {reason}" for reason, n in reasons.items()]
    headings = ["share", "function", heading, _GROWTH, last]
    return text_table(headings, cells, right=(0,), colour=colour) + wrapped(lines)


def _widest(cells: Iterable[str]) -> int:
    return max((len(line) for cell in cells for line in cell.split("\n")), default=0)


def predicted_text(prediction: Document, unit: str) -> str:
    """The expected cost of a prediction with its interval, such as ``41 s (34–50)``."""
    return estimate(prediction["mean"], prediction["mean_low"], prediction["mean_high"], unit)


def _condition(condition: str, room: int) -> list[str]:
    """A condition in a few lines, callees by the ends of their names."""
    if not condition:
        return []
    short = _CALLEE.sub(lambda name: "calls.…" + ".".join(name[0].strip("`").split(".")[-2:]), condition)
    lines = broken(f"[{printable(short)}]", [" && ", " ", "."], room).split("\n")
    return lines if len(lines) <= MAX_CONDITION_LINES else [*lines[:MAX_CONDITION_LINES], " …]"]


def program_text(program: Document, unit: str) -> str:
    """The cost of whole runs: what is predicted, and how well the model composes the largest runs that were recorded."""
    parts = []
    if program["predicted"]:
        point = features_text(program["predicted"]["features"])
        whole = f"a {execution(program['per'])}" if program["per"] else "whole program"
        parts.append(f"{whole} at {point}: {predicted_text(program['predicted'], unit)}")
    size = f" at {features_text(program['features'])}" if program["features"] else ""
    composed, measured = quantity(program["composed"], unit), quantity(program["measured"], unit)
    recorded = f"{program['executions']} calls of {_last(program['per'])}" if program["per"] else "recorded runs"
    parts.append(f"{recorded}{size}: composed {composed}, measured {measured}")
    if program["unrecorded"]:
        parts.append(f"of these {quantity(program['unrecorded'], unit)} for the {OUTSIDE.strip('()')}")
    if program["queued"]:
        parts.append(f"without {quantity(program['queued'], unit)} in which the busy machine had no CPU for them")
    return " · ".join(parts)


def execution(per: str) -> str:
    """What a law of whole executions is over: a run, or with ``--per`` a call of a function, by the last part of its name.

    >>> execution(""), execution("service.order"), execution("shop::order")
    ('run', 'call of order', 'call of order')
    """
    return f"call of {_last(per)}" if per else "run"


def _last(name: str) -> str:
    return printable(name.rpartition(".")[2].rpartition("::")[2])


def growth_lines(sources: Sequence[Document]) -> str:
    """The call sites at which growth enters, so that a person finds the lines."""
    lines = []
    for one in sources[:MAX_SOURCES]:
        line = f":{one['line']}" if one["line"] > 0 else ""
        place = f"{short_path(one['file'])}{line}" if one["file"] else "no source file"
        names = (one[end].replace(".<locals>", "") for end in ("caller", "callee"))
        caller, callee = (".".join(name.rsplit(".", 2)[-2:]) for name in names)
        growth = (
            f"{number(one['few'])} to {number(one['many'])} calls a call, as {one['feature']}^{one['exponent']:.2f}"
        )
        site = f"growth enters at {place} ({printable(caller)} -> {printable(callee)})"
        lines.append(f"{site}: {growth} · {percent(one['share'])} of the cost")
    return wrapped(lines)


def gist(reason: str) -> str:
    """A reason without the numbers in it, which differ between functions: the finding and the advice."""
    finding, _, advice = reason.partition(": ")
    return f"{finding.split(',')[0]}: {advice}" if advice else finding


def runs_table(document: Document, colour: bool) -> str:
    """The recordings of an experiment."""
    rows = [
        [
            run["id"],
            run["started"][:16].replace("T", " "),
            " ".join(filter(None, [run["target"], run["workload"], run["parent"] and f"(child of {run['parent']})"])),
            " ".join(f"{name}={value:g}" for name, value in run["features"].items()),
            f"{run['calls']:,}",
            quantity(run["wall_ns"], "ns"),
            f"{run['slowdown']:.1f}x" if run["metrics"] else "-",
            run["ended"],
        ]
        for run in document["runs"]
    ]
    reasons = dict.fromkeys(document["unfinished"], "unfinished: being recorded, or its recorder was killed")
    rows += [[run, "", "", "", "", "", "", reason] for run, reason in (reasons | document["damaged"]).items()]
    headings = ["run", "started (UTC)", "target", "features", "calls", "wall", "slow", "ended"]
    return text_table(headings, rows, right=(4, 5, 6), colour=colour)


def short(expression: str) -> str:
    """The expression with three significant digits.

    >>> short("LogNorm(3.14159*n^1.98765, 0.05)")
    'LogNorm(3.14*n^1.99, 0.05)'
    """
    return _NUMBER.sub(lambda found: f"{float(found.group()):.3g}".replace("e+", "e"), expression)


def _expected(prediction: Document, unit: str) -> tuple[str, str]:
    """An expected cost with its interval, and the interval of one new run or call."""
    mean, low, high = prediction["mean"], prediction["mean_low"], prediction["mean_high"]
    bounded = low is not None and high is not None
    expected = estimate(mean, low, high, unit) if bounded else quantity(mean, unit)
    new = UNKNOWN if expected == UNKNOWN else NOTHING
    if mean is not None and None not in (prediction["new_low"], prediction["new_high"]) and expected != UNKNOWN:
        new = interval(prediction["new_low"], prediction["new_high"], unit)
    return expected, new


def forecast_table(document: Document, colour: bool, every: bool = False) -> str:
    """Forecasts, a table a point, whole runs before single calls.

    Costs that are small beside the largest are counted and not listed, unless ``every`` forecast is asked for.
    Functions without a forecast, or with none of a call, are named below with the reason.
    """
    from perflaw.types import NOT_ASKED

    forecasts = document["predictions"]
    tables: dict[tuple[str, str], list[Document]] = {}
    for subject in ("run", "call"):
        for one in forecasts:
            if one["of"] == subject and one["features"]:
                tables.setdefault((subject, features_text(one["features"])), []).append(one)
    texts = []
    for (subject, point), group in tables.items():
        largest = max((one["mean"] or 0.0 for one in group), default=0.0)
        shown = [one for one in group if every or one["mean"] is None or one["mean"] >= SMALL_SHARE * largest]
        whole = execution(document["per"]) if subject == "run" else "call"
        headings = ["function", f"expected {group[0]['metric']} a {whole}", f"one new {whole}"]
        of_whole = [one for one in document["whole"] if subject == "run" and features_text(one["features"]) == point]
        rows = [
            [f"a {whole}" if document["per"] else "whole program", *_expected(one, group[0]["unit"])]
            for one in of_whole
        ]
        messages: dict[str, list[str]] = {}
        for one in shown:
            name = broken(printable(one["component"]), [".", "_"], column(NAME_WIDTH))
            if one["condition"]:
                name += f"\n [{printable(one['condition'])}]"
            rows.append([name, *_expected(one, one["unit"])])
            if one["message"]:
                messages.setdefault(one["message"], []).append(one["component"])
        table = text_table(headings, rows, right=(), colour=colour)
        left = len(group) - len(shown)
        more = f"{left} more of small cost (--all lists them)\n" if left else ""
        notes = [
            message if len(names) == len(shown) else f"{_some(names)}: {message}" for message, names in messages.items()
        ]
        texts.append(f"{printable(point)}\n{table}{more}{wrapped(notes)}")
    unanswered = {one["component"]: one["message"] for one in forecasts if not one["features"]}
    answered_of_runs: dict[str, list[str]] = {}
    for name in dict.fromkeys(one["component"] for one in forecasts if one["of"] == "run"):
        if name in unanswered:
            answered_of_runs.setdefault(unanswered.pop(name), []).append(name)
    if answered_of_runs:
        lists = {message: ", ".join(names) if every else _some(names) for message, names in answered_of_runs.items()}
        texts.append(wrapped(f"one call of {names}: {message}" for message, names in lists.items()))
    if unanswered:
        reasons: dict[str, list[str]] = {}
        for name, message in unanswered.items():
            if message.startswith(NOT_ASKED) and not every:  # one reason for all functions with laws of other features
                message = f"{NOT_ASKED}: laws of other features (--all lists them)"
            reasons.setdefault(message, []).append(name)
        notes = [f"{', '.join(names) if every else _some(names)}: {message}" for message, names in reasons.items()]
        texts.append(f"no answer for {counted(len(unanswered), 'function')}\n{wrapped(notes)}")
    return "\n".join(texts)


def _some(names: Sequence[str]) -> str:
    """The first three names."""
    return f"{', '.join(names[:3])}{' …' * (len(names) > 3)}"


def wrapped(lines: Iterable[str]) -> str:
    """Lines that the terminal holds."""
    wrapped = (fill(printable(line), line_width(), subsequent_indent="  ", break_on_hyphens=False) for line in lines)
    return "".join(line + "\n" for line in wrapped)


def law_file(annotations: Sequence[Annotation]) -> str:
    """All annotations, one block a component and metric; comments tell the evidence.

    Of several components of one name the dearest, which stands first, is written: a file says a thing once.
    """
    named: dict[tuple[str, str], list[Annotation]] = {}
    for one in annotations:
        named.setdefault((one.component.name, one.metric.name), []).append(one)
    return show(LawFile(tuple(block(first, others) for first, *others in named.values())))


def block(one: Annotation, others: Sequence[Annotation] = ()) -> Block:
    """One annotation as the language has it: scopes of one condition are the parts of a mixture.

    ``others`` are components of the same name, which a comment says are left out.
    """
    runs = max(scope.law.runs for scope in one.scopes)
    unit = "" if writable_unit(one.metric.unit) else f"; unit {one.metric.unit}"
    comments = [f"{one.calls:,} calls, {runs} runs, {percent(one.share)} of the cost{unit}", *one.marks]
    for border in one.breakpoints:
        ends = f"{number(border.low)}–{number(border.high)}"
        comments.append(f"regimes part at {border.feature} = {number(border.value)} ({ends})")
    for scope in one.scopes:
        place = f"[{show(scope.condition)}] " if len(one.scopes) > 1 and scope.condition else ""
        doubts = [scope.law.reason] if scope.law.reason else []
        doubts += [f"fits equally well: {learnt_text(law.expression)}" for law in scope.law.alternatives]
        doubts += [f"{name} varies together with {', '.join(same)}" for name, same in scope.law.collinear.items()]
        comments += [f"{place}{line}" for line in doubts]
    if others:
        places = ", ".join(f"{other.component.file}:{other.component.line}" for other in others)
        comments.append(f"{len(others)} more component{'s' * (len(others) > 1)} of this name left out: {places}")
    return Block(
        one.component.name,
        one.metric.name,
        one.component.parameters,
        (),
        one.clauses,
        one.metric.unit if writable_unit(one.metric.unit) else "",
        tuple(" ".join(line.split()) for line in comments),
    )
