"""Soft real-time figures of a function (Kumar & Pande, §8.1)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """How often invocations take longer than a deadline (§8.1)."""

    deadline: float
    """The deadline, ns."""
    chebyshev: float
    """At most this part of invocations exceeds it, whatever the distribution: 1/t² at t = (deadline − mean)/σ."""
    observed: float
    """Part of the recorded invocations that exceeded it."""
    low: float
    """95 % interval of the probability."""
    high: float
    """Its upper end."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The deadline that a given part of invocations exceeds."""

    probability: float
    """P(time > deadline)."""
    chebyshev: float
    """Deadline that is exceeded with at most this probability, whatever the distribution: μ(1 + γ/√p)."""
    observed: float | None
    """The same as recorded; None where too few invocations say."""
    low: float | None
    """95 % interval by order statistics."""
    high: float | None
    """Its upper end; None where even the slowest does not bound it."""
