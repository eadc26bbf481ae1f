"""Knobs of a study file, read and checked one by one."""

from __future__ import annotations

import keyword
from typing import Any, Literal, TypeVar

from perflaw.explore.expressions import FUNCTIONS
from perflaw.explore.parts import Part, did_you_mean
from perflaw.explore.values import UNITS, Quantity
from perflaw.types.recordings import FEATURE_NAME
from perflaw.types.studies import Knob, KnobKind, Value

T = TypeVar("T", bound=str)
KEYS = ("type", "values", "range", "scale", "unit", "default", "apply", "verify", "switch_cost", "workload")
KINDS: dict[str, KnobKind] = {
    "int": "int", "float": "float", "ordinal": "ordinal", "categorical": "categorical", "bool": "bool",
}  # fmt: skip
SCALES: tuple[Literal["linear", "log2", "log10"], ...] = ("linear", "log2", "log10")
COSTS: tuple[Literal["none", "restart", "rebuild"], ...] = ("none", "restart", "rebuild")
MOST_VALUES = 10_000
"""Listed settings of a knob."""


def read_knob(part: Part) -> Knob:
    """A knob from its keys; ``part.what`` is its name. UsageError for what makes no sense."""
    _check_name(part)
    keys = part.keys(KEYS)
    kind = _kind(part, keys)
    ranged = kind in ("int", "float")
    if not ranged and "range" in keys:
        keys["range"].wrong(f"a knob of type {kind} has values", "values: […], or type: int")
    if ranged and "values" in keys:
        keys["values"].wrong(f"a knob of type {kind} has a range", "range: [low, high], or type: ordinal")
    unit = _unit(keys)
    low, high, unit = _range(part, keys, kind, unit) if ranged else (None, None, unit)
    values, unit = ((), unit) if ranged else _values(part, keys, kind, unit)
    scale = _one_of(keys.get("scale"), SCALES, "linear")
    if scale != "linear" and not ranged:
        keys["scale"].wrong("only ranges have a scale; listed values are taken in order")
    if scale != "linear" and low is not None and low <= 0:
        keys["scale"].wrong(f"a logarithmic scale needs a range above 0, this begins at {low:g}", "scale: linear")
    default = _default(keys["default"], kind, values, low, high, unit) if "default" in keys else None
    return Knob(
        part.what, kind, values, low, high, scale, unit, default,
        apply=tuple(_how(one) for one in keys["apply"].items()) if "apply" in keys else (),
        verify=_verify(keys.get("verify")),
        switch_cost=_one_of(keys.get("switch_cost"), COSTS, "restart"),
        workload=keys["workload"].boolean() if "workload" in keys else False,
    )  # fmt: skip


def _check_name(part: Part) -> None:
    name = part.what
    if not FEATURE_NAME.fullmatch(name) or not name.isidentifier() or not name.isascii():
        part.wrong(f"{name!r} cannot be a knob's name: letters, digits and _ alone, since expressions use it")
    if keyword.iskeyword(name) or name in FUNCTIONS or name in ("host", "args"):
        part.wrong(f"{name!r} has a meaning of its own in expressions or commands: choose another name")


def _kind(part: Part, keys: dict[str, Part]) -> KnobKind:
    if "type" not in keys:
        part.wrong(f"its type is missing: {', '.join(KINDS)}", "type: int")
    word = keys["type"].word()
    if word not in KINDS:
        keys["type"].wrong(f"unknown knob type {word!r}{did_you_mean(word, KINDS)}")
    return KINDS[word]


def _unit(keys: dict[str, Part]) -> str:
    return keys["unit"].word() if "unit" in keys else ""


def number_in(part: Part, found: Quantity, unit: str) -> int | float:
    """A quantity as a number in the knob's unit; plain numbers are in it already."""
    if not found.unit:
        return found.value
    factor, base = UNITS.get(unit, (1, unit))
    if found.unit != base:
        part.wrong(f"{part.text} is in {found.unit}, but the knob's unit is {unit or 'none'}", f"unit: {found.unit}")
    value = found.value / factor
    return int(value) if isinstance(found.value, int) and value == int(value) else value


