"""The space of configurations: knobs of mixed kinds under constraints; sampling, grids, the unit cube, valid neighbours."""

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
from perflaw.explore.values import host
from perflaw.types.studies import Configuration, Knob, Value, configuration_key

Floats = npt.NDArray[np.float64]
MOST_COUNTED = 65_536
"""Number of combinations up to which valid configurations are counted one by one."""
MOST_GRID = 200_000
"""Largest number of combinations of a grid."""
SAMPLE_TRIES = 300
"""Draws in a row that break constraints before one is repaired instead."""
MOST_EXACT = 4096
"""Number of combinations up to which the nearest valid configuration is found by looking at all of them."""
POOL_DRAWS, POOL = 20_000, 256
"""Draws until a large space counts as empty, and number of valid places that are kept to start from."""
REPAIRED_DRAWS = 24
"""Draws that are repaired where no draw was valid."""
MOST_MOVES, MIN_REPAIR_STEP = 150, 1e-12
"""Largest number of moves of a repair, and smallest move in unit-cube coordinates."""
HALVINGS = 30
"""Steps of a bisection between a valid and an invalid place."""


# ---- One knob as an axis from 0 to 1.


def options(knob: Knob) -> tuple[Value, ...]:
    """Return the settings of a knob without a range, in order: False before True, the numbers of an ordinal ascending."""
    return knob.values or (False, True) if knob.kind == "bool" else knob.values


def range_of(knob: Knob) -> tuple[float, float]:
    """Return the limits of a knob with a range."""
    if knob.low is None or knob.high is None:
        raise ValueError(f"knob {knob.name} has no range")
    return knob.low, knob.high


def setting_count(knob: Knob) -> int | None:
    """Return the number of settings of a knob; None for a float without a step."""
    if knob.kind not in ("int", "float"):
        return len(options(knob))
    low, high = range_of(knob)
    step = knob.step or (1 if knob.kind == "int" else None)
    return None if step is None else int((high - low) / step * (1 + 1e-12)) + 1


def place(knob: Knob, value: Value) -> float:
    """Return where a setting lies, 0 to 1. Whole numbers and listed settings lie in the middle of cells that fill the axis."""
    if knob.kind not in ("int", "float"):
        several = options(knob)
        return (several.index(value) + 0.5) / len(several)
    low, high = _axis_ends(knob)
    return min(1.0, max(0.0, (_scaled(knob, float(value)) - low) / (high - low)))


def setting(knob: Knob, at: float) -> Value:
    """Return the setting at a place; places beyond 0 and 1 are taken as the ends."""
    at = 0.0 if math.isnan(at) else min(1.0, max(0.0, at))
    if knob.kind not in ("int", "float"):
        several = options(knob)
        return several[min(len(several) - 1, int(at * len(several)))]
    low, high = range_of(knob)
    first, last = _axis_ends(knob)
    return _nearest(knob, min(high, max(low, _unscaled(knob, first + at * (last - first)))))


def _nearest(knob: Knob, value: float) -> Value:
    """Return the setting of a range that is nearest to a number within it: by its step, or a whole number."""
    number = setting_count(knob)
    if number is None:
        return value
    low, _ = range_of(knob)
    step = knob.step or 1
    found = low + min(number - 1, max(0, round((value - low) / step))) * step
    return int(found) if knob.kind == "int" else float(f"{found:.12g}")


def levels(knob: Knob, most: int) -> list[Value]:
    """Return at most ``most`` settings, evenly along the knob's scale and with its limits; all of a categorical knob."""
    if knob.kind in ("categorical", "bool"):
        return list(options(knob))
    if knob.kind == "ordinal":
        return _spread(knob.values, most)
    low, high = range_of(knob)
    number = setting_count(knob)
    if number is not None and number <= most:
        return [_nearest(knob, low + (knob.step or 1) * place) for place in range(number)]
    of_powers = knob.kind == "int" and knob.scale == "log2" and low >= 1 and knob.step is None
    if of_powers and all(math.log2(end).is_integer() for end in (low, high)):
        powers: list[Value] = [1 << power for power in range(int(low).bit_length() - 1, int(high).bit_length())]
        return _spread(powers, most)
    first, last = _scaled(knob, low), _scaled(knob, high)
    steps = [first] if most == 1 else [first + (last - first) * step / (most - 1) for step in range(most)]
    return list(dict.fromkeys(_nearest(knob, min(high, max(low, _unscaled(knob, step)))) for step in steps))


