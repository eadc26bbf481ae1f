"""What to record of a program: which functions, which metrics, and which kinds of data (``--collect``)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perflaw.errors import TargetError, UsageError
from perflaw.record.compiled.gcov_files import BuildPlaces
from perflaw.record.plan import OutputPattern

if TYPE_CHECKING:
    from perflaw.record.probes.client import Remote

DEFAULT_BUDGET: Final = 2.0
CALLS: Final = "calls"
BRANCHES: Final = "branches"
LINES: Final = "lines"
PATHS: Final = "paths"
PROBES: Final = "probes"
COLLECTABLE: Final = {
    CALLS: "every call of a recorded function; always collected",
    BRANCHES: "which way each branch went, and how often, in the sampled invocations; not by --tracer python",
    LINES: "how often each line was executed, exactly; of Python programs by the native tracer only",
    PATHS: "how long the calls of a function took, by call path, for perflaw mine",
    PROBES: "records of the probes that the program has (perflaw.h, perflaw.probes)",
}
"""Words of ``--collect`` and their meanings."""
_ABILITIES: Final = {BRANCHES: "sees which way a branch goes", LINES: "counts lines"}
"""Words of ``--collect`` that only the native tracer of Python programs can do."""
_ABLE: Final = ("auto", "native")


def collected(options: Iterable[str], tracer: str) -> tuple[str, ...]:
    """The words of ``--collect`` options (``"calls,branches"``) beside calls, in the order of ``COLLECTABLE``.

    UsageError if a word is unknown, or ``tracer``, the option of that name, cannot collect it.
    """
    words = {word.strip() for text in options for word in text.split(",")}
    if unknown := sorted(words - COLLECTABLE.keys()):
        known = f"there are {', '.join(list(COLLECTABLE)[:-1])} and {list(COLLECTABLE)[-1]}"
        raise UsageError(f"--collect {unknown[0]}: unknown", known, "perflaw record --collect branches -- …")
    for word in sorted(_ABILITIES.keys() & words):
        if tracer not in _ABLE:
            why = f"only the native tracer {_ABILITIES[word]}"
            raise UsageError(f"--collect {word} with --tracer {tracer}", why, f"perflaw record --collect {word} -- …")
    return tuple(word for word in COLLECTABLE if word in words - {CALLS})


def require_collectable(words: tuple[str, ...], tracer: str, reason: str) -> None:
    """TargetError if the tracer that was chosen automatically cannot collect one of the words."""
    for word in sorted(_ABILITIES.keys() & set(words)):
        if tracer not in _ABLE:
            why = f"only the native tracer {_ABILITIES[word]}, and it is not available: {reason}"
            raise TargetError(f"--collect {word}: cannot be collected", why, "perflaw doctor")


@dataclass(frozen=True, slots=True)
class RecordSettings:
    """What to record of a program, for all runs of a session."""

    select: tuple[str, ...] = ()
    """Globs of components to record; empty: the default choice."""
    exclude: tuple[str, ...] = ()
    """Globs of components never to record."""
    metrics: tuple[str, ...] = ()
    """Metrics to measure beside the usual ones (see :func:`~perflaw.record.metrics.metric_settings`)."""
    clock: str = "real"
    """``real``; or ``fake``, a clock that the program itself advances."""
    collect: tuple[str, ...] = ()
    """Words of ``--collect`` beside calls."""
    paths: tuple[str, ...] = ()
    """Globs of functions whose durations by call path are kept, hot or not."""
    only_paths: bool = False
    """Whether they are kept of no other functions."""
    probes: tuple[str, ...] = ()
    """Names or ids of the probes to enable, where probes are collected; empty: all."""
    remotes: tuple[Remote, ...] = ()
    """Collectors on other hosts whose probe records belong to the run."""
    places: BuildPlaces = field(default_factory=BuildPlaces)
    """Present places of the files of a compiled program's build."""
    keep_output: bool = False
    """Whether to keep the program's output."""
    outputs: tuple[OutputPattern, ...] = ()
    """Features to be read from the program's output, which is then kept."""
    per: str = ""
    """Name of the function of which each invocation is an observation, or its end after a dot; empty: none."""
    keeps_arguments: bool = True
    """Whether the manifest has the program's arguments, secrets masked, and the features of them."""
    native: str = "auto"
    """How a compiled program is recorded: ``auto``, ``hooks``, ``inject``, ``gcov`` or ``frida``."""
    budget: float = DEFAULT_BUDGET
    """How many times as long as without a tracer the program may take; beyond it few calls of tiny functions are timed."""
    own: tuple[str, ...] | None = None
    """Packages to record beside the program's own functions, and no other library; None: libraries are recorded."""

    def described(self) -> dict[str, str]:
        """The settings for the manifest: only those that differ from the default."""
        chosen = {
            "select": " ".join(self.select),
            "exclude": " ".join(self.exclude),
            "own": "" if self.own is None else ",".join(self.own) or "only",
            "metrics": " ".join(self.metrics),
            "collect": " ".join(self.collect),
            "paths": " ".join(self.paths),
            "per": self.per,
            "probes": " ".join(self.probes),
            "remote": " ".join(str(remote.address) for remote in self.remotes),
            "budget": f"{self.budget:g}x" if self.budget != DEFAULT_BUDGET else "",
            "arguments": "" if self.keeps_arguments else "not kept",
            "native": self.native if self.native != "auto" else "",
            "clock": self.clock if self.clock != "real" else "",
        }
        return {name: value for name, value in chosen.items() if value}

    def for_tracer(self, spool: Path, seed: int) -> dict[str, str]:
        """The settings for the tracer in the program."""
        lists = {"SELECT": self.select, "EXCLUDE": self.exclude, "METRICS": self.metrics, "COLLECT": self.collect}
        chosen = {name: "\n".join(values) for name, values in lists.items() if values}
        if self.own is not None:
            chosen |= {"OWN": ",".join(self.own), "ONLY_OWN": "1"}
        own = {"SPOOL": str(spool.resolve()), "CLOCK": self.clock, "PER": self.per, "BUDGET": f"{self.budget:g}"}
        return {**own, "SEED": str(seed), "RECORDER": str(os.getpid()), **chosen}
