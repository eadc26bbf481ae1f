"""Verdicts: laws held against new evidence and against each other, and forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from perflaw.types.documents import CALLABLE, MEASURED, NAMED
from perflaw.types.recordings import Component, Metric

Outcome = Literal["holds", "violated", "inconclusive", "out of scope"]
"""What new evidence says of a law."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What the verdicts have in common."""

    component: Component = field(metadata=CALLABLE)
    """The function, or another part of the program; file empty where the new recordings do not have it."""
    metric: Metric = field(metadata=MEASURED)
    """What was measured."""
    path: str
    """What of the component it is about: the condition of a scope, or calls; empty for the whole component."""
    verdict: Outcome
    """What the recordings say."""
    p: float | None
    """Probability of such a deviation or a larger one if nothing relevant changed; null without a test or evidence."""
    effect: float | None
    """How far the new cost is from the expected one, as the class says; null where nothing was compared."""
    effect_low: float | None
    """Lower end of its confidence interval."""
    effect_high: float | None
    """Upper end of its confidence interval."""


@dataclass(frozen=True, slots=True)
class CheckVerdict(_Verdict):
    """A law held against new recordings; the effect is the cost over what the law says, ``p`` holds at any time of looking."""

    e_value: float | None = None
    """Evidence against the law: at most 1 on average while it holds."""
    since: str = ""
    """From which size on it is violated, such as ``docs.len = 500``; empty for everywhere."""
    runs: int = 0
    """New runs compared."""
    runs_beyond: int = 0
    """Those of them beyond the minimum effect, on the side of the verdict."""
    records: int = 0
    """Records of invocations compared."""
    outside: float = 0.0
    """Share of the invocations outside the law's scope: inputs it was not learnt from, or none of its conditions true."""
    message: str = ""
    """Why, in words; what to do where it is inconclusive or out of scope."""
    changed: Literal["", "calls", "unit cost"] = ""
    """What of the program's cost changed: how often it is called, or its own cost of a call; empty for neither."""
    caller: str = ""
    """Function that calls it more or less often; empty where the change is not in the calls."""
    cause: str = ""
    """What changed in words, with its place on the call path."""


@dataclass(frozen=True, slots=True)
class SpecVerdict(_Verdict):
    """One group of call paths of a specification held against new recordings.

    ``path`` is a call edge ``"caller -> callee"`` or an expression over edges. Where there is a border, the effect is the share
    of the calls slower than it, now minus what the specification says: -1 to 1. Where there is a quantile, it is that of the
    durations over the specified one, after the speed of the machine. ``p`` holds at any time of looking.
    """

    e_value: float | None = None
    """Evidence against the shares: at most 1 on average while they hold."""
    group: str = ""
    """Id of the group; empty for the whole function."""
    border: float | None = None
    """Where quick and slow calls part in the new recordings, ns."""
    expected: float | None = None
    """What the specification says: share of the calls slower than the border, or the quantile in ns."""
    quantile: float | None = None
    """Share of the calls that take at most the duration compared; null where shares are."""
    machine: float | None = None
    """How many times slower the machine was as a whole in the new runs; null where shares are compared."""
    runs: int = 0
    """New runs compared."""
    calls: int = 0
    """New calls compared."""
    worth: float = 0.0
    """Independent calls that they are worth."""
    outside: float = 0.0
    """Share of the function's new calls by call paths that belong to no group."""
    more_runs: int | None = None
    """Further runs like the new ones that would settle it; null where it is settled, or where 20 would not do."""
    more_mined_runs: int | None = None
    """Further runs to mine from that this takes besides."""
    follows: str = ""
    """Function among those it calls whose violation explains this deviation."""
    message: str = ""
    """Why, in words; what to do where it is inconclusive or out of scope."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs between two annotations of a component."""

    what: Literal[
        "family",
        "coefficient",
        "slope",
        "feature",
        "scope",
        "noise",
        "cost",
        "border",
        "edge",
        "group",
        "shares",
        "times",
    ]
    """What differs; the last five of specifications."""
    name: str
    """Of which term, feature or scope."""
    old: str
    """How it was."""
    new: str
    """How it is."""
    ratio: float | None = None
    """New over old, where both are numbers."""
    low: float | None = None
    """Lower end of the ratio's confidence interval, null where the laws give none."""
    high: float | None = None
    """Upper end of it."""


@dataclass(frozen=True, slots=True)
class Stated:
    """One law of a component as its text states it: what a chart draws of it."""

    condition: str
    """Where it holds, in the annotation language; empty for everywhere."""
    probability: float
    """Share of the invocations there that follow it."""
    expression: str
    """Its distribution in the annotation language."""
    factor: float = 1.0
    """Units of the metric in one unit of the text: 1000 where it says ``[us]``."""


@dataclass(frozen=True, slots=True)
class DiffVerdict(_Verdict):
    """What changed of a component between two sets of laws or recordings; the effect is new cost over old at the data's sizes.

    ``violated``: worse beyond the minimum effect; ``holds``: not worse; ``out of scope``: only on one side. ``path`` is empty,
    of specifications the condition of a group of call paths.
    """

    changes: tuple[Change, ...] = ()
    """What differs, the most telling first; empty where nothing does."""
    better: bool = False
    """Cheaper beyond the minimum effect."""
    message: str = ""
    """The change in words."""
    old_laws: tuple[Stated, ...] = ()
    """The component's laws before; empty where there were none."""
    new_laws: tuple[Stated, ...] = ()
    """Its laws now."""
    changed: Literal["", "calls", "unit cost"] = ""
    """What of the program's cost changed: how often it is called, or its own cost of a call; empty for neither."""
    caller: str = ""
    """Function that calls it more or less often; empty where the change is not in the calls."""
    cause: str = ""
    """What changed in words, with its place on the call path."""


NOT_ASKED: Final = "not asked"
"""How the message of a function begins whose law needs features that the point does not name."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a law says of a component's cost at a point a person asks for."""

    component: Component = field(metadata=NAMED)
    """The part of the program."""
    metric: Metric = field(metadata=MEASURED)
    """What it costs."""
    of: Literal["run", "call"]
    """Cost of all its calls in a run of that workload, or of one call with such inputs."""
    features: Mapping[str, float]
    """The point."""
    mean: float | None
    """Expected cost; null where the law refuses."""
    mean_low: float | None
    """Lower end of the confidence interval for the mean; null for text alone, which has none."""
    mean_high: float | None
    """Upper end of it."""
    new_low: float | None
    """Lower end of the confidence interval for one new run or call."""
    new_high: float | None
    """Upper end of it."""
    condition: str
    """Scope of the law that answers; empty for everywhere."""
    inside: bool
    """The point is within what the law was learnt from."""
    message: str
    """Why there is no answer, or what to make of it."""
