"""Knobs of a study file, each read and checked."""

from __future__ import annotations

import keyword
from typing import Any, Literal, TypeVar

from perflaw.documents import DocumentNode
from perflaw.errors import did_you_mean
from perflaw.explore.expressions import FUNCTIONS
from perflaw.explore.values import UNITS, Quantity, read_number, read_quantity
from perflaw.types.recordings import FEATURE_NAME
from perflaw.types.studies import Knob, KnobKind, Value

T = TypeVar("T", bound=str)
KEYS = (
    "type", "values", "range", "scale", "step", "tolerance", "unit", "default", "apply", "verify", "switch_cost",
    "workload",
)  # fmt: skip
KINDS: dict[str, KnobKind] = {
    "int": "int", "float": "float", "ordinal": "ordinal", "categorical": "categorical", "bool": "bool",
}  # fmt: skip
SCALES: tuple[Literal["linear", "log2", "log10"], ...] = ("linear", "log2", "log10")
COSTS: tuple[Literal["none", "restart", "rebuild"], ...] = ("none", "restart", "rebuild")
MOST_VALUES = 10_000
"""Largest number of listed settings of a knob."""


def read_knob(node: DocumentNode) -> Knob:
    """Return the knob of its keys; ``node.name`` is its name. UsageError, with the place, for what is invalid."""
    name = node.name
    if not FEATURE_NAME.fullmatch(name) or not name.isidentifier() or not name.isascii():
        node.refuse(f"{name!r} cannot be a knob's name: letters, digits and _ alone, since expressions use it")
    if keyword.iskeyword(name) or name in FUNCTIONS or name in ("host", "args"):
        node.refuse(f"{name!r} has a meaning of its own in expressions or commands: choose another name")
    keys = node.mapping(KEYS)
    if "type" not in keys:
        node.refuse(f"its type is missing: {', '.join(KINDS)}", "type: int")
    word = keys["type"].text()
    if word not in KINDS:
        keys["type"].refuse(f"unknown knob type {word!r}{did_you_mean(word, KINDS)}")
    kind = KINDS[word]
    ranged = kind in ("int", "float")
    if not ranged and "range" in keys:
        keys["range"].refuse(f"a knob of type {kind} has values", "values: […], or type: int")
    if ranged and "values" in keys:
        keys["values"].refuse(f"a knob of type {kind} has a range", "range: [low, high], or type: ordinal")
    unit = keys["unit"].text() if "unit" in keys else ""
    low, high, unit = _range(node, keys, kind, unit) if ranged else (None, None, unit)
    values, unit = ((), unit) if ranged else _values(node, keys, kind, unit)
    scale = _one_of(keys.get("scale"), SCALES, "linear")
    if scale != "linear" and not ranged:
        keys["scale"].refuse("only ranges have a scale; listed values are taken in order")
    if scale != "linear" and low is not None and low <= 0:
        keys["scale"].refuse(f"a logarithmic scale needs a range above 0, this begins at {low:g}", "scale: linear")
    for word in ("step", "tolerance"):
        if word in keys and not ranged:
            keys[word].refuse(f"only a knob with a range has a {word}", "type: int or float, with a range")
    step = _step(keys["step"], kind, low, high, unit) if "step" in keys else None
    tolerance = read_number(keys["tolerance"], 0.0, 1.0, "share") if "tolerance" in keys else 0.0
    default = _default(keys["default"], kind, values, low, high, unit) if "default" in keys else None
    return Knob(
        node.name, kind, values, low, high, scale, step, tolerance, unit, default,
        apply=tuple(_injection(each) for each in keys["apply"].one_or_more()) if "apply" in keys else (),
        verify=_injection(keys["verify"]) if "verify" in keys else None,
        switch_cost=_one_of(keys.get("switch_cost"), COSTS, "restart"),
        workload=keys["workload"].boolean() if "workload" in keys else False,
    )  # fmt: skip


def number_in(node: DocumentNode, found: Quantity, unit: str) -> int | float:
    """Return a quantity as a number in the knob's unit; plain numbers are in that unit already."""
    if not found.unit:
        return found.value
    factor, base = UNITS.get(unit, (1, unit))
    if found.unit != base:
        node.refuse(f"{node.text()} is in {found.unit}, but the knob's unit is {unit or 'none'}", f"unit: {found.unit}")
    value = found.value / factor
    return int(value) if isinstance(found.value, int) and value == int(value) else value


