"""Durations that recording itself has made longer make no claims (§4, RQ5; specs/mining.md, "Nesting")."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perflaw.learn.paths.histograms import merged, quantile, total
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import Observation, Observed


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What can be used."""

    observed: Observed
    """The same with the perturbed observations left out."""
    notes: tuple[str, ...] = ()
    """What was left out and what to do."""


def undisturbed(observed: Observed, options: MiningOptions) -> Undisturbed:
    """Observations in which probes of nested calls take at most that part of the median duration."""
    kept = tuple(one for one in observed.observations if not _perturbed(one, observed.probe_ns, options.perturbed))
    left = len(observed.observations) - len(kept)
    if left == 0:
        return Undisturbed(observed)
    return Undisturbed(
        replace(observed, observations=kept),
        (
            f"perturbed: in {left} of {len(observed.observations)} observations the probes of calls within take more than "
            f"{options.perturbed:.0%} of the median duration; these are left out: "
            f"record it alone, `perflaw record --collect paths --select {observed.component} -- …`",
        ),
    )


def _perturbed(one: Observation, probe_ns: float, most: float) -> bool:
    """Whether probes take too much of the usual duration."""
    durations = merged(list(one.paths.values()))
    calls = total(durations)
    if calls == 0 or one.nested == 0 or probe_ns <= 0:
        return False
    return one.nested * probe_ns / calls > most * float(quantile(durations, 0.5))
