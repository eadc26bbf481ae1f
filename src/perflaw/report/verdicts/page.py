"""Verdicts on the page: read from the JSON document of ``perflaw check`` or ``perflaw diff``, the gravest first.

A person may hand in any file, so every value of it is checked; a value of the wrong kind counts as missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from perflaw.errors import DataError
from perflaw.laws.errors import LawSyntaxError
from perflaw.laws.tree import Tree, distribution_tree, expression_tree
from perflaw.report.quantity import NOTHING, percent
from perflaw.report.verdicts.text import GRAVITY, ratio_text
from perflaw.types import Annotation, Outcome
from perflaw.types.documents import Document, finite

_SCHEMAS = {"perflaw.check/1": "check", "perflaw.diff/1": "diff"}
_TITLES = {
    "check": "The laws held against new recordings",
    "diff": "What changed from the old laws to the new ones",
}
_EFFECTS = {"check": "cost over what the law says", "diff": "new cost over old"}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "check": {verdict: verdict for verdict in GRAVITY},
    "diff": {
        "violated": "worse",
        "inconclusive": "inconclusive",
        "out of scope": "on one side only",
        "holds": "not worse",
    },
}


def verdicts_data(document: Mapping[str, Any], annotations: Sequence[Annotation]) -> Document:
    """The page's data of a document of verdicts; DataError where it is no document of ``check`` or ``diff``.

    A row holds a verdict's fields with ``text``, ``facts`` and ``index``: the place of the component's annotation,
    null where the page has no annotation of it. ``old`` holds, by that place, the old laws of a ``diff``.
    """
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if not isinstance(schema, str) or schema not in _SCHEMAS:
        raise DataError(
            "the verdicts for the page",
            f"schema {schema!r} is not perflaw.check/1 or perflaw.diff/1",
            "perflaw check LAWS --json > verdicts.json",
        )
    verb = _SCHEMAS[schema]
    verdicts = document.get("verdicts")
    if not isinstance(verdicts, list) or not all(
        isinstance(verdict, Mapping)
        and isinstance(verdict.get("component"), str)
        and verdict.get("verdict") in get_args(Outcome)
        for verdict in verdicts
    ):
        raise DataError("the verdicts for the page", "its list of verdicts is damaged", "perflaw check LAWS --json")
    places = {(a.component.name, a.metric.name): i for i, a in reversed(list(enumerate(annotations)))}

    def gravest_first(row: Document) -> tuple[int, float, str]:
        """By the verdict, then by the effect in either direction."""
        effect = abs(math.log(row["effect"])) if row["effect"] and row["effect"] > 0 else 0.0
        return GRAVITY.index(row["verdict"]), -effect, row["component"]

    rows = sorted((_row(verdict, places) for verdict in verdicts), key=gravest_first)
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in GRAVITY}
    summary = " · ".join(f"{count:,} {_WORDS[verb][verdict]}" for verdict, count in counts.items() if count)
    # Place of an annotation → its old laws as scopes, which the charts draw beside the new ones.
    laws: dict[str, list[Document]] = {}
    for verdict in verdicts:
        place = places.get((verdict["component"], str(verdict.get("metric") or "time")))
        old = verdict.get("old_laws")
        if place is not None and isinstance(old, list | tuple):
            old_scopes = []
            for law in old:
                if isinstance(law, Mapping):
                    probability = _number(law, "probability")
                    condition, expression = str(law.get("condition") or ""), str(law.get("expression") or "")
                    old_scopes.append(
                        {
                            "condition": condition,
                            "where": _condition_tree(condition),
                            "probability": 1.0 if probability is None else probability,
                            "factor": _number(law, "factor") or 1.0,
                            "tree": _law_tree(expression),
                            "law": {"expression": expression, "alternatives": [], "breakpoints": [], "range": {}},
                        }
                    )
            laws[str(place)] = old_scopes
    return {
        "verb": verb,
        "title": _TITLES[verb],
        "effect": _EFFECTS[verb],
        "summary": summary or "no component was compared",
        "counts": counts,
        "rows": rows,
        "old": laws,
    }


def _row(verdict: Mapping[str, Any], places: Mapping[tuple[str, str], int]) -> Document:
    effect, low, high = (_number(verdict, name) for name in ("effect", "effect_low", "effect_high"))
    if low is None or high is None:
        low = high = None
    component, metric = verdict["component"], str(verdict.get("metric") or "time")
    path = str(verdict.get("path") or "")
    p, outside, runs, beyond, records = (
        _number(verdict, name) for name in ("p", "outside", "runs", "runs_beyond", "records")
    )
    facts = [
        ("from", str(verdict.get("since") or "")),
        ("p", "" if p is None else f"{p:.2g}"),
        ("new runs", f"{runs:,.0f}, {beyond or 0:,.0f} of them beyond the minimum effect" if runs else ""),
        ("new calls", f"{records:,.0f}" if records else ""),
        ("out of scope", f"{percent(outside)} of the calls" if outside else ""),
    ]
    changes = []
    for change in verdict.get("changes") or []:
        ratio, change_low, change_high = (_number(change, name) for name in ("ratio", "low", "high"))
        changes.append(
            {
                **{name: str(change.get(name) or "") for name in ("what", "name")},
                **{name: str(change.get(name) or NOTHING) for name in ("old", "new")},
                "ratio": NOTHING if ratio is None else ratio_text(ratio, change_low, change_high),
            }
        )
    return {
        "component": component,
        "metric": metric,
        "path": path,
        "path_tree": _condition_tree(path),
        "verdict": verdict["verdict"],
        "better": bool(verdict.get("better")),
        "effect": effect,
        "effect_low": low,
        "effect_high": high,
        "message": str(verdict.get("message") or ""),
        "text": NOTHING if effect is None else ratio_text(effect, low, high),
        "facts": [(name, value) for name, value in facts if value],
        "changes": changes,
        "index": places.get((component, metric)),
    }


def _condition_tree(text: str) -> Tree:
    """Tree of a condition of the document; None where the text is no condition, such as a call path."""
    from perflaw.laws.reading import parse_expression  # loads lark

    try:
        return expression_tree(parse_expression(text)) if text else None
    except LawSyntaxError:
        return None


def _law_tree(text: str) -> Tree:
    """Tree of a law of the document; None where the text is no law."""
    from perflaw.laws.reading import parse_distribution  # loads lark

    try:
        return distribution_tree(parse_distribution(text))
    except LawSyntaxError:
        return None


def _number(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    return finite(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None
