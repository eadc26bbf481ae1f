"""Whether the latest durations of a function still are those that are known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from perflaw.learn.paths.durations import clusters, merged, quantile, total
from perflaw.types import Histogram, Observed

FEWEST_CALLS: Final = 200
"""Calls below which nothing is said."""
MOVED_SHARE: Final = 0.15
"""Part of the calls that are of another kind than before: three times what distinguishes groups of call paths."""
MOVED_FACTOR: Final = 2.0
"""Factor between medians: less may be the machine."""


def has_changed(known: Sequence[Observed], borders: Sequence[float], newest: Observed) -> bool:
    """Whether the shares of the kinds of calls that the borders separate have moved; without borders, the median."""
    before, after = _durations(known), _durations([newest])
    if min(total(before), total(after)) < FEWEST_CALLS:
        return False
    if borders:
        shares = [clusters(each, borders) / total(each) for each in (before, after)]
        return float(np.abs(shares[0] - shares[1]).sum()) / 2 >= MOVED_SHARE
    medians = [max(float(quantile(each, 0.5)), 1.0) for each in (before, after)]
    return max(medians) >= MOVED_FACTOR * min(medians)


def _durations(several: Sequence[Observed]) -> Histogram:
    """The durations of all calls."""
    return merged([one for each in several for item in each.observations for one in item.paths.values()])
