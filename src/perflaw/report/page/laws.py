"""The laws view of the page: a row a component, and of each component its document, the words about it and its chart.

What a page shows of a component is its document (`perflaw.types.documents`) under the names of ``docs/json.md``; words
that a person reads stand beside it under ``text``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from perflaw.laws.tree import distribution_tree, expression_tree
from perflaw.report import law_words as words
from perflaw.report.annotations import execution, predicted_text, program_text
from perflaw.report.page import curve_columns, flat, packed, shortened
from perflaw.report.quantity import NOTHING, UNKNOWN, count, counted, interval, is_known, number, percent, quantity
from perflaw.types import Annotation, Law, Prediction
from perflaw.types.documents import Document, document, finite

_AXES = {"ns": (1e-9, "s"), "bytes": (1.0, "B")}
"""Unit of a metric → its size on the charts' axes: a chart that is given seconds writes 3 µs itself."""
_FULL = 100
"""Components, from the top of the ranking, that keep all their points."""
_SHARED_POINTS, _MIN_POINTS = 50_000, 60
"""Points that the components below share, so that a page of thousands still opens; points that each keeps at least."""


def laws_data(
    annotations: Sequence[Annotation], whole: Document, runs: Sequence[str], at: Mapping[str, float] | None
) -> Document:
    """The page's data of all laws and of whole runs, whose document is ``whole``.

    ``at`` is the point that the person asked predictions for.
    """
    documents = whole["annotations"]
    numbers = {run: i for i, run in enumerate(runs)}
    fewer = max(_MIN_POINTS, _SHARED_POINTS // max(1, len(annotations) - _FULL))
    keys = component_keys(annotations)
    texts = []
    for i, (one, stated) in enumerate(zip(annotations, documents, strict=True)):
        unit = one.metric.unit
        texts.append(
            packed(
                {
                    "document": {name: value for name, value in stated.items() if name != "shown"},
                    "text": {
                        "total": quantity(one.total, unit),
                        "scopes": [
                            {
                                "probability": percent(scope.probability),
                                **_law_texts(scope.law, unit),
                            }
                            for scope in one.scopes
                        ],
                        "run": _law_texts(one.run_law, unit) | {"law": words.run_law_text(one.run_law, unit)}
                        if one.run_law
                        else None,
                        "predicted": prediction_rows([one.predicted], unit) if one.predicted else [],
                    },
                    "chart": _chart(one, numbers, None if i < _FULL else fewer),
                }
            )
        )
    rows = [_row(one, key, bool(at)) for one, key in zip(documents, keys, strict=True)]
    whole_one = execution(whole["per"])
    per = whole_one if rows and rows[0]["per"] == "run" else "call"
    return {
        "execution": whole_one,
        "per": per,
        "predicted": f"{whole_one} at {words.features_text(at)}" if at else f"predicted per {per}",
        "program": _program(whole["program"], documents[0]["unit"]) if whole["program"] and documents else None,
        "rows": rows,
        "annotations": texts,
    }


def component_keys(annotations: Iterable[Annotation]) -> list[str]:
    """A unique name each, for links: with file, line and metric where functions have the same name."""
    keys: dict[str, None] = {}
    for i, one in enumerate(annotations):
        place = f"{one.component.name} {one.component.file}:{one.component.line}"
        choices = (one.component.name, place, f"{place} {one.metric.name}", f"{place} {one.metric.name} {i}")
        keys[next(key for key in choices if key not in keys)] = None
    return list(keys)


def _program(program: Document, unit: str) -> Document:
    """What is told of whole runs, and a row for each part of their cost that is no function."""
    parts = [
        {
            "component": part["component"],
            "share": percent(part["share"]),
            "law": " · ".join(one["law"] for one in part["shown"]["laws"]),
            "growth": part["shown"]["growth"],
            "interval": part["shown"]["interval"],
            "predicted": predicted_text(part["predicted"], unit),
        }
        for part in sorted(program["parts"], key=lambda one: -one["predicted"]["mean"])
    ]
    return {"text": program_text(program, unit), "parts": parts}


def _row(stated: Document, key: str, asked: bool) -> Document:
    """The component's document without its lists, with what the table sorts by and the words that it shows.

    The cost predicted is that of the law shown: of a run at the point asked for, else where a single law holds, at the
    farthest point that it is predicted at.
    """
    shown, unit, predicted = stated["shown"], stated["unit"], stated["predicted"]
    if not asked:
        of_run = shown["per"] == "run"
        laws = [stated["run_law"]] if of_run else [scope["law"] for scope in stated["scopes"]]
        predicted = laws[0]["predictions"][-1] if len(laws) == 1 and laws[0]["predictions"] else None
    return {
        **{name: value for name, value in flat(stated).items() if name not in ("file", "line")},
        **flat(shown),
        "key": key,
        "parameters": stated["parameters"],
        "cost": predicted["mean"] if predicted else None,
        "text": {
            "place": f"{words.short_path(stated['file'])}:{stated['line']}" if stated["file"] else "",
            "share": percent(stated["share"]),
            "self": percent(stated["self_share"]),
            "law": " · ".join(
                f"[{part['condition']}] {part['law']}" if part["condition"] else part["law"] for part in shown["laws"]
            ),
            "predicted": predicted_text(predicted, unit) if predicted else NOTHING,
            "at": words.features_text(predicted["features"]) if predicted else "",
            "calls": count(stated["calls"]),
        },
    }


def _law_texts(law: Law, unit: str) -> Document:
    exponent = ""
    if law.exponent is not None and law.features:
        logarithm = f", of its logarithm {number(law.log_exponent)}" if law.log_exponent else ""
        exponent = f"{number(law.exponent)}{logarithm}"
    collinear = [f"{name}: {', '.join(others)}" for name, others in law.collinear.items() if others]
    breakpoints = [
        f"{one.feature} = {number(one.value)} ({number(one.low)}–{number(one.high)})" for one in law.breakpoints
    ]
    ranges = [
        f"{name} = {number(low)}" if low == high else f"{name} {number(low)}–{number(high)}"
        for name, (low, high) in law.range.items()
    ]
    slopes = []
    for name in law.features:
        if name in law.slope:
            ends = f" ({law.slope_low[name]:.2f}–{law.slope_high[name]:.2f})" if name in law.slope_low else ""
            slopes.append(f"{name} {law.slope[name]:.2f}{ends}")
    facts = [
        ("noise", words.noise_text(law.noise, unit)),
        ("evidence", f"{counted(law.n, 'point')} from {counted(law.runs, 'run')}"),
        ("r²", NOTHING if law.r2 is None else f"{law.r2:.4f}"),
        ("learnt on", ", ".join(ranges)),
        ("local exponent", ", ".join(slopes)),
        ("exponent", exponent),
        ("breaks at", ", ".join(breakpoints)),
        ("may be as well", ", ".join(collinear)),
        ("lack of fit", "" if law.lack_of_fit is None else f"p = {law.lack_of_fit:.2g}"),
        ("intercept", "" if law.intercept is None else quantity(law.intercept, unit)),
    ]
    return {
        "law": words.law_text(law, unit),
        "grows": words.grows_as(law),
        "facts": [(name, value) for name, value in facts if value],
        "alternatives": [
            ", ".join(f"{name}^{value:.2f}" for name, value in other.slope.items()) or "constant"
            for other in law.alternatives
        ],
        "predictions": prediction_rows(law.predictions, unit),
    }


def prediction_rows(predictions: Iterable[Prediction], unit: str) -> list[list[str]]:
    """Rows of point, mean, interval of the mean, interval of a new run; equal rows of a constant law once."""
    rows = {
        (
            words.features_text(one.features) or "anywhere",
            *(
                (
                    quantity(one.mean, unit),
                    interval(one.mean_low, one.mean_high, unit),
                    interval(one.new_low, one.new_high, unit),
                )
                if is_known(one.mean, one.mean_low, one.mean_high)
                else (UNKNOWN, NOTHING, NOTHING)
            ),
        ): None
        for one in predictions
    }
    return [list(row) for row in rows]


def _chart(annotation: Annotation, runs: Mapping[str, int], keep: int | None) -> Document:
    """The numbers behind the charts of a component, with the digits that a screen resolves; ``keep`` points at most."""
    scale, unit = _AXES.get(annotation.metric.unit, (1.0, ""))
    law = annotation.scopes[0].law if annotation.scopes else None
    curves = []
    for curve in annotation.curves:
        known = law.range.get(curve.feature) if law else None
        curves.append({"feature": curve.feature, "range": list(known) if known else None, **curve_columns(curve, 4)})
    constant = None
    if law and not law.features and not annotation.curves:
        # The horizontal line of a law without features, with its bands where it predicts.
        constant = document(law.predictions[0]) if law.predictions else {"mean": finite(law.coefficient)}
        constant.pop("features", None)
    evidence = {}
    if points := annotation.points:
        # Points are drawn at random: every n-th point could be of the same few runs.
        n = len(points.y)
        kept = range(n) if keep is None or n <= keep else sorted(random.Random(0).sample(range(n), keep))
        evidence = {
            "of": n,
            "features": {name: shortened([values[i] for i in kept], 5) for name, values in points.features.items()},
            "categories": {name: [values[i] for i in kept] for name, values in points.categories.items()},
            "y": shortened([points.y[i] for i in kept], 4),
            "run": [runs[points.run[i]] for i in kept],
            "residual": shortened([points.residual[i] for i in kept], 3),
        }
    return {
        "scale": scale,
        "unit": unit,
        "trees": [
            {
                "where": expression_tree(scope.condition),
                "tree": distribution_tree(scope.law.expression),
                "alternatives": [distribution_tree(other.expression) for other in scope.law.alternatives],
            }
            for scope in annotation.scopes
        ],
        "once": annotation.called_once,
        "breakpoints": [document(one) for one in annotation.breakpoints],
        "curves": curves,
        "constant": constant,
        **evidence,
    }
