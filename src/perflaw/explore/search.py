"""Valid configurations under constraints that random draws seldom meet: finding some, and the one nearest to a place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from perflaw.errors import UsageError
from perflaw.explore.expressions import Expression
from perflaw.types.studies import Configuration, Knob, Value

Floats = npt.NDArray[np.float64]
MOST_EXACT = 4096
"""Combinations up to which the nearest is found by looking at all."""
DRAWS = 20_000
"""Places tried until the space is taken to be empty."""
POOL = 256
"""Valid places that are kept to start from."""
REPAIRS = 24
"""Draws that are repaired where none was valid."""
MOVES = 150
"""Steps of a repair."""
LEAST_STEP = 1e-12
"""Of a repair, in the unit cube."""
HALVINGS = 30
"""Steps of a bisection between a valid and an invalid place."""


class Searched(Protocol):
    """What of a space is needed here."""

    knobs: tuple[Knob, ...]
    constraints: tuple[Expression, ...]
    machine: dict[str, Value]

    @property
    def product(self) -> int | None:
        """Combinations if there were no constraints; None with a float."""

    def all(self) -> list[dict[str, Value]]:
        """Every valid configuration of a small space."""

    def unit(self, configuration: Configuration) -> Floats:
        """Place of a configuration."""

    def decoded(self, at: Sequence[float] | Floats) -> dict[str, Value]:
        """Settings at a place."""

    def broken(self, configuration: Configuration) -> str:
        """The first constraint that does not hold."""


def _around(at: Floats, step: float) -> Iterator[Floats]:
    """Places one step away along one knob."""
    for axis in range(len(at)):
        for other in (at[axis] - step, at[axis] + step):
            moved = at.copy()
            moved[axis] = min(1.0, max(0.0, other))
            yield moved


class Search:
    """Finds valid configurations of a space; deterministic, bounded, and honest about which of the two it did."""

    def __init__(self, space: Searched) -> None:
        self.space = space

    @property
    def exact(self) -> bool:
        """Whether all combinations are looked at."""
        return self.space.product is not None and self.space.product <= MOST_EXACT

    @cached_property
    def pool(self) -> Floats:
        """Places of valid configurations, float64[n, d]: all of a small space, some of a large one, none of an empty one."""
        found = [self.space.unit(one) for one in self.space.all()] if self.exact else self._drawn() or self._repaired()
        return np.array(found).reshape(len(found), len(self.space.knobs))

    def nearest(self, at: Floats) -> dict[str, Value]:
        """The valid configuration nearest to a place; UsageError where none is known."""
        at = np.clip(np.nan_to_num(at), 0.0, 1.0)
        near = None if self.exact else self._descended(at)
        if near is not None:
            return self.space.decoded(self._towards(near, at))
        if not len(self.pool):
            raise UsageError("the constraints", f"no configuration satisfies them {self.words()}", "fewer constraints")
        best = self.pool[int(np.argmin(((self.pool - at) ** 2).sum(axis=1)))]
        return self.space.decoded(best if self.exact else self._towards(best, at))

    def words(self) -> str:
        """How an empty space was established."""
        if self.exact:
            return f"(all {self.space.product:,} combinations were tried)"
        return f"(searched, not proven: {DRAWS:,} draws and {REPAIRS} repairs)"

    def _repaired(self) -> list[Floats]:
        """What draws of a thin space can be moved to."""
        draws = np.random.default_rng(2).random((REPAIRS, len(self.space.knobs)))
        return [found for found in map(self._descended, draws) if found is not None]

    def _towards(self, start: Floats, at: Floats) -> Floats:
        """Move a valid place towards another, first along the line, then knob by knob, as far as it stays valid."""
        here = self._bisected(start, at)
        for axis in range(len(at)):
            goal = here.copy()
            goal[axis] = at[axis]
            here = self._bisected(here, goal)
        return here

    def _bisected(self, valid: Floats, goal: Floats) -> Floats:
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

    def _drawn(self) -> list[Floats]:
        found: list[Floats] = []
        for at in np.random.default_rng(1).random((DRAWS, len(self.space.knobs))):
            if self._valid(at):
                found.append(at)
                if len(found) == POOL:
                    break
        return found

    def _descended(self, at: Floats) -> Floats | None:
        """A valid place near another one: steps along single knobs, ever smaller, down the constraints' distances.

        Finds what draws never meet, such as ``a + b == 100``; None where it ends in a dead end.
        """
        here, far, step = at, self._far(at), 0.5
        for _ in range(MOVES):
            if not far or step < LEAST_STEP:
                break
            nearer, now = min(((one, self._far(one)) for one in _around(here, step)), key=lambda found: found[1])
            if now < far:
                here, far = nearer, now
            else:
                step /= 2
        return None if far else here

    def _far(self, at: Floats) -> float:
        variables = {**self.space.machine, **self.space.decoded(at)}
        return sum(constraint.distance(variables) for constraint in self.space.constraints)

    def _valid(self, at: Floats) -> bool:
        return not self.space.broken(self.space.decoded(at))
