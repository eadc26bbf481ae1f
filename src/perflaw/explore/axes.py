"""One knob as an axis from 0 to 1: where a setting lies on it, which setting lies at a place, and levels along it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from perflaw.types.studies import Knob, Value


def listed(knob: Knob) -> tuple[Value, ...]:
    """Settings of a knob without a range, in order: False before True, an ordinal's numbers ascending."""
    return knob.values or (False, True) if knob.kind == "bool" else knob.values


def count(knob: Knob) -> int | None:
    """How many settings it has; None for a float."""
    if knob.kind == "float":
        return None
    if knob.kind == "int":
        low, high = ends(knob)
        return int(high) - int(low) + 1
    return len(listed(knob))


def ends(knob: Knob) -> tuple[float, float]:
    """Bounds of a range."""
    if knob.low is None or knob.high is None:
        raise ValueError(f"knob {knob.name} has no range")
    return knob.low, knob.high


def place(knob: Knob, value: Value) -> float:
    """Where a setting lies, 0 to 1. Whole numbers and listed settings lie in the middle of cells that fill the axis."""
    if knob.kind not in ("int", "float"):
        options = listed(knob)
        return (options.index(value) + 0.5) / len(options)
    low, high = _edges(knob)
    return min(1.0, max(0.0, (_onto(knob, float(value)) - low) / (high - low)))


def setting(knob: Knob, at: float) -> Value:
    """The setting at a place; places beyond 0 and 1 are taken as the ends."""
    at = 0.0 if math.isnan(at) else min(1.0, max(0.0, at))
    if knob.kind not in ("int", "float"):
        options = listed(knob)
        return options[min(len(options) - 1, int(at * len(options)))]
    low, high = ends(knob)
    first, last = _edges(knob)
    value = _back(knob, first + at * (last - first))
    if knob.kind == "int":
        return min(int(high), max(int(low), round(value)))
    return min(high, max(low, value))


def levels(knob: Knob, most: int) -> list[Value]:
    """At most so many settings, evenly along its scale, the ends among them; all of a categorical knob."""
    if knob.kind in ("categorical", "bool"):
        return list(listed(knob))
    if knob.kind == "ordinal":
        return [knob.values[index] for index in _spread(len(knob.values), most)]
    number = count(knob)
    low, high = ends(knob)
    if number is not None and number <= most:
        return [int(low) + step for step in range(number)]
    powers = _powers(knob)
    if powers:
        return [powers[index] for index in _spread(len(powers), most)]
    first, last = _onto(knob, low), _onto(knob, high)
    steps = [first] if most == 1 else [first + (last - first) * step / (most - 1) for step in range(most)]
    inner: Iterable[float] = (_back(knob, step) for step in steps)
    found = [min(high, max(low, value)) for value in inner]
    return list(dict.fromkeys(round(value) if knob.kind == "int" else value for value in found))


def _powers(knob: Knob) -> list[int]:
    """2, 4, 8, … where a knob of whole numbers on a log2 scale runs from one power to another."""
    low, high = (int(end) for end in ends(knob))
    if knob.kind != "int" or knob.scale != "log2" or low < 1 or low & (low - 1) or high & (high - 1):
        return []
    return [1 << power for power in range(low.bit_length() - 1, high.bit_length())]


def _spread(number: int, most: int) -> Sequence[int]:
    if number <= most:
        return range(number)
    if most == 1:
        return [number // 2]
    return [round(step * (number - 1) / (most - 1)) for step in range(most)]


def _edges(knob: Knob) -> tuple[float, float]:
    """Ends of the axis on its scale: half a step beyond those of whole numbers, so that each has its own cell."""
    low, high = ends(knob)
    beyond = 0.5 if knob.kind == "int" else 0.0
    return _onto(knob, low - beyond), _onto(knob, high + beyond)


def _onto(knob: Knob, value: float) -> float:
    return value if knob.scale == "linear" else math.log2(value)


def _back(knob: Knob, value: float) -> float:
    value = value if knob.scale == "linear" else 2.0**value
    return float(f"{value:.12g}") if knob.kind == "float" else value
