"""Laws as tables that a person reads in 80 columns: of an experiment, of a person's own numbers, and their forecasts.

Annotations are also written in the annotation language, as a ``.law`` file (Freud §2.2, Figure 2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

from perflaw.confidence import WORDS
from perflaw.laws.printing import learnt_text, show, writable_unit
from perflaw.laws.tree import Block, LawFile
from perflaw.report.law_words import (
    features_text,
    grows_as,
    leading_terms,
    prediction_text,
    scope_pairs,
    short_path,
    slope_interval,
    steepest,
    verdict,
)
from perflaw.report.quantity import NOTHING, UNKNOWN, counted, estimate, interval, is_known, number, percent, quantity
from perflaw.report.tables import NAME_WIDTH, WIDTH, broken, printable, text_table, width
from perflaw.types import NOT_ASKED, Annotation, Forecast, GrowthSource, Law, Prediction, ProgramForecast, Run

SMALL_SHARE = 0.03
"""Functions below this share of the cost are counted and not listed, unless all are asked for."""
MAX_LAWS, MAX_CONDITION_LINES = 4, 3
"""Laws of one component that the table lists, and lines of a condition; --text and the page hold all."""
MAX_SOURCES = 3
"""Call sites at which growth enters that stand below the table."""
MAX_SERIES = 200
"""Series that a table of own numbers lists."""
_GROWTH, _GROWTH_WIDTH = "grows as", 13
_MIN_NAME_WIDTH, _NAME_PART = 18, 0.49
"""Least width of names, and their part of the room that names and laws share."""
_CALLEE = re.compile(r"`calls\.[^`]*`|\bcalls\.[\w.]+")
_NUMBER = re.compile(r"(?<![\w.])\d+\.?\d*(?:e-?\d+)?")


def annotations_table(
    annotations: Sequence[Annotation], at: Mapping[str, float] | None, colour: bool, every: bool = False
) -> str:
    """The laws of an experiment; functions of small share are counted in a last line, unless ``every`` is asked for."""
    first = annotations[0] if annotations else None
    # A function has a share worth a line now, or at the size asked for.
    enough = SMALL_SHARE * first.predicted.mean if first and first.predicted else None
    shown = [
        one
        for one in annotations
        if every
        or one is first
        or one.share >= SMALL_SHARE
        or (one.predicted is not None and enough is not None and one.predicted.mean >= enough)
    ]
    last = "at " + ", ".join(f"{name}={value:g}" for name, value in at.items()) if at else "self"
    rows = []
    for annotation in shown:
        # Cells of share, growth, and cost at the point asked for (without a point, share of the own cost).
        law = annotation.run_law if _about_runs(annotation, at) and annotation.run_law else steepest(annotation)
        growth = broken(printable(grows_as(law)), [", ", "_"], _GROWTH_WIDTH)
        growth = f"{growth}\n{slope_interval(law).replace(' (', chr(10) + '(')}".strip()
        cost = percent(annotation.self_share)
        if at:
            predicted = annotation.predicted
            cost = prediction_text(predicted, annotation.metric.unit).replace(" (", "\n(") if predicted else NOTHING
        rows.append((percent(annotation.share), growth, cost))
    # Names and laws share the room that the other columns leave.
    taken = len("share") + _widest([_GROWTH, *(row[1] for row in rows)]) + _widest([last, *(row[2] for row in rows)])
    room = width(colour) - taken - 8
    longest = max((len(printable(one.component.name)) for one in shown), default=0)
    name_width = min(longest, max(_MIN_NAME_WIDTH, int(room * _NAME_PART)))
    names = [broken(printable(one.component.name), [".", "_"], name_width) for one in shown]
    law_width = room - _widest(["function", *names])
    cells = []
    for one, name, (share, growth, cost) in zip(shown, names, rows, strict=True):
        # The law of a run that the prediction comes from; without it the first laws of a call, each below its condition.
        if at and one.run_law and _about_runs(one, at):
            text = leading_terms(one.run_law, one.metric.unit, at)
            shown_law = broken(printable(text), [" + ", " (", " · ", " "], law_width)
        else:
            laws = [
                "\n".join([*_condition(condition, law_width), broken(printable(law), [" · ", " ", "."], law_width)])
                for condition, law in scope_pairs(one)
            ]
            more = len(laws) - MAX_LAWS
            shown_law = "\n".join(laws if more <= 0 else [*laws[:MAX_LAWS], f"… {more} more"])
        cells.append([share, name, shown_law, growth, cost])
    metric, of = first.metric.name if first else "time", "run" if first and _about_runs(first, at) else "call"
    headings = ["share", "function", f"{metric} per {of}", _GROWTH, last]
    # Below the table: the number of functions that are not listed, and each reason for inconclusive laws once.
    left = len(annotations) - len(shown)
    lines = [f"{left} more under {percent(SMALL_SHARE)} of the cost (--all lists them)"] if left else []
    open_ = []
    for one in shown:
        if _about_runs(one, at):
            open_ += [one.run_law.reason] if one.run_law and one.run_law.verdict == "inconclusive" else []
        elif verdict(one) == "inconclusive":
            open_.append(one.scopes[0].law.reason)
    lines += [f"? {n} inconclusive: {reason}" for reason, n in Counter(map(gist, open_)).items()]
    return text_table(headings, cells, right=(0,), colour=colour) + "".join(line + "\n" for line in lines)


def _widest(cells: Iterable[str]) -> int:
    return max((len(line) for cell in cells for line in cell.split("\n")), default=0)


def _about_runs(annotation: Annotation, at: Mapping[str, float] | None) -> bool:
    """Whether a row shows the law of whole runs: it does where a run of some size is asked for."""
    return bool(at and annotation.predicted)


def _condition(condition: str, room: int) -> list[str]:
    """A condition in a few lines, callees by the ends of their names."""
    if not condition:
        return []
    short = _CALLEE.sub(lambda name: "calls.…" + ".".join(name[0].strip("`").split(".")[-2:]), condition)
    lines = broken(f"[{printable(short)}]", [" && ", " ", "."], room).split("\n")
    return lines if len(lines) <= MAX_CONDITION_LINES else [*lines[:MAX_CONDITION_LINES], " …]"]


def program_line(program: ProgramForecast, unit: str) -> str:
    """The cost of whole runs: what is predicted, and how well the model composes the largest runs that were recorded."""
    parts = []
    if program.predicted:
        point = features_text(program.predicted.features)
        parts.append(f"whole program at {point}: {prediction_text(program.predicted, unit)}")
    size = f" at {features_text(program.features)}" if program.features else ""
    composed, measured = quantity(program.composed, unit), quantity(program.measured, unit)
    parts.append(f"recorded runs{size}: composed {composed}, measured {measured}")
    if program.unrecorded:
        parts.append(f"of these {quantity(program.unrecorded, unit)} for the start and end of the process")
    if program.queued:
        parts.append(f"without {quantity(program.queued, unit)} in which the busy machine had no CPU for them")
    return _wrapped([" · ".join(parts)])


def growth_lines(sources: Sequence[GrowthSource]) -> str:
    """The call sites at which growth enters, so that a person finds the lines."""
    lines = []
    for one in sources[:MAX_SOURCES]:
        line = f":{one.line}" if one.line > 0 else ""
        place = f"{short_path(one.caller.file)}{line}" if one.caller.file else "no source file"
        names = (name.replace(".<locals>", "") for name in (one.caller.name, one.callee.name))
        caller, callee = (".".join(name.rsplit(".", 2)[-2:]) for name in names)
        growth = f"{number(one.few)} to {number(one.many)} calls a call, as {one.feature}^{one.exponent:.2f}"
        site = f"growth enters at {place} ({printable(caller)} -> {printable(callee)})"
        lines.append(f"{site}: {growth} · {percent(one.share)} of the cost")
    return _wrapped(lines)


def gist(reason: str) -> str:
    """A reason without the numbers in it, which differ between functions: the finding and the advice."""
    finding, _, advice = reason.partition(": ")
    return f"{finding.split(',')[0]}: {advice}" if advice else finding


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
    reasons = dict.fromkeys(unfinished, "unfinished: being recorded, or its recorder was killed")
    rows += [[run, "", "", "", "", "", "", reason] for run, reason in (reasons | dict(damaged)).items()]
    headings = ["run", "started (UTC)", "target", "features", "calls", "wall", "slow", "ended"]
    return text_table(headings, rows, right=(4, 5, 6), colour=colour)


def fit_table(laws: Sequence[tuple[str, Law]], colour: bool) -> str:
    """Laws of a person's own numbers, a row a series; one law alone with its predictions. Reasons stand below."""
    shown = laws[:MAX_SERIES]
    headings = ["series", "law", "grows as", "verdict", "predicted"]
    rows = []
    for name, law in shown:
        predicted = ""
        if law.predictions:
            point = _point(law, law.predictions[0])
            predicted = _estimate(law.predictions[0]) + (f" at {point}" if point else "")
        rows.append(
            [
                name,
                short(learnt_text(law.mean)),
                f"{grows_as(law)} {slope_interval(law)}".strip(),
                law.verdict,
                predicted,
            ]
        )
    if len(laws) == 1:
        [(_, law)] = laws
        predictions = []
        for one in law.predictions:
            known = is_known(one.mean, one.mean_low, one.mean_high)
            new_run = f"{_three_digits(one.new_low)}–{_three_digits(one.new_high)}" if known else UNKNOWN
            predictions.append([_point(law, one), _estimate(one), new_run])
        evidence = f"distribution {short(learnt_text(law.expression))}, "
        evidence += f"from {counted(law.n, 'row')}, {counted(law.runs, 'run')}"
        text = text_table(headings[:4], [rows[0][:4]], right=(), colour=colour) + "\n"
        headings = ["at", f"predicted ({WORDS})", f"one new run ({WORDS})"]
        return text + text_table(headings, predictions, right=(), colour=colour) + _wrapped([evidence, *_notes(law)])
    verdicts = Counter(law.verdict for _, law in laws)
    total = ", ".join(f"{verdicts[name]} {name}" for name in ("law", "none", "inconclusive") if verdicts[name])
    more = f" · {len(laws) - MAX_SERIES} more than listed, --json gives all" if len(laws) > MAX_SERIES else ""
    notes = _wrapped(f"{name}: {note}" for name, law in shown for note in _notes(law))
    return text_table(headings, rows, right=(), colour=colour) + notes + f"{len(laws)} series: {total}{more}\n"


