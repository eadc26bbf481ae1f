"""Execution counts: how often each place of a program was executed, in one run and over many.

Recorders make them and trends are learnt from them; the laws of trends are in another module, for recording needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Location:
    """A place of a program whose executions are counted (Goldsmith et al., FSE'07, §2.2)."""

    kind: str
    """``line``, ``block``, ``function``, ``edge`` (caller to callee), or ``column`` of a CSV file."""
    name: str
    """What a person calls it: ``app.py:12``, ``app.py:12 taken``, ``pkg.f``, ``pkg.f -> pkg.g``, a column's name."""
    file: str = ""
    """Source file, as that of components; empty for columns."""
    line: int = 0
    """Its line there, 0 where there is none."""
    function: str = ""
    """Name of the component it lies in; empty where it lies in none."""
    language: str = ""
    """``python``, ``c``, ``c++``; empty for columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What was counted in one run."""

    locations: tuple[Location, ...]
    """The places, those that were never executed among them where they are known."""
    counts: NDArray[np.int64]
    """(L,) how often each was executed."""


@dataclass(frozen=True, slots=True, eq=False)
class CountMatrix:
    """The counts of many runs side by side."""

    locations: tuple[Location, ...]
    """The places; their names are unique."""
    counts: NDArray[np.float64]
    """(L, R) how often each was executed in each run; 0 where the run did not know it."""
    features: Mapping[str, NDArray[np.float64]]
    """Feature → (R,) its value in each run, NaN where the run does not say it."""
    runs: tuple[str, ...]
    """(R,) names of the runs."""
