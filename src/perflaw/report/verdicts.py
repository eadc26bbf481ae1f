"""Verdicts as lines that a person reads in 80 columns: on laws (``check``, ``diff``) and on specifications.

The page shows the JSON document of ``check`` or ``diff`` too, from any file that is handed in: so every value of it is
checked, and a value of the wrong kind counts as missing.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from perflaw.errors import DataError
from perflaw.laws.errors import LawSyntaxError
from perflaw.laws.tree import Tree, distribution_tree, expression_tree
from perflaw.report.quantity import NOTHING, counted, percent, quantity
from perflaw.report.tables import line_width, printable
from perflaw.specs.call_paths import excluded_callee, parse_expression
from perflaw.types import Annotation, Outcome
from perflaw.types.documents import Document, finite

GRAVITY: tuple[Outcome, ...] = ("violated", "inconclusive", "out of scope", "holds")
"""Verdicts, the gravest first."""
MAX_LISTED = 12
"""Verdicts of one kind that are listed, and functions that share a reason; the others are counted."""
MENTIONED_SPEED = 1.1
"""From this factor on a verdict on durations says how much slower or faster the machine was as a whole."""
_TALLY: tuple[Outcome, ...] = ("violated", "holds", "inconclusive", "out of scope")
_COLOUR = {"violated": "31", "inconclusive": "33", "out of scope": "33", "holds": "32"}
_NAME_COLUMNS = 14


def law_verdicts_text(document: Document, colour: bool = False, every: bool = False) -> str:
    """Verdicts on laws: an entry for each component that does not simply hold, then the number of each verdict."""
    seen: Counter[Outcome] = Counter()
    lines = []
    for verdict in document["verdicts"]:
        outcome = verdict["verdict"]
        seen[outcome] += 1
        few = outcome == "violated" or seen[outcome] <= MAX_LISTED
        if every or (few and _notable(verdict)):
            lines.append(_entry(outcome, describe(verdict), colour))
    return _with_tally(lines, seen, "no laws to check")


def spec_verdicts_text(document: Document, colour: bool = False, every: bool = False) -> str:
    """Verdicts on specifications: an entry for each that does not simply hold, then the number of each verdict.

    Functions that are out of scope for the same reason share an entry, unless ``every`` verdict is asked for.
    """
    verdicts = document["verdicts"]
    lines = [_entry(one["verdict"], describe(one), colour) for one in verdicts if every or _notable(one)]
    if not every:
        reasons: dict[str, list[str]] = {}
        for verdict in verdicts:
            if verdict["verdict"] == "out of scope":
                reasons.setdefault(verdict["message"], []).append(_subject(verdict))
        for reason, names in reasons.items():
            more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            lines.append(_entry("out of scope", f"{', '.join(names[:MAX_LISTED])}{more}: {reason}", colour))
    return _with_tally(lines, Counter(verdict["verdict"] for verdict in verdicts), "no specifications to check")


def describe(verdict: Document) -> str:
    """A verdict in one line, without the word of the verdict."""
    outcome, effect, low, high = (verdict[name] for name in ("verdict", "effect", "effect_low", "effect_high"))
    if _is_of_spec(verdict):
        text = f"{_subject(verdict)}, {verdict['metric']}"
        expected, border = verdict["expected"], verdict["border"]
        if effect is not None and expected is not None and border is not None:
            share = _shifted(expected, effect)
            interval = ""
            if low is not None and high is not None:
                interval = f" ({_shifted(expected, low) * 100:.0f}–{_shifted(expected, high) * 100:.0f})"
            above = f"of the calls above {quantity(border, verdict['unit'])}"
            text += f": {percent(share)}{interval} {above}, {percent(expected)} specified"
        elif effect is not None and expected is not None and verdict["quantile"] is not None:
            level = verdict["quantile"]
            quantile = "median" if level == 0.5 else f"{level * 100:.0f} % quantile"
            text += (
                f": {ratio_text(effect, low, high)} the specified {quantile} of {quantity(expected, verdict['unit'])}"
            )
            machine = verdict["machine"] or 1.0
            if abs(math.log(machine)) > math.log(MENTIONED_SPEED):
                text += f" on a machine that is {ratio_text(max(machine, 1 / machine), None, None)} "
                text += "slower" if machine > 1 else "faster"
        if outcome == "violated":
            text += f", {counted(verdict['runs'], 'run')}"
        if verdict["outside"] >= 0.01:
            text += f"; {percent(verdict['outside'])} of its calls come by unknown call paths"
        return f"{text}: {verdict['message']}" if verdict["message"] else text
    parameters = f"({', '.join(verdict['parameters'])})" if verdict["parameters"] else ""
    text = f"{verdict['component']}{parameters}  {verdict['metric']}"
    ratio = "" if effect is None else f" {ratio_text(effect, low, high)}"
    reasons = "; ".join(filter(None, (verdict["cause"], verdict["message"])))
    if _is_of_diff(verdict):
        text += f" where {verdict['path']}" if verdict["path"] else ""
        text += f"{ratio} the old cost" if ratio else ""
        for change in [change for change in verdict["changes"] if change["what"] != "cost"][:4]:
            name = f"{change['what']} {change['name']}".strip()
            text += f"; {name} {change['old'] or 'none'} -> {change['new'] or 'none'}"
            if change["ratio"] is not None:
                text += f" ({ratio_text(change['ratio'], change['low'], change['high'])})"
    else:
        text += f"{ratio} what the law says" if ratio else ""
        text += f" where {verdict['path']}" if verdict["path"] else ""
        text += f" from {verdict['since']} on" if verdict["since"] else ""
        if outcome == "violated" and not verdict["cause"]:
            text += f", {verdict['runs_beyond']} runs of {verdict['runs']}"
        if verdict["outside"] > 0 and outcome != "out of scope":
            text += f"; {percent(verdict['outside'])} of the calls are outside its scope"
        if outcome == "violated":
            reasons = verdict["cause"]
    return f"{text}: {reasons}" if reasons else text


def ratio_text(ratio: float, low: float | None, high: float | None) -> str:
    """A ratio with its interval: two digits, three between 0.9 and 1.1, where the second decides.

    >>> ratio_text(1.84, 1.6, 2.1), ratio_text(5.744, None, None), ratio_text(0.08, 0.07, 0.1)
    ('1.8x (1.6–2.1)', '5.7x', '0.080x (0.070–0.10)')
    """
    interval = "" if low is None or high is None else f" ({_digits(low)}–{_digits(high)})"
    return f"{_digits(ratio)}x{interval}"


def _digits(ratio: float) -> str:
    if 0.895 <= ratio < 1.105:
        return f"{ratio:.2f}"
    if ratio >= 9.95:
        return f"{ratio:,.0f}" if ratio < 1e6 else f"{ratio:.1e}"
    return f"{ratio:.1f}" if ratio >= 0.995 else f"{ratio:.2f}" if ratio >= 0.0995 else f"{ratio:.3f}"


def _is_of_spec(verdict: Document) -> bool:
    """Whether a verdict of ``check`` is on a specification: its group of call paths is named."""
    return "group" in verdict


def _is_of_diff(verdict: Document) -> bool:
    return "changes" in verdict


def _notable(verdict: Document) -> bool:
    """Whether a verdict has an entry of its own."""
    outcome = verdict["verdict"]
    if _is_of_diff(verdict):
        return bool(verdict["changes"] or verdict["better"]) or outcome != "holds"
    if _is_of_spec(verdict):
        return outcome in ("violated", "inconclusive") or bool(outcome == "holds" and verdict["outside"] >= 0.01)
    return outcome != "holds" or bool(verdict["outside"] > 0)


def _entry(verdict: str, line: str, colour: bool) -> str:
    """The word of the verdict, and its line wrapped beside it."""
    head = f"{verdict:<{_NAME_COLUMNS}}"
    glued = printable(line).replace(" %", "\u00a0%")
    body = textwrap.wrap(glued, line_width() - _NAME_COLUMNS, break_on_hyphens=False) or [""]
    body = [part.replace("\u00a0", " ") for part in body]
    if colour:
        head = f"\033[{_COLOUR[verdict]}m{head}\033[0m"
    return "\n".join([head + body[0], *(" " * _NAME_COLUMNS + line for line in body[1:])])


def _with_tally(lines: Sequence[str], numbers: Counter[Outcome], nothing: str) -> str:
    tally = " · ".join(f"{verdict} {numbers[verdict]}" for verdict in _TALLY if numbers[verdict])
    return "".join(line + "\n" for line in [*lines, tally or nothing])


def _subject(verdict: Document) -> str:
    """The function, and which calls of it: an expression that only excludes callers is said in words."""
    component, path = str(verdict["component"]), verdict["path"]
    if not path:
        return component
    try:
        expression = parse_expression(path)
    except DataError:  # a place that is no expression over edges has no other words than its own
        return f"{component} where {path}"
    callee = excluded_callee(expression)
    if callee is None:
        return f"{component} where {path}"
    others = " or ".join(caller for (caller, _), _ in expression[0])
    return f"{component} where {'its caller' if callee == component else f'the caller of {callee}'} is not {others}"


def _shifted(share: float, difference: float) -> float:
    return min(max(share + difference, 0.0), 1.0)


def words_of(schema: str) -> Mapping[Outcome, str]:
    """What the verdicts of a document are called, by its schema; the gravest first."""
    return _WORDS[_SCHEMAS[schema]]


_SCHEMAS = {"perflaw.check/1": "check", "perflaw.diff/1": "diff"}
_TITLES = {"check": "The laws held against new recordings", "diff": "What changed from the old laws to the new ones"}
_EFFECTS = {"check": "cost over what the law says", "diff": "new cost over old"}
_WORDS: Mapping[str, Mapping[Outcome, str]] = {
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
        why = f"schema {schema!r} is not perflaw.check/1 or perflaw.diff/1"
        raise DataError("the verdicts for the page", why, "perflaw check LAWS --json > verdicts.json")
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
                            "where": _tree(condition),
                            "probability": 1.0 if probability is None else probability,
                            "factor": _number(law, "factor") or 1.0,
                            "tree": _tree(expression, is_law=True),
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
        "path_tree": _tree(path),
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


def _tree(text: str, is_law: bool = False) -> Tree:
    """Tree of a condition or law of the document; None where the text is none, such as a call path."""
    from perflaw.laws.reading import parse_distribution, parse_expression  # loads lark

    try:
        return distribution_tree(parse_distribution(text)) if is_law else expression_tree(parse_expression(text))
    except LawSyntaxError:
        return None


def _number(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    return finite(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None
