"""Metrics of a study file: each with one source."""

from __future__ import annotations

import re
from typing import Any

from perflaw.explore.parts import Part, did_you_mean
from perflaw.explore.reading_target import check_regex
from perflaw.types.measured import FEATURE_NAME
from perflaw.types.studies import Goal, StudyMetric

SOURCES = ("probe", "path", "regex", "wall", "cpu", "memory")
"""Where a metric can come from: probes, the JSON result, the output, and what the machine says of the processes."""
RATES = ("count", "sum")
FIELDS = ("mean", "p50", "p90", "p99", "max", "min", "sum")
_KEYS = (*SOURCES, "rate", *FIELDS, "goal", "unit", "source")
_UNITS = {"wall": "s", "cpu": "s", "memory": "B"}


def read_metrics(part: Part) -> tuple[StudyMetric, ...]:
    """All metrics, in the file's order; UsageError where none has a goal."""
    found = tuple(_metric(one) for one in part.keys().values())
    if not any(metric.goal for metric in found):
        part.wrong(
            "no metric has a goal: nothing tells which configuration is better", "goal: max (or min) at one of them"
        )
    return found


def _metric(part: Part) -> StudyMetric:
    if not FEATURE_NAME.fullmatch(part.what):
        part.wrong(f"{part.what!r} cannot be a metric's name: letters, digits, _ . - alone")
    if not isinstance(part.value, dict):
        return _short(part)
    keys = part.keys(_KEYS)
    if "source" in keys:
        word = keys.pop("source").word()
        keys[_known(part, word)] = Part(True, part.where, word, "true")
    named = [name for name in SOURCES if name in keys]
    if len(named) != 1:
        part.wrong(
            f"one source was expected of {', '.join(SOURCES)}, there {'is none' if not named else 'are several'}"
        )
    return StudyMetric(part.what, _source(part, named[0], keys), _unit(keys, named[0]), _goal(keys.get("goal")))


def _short(part: Part) -> StudyMetric:
    """``seconds: wall``: the source's name alone."""
    word = part.word()
    name = _known(part, word)
    if name not in _UNITS:
        part.wrong(f"{name} needs to be told what to read", f"{{{name}: …}}")
    return StudyMetric(part.what, {name: True}, _UNITS[name])


def _known(part: Part, word: str) -> str:
    if word not in SOURCES:
        part.wrong(f"unknown metric source {word!r}{did_you_mean(word, SOURCES)}")
    return word


def _source(part: Part, name: str, keys: dict[str, Part]) -> dict[str, Any]:
    value = keys[name]
    if name == "probe":
        return _probe(part, keys)
    extra = [one for one in ("rate", *FIELDS) if one in keys]
    if extra:
        keys[extra[0]].wrong(f"only metrics of probes have {extra[0]}")
    if name in _UNITS:
        if value.value not in (None, True):
            value.wrong(f"{name} stands alone, or with true", f"{{{name}: true}}")
        return {name: True}
    if name == "path":
        return {"path": value.word()}
    if re.compile(check_regex(value)).groups > 1:
        value.wrong("it has several groups: one holds the number")
    return {"regex": value.word()}


def _probe(part: Part, keys: dict[str, Part]) -> dict[str, Any]:
    asked = [one for one in ("rate", *FIELDS) if one in keys]
    if len(asked) != 1:
        part.wrong(f"a metric of a probe needs one of rate, {', '.join(FIELDS)}", "{probe: query, rate: count}")
    value = keys[asked[0]]
    if asked[0] == "rate" and value.word() not in RATES:
        value.wrong(f"unknown rate {value.text!r}{did_you_mean(value.text, RATES)}")
    return {
        "probe": keys["probe"].value if isinstance(keys["probe"].value, int) else keys["probe"].word(),
        asked[0]: value.word(),
    }


def _unit(keys: dict[str, Part], source: str) -> str:
    return keys["unit"].word() if "unit" in keys else _UNITS.get(source, "")


def _goal(part: Part | None) -> Goal | None:
    if part is None:
        return None
    goals: dict[str, Goal] = {"max": "max", "min": "min"}
    word = part.word()
    if word not in goals:
        part.wrong(f"unknown goal {word!r}: max or min", "goal: max")
    return goals[word]
