"""Verdicts of ``perflaw check`` or ``perflaw diff`` for the page: read from their JSON documents, the gravest first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from perflaw.errors import DataError
from perflaw.laws.errors import LawSyntaxError
from perflaw.laws.trees import Tree, distribution_tree, expression_tree
from perflaw.report import law_words as text
from perflaw.report.annotations.verdicts import ratio_text
from perflaw.report.quantity import NOTHING
from perflaw.types import Annotation, Outcome
from perflaw.types.documents import finite

Json = dict[str, Any]

_SCHEMAS = {"perflaw.check/1": "check", "perflaw.diff/1": "diff"}
_GRAVITY: tuple[Outcome, ...] = ("violated", "inconclusive", "out of scope", "holds")
_TITLES = {
    "check": "The laws held against new recordings",
    "diff": "What changed from the old laws to the new ones",
}
_EFFECTS = {"check": "cost over what the law says", "diff": "new cost over old"}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "check": {verdict: verdict for verdict in _GRAVITY},
    "diff": {
        "violated": "worse",
        "inconclusive": "inconclusive",
        "out of scope": "on one side only",
        "holds": "not worse",
    },
}


def outcomes(document: Mapping[str, Any], annotations: Sequence[Annotation]) -> Json:
    """What the page shows of a document of verdicts.

    ``rows[].index`` is the place of the component's annotation, null where the page has none of it; ``old`` holds the
    old laws of a diff by that place. DataError where the document is none of ours.
    """
    verb = _verb(document)
    places = {(a.component.name, a.metric.name): i for i, a in reversed(list(enumerate(annotations)))}
    rows = sorted((_row(one, places, verb) for one in _verdicts(document)), key=_gravity)
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in _GRAVITY}
    summary = " · ".join(f"{count:,} {_WORDS[verb][verdict]}" for verdict, count in counts.items() if count)
    return {
        "verb": verb,
        "title": _TITLES[verb],
        "effect": _EFFECTS[verb],
        "summary": summary or "no component was compared",
        "counts": counts,
        "rows": rows,
        "old": _old_laws(document, places),
    }


def _verb(document: Mapping[str, Any]) -> str:
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if not isinstance(schema, str) or schema not in _SCHEMAS:
        raise DataError(
            "the verdicts for the page",
            f"schema {schema!r} is not perflaw.check/1 or perflaw.diff/1",
            "perflaw check LAWS --json > verdicts.json",
        )
    return _SCHEMAS[schema]


def _verdicts(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    verdicts = document.get("verdicts")
    if not isinstance(verdicts, list) or not all(map(_readable, verdicts)):
        raise DataError("the verdicts for the page", "its list of verdicts is damaged", "perflaw check LAWS --json")
    return verdicts


def _readable(one: object) -> bool:
    return (
        isinstance(one, Mapping) and isinstance(one.get("component"), str) and one.get("verdict") in get_args(Outcome)
    )


def _gravity(row: Json) -> tuple[int, float, str]:
    """Gravest verdict first, then the largest effect either way."""
    far = abs(math.log(row["effect"])) if row["effect"] and row["effect"] > 0 else 0.0
    return _GRAVITY.index(row["verdict"]), -far, row["component"]


def _row(one: Mapping[str, Any], places: Mapping[tuple[str, str], int], verb: str) -> Json:
    effect, low, high = (_number(one.get(name)) for name in ("effect", "effect_low", "effect_high"))
    metric = str(one.get("metric") or "time")
    return {
        "component": one["component"],
        "metric": metric,
        "path": str(one.get("path") or ""),
        "pathTree": _condition_tree(str(one.get("path") or "")),
        "verdict": one["verdict"],
        "better": bool(one.get("better")),
        "effect": effect,
        "low": low if low is not None and high is not None else None,
        "high": high if low is not None and high is not None else None,
        "text": _ratio(effect, low, high),
        "message": str(one.get("message") or ""),
        "facts": _facts(one, verb),
        "changes": [_change(change) for change in one.get("changes") or []],
        "index": places.get((one["component"], metric)),
    }


def _ratio(effect: float | None, low: float | None, high: float | None) -> str:
    return NOTHING if effect is None else ratio_text(effect, low, high)


def _facts(one: Mapping[str, Any], verb: str) -> list[tuple[str, str]]:
    p, outside = _number(one.get("p")), _number(one.get("outside"))
    runs, beyond, records = (_number(one.get(name)) for name in ("runs", "runs_beyond", "records"))
    facts = [
        ("from", str(one.get("since") or "")),
        ("p", "" if p is None else f"{p:.2g}"),
        ("new runs", "" if not runs else f"{runs:,.0f}, {beyond or 0:,.0f} of them beyond the minimum effect"),
        ("new calls", "" if not records else f"{records:,.0f}"),
        ("out of scope", "" if not outside else f"{text.percent(outside)} of the calls"),
    ]
    return [(name, value) for name, value in facts if value]


def _change(one: Mapping[str, Any]) -> Json:
    ends = (_number(one.get(name)) for name in ("ratio", "low", "high"))
    words = {name: str(one.get(name) or "") for name in ("what", "name")}
    words |= {name: str(one.get(name) or NOTHING) for name in ("old", "new")}
    return {**words, "ratio": _ratio(*ends)}


def _old_laws(document: Mapping[str, Any], places: Mapping[tuple[str, str], int]) -> dict[str, list[Json]]:
    """Place of an annotation → its laws before, as the charts draw them."""
    laws: dict[str, list[Json]] = {}
    for one in document["verdicts"]:
        place = places.get((one["component"], str(one.get("metric") or "time")))
        stated = one.get("old_laws")
        if place is not None and isinstance(stated, list | tuple):
            laws[str(place)] = [_old_law(law) for law in stated if isinstance(law, Mapping)]
    return laws


def _old_law(law: Mapping[str, Any]) -> Json:
    probability, factor = _number(law.get("probability")), _number(law.get("factor"))
    condition, expression = str(law.get("condition") or ""), str(law.get("expression") or "")
    return {
        "condition": condition,
        "where": _condition_tree(condition),
        "probability": 1.0 if probability is None else probability,
        "expression": expression,
        "tree": _law_tree(expression),
        "factor": factor or 1.0,
        "alternatives": [],
        "breakpoints": [],
        "range": {},
    }


def _condition_tree(text: str) -> Tree:
    """Tree of a condition of the document; None where the text is none, such as a call path."""
    from perflaw.laws.reading import parse_expression  # loads lark

    try:
        return expression_tree(parse_expression(text)) if text else None
    except LawSyntaxError:
        return None


def _law_tree(text: str) -> Tree:
    """Tree of a law of the document; None where the text is none."""
    from perflaw.laws.reading import parse_distribution  # loads lark

    try:
        return distribution_tree(parse_distribution(text))
    except LawSyntaxError:
        return None


def _number(value: object) -> float | None:
    return finite(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None
