"""A law of two or more regimes that can be asked, and its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.asked import Columns
from perflaw.learn.laws.band import Band, Fitted
from perflaw.learn.laws.expression import number
from perflaw.learn.laws.naming import name
from perflaw.learn.laws.series import Array
from perflaw.types import Breakpoint


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Laws of one feature, each between two of its values; as :class:`~perflaw.learn.laws.asked.Asked`."""

    breakpoints: tuple[Breakpoint, ...]
    """Where regimes change, increasing."""
    segments: tuple[tuple[Fitted, ...], ...]
    """Every regime's law first, then those the data cannot tell from it there; one regime more than breakpoints."""

    @property
    def feature(self) -> str:
        """Feature that decides."""
        return self.breakpoints[0].feature

    @property
    def features(self) -> tuple[str, ...]:
        """Its feature."""
        return (self.feature,)

    def mean(self, at: Columns) -> Array:
        """Expected response at k points, (k,)."""
        x = at[self.feature]
        means = np.stack([laws[0].mean(x) for laws in self.segments])
        return np.asarray(np.take_along_axis(means, self._regime(x)[None], axis=0)[0])

    def band(self, at: Columns) -> Band:
        """Mean and limits at k points, (k,) each; near a breakpoint those of both its sides."""
        x = at[self.feature]
        regime = self._regime(x)
        bands = [_union(laws, x) for laws in self.segments]
        mean, *limits = (
            np.take_along_axis(np.stack(column), regime[None], axis=0)[0] for column in zip(*bands, strict=True)
        )
        for i, breakpoint_ in enumerate(self.breakpoints):
            near = (x >= breakpoint_.low) & (x <= breakpoint_.high)
            for side in (bands[i], bands[i + 1]):
                for place, widen in enumerate((np.minimum, np.maximum) * 2):
                    limits[place] = np.where(near, widen(limits[place], side[place + 1]), limits[place])
        return mean, limits[0], limits[1], limits[2], limits[3]

    def _regime(self, x: Array) -> NDArray[np.intp]:
        return np.asarray(
            np.searchsorted(np.array([one.value for one in self.breakpoints]), x, side="left"), dtype=np.intp
        )


def _union(laws: Sequence[Fitted], x: Array) -> Band:
    """The first law's mean and the widest limits."""
    mean, low, high, new_low, new_high = laws[0].band(x)
    for law in laws[1:]:
        _, *other = law.band(x)
        low, high = np.minimum(low, other[0]), np.maximum(high, other[1])
        new_low, new_high = np.minimum(new_low, other[2]), np.maximum(new_high, other[3])
    return mean, low, high, new_low, new_high


def piecewise_text(breakpoints: Sequence[Breakpoint], means: Sequence[str]) -> str:
    """Mean expression: every regime's times whether it holds, which is 1 or 0.

    >>> piecewise_text([Breakpoint("n", 64.0, 60.0, 70.0)], ["3*n", "0.1*n^2"])
    '(n <= 64)*(3*n) + (n > 64)*(0.1*n^2)'
    """
    x, ends = name(breakpoints[0].feature), [number(one.value) for one in breakpoints]
    parts = []
    for i, mean in enumerate(means):
        above = [f"({x} > {ends[i - 1]})"] if i else []
        below = [f"({x} <= {ends[i]})"] if i < len(ends) else []
        parts.append("*".join([*above, *below, f"({mean})"]))
    return " + ".join(parts)