def short(expression: str) -> str:
    """The expression with three significant digits.

    >>> short("LogNorm(3.14159*n^1.98765, 0.05)")
    'LogNorm(3.14*n^1.99, 0.05)'
    """
    return _NUMBER.sub(lambda found: f"{float(found.group()):.3g}".replace("e+", "e"), expression)


def _point(law: Law, prediction: Prediction) -> str:
    """Values of the law's features at a prediction; of all features where the law is constant."""
    names = law.features or prediction.features
    return ", ".join(f"{name}={_three_digits(prediction.features[name])}" for name in names)


def _estimate(prediction: Prediction) -> str:
    if not is_known(prediction.mean, prediction.mean_low, prediction.mean_high):
        return UNKNOWN
    low, high = _three_digits(prediction.mean_low), _three_digits(prediction.mean_high)
    return f"{_three_digits(prediction.mean)} ({low}–{high})"


def _three_digits(value: float) -> str:
    return number(float(f"{value:.3g}"))


def _notes(law: Law) -> list[str]:
    """Why there is no law, and which features and laws fit the data as well."""
    notes = [f"{law.verdict}: {law.reason}"] if law.reason else []
    notes += [f"{name} might as well be {', '.join(others)} in these data" for name, others in law.collinear.items()]
    if law.alternatives:
        others = ", ".join(short(learnt_text(one.expression)) for one in law.alternatives)
        notes.append(f"equally good laws: {others}")
    return notes


