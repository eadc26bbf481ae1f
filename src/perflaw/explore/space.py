"""The space of configurations: knobs of mixed kinds under constraints; sampling, grids, the unit cube, canonical names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from perflaw.errors import UsageError
from perflaw.explore.expressions import Expression
from perflaw.explore.search import Search
from perflaw.explore.values import host
from perflaw.types.studies import Configuration, Knob, Value, configuration_key

# ---- One knob as an axis from 0 to 1: where a setting lies on it, which setting lies at a place, and levels along
# it.


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


Floats = npt.NDArray[np.float64]
MOST_COUNTED = 65_536
"""Configurations up to which constraints are counted one by one."""
MOST_GRID = 200_000
"""Of a grid: more is refused, nobody runs them."""
TRIES = 300
"""Samples drawn before one is repaired instead."""


class Space:
    """Knobs and the constraints that all configurations obey."""

    def __init__(
        self, knobs: Sequence[Knob], constraints: Sequence[str] = (), machine: Configuration | None = None
    ) -> None:
        """``machine`` is what ``host.…`` stands for: this machine's where it is None."""
        self.knobs = tuple(knobs)
        self.names = tuple(knob.name for knob in self.knobs)
        self.constraints = tuple(Expression(text) for text in constraints)
        self.machine = dict(host() if machine is None else machine)
        self._by_name = {knob.name: knob for knob in self.knobs}

    def knob(self, name: str) -> Knob:
        """The knob of a name."""
        return self._by_name[name]

    def normal(self, configuration: Mapping[str, Any]) -> dict[str, Value]:
        """The same in the knobs' order and kinds (NumPy's numbers and JSON's become Python's); ``valid`` judges it."""
        return {name: _plain(self._by_name[name], configuration[name]) for name in self.names if name in configuration}

    def valid(self, configuration: Mapping[str, Any]) -> str:
        """Why it is no configuration of this space; empty where it is one."""
        for name in configuration:
            if name not in self._by_name:
                return f"there is no knob {name}"
        for knob in self.knobs:
            if knob.name not in configuration:
                return f"{knob.name} is missing"
            why = _outside(knob, _plain(knob, configuration[knob.name]))
            if why:
                return why
        return self.broken(self.normal(configuration))

    def broken(self, configuration: Configuration) -> str:
        """The first constraint that does not hold, in words; empty where all hold."""
        if not self.constraints:
            return ""
        variables = {**self.machine, **configuration}
        for constraint in self.constraints:
            try:
                if not constraint.value(variables):
                    return f"it breaks the constraint {constraint.text!r}"
            except UsageError as error:
                return f"constraint {constraint.text!r} cannot be computed: {error.why}"
        return ""

    def sample(self, rng: np.random.Generator) -> dict[str, Value]:
        """A configuration at random, even along the knobs' scales among the valid ones.

        Where 300 draws in a row break constraints, the last one is moved to a valid one nearby.
        """
        at: Floats = rng.random(len(self.knobs))
        for _ in range(TRIES):
            drawn = self.decoded(at)
            if not self.broken(drawn):
                return drawn
            at = rng.random(len(self.knobs))
        return self.configuration(at)

    def grid(self, levels: int | Mapping[str, int] = 8) -> list[dict[str, Value]]:
        """All valid combinations of the knobs' levels, the last knob changing fastest.

        ``levels``: at most so many a knob (categorical knobs always have all). UsageError beyond 200,000 combinations.
        """
        each = [
            self.levels(knob.name, levels if isinstance(levels, int) else levels.get(knob.name, 8))
            for knob in self.knobs
        ]
        number = math.prod(map(len, each))
        if number > MOST_GRID:
            raise UsageError(
                f"a grid of {number:,} configurations",
                f"more than {MOST_GRID:,}",
                "policy: law, or fewer levels of the knobs",
            )
        found = (dict(zip(self.names, one, strict=True)) for one in product(*each))
        return [one for one in found if not self.broken(one)]

    def levels(self, name: str | Knob, most: int = 8) -> list[Value]:
        """At most so many settings of a knob, evenly along its scale; all of a categorical one."""
        knob = name if isinstance(name, Knob) else self._by_name[name]
        return levels(knob, max(1, most))

    def unit(self, configuration: Mapping[str, Any]) -> Floats:
        """Its place in the unit cube, float64[d] in [0, 1], in the knobs' order; UsageError for settings that are none."""
        for knob in self.knobs:
            why = _outside(knob, _plain(knob, configuration[knob.name]))
            if why:
                raise UsageError(f"configuration {dict(configuration)}", why)
        return np.array([place(knob, _plain(knob, configuration[knob.name])) for knob in self.knobs])

    def configuration(self, at: Sequence[float] | Floats) -> dict[str, Value]:
        """The valid configuration nearest to a place of the unit cube (exactly where the space is small)."""
        decoded = self.decoded(at)
        return decoded if not self.broken(decoded) else self.search.nearest(np.asarray(at, dtype=np.float64))

    @cached_property
    def product(self) -> int | None:
        """Configurations if there were no constraints; None with a float."""
        counts = [count(knob) for knob in self.knobs]
        return None if any(one is None for one in counts) else math.prod(one or 0 for one in counts)

    @cached_property
    def size(self) -> int | None:
        """Valid configurations; None where there are endless ones, or too many to count under constraints."""
        if not self.constraints or self.product is None:
            return self.product
        return len(self.all()) if self.product <= MOST_COUNTED else None

    def all(self) -> list[dict[str, Value]]:
        """Every valid configuration of a space of at most 65,536 combinations."""
        if self.product is None or self.product > MOST_COUNTED:
            raise UsageError("all configurations of the space", "there are too many", "Space.grid(levels)")
        return self._all

    @cached_property
    def _all(self) -> list[dict[str, Value]]:
        return self.grid(MOST_COUNTED)

    @cached_property
    def search(self) -> Search:
        """Finder of valid configurations where draws seldom meet the constraints."""
        return Search(self)

    def key(self, configuration: Mapping[str, Any]) -> str:
        """A canonical text: equal for equal settings, whatever their order and number types."""
        return configuration_key(self.normal(configuration))

    def defaults(self) -> dict[str, Value]:
        """What the target has without being told; the middle of knobs that say no default, moved to a valid one if need be."""
        plain: dict[str, Value] = {knob.name: _default(knob) for knob in self.knobs}
        if not self.broken(plain):
            return plain
        return self.configuration(self.unit(plain))

    def columns(self, configurations: Iterable[Mapping[str, Any]]) -> dict[str, Floats]:
        """Features for a law: numbers as they are, bools 0/1, a column ``knob=value`` of 0/1 for each categorical setting."""
        rows = [self.normal(one) for one in configurations]
        found: dict[str, Floats] = {}
        for knob in self.knobs:
            settings = [row[knob.name] for row in rows]
            if knob.kind == "categorical":
                for option in listed(knob):
                    found[f"{knob.name}={option}"] = np.array([one == option for one in settings], dtype=np.float64)
            else:
                found[knob.name] = np.array(settings, dtype=np.float64)
        return found

    def decoded(self, at: Sequence[float] | Floats) -> dict[str, Value]:
        """The settings at a place of the unit cube, whether the constraints hold or not."""
        return {knob.name: setting(knob, float(one)) for knob, one in zip(self.knobs, at, strict=True)}


