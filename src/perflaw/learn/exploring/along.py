"""How a response goes along one knob: draws of its curve, from trials that differ in that knob alone or from a law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perflaw.learn.exploring.responses import kinds, levels_of
from perflaw.learn.exploring.spaces import Array, SpaceLike
from perflaw.learn.exploring.surrogate import Surrogate, fit_surrogate
from perflaw.types.studies import Configuration, Knob, Trial, Value

FEWEST = 8
"""Rows of the grid along the knob from which on these speak for themselves."""
DRAWS = 400
"""Draws from such rows."""
MOST_CONTEXTS = 12
EACH = 12


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """Trials, looked at along one knob."""

    rows: Sequence[Trial]
    """Trials that are data."""
    space: SpaceLike
    """Where they lie."""
    knob: Knob
    """The knob."""
    levels: Array
    """(L,) its levels."""
    seed: int
    """Of all draws."""

    def contexts(self) -> list[dict[str, Value]]:
        """Everything as it was tried, then each setting of each knob without order."""
        found: list[dict[str, Value]] = [{}]
        for knob in self.space.knobs:
            if knob.kind in ("categorical", "bool"):
                found += [{knob.name: option} for option in levels_of(self.space, knob)]
        return found


class Response:
    """A positive response (n,) of the trials."""

    def __init__(self, along: Along, values: Array) -> None:
        self._along, self._values = along, values

    @cached_property
    def _law(self) -> Surrogate:
        x = np.array([self._along.space.unit(one.configuration) for one in self._along.rows])
        return fit_surrogate(x, kinds(self._along.space), self._values, 1.0, self._along.seed)

    def curve(self, held: Configuration) -> Array:
        """Draws of the logarithm of the response along the knob, others held or as they were tried: (draws, L).

        Of a grid, or a good part of one, the mean over its rows and how unsure that is; a law smooths where it need not.
        """
        rng = np.random.default_rng([self._along.seed, len(self._along.rows)])
        whole = self._whole_rows(held)
        if len(whole) >= FEWEST:
            return np.asarray(whole[rng.integers(len(whole), size=(DRAWS, len(whole)))].mean(axis=1))
        return self._foreseen(held, rng)

    def _whole_rows(self, held: Configuration) -> Array:
        """(R, L) mean logarithms of configurations that were tried at every level of the knob."""
        along = self._along
        found: dict[str, dict[float, list[float]]] = {}
        for one, value in zip(along.rows, np.log(self._values), strict=True):
            if all(one.configuration.get(name) == setting for name, setting in held.items()):
                beside = sorted(
                    (name, str(setting)) for name, setting in one.configuration.items() if name != along.knob.name
                )
                level = float(one.configuration[along.knob.name])
                found.setdefault(str(beside), {}).setdefault(level, []).append(float(value))
        return np.array(
            [[np.mean(row[at]) for at in along.levels] for row in found.values() if len(row) == along.levels.size]
        )

    def _foreseen(self, held: Configuration, rng: np.random.Generator) -> Array:
        along, law = self._along, self._law
        some = np.sort(rng.permutation(len(along.rows))[:MOST_CONTEXTS])
        levels = levels_of(along.space, along.knob)
        contexts = [{**along.rows[i].configuration, **held} for i in some]
        at = np.array([along.space.unit({**one, along.knob.name: level}) for one in contexts for level in levels])
        drawn = law.joint(at, EACH, rng) * law.scale.spread + law.scale.centre
        return np.asarray(drawn.reshape(len(drawn), len(contexts), len(levels)).mean(axis=1))
