"""Verdicts for services that show them beside the code: SARIF 2.1.0 (OASIS), GitHub's workflow commands, Markdown.

Each of these renders the JSON document of ``check`` or ``diff``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

from perflaw.report.quantity import counted
from perflaw.report.tables import printable
from perflaw.report.verdicts import GRAVITY, describe, words_of
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
_RULES: Mapping[str, tuple[str, str, str, str]] = {
    "perflaw.check/1": (
        "law-violated",
        "LawViolated",
        "A function does not cost what its law says.",
        "New recordings contradict the law of this function's cost beyond the minimum effect.",
    ),
    "perflaw.diff/1": (
        "cost-increased",
        "CostIncreased",
        "A function costs more than before.",
        "The cost of this function grew beyond the minimum effect and the scatter between runs.",
    ),
}
"""Schema of the document → rule in SARIF: id, name, short and full description."""


def sarif(document: Document, version: str, root: str = "") -> Document:
    """The SARIF log of one run; paths below ``root`` are relative to it, as code-scanning services want them."""
    rule_id, rule_name, short, full = _RULES[document["schema"]]
    rule = {
        "id": rule_id,
        "name": rule_name,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "defaultConfiguration": {"level": "error"},
    }
    driver = {"name": "perflaw", "version": version, "semanticVersion": version, "rules": [rule]}
    results = []
    for verdict in document["verdicts"]:
        kind, level = _SARIF_LEVELS[verdict["verdict"]]
        name = verdict["component"]
        location: Document = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "function"}]}
        if verdict["file"]:
            # The file relative to root where it lies below it, else its whole path.
            path = PurePath(verdict["file"])
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
                "region": {"startLine": max(verdict["line"], 1)},
            }
        results.append(
            {
                "ruleId": rule_id,
                "ruleIndex": 0,
                "kind": kind,
                "level": level,
                "message": {"text": printable(describe(verdict))},
                "partialFingerprints": {"component/v1": f"{name}.{verdict['metric']}"},
                "properties": {key: verdict[key] for key in ("p", "effect", "effect_low", "effect_high")},
                "locations": [location],
            }
        )
    run: Document = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if root:
        run["originalUriBaseIds"] = {"SRCROOT": {"uri": f"file://{quote(root.rstrip('/'))}/"}}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def github(document: Document) -> str:
    """Workflow commands, a line a verdict that is not fine: ``::error file=…,line=…,title=…::…``."""
    lines = []
    for verdict in document["verdicts"]:
        if level := _GITHUB_LEVELS.get(verdict["verdict"]):
            file, line = verdict["file"], max(verdict["line"], 1)
            place = f"file={_property(file)},line={line}," if file else ""
            title = f"title={_property('perflaw: ' + verdict['verdict'])}"
            lines.append(f"::{level} {place}{title}::{_message(describe(verdict))}\n")
    return "".join(lines)


def _message(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


MAX_ROWS: Final = 30
"""Rows of a table in Markdown; comments have an upper limit of length."""
_TITLES: Mapping[str, str] = {
    "perflaw.check/1": "New recordings held against the laws",
    "perflaw.diff/1": "Cost compared with before",
}


def markdown(document: Document, root: str = "") -> str:
    """A comment on a pull request: what is violated or worse, then what is better, and the rest folded.

    Paths below ``root`` are relative to it.
    """
    words, verdicts = words_of(document["schema"]), document["verdicts"]
    groups = {word: [one for one in verdicts if one["verdict"] == outcome] for outcome, word in words.items()}
    better = [one for one in verdicts if one.get("better")]
    tally = [f"{len(group)} {word}" for word, group in groups.items() if group] + [f"{len(better)} better"] * bool(
        better
    )
    parts = [f"### perflaw: {_TITLES[document['schema']]}", " · ".join(tally) or "Nothing was compared."]
    if bad := groups[words["violated"]]:
        parts.append(_table(words["violated"], bad, root))
    if better:
        parts.append(_table("better", better, root))
    for outcome in GRAVITY[1:3]:
        if group := groups[words[outcome]]:
            lines = [f"- {_cell(describe(one))}" for one in group[:MAX_ROWS]]
            lines += [f"- {counted(len(group) - MAX_ROWS, 'further one')}"] * (len(group) > MAX_ROWS)
            summary = f"<summary>{len(group)} {words[outcome]}</summary>"
            parts.append("\n".join(["<details>" + summary, "", *lines, "", "</details>"]))
    return "\n\n".join(parts) + "\n"


def _table(word: str, verdicts: Sequence[Document], root: str) -> str:
    rows = [f"| {word} | place | what |", "|---|---|---|"]
    for one in verdicts[:MAX_ROWS]:
        path = PurePath(one["file"])
        shown = path.relative_to(root) if root and path.is_relative_to(root) else path
        place = _cell(f"{shown}:{one['line']}") if one["file"] else ""
        parameters = f"({', '.join(one['parameters'])})" if one.get("parameters") else ""
        name = one["component"] + parameters
        rows.append(f"| {_cell(name)} | {place} | {_cell(describe(one).removeprefix(name).strip(' ,'))} |")
    rows += [f"| {counted(len(verdicts) - MAX_ROWS, 'further one')} | | |"] * (len(verdicts) > MAX_ROWS)
    return "\n".join(rows)


def _cell(text: str) -> str:
    r"""Text on one line that means in Markdown, and in HTML within it, what it says.

    >>> print(_cell("a|b <module> *args"))
    a\|b \<module\> \*args
    """
    return re.sub(r"([\\`*_<>\[\]|#~@&])", r"\\\1", printable(text))