def _spread(several: Sequence[Value], most: int) -> list[Value]:
    """Return at most ``most`` of several settings, evenly spread and with both ends."""
    number = len(several)
    if number <= most:
        return list(several)
    if most == 1:
        return [several[number // 2]]
    return [several[round(step * (number - 1) / (most - 1))] for step in range(most)]


def _axis_ends(knob: Knob) -> tuple[float, float]:
    """Return the ends of the axis on the knob's scale: half a step beyond the settings, so that each has its own cell."""
    low, high = range_of(knob)
    if number := setting_count(knob):
        high = low + (number - 1) * (knob.step or 1)
    beyond = (knob.step or (1.0 if number else 0.0)) / 2
    if knob.scale != "linear":
        beyond = min(beyond, low / 2)
    return _scaled(knob, low - beyond), _scaled(knob, high + beyond)


def _scaled(knob: Knob, value: float) -> float:
    return value if knob.scale == "linear" else math.log2(value)


def _unscaled(knob: Knob, value: float) -> float:
    value = value if knob.scale == "linear" else 2.0**value
    return float(f"{value:.12g}") if knob.kind == "float" else value


# ---- The space.


class Space:
    """Knobs and the constraints that all configurations satisfy."""

    def __init__(
        self, knobs: Sequence[Knob], constraints: Sequence[str] = (), machine: Configuration | None = None
    ) -> None:
        """``machine`` gives the values of ``host.…``; None: those of this machine."""
        self.knobs = tuple(knobs)
        self.names = tuple(knob.name for knob in self.knobs)
        self.constraints = tuple(Expression(text) for text in constraints)
        self.machine = dict(host() if machine is None else machine)
        self._by_name = {knob.name: knob for knob in self.knobs}

    # ---- Configurations.

    def knob(self, name: str) -> Knob:
        """Return the knob of a name."""
        return self._by_name[name]

    def key(self, configuration: Mapping[str, Any]) -> str:
        """Return a canonical text, equal for equal settings in any order and of any number type."""
        return configuration_key(self.normal(configuration))

    def normal(self, configuration: Mapping[str, Any]) -> dict[str, Value]:
        """Return a configuration in the knobs' order and types: numbers of NumPy and JSON become those of Python."""
        return {knob.name: _plain(knob, configuration[knob.name]) for knob in self.knobs if knob.name in configuration}

    def valid(self, configuration: Mapping[str, Any]) -> str:
        """Return why a configuration is invalid; empty where it is valid."""
        for name in configuration:
            if name not in self._by_name:
                return f"there is no knob {name}"
        for knob in self.knobs:
            if knob.name not in configuration:
                return f"{knob.name} is missing"
            if why := _outside(knob, _plain(knob, configuration[knob.name])):
                return why
        return self.broken(self.normal(configuration))

    def broken(self, configuration: Configuration) -> str:
        """Return the first constraint that does not hold, in words; empty where all hold."""
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

    def defaults(self) -> dict[str, Value]:
        """Return the default configuration: knobs without a default have their middle; moved to a valid one if necessary."""
        found: dict[str, Value] = {}
        for knob in self.knobs:
            several = levels(knob, 3) if knob.ordered else options(knob)[:1]
            found[knob.name] = several[len(several) // 2] if knob.default is None else knob.default
        return self.configuration(self.unit(found)) if self.broken(found) else found

    def columns(self, configurations: Iterable[Mapping[str, Any]]) -> dict[str, Floats]:
        """Return features for laws, (n,) each: numbers, bools as 0 or 1, and ``knob=value`` as 0 or 1 for categorical knobs."""
        rows = [self.normal(configuration) for configuration in configurations]
        found: dict[str, Floats] = {}
        for knob in self.knobs:
            settings = [row[knob.name] for row in rows]
            if knob.kind == "categorical":
                for option in options(knob):
                    found[f"{knob.name}={option}"] = np.array([value == option for value in settings], dtype=np.float64)
            else:
                found[knob.name] = np.array(settings, dtype=np.float64)
        return found

    # ---- Many configurations.

    def sample(self, rng: np.random.Generator) -> dict[str, Value]:
        """Draw a valid configuration, evenly along the knobs' scales.

        Where many draws in a row break constraints, the last one is moved to a valid configuration nearby.
        """
        at: Floats = rng.random(len(self.knobs))
        for _ in range(SAMPLE_TRIES):
            drawn = self.decoded(at)
            if not self.broken(drawn):
                return drawn
            at = rng.random(len(self.knobs))
        return self.configuration(at)

    def levels(self, name: str | Knob, most: int = 8) -> list[Value]:
        """Return at most ``most`` settings of a knob, evenly along its scale; all of a categorical one."""
        return levels(name if isinstance(name, Knob) else self._by_name[name], max(1, most))

    def grid(self, levels: int | Mapping[str, int] = 8) -> list[dict[str, Value]]:
        """Return all valid combinations of the knobs' levels, with the last knob changing fastest.

        ``levels`` is the largest number of levels of a knob; categorical knobs always have all. UsageError beyond 200,000
        combinations.
        """
        several = [
            self.levels(knob, levels if isinstance(levels, int) else levels.get(knob.name, 8)) for knob in self.knobs
        ]
        number = math.prod(map(len, several))
        if number > MOST_GRID:
            limit, remedy = f"more than {MOST_GRID:,}", "policy: law, or fewer levels of the knobs"
            raise UsageError(f"a grid of {number:,} configurations", limit, remedy)
        found = (dict(zip(self.names, settings, strict=True)) for settings in product(*several))
        return [configuration for configuration in found if not self.broken(configuration)]

    @cached_property
    def product(self) -> int | None:
        """Number of combinations without the constraints; None with a float."""
        counts = [setting_count(knob) for knob in self.knobs]
        return None if None in counts else math.prod(count or 0 for count in counts)

    @cached_property
    def size(self) -> int | None:
        """Number of valid configurations; None where there are endless ones, or too many to count under constraints."""
        if not self.constraints or self.product is None:
            return self.product
        return len(self.all()) if self.product <= MOST_COUNTED else None

    def all(self) -> list[dict[str, Value]]:
        """Return every valid configuration of a space of at most 65,536 combinations."""
        if self.product is None or self.product > MOST_COUNTED:
            raise UsageError("all configurations of the space", "there are too many", "Space.grid(levels)")
        return self._all

    @cached_property
    def _all(self) -> list[dict[str, Value]]:
        return self.grid(MOST_COUNTED)

    # ---- The unit cube.

    def unit(self, configuration: Mapping[str, Any]) -> Floats:
        """Return the place in the unit cube, float64[d] in the knobs' order; UsageError for invalid settings."""
        for knob in self.knobs:
            if why := _outside(knob, _plain(knob, configuration[knob.name])):
                raise UsageError(f"configuration {dict(configuration)}", why, "choose among the knob's settings")
        return np.array([place(knob, _plain(knob, configuration[knob.name])) for knob in self.knobs])

    def decoded(self, at: Sequence[float] | Floats) -> dict[str, Value]:
        """Return the settings at a place of the unit cube, whether the constraints hold or not."""
        return {knob.name: setting(knob, float(each)) for knob, each in zip(self.knobs, at, strict=True)}

    def configuration(self, at: Sequence[float] | Floats) -> dict[str, Value]:
        """Return the valid configuration nearest to a place of the unit cube; exactly the nearest in a small space."""
        decoded = self.decoded(at)
        return self.search.nearest(np.asarray(at, dtype=np.float64)) if self.broken(decoded) else decoded

    @cached_property
    def search(self) -> NearestSearch:
        """Finder of valid configurations, for constraints that draws seldom satisfy."""
        return NearestSearch(self)


def _plain(knob: Knob, value: Any) -> Value:
    """Return a setting as Python's own type of the knob's kind, where it is one of another type; else as it is."""
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
    """Return why a value is not a setting of a knob; empty where it is one."""
    if knob.kind in ("int", "float"):
        low, high = range_of(knob)
        if isinstance(value, bool) or not isinstance(value, int if knob.kind == "int" else int | float):
            return f"{knob.name}={value!r} is not a {'whole number' if knob.kind == 'int' else 'number'}"
        return "" if low <= value <= high else f"{knob.name}={value!r} is not between {low:.15g} and {high:.15g}"
    same = any(option == value and isinstance(option, bool) == isinstance(value, bool) for option in options(knob))
    return "" if same else f"{knob.name}={value!r} is not one of its values"


# ---- Valid configurations under constraints that random draws seldom satisfy.


class NearestSearch:
    """Finds valid configurations of a space; deterministic and bounded, and it says whether it looked at all of them."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @property
    def exact(self) -> bool:
        """Whether all combinations are looked at."""
        return self.space.product is not None and self.space.product <= MOST_EXACT

    def description(self) -> str:
        """Return how an empty space was established."""
        if self.exact:
            return f"(all {self.space.product:,} combinations were tried)"
        return f"(searched, not proven: {POOL_DRAWS:,} draws and {REPAIRED_DRAWS} repairs)"

    @cached_property
    def pool(self) -> Floats:
        """Places of valid configurations, float64[n, d]: all of a small space, some of a large one, none of an empty one."""
        d = len(self.space.knobs)
        found: list[Floats] = []
        if self.exact:
            found = [self.space.unit(configuration) for configuration in self.space.all()]
        else:
            for at in np.random.default_rng(1).random((POOL_DRAWS, d)):
                if self._valid(at):
                    found.append(at)
                    if len(found) == POOL:
                        break
            if not found:
                repaired = map(self._repaired, np.random.default_rng(2).random((REPAIRED_DRAWS, d)))
                found = [at for at in repaired if at is not None]
        return np.array(found).reshape(len(found), d)

    def nearest(self, at: Floats) -> dict[str, Value]:
        """Return the valid configuration nearest to a place; UsageError where none is known."""
        at = np.clip(np.nan_to_num(at), 0.0, 1.0)
        near = None if self.exact else self._repaired(at)
        if near is not None:
            return self.space.decoded(self._approached(near, at))
        if not len(self.pool):
            why = f"no configuration satisfies them {self.description()}"
            raise UsageError("the constraints", why, "fewer constraints")
        best = self.pool[int(np.argmin(((self.pool - at) ** 2).sum(axis=1)))]
        return self.space.decoded(best if self.exact else self._approached(best, at))

    def _approached(self, start: Floats, at: Floats) -> Floats:
        """Move a valid place towards another as far as it stays valid: along the line, then knob by knob."""
        here = self._bisected(start, at)
        for axis in range(len(at)):
            goal = here.copy()
            goal[axis] = at[axis]
            here = self._bisected(here, goal)
        return here

    def _bisected(self, valid: Floats, goal: Floats) -> Floats:
        """Return the valid place nearest to the goal on the line from a valid place, by bisection."""
        if self._valid(goal):
            return goal
        good, bad = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (good + bad) / 2
            if self._valid(valid + middle * (goal - valid)):
                good = middle
            else:
                bad = middle
        return valid + good * (goal - valid)

    def _repaired(self, at: Floats) -> Floats | None:
        """Return a valid place near another one, by ever smaller steps along single knobs down the constraints' distances.

        It finds what draws never satisfy, such as ``a + b == 100``; None where it ends in a local minimum.
        """
        here, distance, step = at, self._distance(at), 0.5
        for _ in range(MOST_MOVES):
            if not distance or step < MIN_REPAIR_STEP:
                break
            moves = np.clip(here + np.kron(np.eye(len(here)), [[-step], [step]]), 0.0, 1.0)  # each along one knob
            nearer, now = min(((moved, self._distance(moved)) for moved in moves), key=lambda pair: pair[1])
            if now < distance:
                here, distance = nearer, now
            else:
                step /= 2
        return None if distance else here

    def _distance(self, at: Floats) -> float:
        variables = {**self.space.machine, **self.space.decoded(at)}
        return sum(constraint.distance(variables) for constraint in self.space.constraints)

    def _valid(self, at: Floats) -> bool:
        return not self.space.broken(self.space.decoded(at))
