"""One encoder for all JSON documents: the document of a noun holds its fields by their names (``docs/json.md``).

A field whose document differs from the field says so beside it, in its metadata::

    kind: Kind = field(metadata=stated(type=""))          # under the name "type"
    metric: Metric = field(metadata=MEASURED)             # as "metric" (its name) and "unit"
    mean: Expression = field(metadata=stated(mean=learnt_text))  # as the function of it
    curves: tuple[Curve, ...] = field(metadata=OMITTED)   # not at all

A class lists properties that its document holds beside the fields in ``DOCUMENTED``. JSON has no NaN and no infinity:
``null`` stands for them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

Document = dict[str, Any]

_KEY = "document"
_PLAIN = {str, int, bool, type(None)}
"""Types whose values JSON has as they are."""


Part = str | Callable[[Any], Any]
"""Attribute or function of a field's value that a document holds; ``""`` is the value itself."""


def stated(**names: Part) -> Mapping[str, Mapping[str, Part]]:
    """Metadata of a field: name in the document → attribute or function of the field's value.

    Of a mapping or a sequence the attribute is that of each of its values; a function gets the value as it is.
    """
    return {_KEY: names}


OMITTED = stated()
"""The document does not hold the field."""
PLACED = stated(component="name", file="file", line="line")
"""A component by its name, file and line."""
CALLABLE = stated(component="name", parameters="parameters", file="file", line="line")
"""A component by its name, with its parameters, file and line."""
NAMED = stated(component="name")
"""A component by its name."""
MEASURED = stated(metric="name", unit="unit")
"""A metric by its name, with its unit."""


def document(noun: Any) -> Document:
    """The JSON document of a dataclass instance.

    >>> from perflaw.types import TIME, Breakpoint
    >>> document(Breakpoint("n", 64.0, 60.0, math.inf)), document(TIME)
    ({'feature': 'n', 'value': 64.0, 'low': 60.0, 'high': None}, {'name': 'time', 'unit': 'ns'})
    """
    return {name: encoded(value) for name, value in _values(noun)}


def flat_document(noun: Any) -> Document:
    """The document of a dataclass instance without the nouns, lists and maps in it, which are not encoded."""
    values = {name: encoded(value) for name, value in _values(noun) if not _holds_others(value)}
    return {name: value for name, value in values.items() if not isinstance(value, dict | list)}


def _values(noun: Any) -> Iterator[tuple[str, Any]]:
    """What the document of a dataclass instance holds, not encoded yet."""
    for field, name, path in _plan(noun.__class__):
        value = getattr(noun, field)
        if callable(path):
            yield name, path(value)
        elif not path or value is None:
            yield name, value
        elif isinstance(value, Mapping):
            yield name, {key: getattr(one, path) for key, one in value.items()}
        elif isinstance(value, list | tuple):
            yield name, [getattr(one, path) for one in value]
        else:
            yield name, getattr(value, path)


def _holds_others(value: Any) -> bool:
    """Whether the document of a value is a list or a map."""
    return isinstance(value, list | tuple | Mapping) or is_dataclass(value)


def encoded(value: Any) -> Any:
    """A value as JSON has it: nouns as their documents, arrays and tuples as lists, numbers finite or None.

    TypeError where JSON has nothing for the value.
    """
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [one if type(one) in _PLAIN else encoded(one) for one in value]
    if isinstance(value, str | bool | int) and not isinstance(value, Enum):
        return value
    if isinstance(value, float):
        return finite(float(value))
    if is_dataclass(value):
        return document(value)
    if isinstance(value, Mapping):
        return {str(key): one if type(one) in _PLAIN else encoded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(one) for one in value]
    if isinstance(value, Enum):
        return encoded(value.value)
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars, without importing NumPy
        return encoded(value.tolist())
    raise TypeError(f"no JSON for {type(value).__name__}")


def dumps(value: object) -> str:
    """A noun, or a mapping that holds nouns, as JSON text."""
    return json.dumps(encoded(value), indent=1, allow_nan=False, ensure_ascii=False)


def dumps_short(value: object) -> str:
    """A noun, or a mapping that holds nouns, as JSON text of one line; whole numbers have no decimal point.

    >>> dumps_short({"cost": [12.0, 0.5]})
    '{"cost":[12,0.5]}'
    """
    return json.dumps(_short(value), separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _short(value: Any) -> Any:
    """A value as JSON has it, with whole numbers as integers, as far as a float holds them exactly."""
    kind = type(value)
    if kind is float:
        if value.is_integer() and abs(value) < 2.0**53:
            return int(value)
        return value if math.isfinite(value) else None
    if kind is dict:
        return {str(key): one if type(one) in _PLAIN else _short(one) for key, one in value.items()}
    if kind is list or kind is tuple:
        return [one if type(one) in _PLAIN else _short(one) for one in value]
    return value if kind in _PLAIN else _short(encoded(value))


def finite(value: float | None) -> float | None:
    """The number, or None for NaN and infinities."""
    return value if value is not None and math.isfinite(value) else None


@cache
def _plan(noun: type) -> tuple[tuple[str, str, Part], ...]:
    """What the document of a class holds: (field or property, name in the document, attribute of the value)."""
    plan = [
        (field.name, name, path)
        for field in fields(noun)
        for name, path in field.metadata.get(_KEY, {field.name: ""}).items()
    ]
    return (*plan, *((name, name, "") for name in getattr(noun, "DOCUMENTED", ())))
