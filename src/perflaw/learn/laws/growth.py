"""How much growth the data leave open where a constant is the law: without that, "no dependence" is no finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.candidates import MODELS, Candidates
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Options
from perflaw.learn.laws.verdict import RELEVANT_GROWTH

FACTOR = 2.0
"""A feature that varied by less cannot make a constant doubtful where others varied more."""

Cell = tuple[int, int]
"""Series and feature."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Local exponents that one series allows; 0 is always among them."""

    low: Mapping[str, float]
    """Lower limits by feature."""
    high: Mapping[str, float]
    """Upper limits by feature."""
    widest: tuple[float, float]
    """The widest limits over the features that varied well."""

    @property
    def doubtful(self) -> bool:
        """A relevant growth is among them."""
        return max(self.widest[1], -self.widest[0]) >= RELEVANT_GROWTH


def allowed_growth(found: Candidates, members: list[int], options: Options) -> dict[int, Growth]:
    """Growth that the data of some series allow, from the power law where it can be fitted, else from the line."""
    limits: dict[Cell, tuple[float, float]] = {}
    for m in _slopes_from():
        cells = [cell for cell in _cells(found, members, m) if cell not in limits]
        if cells:
            places = np.array(cells)
            _, low, high = found.fitted(places[:, 0], places[:, 1], m, options.confidence).slope()
            limits.update(zip(cells, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    return {b: _growth(found.rows[b], b, limits) for b in members}


def _slopes_from() -> Iterator[int]:
    """Models to take exponents from, the best first."""
    for name, intercept in (("power", False), ("linear", True)):
        yield from (m for m, k in enumerate(MODELS) if k.term.name == name and k.intercept == intercept)


def _cells(found: Candidates, members: list[int], m: int) -> Iterator[Cell]:
    """Series and features that a model could be fitted to."""
    fine = np.isfinite(found.fits[m].deviance).reshape(-1, found.features)
    varied = [b for b in members if np.ptp(found.rows[b].y) > 0]
    yield from ((b, f) for b in varied for f in range(len(found.rows[b].names)) if fine[b, f])


def _growth(row: Rows, b: int, limits: Mapping[Cell, tuple[float, float]]) -> Growth:
    ends = {name: limits.get((b, f), (0.0, 0.0)) for f, name in enumerate(row.names)}
    low = {name: min(end[0], 0.0) for name, end in ends.items()}
    high = {name: max(end[1], 0.0) for name, end in ends.items()}
    wide = _well_varied(row)
    widest = min((low[name] for name in wide), default=0.0), max((high[name] for name in wide), default=0.0)
    return Growth(low, high, widest)


def _well_varied(row: Rows) -> list[str]:
    """Features that varied by a factor of 2 at least, else all."""
    ends = {name: (float(x.min()), float(x.max())) for name, x in row.series.features.items()}
    return [name for name, (low, high) in ends.items() if high >= FACTOR * low and high > low] or list(ends)
