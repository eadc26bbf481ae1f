"""Laws of a person's own numbers as the terminal shows them (`perflaw fit`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perflaw.confidence import WORDS
from perflaw.laws.reading import parse_distribution, parse_expression
from perflaw.report.annotations import short, wrapped
from perflaw.report.law_words import mean_text, noise_text
from perflaw.report.quantity import NOTHING, UNKNOWN, counted, estimate, interval, is_known, number
from perflaw.report.tables import text_table
from perflaw.types.documents import Document
from perflaw.types.laws import Noise

MAX_SERIES = 200
"""Series that a table of own numbers lists."""


def fit_table(documents: Sequence[Document], response: str, colour: bool) -> str:
    """Laws of a person's own numbers, a row a series; one law alone with its predictions. Reasons stand below.

    A series without a name has that of the ``response``.
    """
    laws = [(response if one["series"] is None else one["series"], one["law"], one["shown"]) for one in documents]
    listed = laws[:MAX_SERIES]
    headings = ["series", "law", "grows as", "verdict", "predicted"]
    rows = []
    for (name, law, shown), one in zip(listed, documents, strict=False):
        predicted = ""
        if law["predictions"]:
            point = _point(law, law["predictions"][0])
            predicted = _estimate(law["predictions"][0], one["unit"]) + (f" at {point}" if point else "")
        growth = f"{shown['growth']} {shown['interval']}".strip()
        rows.append([name, _mean(law, one["unit"]), growth, law["verdict"], predicted])
    if len(laws) == 1:
        [(_, law, _)], unit = laws, documents[0]["unit"]
        predictions = []
        for one in law["predictions"]:
            expected = _estimate(one, unit)
            new_run = f"{_three_digits(one['new_low'])}–{_three_digits(one['new_high'])}"
            if unit and None not in (one["new_low"], one["new_high"]):
                new_run = interval(one["new_low"], one["new_high"], unit)
            predictions.append([_point(law, one), expected, UNKNOWN if expected == UNKNOWN else new_run])
        evidence = f"distribution {short(law['expression'])}, "
        if unit:
            scatter = law["noise"]["distribution"] in ("normal", "lognormal")
            noise = f"scatter {noise_text(Noise(**law['noise']), unit)}, "
            evidence = noise if scatter else f"{evidence}in {unit}, "
        evidence += f"from {counted(law['n'], 'row')}, {counted(law['runs'], 'run')}"
        text = text_table(headings[:4], [rows[0][:4]], right=(), colour=colour) + "\n"
        headings = ["at", f"predicted ({WORDS})", f"one new run ({WORDS})"]
        return (
            text + text_table(headings, predictions, right=(), colour=colour) + wrapped([evidence, *_notes(law, unit)])
        )
    verdicts = Counter(law["verdict"] for _, law, _ in laws)
    total = ", ".join(f"{verdicts[name]} {name}" for name in ("law", "none", "inconclusive") if verdicts[name])
    more = f" · {len(laws) - MAX_SERIES} more than listed, --json gives all" if len(laws) > MAX_SERIES else ""
    units = [one["unit"] for one in documents]
    notes = wrapped(
        f"{name}: {note}" for (name, law, _), unit in zip(listed, units, strict=False) for note in _notes(law, unit)
    )
    return text_table(headings, rows, right=(), colour=colour) + notes + f"{len(laws)} series: {total}{more}\n"


def _point(law: Document, prediction: Document) -> str:
    """Values of the law's features at a prediction; of all features where the law is constant."""
    names = law["features"] or prediction["features"]
    return ", ".join(f"{name}={_three_digits(prediction['features'][name])}" for name in names)


def _mean(law: Document, unit: str) -> str:
    """The mean of a law: with units on its coefficients where its unit is known, else the expression."""
    if not unit or law.get("segments"):
        return short(law["mean"])
    return mean_text(parse_expression(law["mean"]), unit)


def _estimate(prediction: Document, unit: str) -> str:
    """A prediction with its interval: rescaled where its unit is known, else with three digits."""
    mean, low, high = (prediction[end] for end in ("mean", "mean_low", "mean_high"))
    if unit:
        return estimate(mean, low, high, unit)
    if None in (mean, low, high) or not is_known(mean, low, high):
        return UNKNOWN
    return f"{_three_digits(mean)} ({_three_digits(low)}–{_three_digits(high)})"


def _three_digits(value: float | None) -> str:
    return NOTHING if value is None else number(float(f"{value:.3g}"))


def _notes(law: Document, unit: str) -> list[str]:
    """Why there is no law, and which features and laws fit the data as well."""
    notes = [f"{law['verdict']}: {law['reason']}"] if law["reason"] else []
    notes += [f"{name} might as well be {', '.join(others)} in these data" for name, others in law["collinear"].items()]
    if law["alternatives"]:
        expressions = [one["expression"] for one in law["alternatives"]]
        others = ", ".join(
            mean_text(parse_distribution(one).arguments[0], unit) if unit else short(one) for one in expressions
        )
        notes.append(f"equally good laws: {others}")
    return notes