def _numbers(parts: list[Part], unit: str) -> tuple[list[int | float], str]:
    found = [one.quantity() for one in parts]
    unit = unit or next((one.unit for one in found if one.unit), "")
    return [number_in(part, one, unit) for part, one in zip(parts, found, strict=True)], unit


def _range(part: Part, keys: dict[str, Part], kind: str, unit: str) -> tuple[float, float, str]:
    if "range" not in keys:
        part.wrong("its range is missing", "range: [low, high]")
    ends = keys["range"].items()
    if len(ends) != 2:
        keys["range"].wrong(f"two ends were expected, not {len(ends)}", "range: [low, high]")
    (low, high), unit = _numbers(ends, unit)
    if low > high:
        keys["range"].wrong(f"its low end {ends[0].text} is above its high end {ends[1].text}", "swap them")
    if low == high:
        keys["range"].wrong(f"it is empty: both ends are {ends[0].text}", "write the setting into the command")
    if kind == "int":
        for end, value in zip(ends, (low, high), strict=True):
            _whole(end, value)
    return low, high, unit


def _whole(part: Part, value: float) -> int:
    if value != int(value) or abs(value) > 2**53:
        part.wrong(f"{part.text} is {value:.15g}, no whole number up to 2**53", "type: float, or another unit")
    return int(value)


def _values(part: Part, keys: dict[str, Part], kind: str, unit: str) -> tuple[tuple[Value, ...], str]:
    if kind == "bool":
        if "values" in keys:
            keys["values"].wrong("a bool knob is false or true", "type: categorical")
        return (False, True), unit
    if "values" not in keys:
        part.wrong("its values are missing", "values: [a, b, c]")
    parts = keys["values"].items()
    if len(parts) > MOST_VALUES:
        keys["values"].wrong(f"{len(parts):,} values are too many", "type: int with a range")
    values: list[Value]
    if kind == "ordinal":
        numbers, unit = _numbers(parts, unit)
        values = sorted(int(one) if one == int(one) and abs(one) < 2**53 else one for one in numbers)
    else:
        values = [one.word() for one in parts]
    if len(set(values)) < len(values):
        twice = next(one for one in values if values.count(one) > 1)
        keys["values"].wrong(f"{twice!r} stands there twice")
    if len(values) < 2:
        keys["values"].wrong("a knob needs at least two values", "write the setting into the command")
    return tuple(values), unit


def _default(
    part: Part, kind: str, values: tuple[Value, ...], low: float | None, high: float | None, unit: str
) -> Value:
    if kind == "bool":
        return part.boolean()
    if kind == "categorical":
        default: Value = part.word()
    else:
        number = number_in(part, part.quantity(), unit)
        default = _whole(part, number) if kind == "int" else float(number) if kind == "float" else number
    if values and default not in values:
        part.wrong(f"the default {part.text} is none of the values {', '.join(map(str, values[:10]))}")
    if low is not None and high is not None and not (isinstance(default, int | float) and low <= default <= high):
        part.wrong(f"the default {part.text} is outside the range {low:.15g} to {high:.15g}")
    return default


def _how(part: Part) -> dict[str, Any]:
    """An injection, as a plain mapping."""
    part.keys()
    found: dict[str, Any] = part.plain()
    if not found:
        part.wrong("it names no injector", 'apply: {arg: "--threads={}"}')
    return found


def _verify(part: Part | None) -> dict[str, Any] | None:
    return None if part is None else _how(part)


def _one_of(part: Part | None, known: tuple[T, ...], default: T) -> T:
    if part is None:
        return default
    word = part.word()
    found = next((one for one in known if one == word), None)
    if found is None:
        part.wrong(f"unknown {part.what} {word!r}{did_you_mean(word, known)}")
    return found
