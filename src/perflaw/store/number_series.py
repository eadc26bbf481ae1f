"""Numbers a person brings along, as the learner wants them: one series of responses and features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class NumberSeries:
    """Rows of one series: finite numbers only."""

    name: str | None
    """Value of the column that tells series apart, or the benchmark; None where there is none."""
    response: NDArray[np.float64]
    """Responses, (n,)."""
    features: dict[str, NDArray[np.float64]]
    """Features by name, (n,) each."""
    runs: NDArray[np.str_] | None
    """Run labels, (n,)."""
    dropped: int
    """Rows left out because a cell was no finite number."""
    unit: str = ""
    """Unit of the responses where the file says it: ns, bytes; empty where it does not."""