def _default(knob: Knob) -> Value:
    if knob.default is not None:
        return knob.default
    return listed(knob)[0] if knob.kind in ("categorical", "bool") else _middle(levels(knob, 3))


def _plain(knob: Knob, value: Any) -> Value:
    """A setting as Python's own type of the knob's kind, where it is one in another coat; else as it came."""
    if isinstance(value, np.generic):
        value = value.item()
    if knob.kind == "bool" and value in (0, 1) and isinstance(value, int | float):
        return bool(value)
    if knob.kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if knob.kind in ("int", "ordinal") and isinstance(value, float) and value.is_integer():
        return int(value)
    kept: Value = value
    return kept


def _outside(knob: Knob, value: Value) -> str:
    """Why a value is no setting of a knob; empty where it is one."""
    if knob.kind in ("int", "float"):
        low, high = ends(knob)
        if isinstance(value, bool) or not isinstance(value, int if knob.kind == "int" else int | float):
            return f"{knob.name}={value!r} is no {'whole number' if knob.kind == 'int' else 'number'}"
        return "" if low <= value <= high else f"{knob.name}={value!r} is not between {low:.15g} and {high:.15g}"
    same = [one for one in listed(knob) if one == value and isinstance(one, bool) == isinstance(value, bool)]
    return "" if same else f"{knob.name}={value!r} is none of its values"


def _middle(options: Sequence[Value]) -> Value:
    return options[len(options) // 2]
