"""Verdicts for services that show them beside the code: SARIF 2.1.0 (OASIS) and GitHub's workflow commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from perflaw.report.tables import printable
from perflaw.report.verdicts.text import AnyVerdict, describe
from perflaw.types import Outcome
from perflaw.types.documents import Document

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS: dict[Outcome, tuple[str, str]] = {
    "violated": ("fail", "error"),
    "inconclusive": ("review", "none"),
    "out of scope": ("notApplicable", "none"),
    "holds": ("pass", "none"),
}
"""Kind and level of a result in SARIF."""
_GITHUB_LEVELS: dict[Outcome, str] = {"violated": "error", "out of scope": "warning"}
_RULE = "law-violated"


def sarif(verdicts: Sequence[AnyVerdict], version: str, root: str = "") -> Document:
    """The SARIF log of one run; paths below ``root`` are relative to it, as code-scanning services want them."""
    rule = {
        "id": _RULE,
        "name": "LawViolated",
        "shortDescription": {"text": "A function does not cost what its law says."},
        "fullDescription": {
            "text": "New recordings contradict the law of this function's cost beyond the minimum effect."
        },
        "defaultConfiguration": {"level": "error"},
    }
    driver = {"name": "perflaw", "version": version, "semanticVersion": version, "rules": [rule]}
    results = []
    for verdict in verdicts:
        kind, level = _SARIF_LEVELS[verdict.verdict]
        component = verdict.component
        location: Document = {"logicalLocations": [{"fullyQualifiedName": component.name, "kind": "function"}]}
        if component.file:
            # The file relative to root where it lies below it, else its whole path.
            path = PurePath(component.file)
            if root and path.is_relative_to(root):
                artifact = {
                    "uri": quote(path.relative_to(root).as_posix(), errors="surrogateescape"),
                    "uriBaseId": "SRCROOT",
                }
            else:
                artifact = {
                    "uri": ("file://" if path.is_absolute() else "") + quote(path.as_posix(), errors="surrogateescape")
                }
            location["physicalLocation"] = {
                "artifactLocation": artifact,
                "region": {"startLine": max(component.line, 1)},
            }
        effects = {"effect": verdict.effect, "effect_low": verdict.effect_low, "effect_high": verdict.effect_high}
        results.append(
            {
                "ruleId": _RULE,
                "ruleIndex": 0,
                "kind": kind,
                "level": level,
                "message": {"text": printable(describe(verdict))},
                "partialFingerprints": {"component/v1": f"{component.name}.{verdict.metric.name}"},
                "properties": {"p": verdict.p, **effects},
                "locations": [location],
            }
        )
    run: Document = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if root:
        run["originalUriBaseIds"] = {"SRCROOT": {"uri": f"file://{quote(root.rstrip('/'))}/"}}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def github(verdicts: Sequence[AnyVerdict]) -> str:
    """Workflow commands, a line a verdict that is not fine: ``::error file=…,line=…,title=…::…``."""
    lines = []
    for verdict in verdicts:
        if level := _GITHUB_LEVELS.get(verdict.verdict):
            file, line = verdict.component.file, max(verdict.component.line, 1)
            place = f"file={_property(file)},line={line}," if file else ""
            title = f"title={_property(f'perflaw: {verdict.verdict}')}"
            lines.append(f"::{level} {place}{title}::{_message(describe(verdict))}\n")
    return "".join(lines)


def _message(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
