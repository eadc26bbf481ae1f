"""What can be measured of an invocation: the catalogue of metrics, and plug-ins by entry point ``perflaw.metrics``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError, UsageError
from perflaw.types import CPU, EVENTS, TIME, Metric
from perflaw.types.recordings import METRICS

GROUP = "perflaw.metrics"
_NATIVE, _EITHER = ("native",), ("native", "python")
_TOGETHER = {"memory": ("allocated_bytes", "allocated_blocks")}
"""Names on the command line that stand for several metrics."""
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of the catalogue."""

    metric: Metric
    """Its name and unit."""
    tracers: tuple[str, ...]
    """Names of the tracers that can measure it."""
    cost: str
    """What it is, and what measuring it costs."""


CATALOGUE = {
    one.metric.name: one
    for one in (
        Measure(TIME, _EITHER, "wall time; always measured"),
        Measure(CPU, _EITHER, "time on a CPU; free with the native tracer, half as dear again with the other"),
        Measure(EVENTS, _EITHER, "recorded calls; always counted"),
        Measure(METRICS["allocated_bytes"], _NATIVE, "bytes asked of Python's allocators; some ns each"),
        Measure(METRICS["allocated_blocks"], _NATIVE, "blocks asked of them; comes with the bytes"),
        Measure(METRICS["gc"], _NATIVE, "pauses of the garbage collector; two clock readings a collection"),
        Measure(METRICS["lock_wait"], _NATIVE, "waiting for locks; two clock readings a contended lock"),
        Measure(METRICS["switches"], _NATIVE, "context switches; a system call an event (0.2 µs)"),
        Measure(METRICS["faults"], _NATIVE, "page faults; comes with the switches"),
    )
}
"""Every metric that perflaw measures itself, by name."""


@dataclass(frozen=True, slots=True)
class MetricPlugin:
    """A metric of one's own: what an entry point of the group ``perflaw.metrics`` loads. Its name is the entry point's."""

    name: str
    """Name for ``--metric``."""
    unit: str
    """Unit of its values: ``ns``, ``bytes``, or what is counted."""
    library: str
    """Path of a shared object. It is loaded into the recorded program."""
    symbol: str
    """Its function ``int64_t symbol(void)``: a counter of the calling thread that never falls, read at every event."""

    def setting(self) -> str:
        """What the tracer in the target is told; only the library's path may contain a colon."""
        return f"plugin:{self.name}:{self.unit}:{self.library}:{self.symbol}"


def settings_of(asked: Iterable[str], wish: str) -> tuple[str, ...]:
    """The metrics asked for (``"cpu,memory"``, ``"gc"``) beside time and events, as the tracer in the target reads them.

    UsageError where one is unknown, cannot be loaded, or not be measured by the tracer wished for by name.
    """
    words = [word.strip() for text in asked for word in text.split(",")]
    names = dict.fromkeys(name for word in words for name in _TOGETHER.get(word, (word,)))
    return tuple(_setting(name, wish) for name in names if name not in (TIME.name, EVENTS.name))


def names_of(settings: Iterable[str]) -> list[str]:
    """Names of the metrics that such settings ask for."""
    return [setting.split(":")[1] if setting.startswith("plugin:") else setting for setting in settings]


def _setting(name: str, wish: str) -> str:
    measure, plugins = CATALOGUE.get(name), _plugins()
    if measure is None and name not in plugins:
        known = ", ".join((*CATALOGUE, *_TOGETHER, *sorted(plugins)))
        raise UsageError(f"--metric {name}: no such metric", f"there are {known}", "perflaw record --metric cpu -- …")
    if wish == "python" and "python" not in (measure.tracers if measure else _NATIVE):
        able = ", ".join(one.metric.name for one in CATALOGUE.values() if "python" in one.tracers)
        raise UsageError(f"--metric {name} with --tracer python", f"that tracer measures {able}", "--tracer native")
    return name if measure else _load(plugins[name]).setting()


