"""Verdicts as SARIF 2.1.0 (OASIS), which code-scanning services and editors show beside the code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from perflaw.report.annotations.verdicts import describe
from perflaw.report.tables import printable
from perflaw.types import CheckVerdict, DiffVerdict, Outcome, SpecVerdict

Document = dict[str, Any]
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL: dict[Outcome, tuple[str, str]] = {
    "violated": ("fail", "error"),
    "inconclusive": ("review", "none"),
    "out of scope": ("notApplicable", "none"),
    "holds": ("pass", "none"),
}
_RULE = "law-violated"


def sarif(verdicts: Sequence[CheckVerdict | DiffVerdict | SpecVerdict], version: str, root: str = "") -> Document:
    """The log of one run; files under ``root`` are told relative to it, as code-scanning services want them."""
    rule = {
        "id": _RULE,
        "name": "LawViolated",
        "shortDescription": {"text": "A function costs other than its law says."},
        "fullDescription": {
            "text": "New recordings contradict the law of this function's cost beyond the minimum effect."
        },
        "defaultConfiguration": {"level": "error"},
    }
    driver = {"name": "perflaw", "version": version, "semanticVersion": version, "rules": [rule]}
    results = [_result(one, root) for one in verdicts]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if root:
        run["originalUriBaseIds"] = {"SRCROOT": {"uri": f"file://{quote(root.rstrip('/'))}/"}}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(one: CheckVerdict | DiffVerdict | SpecVerdict, root: str) -> Document:
    kind, level = _LEVEL[one.verdict]
    result: Document = {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "kind": kind,
        "level": level,
        "message": {"text": printable(describe(one))},
        "partialFingerprints": {"component/v1": f"{one.component.name}.{one.metric.name}"},
        "properties": {"p": one.p, "effect": one.effect, "effect_low": one.effect_low, "effect_high": one.effect_high},
    }
    logical = {"fullyQualifiedName": one.component.name, "kind": "function"}
    location: Document = {"logicalLocations": [logical]}
    if one.component.file:
        location["physicalLocation"] = {
            "artifactLocation": _place(one.component.file, root),
            "region": {"startLine": max(one.component.line, 1)},
        }
    result["locations"] = [location]
    return result


def _place(file: str, root: str) -> dict[str, str]:
    """The file relative to ``root`` where it lies there, else whole."""
    path = PurePath(file)
    if root and path.is_relative_to(root):
        return {"uri": quote(path.relative_to(root).as_posix(), errors="surrogateescape"), "uriBaseId": "SRCROOT"}
    return {"uri": ("file://" if path.is_absolute() else "") + quote(path.as_posix(), errors="surrogateescape")}
