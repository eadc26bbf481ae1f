"""What programs print: numbers in JSON, numbers found by a pattern, lines that are readings."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from perflaw.types.studies import Reading, StudyMetric


def matched(pattern: str, text: str) -> float:
    """The number in the last match: of its first group, or the whole. ValueError where there is none.

    >>> matched(r"took ([0-9.]+) ms", "took 3 ms, took 4.5 ms")
    4.5
    """
    found = None
    for found in re.finditer(pattern, text, re.MULTILINE):  # noqa: B007 (the last match is wanted)
        pass
    if found is None:
        raise ValueError(f"nothing it printed matches {pattern!r}")
    return number(found[1] if found.re.groups else found[0])


def at_path(document: Any, path: str) -> float:
    """The number at ``a.b.0`` of a document; ValueError where there is none.

    >>> at_path({"a": {"b": [7]}}, "a.b.0")
    7.0
    """
    value = document
    for part in path.split(".") if path else []:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ValueError(f"its result has nothing at {path!r}")
    return number(value)


def number(value: Any) -> float:
    """A finite number; ValueError otherwise."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is no number") from None
    if not math.isfinite(found):
        raise ValueError(f"{value!r} is no finite number")
    return found


def document_of(text: str) -> Any:
    """The JSON of a text: the whole, or its last line that is an object; None where there is none."""
    for part in (text, *reversed(text.splitlines())):
        if not part.lstrip().startswith(("{", "[")):
            continue
        try:
            return json.loads(part)
        except ValueError:
            continue
    return None


def readings_of(metrics: Sequence[StudyMetric], line: str, at_s: float) -> list[Reading]:
    """What a streamed line says of the metrics: a JSON object, or a text that a metric's pattern matches."""
    document, found = document_of(line), []
    for metric in metrics:
        try:
            if "regex" in metric.source:
                value = matched(str(metric.source["regex"]), line)
            elif "path" in metric.source and document is not None:
                value = at_path(document, str(metric.source["path"]))
            else:
                continue
        except ValueError:
            continue  # another kind of line
        found.append(Reading(metric.name, at_s, value))
    return found