def _plugins() -> dict[str, EntryPoint]:
    """Entry points of metrics by name; none is loaded. Names of the catalogue are not theirs to take."""
    return {one.name: one for one in entry_points(group=GROUP) if one.name not in {*CATALOGUE, *_TOGETHER}}


def _load(point: EntryPoint) -> MetricPlugin:
    """The plug-in of an entry point; UsageError says what is wrong with it."""
    try:
        found = point.load()
    except Exception as error:  # it is foreign code: whatever it raises, the message is one line
        raise _refused(point, f"{type(error).__name__}: {error}") from error
    if not isinstance(found, MetricPlugin):
        raise _refused(point, f"{point.value} is a {type(found).__name__} and no MetricPlugin")
    if found.name != point.name or not _NAME.fullmatch(found.name):
        raise _refused(point, f"the metric calls itself {found.name!r}; letters, digits and _ are fine")
    if ":" in found.unit or not _NAME.fullmatch(found.symbol) or "\n" in found.unit + found.library:
        raise _refused(point, f"unit {found.unit!r} or symbol {found.symbol!r} is none")
    if not Path(found.library).is_file():
        raise _refused(point, f"its library {found.library} is missing")
    return found


def _refused(point: EntryPoint, why: str) -> UsageError:
    package = point.dist.name if point.dist else point.value.split(":")[0]
    return UsageError(f"--metric {point.name}: its plug-in cannot be used", why, f"pip install --upgrade {package}")


# ---- What a recording collects beside costs: calls always, the outcomes of branches where they are asked for.

CALLS: Final = "calls"
BRANCHES: Final = "branches"
LINES: Final = "lines"
PATHS: Final = "paths"
PROBES: Final = "probes"
KNOWN: Final = {
    CALLS: "every call of a recorded function; always collected",
    BRANCHES: "which way each branch went, and how often, in the sampled invocations; native tracer only",
    LINES: "how often each line was executed, exactly; of Python programs by the native tracer only",
    PATHS: "how long the calls of a function took, by call path, for perflaw mine",
    PROBES: "records of the probes that the program has (perflaw.h, perflaw.probes)",
}
"""Words of ``--collect`` and what they mean."""
_NEEDS: Final = {BRANCHES: "sees which way a branch goes", LINES: "counts lines"}
"""What a tracer of Python programs must be able to."""
_ABLE: Final = ("auto", "native")


def collected(asked: Iterable[str], wish: str) -> tuple[str, ...]:
    """What is asked for (``"calls,branches"``) beside calls, in the order of ``KNOWN``.

    UsageError where a word is unknown, or the tracer wished for by name cannot collect it.
    """
    words = {word.strip() for text in asked for word in text.split(",")}
    if unknown := sorted(words - KNOWN.keys()):
        known = f"there are {', '.join(list(KNOWN)[:-1])} and {list(KNOWN)[-1]}"
        raise UsageError(
            f"--collect {unknown[0]}: nothing of that name", known, "perflaw record --collect branches -- …"
        )
    for word in sorted(_NEEDS.keys() & words):
        if wish not in _ABLE:
            why = f"only the native tracer {_NEEDS[word]}"
            raise UsageError(f"--collect {word} with --tracer {wish}", why, f"perflaw record --collect {word} -- …")
    return tuple(word for word in KNOWN if word in words - {CALLS})


def require(asked: tuple[str, ...], tracer: str, reason: str) -> None:
    """TargetError where the tracer that ``auto`` came to cannot collect what is asked for."""
    for word in sorted(_NEEDS.keys() & set(asked)):
        if tracer not in _ABLE:
            why = f"only the native tracer {_NEEDS[word]}, and it is not there: {reason}"
            raise TargetError(f"--collect {word}: cannot be collected", why, "perflaw doctor")


def require_no_paths(asked: tuple[str, ...]) -> None:
    """TargetError where durations by call path are asked for of a compiled program that counts its lines."""
    if PATHS in asked:
        why = "a compiled program counts lines by itself and tells of no call; paths need hooks, in a recording of their own"
        raise TargetError(f"--collect {LINES},{PATHS}: not both at once", why, f"perflaw record --collect {PATHS} -- …")
