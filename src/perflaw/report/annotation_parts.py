"""What is inside an annotation, shown alone in a notebook: a scope, a law, a prediction or a breakpoint.

None of them knows of which function it is, nor its unit: the annotation that it is part of does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from perflaw.confidence import WORDS
from perflaw.laws.printing import condition_text
from perflaw.report.law_words import features_text, grows_as, law_text, noise_text, run_law_text, slope_interval
from perflaw.report.plots import law_plot, law_range_plot
from perflaw.report.quantity import NOTHING, UNKNOWN, counted, estimate, interval, number, percent
from perflaw.report.tables import html_table
from perflaw.types import Annotation, Breakpoint, Law, Prediction, Scope

PARTS: Final = (Scope, Law, Prediction, Breakpoint)
"""Types of the nouns that are shown."""


def part_html(annotation: Annotation, part: object) -> str | None:
    """The table of a noun inside an annotation, a law also with its picture; None if it is not inside it."""
    for scope in annotation.scopes:
        if scope is part:
            held = [["holds", condition_text(scope.condition) or "always"]]
            held += [["share of these calls", percent(scope.probability)]]
            return _law_html(annotation, scope.law, _per(annotation), held)
    for law, per in _laws(annotation):
        if law is part:
            return _law_html(annotation, law, per)
        for point in law.breakpoints:
            if point is part:
                return _breakpoint_html(annotation, point)
        for prediction in law.predictions:
            if prediction is part:
                return _predictions_html(annotation, [prediction], per)
    for point in annotation.breakpoints:
        if point is part:
            return _breakpoint_html(annotation, point)
    whole = annotation.predicted
    return _predictions_html(annotation, [whole], "run") if whole is not None and whole is part else None


def _per(annotation: Annotation) -> str:
    """What the laws of the scopes are of: a call, which is all of a run if it is the only one."""
    return "run" if annotation.called_once else "call"


def _laws(annotation: Annotation) -> Iterator[tuple[Law, str]]:
    """Every law of an annotation, the regimes of laws in pieces too, and whether it is of a call or of a run."""
    laws = [(scope.law, _per(annotation)) for scope in annotation.scopes]
    if annotation.run_law:
        laws.append((annotation.run_law, "run"))
    for law, per in laws:
        yield law, per
        yield from ((part, per) for part in law.segments)


def _law_html(annotation: Annotation, law: Law, per: str, held: Sequence[Sequence[str]] = ()) -> str:
    """The law in words, a property a row so that narrow windows hold it; its predictions; its curve. ``held`` goes first."""
    unit = annotation.metric.unit
    scatters = law.noise.distribution in ("normal", "lognormal")
    rows = [
        *held,
        [f"{annotation.metric.name} per {per}", run_law_text(law, unit) if per == "run" else law_text(law, unit)],
        ["grows as", f"{grows_as(law)} {slope_interval(law)}".strip()],
        ["scatter", noise_text(law.noise, unit) if scatters else law.noise.distribution],
        ["learnt from", f"{counted(law.n, 'point')}, {counted(law.runs, 'run')}"],
    ]
    if law.reason:
        rows.append([law.verdict, law.reason])
    shown = html_table(["function", annotation.component.name], rows)
    if law.predictions:
        shown += _predictions_html(annotation, law.predictions, per)
    # Only the first scope's law is drawn among the calls that it was learnt from.
    plot = law_plot(annotation) if annotation.curves and law is annotation.scopes[0].law else None
    plot = plot or law_range_plot(f"{annotation.component.name}: {annotation.metric.name} per {per}", unit, law, per)
    return shown + (plot.svg if plot else "")


def _predictions_html(annotation: Annotation, predictions: Sequence[Prediction], per: str) -> str:
    """A row for each point; a prediction alone says of which function it is."""
    unit = annotation.metric.unit
    headings = ["at", f"{annotation.metric.name} per {per} ({WORDS})", f"one new {per} ({WORDS})"]
    rows = []
    for one in predictions:
        expected = estimate(one.mean, one.mean_low, one.mean_high, unit)
        new = UNKNOWN if expected == UNKNOWN else interval(one.new_low, one.new_high, unit)
        rows.append([features_text(one.features) or NOTHING, expected, new])
    if len(predictions) == 1:
        headings, rows = ["function", *headings], [[annotation.component.name, *rows[0]]]
    return html_table(headings, rows)


def _breakpoint_html(annotation: Annotation, point: Breakpoint) -> str:
    headings = ["function", "another law from", f"which lies in ({WORDS})"]
    place = f"{point.feature} = {number(point.value)}"
    return html_table(headings, [[annotation.component.name, place, interval(point.low, point.high, "")]])