OTHER_FEATURES = f"{NOT_ASKED}: laws of other features (--all lists them)"
"""Reason of all functions together whose laws need features that a point does not name."""


def forecast_table(forecasts: Sequence[Forecast], colour: bool, every: bool = False) -> str:
    """Forecasts, a table a point, whole runs before single calls.

    Costs that are small beside the largest are counted and not listed, unless ``every`` forecast is asked for.
    Functions without a forecast are named below, with the reason.
    """
    tables: dict[tuple[str, str], list[Forecast]] = {}
    for subject in ("run", "call"):
        for forecast in forecasts:
            if forecast.of == subject and forecast.features:
                tables.setdefault((subject, features_text(forecast.features)), []).append(forecast)
    texts = []
    for (subject, point), group in tables.items():
        largest = max((one.mean or 0.0 for one in group), default=0.0)
        shown = [one for one in group if every or one.mean is None or one.mean >= SMALL_SHARE * largest]
        headings = ["function", f"expected {group[0].metric.name} a {subject}", f"one new {subject}"]
        rows = []
        messages: dict[str, list[str]] = {}
        for one in shown:
            unit = one.metric.unit
            name = broken(printable(one.component.name), ".", NAME_WIDTH)
            if one.condition:
                name += f"\n [{printable(one.condition)}]"
            expected = new = NOTHING
            if one.mean is not None:
                low, high = one.mean_low, one.mean_high
                expected = quantity(one.mean, unit)
                if low is not None and high is not None:
                    expected = estimate(one.mean, low, high, unit)
                low, high = one.new_low, one.new_high
                new = UNKNOWN if expected == UNKNOWN else NOTHING
                if low is not None and high is not None and expected != UNKNOWN:
                    new = interval(low, high, unit)
            rows.append([name, expected, new])
            if one.message:
                messages.setdefault(one.message, []).append(one.component.name)
        table = text_table(headings, rows, right=(), colour=colour)
        left = len(group) - len(shown)
        more = f"{left} more of small cost (--all lists them)\n" if left else ""
        notes = [
            message if len(names) == len(shown) else f"{_some(names)}: {message}" for message, names in messages.items()
        ]
        texts.append(f"{printable(point)}\n{table}{more}{_wrapped(notes)}")
    unanswered = {one.component.name: one.message for one in forecasts if not one.features}
    if unanswered:
        reasons: dict[str, list[str]] = {}
        for name, message in unanswered.items():
            hidden = message.startswith(NOT_ASKED) and not every
            reasons.setdefault(OTHER_FEATURES if hidden else message, []).append(name)
        notes = [f"{', '.join(names) if every else _some(names)}: {message}" for message, names in reasons.items()]
        texts.append(f"no answer for {counted(len(unanswered), 'function')}\n{_wrapped(notes)}")
    return "\n".join(texts)


def _some(names: Sequence[str]) -> str:
    """The first three names."""
    return f"{', '.join(names[:3])}{' …' * (len(names) > 3)}"


def _wrapped(lines: Iterable[str]) -> str:
    """Lines of at most 80 columns."""
    wrapped = (fill(printable(line), WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines)
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
