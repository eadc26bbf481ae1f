"""A setting in what a target told: at a path of JSON, by a regular expression, or the last line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from perflaw.errors import TargetError
from perflaw.types.studies import Value


def told_in(text: str, how: Mapping[str, Any]) -> Value | None:
    """By the injection's ``path`` or ``regex``; the last line of the text that is not empty where it has neither."""
    if "path" in how:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise TargetError("the answer is no JSON", str(error)) from error
        return at_path(document, str(how["path"]))
    if "regex" in how:
        return by_regex(text, str(how["regex"]))
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def at_path(document: Any, path: str) -> Value | None:
    """The value at ``a.b.0`` of a JSON document; None where there is none.

    >>> at_path({"a": [{"b": 4}]}, "a.0.b"), at_path({}, "a")
    (4, None)
    """
    for name in path.split("."):
        if isinstance(document, Mapping) and name in document:
            document = document[name]
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document if isinstance(document, bool | int | float | str) else None


def by_regex(text: str, pattern: str) -> str | None:
    """The last match of a pattern: its group where it has one; None where there is none."""
    last = next(iter(reversed(list(re.finditer(pattern, text, re.MULTILINE)))), None)
    return None if last is None else last[1] if last.re.groups else last[0]
