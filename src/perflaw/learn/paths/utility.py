"""How useful further observations would be (Brünink & Rosenblum, Algorithms 2 and 3)."""

from __future__ import annotations

from dataclasses import replace

from perflaw.learn.paths.common import Border, durations_of
from perflaw.learn.paths.histograms import quantile
from perflaw.learn.paths.looks import found_in, looks_at
from perflaw.learn.paths.options import MiningOptions
from perflaw.learn.paths.stable import Stable, matching, stable_borders
from perflaw.types import Observed

LAST = 10
"""Observations whose common borders the earlier ones are held against (Algorithm 3)."""


def utility(observed: Observed, stable: Stable, now_ns: int, options: MiningOptions | None = None) -> float:
    """min(1, (now − t_end) / (t_end − t_start)) of the stretch up to now in which all observations match, 0 … 1.

    It is 1 without observations, and where the newest shows other borders than the last ten have in common.
    """
    options = options or MiningOptions()
    looks = looks_at(observed, options.fewest)
    matches = stable.matches if len(looks) <= LAST else _held(observed, options)
    first = first_stable(matches)
    if first is None or len(matches) != len(looks):
        return 1.0
    start, end = looks[first].start_ns, looks[-1].end_ns
    return min(1.0, max(now_ns - end, 0) / (end - start)) if end > start else 1.0


def first_stable(matches: tuple[bool, ...]) -> int | None:
    """The earliest observation from which on all match; None where the newest does not (Algorithm 2).

    >>> first_stable((True, False, True, True)), first_stable((True, False)), first_stable((True, True))
    (2, None, 0)
    """
    first = None
    for place in reversed(range(len(matches))):
        if not matches[place]:
            break
        first = place
    return first


def _held(observed: Observed, options: MiningOptions) -> tuple[bool, ...]:
    """Whether each observation matches the borders that the last ten have in common."""
    looks = looks_at(observed, options.fewest)
    last = replace(observed, observations=tuple(one for look in looks[-LAST:] for one in look.observations))
    recent = stable_borders(last, options)
    durations = durations_of(observed)
    known = recent.platform_borders or {looks[-1].platform: recent.borders}
    borders = []
    for k, share in enumerate(recent.quantiles):
        # Where the last ones did not come from, the border lies at the same share of the calls.
        places = {
            platform: known[platform][k] if platform in known else float(quantile(h, share))
            for platform, h in durations.of.items()
        }
        borders.append(Border(places, share, LAST))
    return matching(borders, found_in(looks, observed, options), looks, durations, options)