def _numbers(parts: list[DocumentNode], unit: str) -> tuple[list[int | float], str]:
    """Return numbers in the knob's unit, and that unit: the given one, else that of the first quantity with a unit."""
    found = [read_quantity(part) for part in parts]
    unit = unit or next((each.unit for each in found if each.unit), "")
    return [number_in(part, each, unit) for part, each in zip(parts, found, strict=True)], unit


def _range(node: DocumentNode, keys: dict[str, DocumentNode], kind: str, unit: str) -> tuple[float, float, str]:
    if "range" not in keys:
        node.refuse("its range is missing", "range: [low, high]")
    ends = keys["range"].one_or_more()
    if len(ends) != 2:
        keys["range"].refuse(f"two ends were expected, not {len(ends)}", "range: [low, high]")
    (low, high), unit = _numbers(ends, unit)
    if low > high:
        keys["range"].refuse(f"its low end {ends[0].text()} is above its high end {ends[1].text()}", "swap them")
    if low == high:
        keys["range"].refuse(f"it is empty: both ends are {ends[0].text()}", "write the setting into the command")
    if kind == "int":
        for end, value in zip(ends, (low, high), strict=True):
            _whole(end, value)
    return low, high, unit


def _step(node: DocumentNode, kind: str, low: float | None, high: float | None, unit: str) -> float:
    step = number_in(node, read_quantity(node), unit)
    if low is None or high is None or not 0 < step <= high - low:
        node.refuse(f"{node.text()} is no step of this range", "a number above 0, at most the range")
    return _whole(node, step) if kind == "int" else step


def _whole(node: DocumentNode, value: float) -> int:
    if value != int(value) or abs(value) > 2**53:
        why = f"{node.text()} is {value:.15g}, which is not a whole number up to 2**53"
        node.refuse(why, "type: float, or another unit")
    return int(value)


def _values(node: DocumentNode, keys: dict[str, DocumentNode], kind: str, unit: str) -> tuple[tuple[Value, ...], str]:
    if kind == "bool":
        if "values" in keys:
            keys["values"].refuse("a bool knob is false or true", "type: categorical")
        return (False, True), unit
    if "values" not in keys:
        node.refuse("its values are missing", "values: [a, b, c]")
    parts = keys["values"].one_or_more()
    if len(parts) > MOST_VALUES:
        keys["values"].refuse(f"{len(parts):,} values are too many", "type: int with a range")
    values: list[Value]
    if kind == "ordinal":
        numbers, unit = _numbers(parts, unit)
        values = sorted(int(each) if each == int(each) and abs(each) < 2**53 else each for each in numbers)
    else:
        values = [part.text() for part in parts]
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        keys["values"].refuse(f"{twice!r} occurs twice")
    if len(values) < 2:
        keys["values"].refuse("a knob needs at least two values", "write the setting into the command")
    return tuple(values), unit


def _default(
    node: DocumentNode, kind: str, values: tuple[Value, ...], low: float | None, high: float | None, unit: str
) -> Value:
    if kind == "bool":
        return node.boolean()
    if kind == "categorical":
        default: Value = node.text()
    else:
        number = number_in(node, read_quantity(node), unit)
        default = _whole(node, number) if kind == "int" else float(number) if kind == "float" else number
    if values and default not in values:
        node.refuse(f"the default {node.text()} is not one of the values {', '.join(map(str, values[:10]))}")
    if low is not None and high is not None and not (isinstance(default, int | float) and low <= default <= high):
        node.refuse(f"the default {node.text()} is outside the range {low:.15g} to {high:.15g}")
    return default


def _injection(node: DocumentNode) -> dict[str, Any]:
    """Return an injection as a mapping."""
    node.mapping()
    found: dict[str, Any] = node.value
    if not found:
        node.refuse("it names no injector", 'apply: {arg: "--threads={}"}')
    return found


def _one_of(node: DocumentNode | None, known: tuple[T, ...], default: T) -> T:
    if node is None:
        return default
    word = node.text()
    found = next((each for each in known if each == word), None)
    if found is None:
        node.refuse(f"unknown {node.name} {word!r}{did_you_mean(word, known)}")
    return found
