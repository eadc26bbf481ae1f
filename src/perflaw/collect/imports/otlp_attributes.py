"""Attributes of OpenTelemetry in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from perflaw.collect.imports.events import mapping
from perflaw.collect.imports.numbers import Number, number

FILES: Final = ("code.file.path", "code.filepath")
"""Names of the source file, the present one first."""
LINES: Final = ("code.line.number", "code.lineno")
"""Names of the source line."""


def attributes(holder: Mapping[str, object]) -> dict[str, object]:
    """Plain attributes by name: texts, numbers and truths; lists and tables are left out."""
    found = {}
    for pair in objects(holder.get("attributes")):
        value = mapping(pair.get("value"))
        for kind in ("stringValue", "intValue", "doubleValue", "boolValue"):
            if kind in value:
                found[str(pair.get("key", ""))] = _plain(kind, value[kind])
    return found


def _plain(kind: str, value: object) -> object:
    """64-bit integers are texts in this JSON."""
    return number(value) if kind in ("intValue", "doubleValue") else value


def numbers(told: Mapping[str, object]) -> Iterator[tuple[str, Number]]:
    """Those that are numbers, without the source line."""
    for name, value in told.items():
        found = None if isinstance(value, str) else number(value)
        if found is not None and name not in LINES:
            yield name, found


def objects(value: object) -> list[Mapping[str, object]]:
    """The objects of a JSON list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def one_of(told: Mapping[str, object], names: tuple[str, ...]) -> object:
    """What stands under the first of these names; None where there is none."""
    return next((told[name] for name in names if name in told), None)
