"""The metrics of an invocation: the catalogue, and plug-ins from entry points of the group ``perflaw.metrics``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perflaw.errors import UsageError
from perflaw.types import CPU, EVENTS, TIME, Metric
from perflaw.types.recordings import METRICS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "perflaw.metrics"
_NATIVE, _EITHER, _COMPILED = ("native",), ("native", "python"), ("hooks", "inject")
_TOGETHER: Final = {"memory": ("allocated_bytes", "allocated_blocks")}
"""Names on the command line that stand for several metrics."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class CatalogueMetric:
    """A metric that perflaw measures itself."""

    metric: Metric
    """Name and unit."""
    tracers: tuple[str, ...]
    """Names of the tracers that can measure it."""
    cost: str
    """What it is, and what measuring it costs."""


CATALOGUE: Final = {
    entry.metric.name: entry
    for entry in (
        CatalogueMetric(TIME, _EITHER, "wall time; always measured"),
        CatalogueMetric(CPU, _EITHER, "time on a CPU; free with the native tracer, costs half as much again otherwise"),
        CatalogueMetric(EVENTS, _EITHER, "recorded calls; always counted"),
        CatalogueMetric(METRICS["allocated_bytes"], _NATIVE, "bytes from Python's allocators; some ns each"),
        CatalogueMetric(METRICS["allocated_blocks"], _NATIVE, "blocks from them; measured with the bytes"),
        CatalogueMetric(METRICS["gc"], _NATIVE, "pauses of the garbage collector; two clock readings each"),
        CatalogueMetric(METRICS["lock_wait"], _NATIVE, "waiting for locks; two clock readings a contended lock"),
        CatalogueMetric(METRICS["lock_hold"], _COMPILED, "holding mutexes and rwlocks, in compiled programs"),
        CatalogueMetric(METRICS["switches"], _NATIVE, "context switches; a system call an event (0.2 µs)"),
        CatalogueMetric(METRICS["faults"], _NATIVE, "page faults; measured with the switches"),
    )
}
"""Every metric that perflaw measures itself, by name."""


@dataclass(frozen=True, slots=True)
class MetricPlugin:
    """A metric of another package: the object that an entry point of the group loads, under the entry point's name."""

    name: str
    """Name for ``--metric``."""
    unit: str
    """Unit of its values: ``ns``, ``bytes``, or what is counted."""
    library: str
    """Path of a shared object. It is loaded into the recorded program."""
    symbol: str
    """Its function ``int64_t symbol(void)``: a counter of the calling thread that never falls, read at every event."""

    def setting(self) -> str:
        """The setting for the tracer in the program; only the library's path may contain a colon."""
        return f"plugin:{self.name}:{self.unit}:{self.library}:{self.symbol}"


def metric_settings(options: Iterable[str], tracer: str) -> tuple[str, ...]:
    """The metrics of ``--metric`` options (``"cpu,memory"``, ``"gc"``) beside time and events, as the tracer reads them.

    UsageError if one is unknown, cannot be loaded, or cannot be measured by ``tracer``, the option of that name.
    """
    words = [word.strip() for text in options for word in text.split(",")]
    names = dict.fromkeys(name for word in words for name in _TOGETHER.get(word, (word,)))
    known = {*CATALOGUE, *_TOGETHER}
    plugins = {} if names.keys() <= known else {point.name: point for point in _plugins() if point.name not in known}
    settings = []
    for name in names:
        if name in (TIME.name, EVENTS.name):
            continue
        entry = CATALOGUE.get(name)
        if entry is None and name not in plugins:
            there = ", ".join((*CATALOGUE, *_TOGETHER, *sorted(plugins)))
            why = f"there are {there}"
            raise UsageError(f"--metric {name}: no such metric", why, "perflaw record --metric cpu -- …")
        if tracer == "python" and "python" not in (entry.tracers if entry else _NATIVE):
            able = ", ".join(name for name, entry in CATALOGUE.items() if "python" in entry.tracers)
            raise UsageError(f"--metric {name} with --tracer python", f"that tracer measures {able}", "--tracer native")
        settings.append(name if entry else _load(plugins[name]).setting())
    return tuple(settings)


def metric_names(settings: Iterable[str]) -> list[str]:
    """Names of the metrics in such settings."""
    return [setting.split(":")[1] if setting.startswith("plugin:") else setting for setting in settings]


def _plugins() -> Iterable[EntryPoint]:
    """The entry points of all installed packages, which takes some 20 ms to find out."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _load(point: EntryPoint) -> MetricPlugin:
    """The plug-in of an entry point; UsageError says what is wrong with it."""
    try:
        plugin = point.load()
    except Exception as error:  # foreign code may raise anything; the message is one line
        raise _refused(point, f"{type(error).__name__}: {error}") from error
    if not isinstance(plugin, MetricPlugin):
        raise _refused(point, f"{point.value} is a {type(plugin).__name__} and no MetricPlugin")
    if plugin.name != point.name or not _NAME.fullmatch(plugin.name):
        raise _refused(point, f"the metric calls itself {plugin.name!r}; letters, digits and _ are allowed")
    if ":" in plugin.unit or not _NAME.fullmatch(plugin.symbol) or "\n" in plugin.unit + plugin.library:
        raise _refused(point, f"unit {plugin.unit!r} or symbol {plugin.symbol!r} is not valid")
    if not Path(plugin.library).is_file():
        raise _refused(point, f"its library {plugin.library} is missing")
    return plugin


def _refused(point: EntryPoint, why: str) -> UsageError:
    package = point.dist.name if point.dist else point.value.split(":")[0]
    return UsageError(f"--metric {point.name}: its plug-in cannot be used", why, f"pip install --upgrade {package}")
