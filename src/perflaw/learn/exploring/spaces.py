"""What learning needs of a space of configurations; ``explore.space.Space`` is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from perflaw.types.studies import Configuration, Knob, Value

Array = NDArray[np.float64]
"""Floating point array; shapes are said where one is used."""


class SpaceLike(Protocol):
    """Configurations that may be tried."""

    @property
    def knobs(self) -> Sequence[Knob]:
        """Its knobs, in the study's order."""

    @property
    def size(self) -> int | None:
        """How many configurations there are; None where they cannot be counted."""

    def valid(self, conf: Configuration) -> str:
        """Say why a configuration is not allowed; empty where it is."""

    def unit(self, conf: Configuration) -> Array:
        """Place of a configuration in the unit cube, (d,)."""

    def grid(self, levels: int) -> Sequence[Configuration]:
        """Every allowed combination of at most so many levels a knob."""

    def sample(self, rng: np.random.Generator) -> Configuration:
        """Draw an allowed configuration."""

    def levels(self, knob: Knob, most: int = 8) -> Sequence[Value]:
        """Return settings of a knob that stand for its range, increasing."""

    def key(self, conf: Configuration) -> str:
        """Name of a configuration: equal ones have the same."""

    def columns(self, confs: Sequence[Configuration]) -> Mapping[str, Array]:
        """Features of configurations for laws, (n,) each; categorical knobs are columns ``knob=value`` of 0 and 1."""
