"""What goes between deciding what to measure and measuring it: requests one way, measurements the other.

A request names functions and never carries code. A measurement holds what the paper calls observations (Definition 2):
start, end, kind and data, with the host, the build, the step of the clock and the number of nested probes. Both have a JSON
form of one line, which is a journal's entry on one machine and a message between several.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

import numpy as np

from perflaw.documents import DocumentNode, DocumentSource, json_document
from perflaw.errors import DataError
from perflaw.types import Batches, Histogram, Observation, Observed, Platform
from perflaw.types.documents import dumps_short
from perflaw.types.specifications import LEVELS, MOST_BUCKETS, MOST_SCALE, CallPath

Kind = Literal["samples", "durations", "paths"]
"""What is measured: which functions the program is in, how long functions take, or how long they take by call path."""
KINDS: Final[tuple[Kind, ...]] = ("samples", "durations", "paths")


@dataclass(frozen=True, slots=True)
class Request:
    """One measurement that is wanted."""

    number: int
    """Number of the request; the measurement repeats it, so that one which arrives twice counts once."""
    kind: Kind
    """What to measure."""
    functions: tuple[str, ...] = ()
    """Functions whose durations are kept; empty for samples."""
    callers: tuple[str, ...] = ()
    """Functions that are recorded besides, because they may lie on the call paths; of their durations nothing is kept."""
    seconds: float = 1.0
    """For how long."""
    sampling: float = 1.0
    """Sampling factor: the part of that time for which probes are in. A budget lowers it further where it has to."""

    def to_json(self) -> str:
        """The request in one line."""
        return dumps_short(self)

    @classmethod
    def from_json(cls, text: str, source: str) -> Request:
        """The request of a line; DataError, which names the source, if it is none."""
        parts = _document(text, source).mapping(required=cls.__dataclass_fields__)
        return cls(
            parts["number"].whole(),
            _kind(parts["kind"]),
            _texts(parts["functions"]),
            _texts(parts["callers"]),
            parts["seconds"].number(0.0),
            parts["sampling"].number(0.0, 1.0),
        )


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """What a measurement cost the program."""

    calls: int = 0
    """Calls that were recorded."""
    call_ns: float = 0.0
    """Calibrated cost of recording one."""
    cpu_ns: int = 0
    """CPU time of the program while the probes were in."""
    stopped_ms: float = 0.0
    """How long threads of it were stopped."""

    @property
    def share(self) -> float:
        """Part of the program's CPU time that recording took; 0 where nothing is known."""
        return min(self.calls * self.call_ns / self.cpu_ns, 1.0) if self.cpu_ns else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """What one request gave."""

    request: int
    """Number of the request."""
    kind: Kind
    """What was measured."""
    start_ns: int
    """When it began, ns since 1970."""
    end_ns: int
    """When it ended."""
    sampling: float = 1.0
    """Sampling factor: the part of the time asked for in which probes were in."""
    stacks: Mapping[CallPath, int] = field(default_factory=dict)
    """Call path → samples that found the program there, of the kind "samples"."""
    observed: tuple[Observed, ...] = ()
    """What was observed of each function, of the other kinds; with host, build and step of the clock."""
    cost: ProbeCost = ProbeCost()
    """What it cost the program."""
    run: str = ""
    """Recording that holds the same, where it was measured; empty if nothing was recorded."""
    idle: tuple[str, ...] = ()
    """Functions whose durations contain waits in which nobody asks the program for anything, as samples have found so far."""

    def to_json(self) -> str:
        """The measurement in one line."""
        stacks = [[list(path), count] for path, count in self.stacks.items()]
        # The keys of a mapping are texts in JSON, so stacks are a list of pairs.
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "stacks"}
        return dumps_short({**own, "stacks": stacks})

    @classmethod
    def from_json(cls, text: str, source: str) -> Measurement:
        """The measurement of a line; DataError, which names the source, if it is none."""
        names = [name for name in cls.__dataclass_fields__ if name != "idle"]
        parts = _document(text, source).mapping(("idle",), names)  # earlier stubs do not tell
        stacks = {}
        for pair in parts["stacks"].items():
            path, count = _exactly(pair, 2)
            stacks[_texts(path)] = count.whole()
        cost = parts["cost"].mapping(required=ProbeCost.__dataclass_fields__)
        return cls(
            parts["request"].whole(),
            _kind(parts["kind"]),
            parts["start_ns"].whole(high=2**63),
            parts["end_ns"].whole(high=2**63),
            parts["sampling"].number(0.0, 1.0),
            stacks,
            tuple(_observed(one) for one in parts["observed"].items()),
            ProbeCost(
                cost["calls"].whole(),
                cost["call_ns"].number(0.0),
                cost["cpu_ns"].whole(),
                cost["stopped_ms"].number(0.0),
            ),
            idle=_texts(parts["idle"]) if "idle" in parts else (),
        )


def merge_observed(several: list[Observed]) -> Observed:
    """All that several measurements observed of one function by one clock; there is at least one.

    The order in which they arrive does not matter to the learners, as observations are put in the order of their start.
    """
    paths: dict[CallPath, int] = {}
    platforms: dict[Platform, int] = {}
    observations: list[Observation] = []
    queued: dict[str, int] = {}
    for one in several:
        places = {place: paths.setdefault(path, len(paths)) for place, path in enumerate(one.paths)}
        homes = []
        for platform in one.platforms:
            # The step of the clock is calibrated anew in each measurement: another step is not another platform.
            same = (known for known in platforms if (known.host, known.build) == (platform.host, platform.build))
            homes.append(platforms.setdefault(next(same, platform), len(platforms)))
        observations += [
            replace(
                each,
                paths={places[place]: histogram for place, histogram in each.paths.items()},
                path_batches={places[place]: batches for place, batches in each.path_batches.items()},
                cpu_paths={places[place]: histogram for place, histogram in each.cpu_paths.items()},
                platform=homes[each.platform],
            )
            for each in one.observations
        ]
        queued.update(one.queued_ns)
    observations.sort(key=lambda each: (each.start_ns, each.run))
    return replace(
        several[-1],
        paths=tuple(paths),
        platforms=tuple(platforms),
        observations=tuple(observations),
        probe_ns=max(one.probe_ns for one in several),
        notes=tuple(dict.fromkeys(note for one in several for note in one.notes)),
        queued_ns=queued,
    )


# ---- Reading JSON. Messages come from other machines: whatever does not fit is refused.


def _document(text: str, source: str) -> DocumentNode:
    return json_document(text, DocumentSource(source, DataError, "perflaw doctor"))


def _kind(node: DocumentNode) -> Kind:
    if node.text() not in KINDS:
        node.expect(f"one of {', '.join(KINDS)}")
    return cast(Kind, node.text())


def _texts(node: DocumentNode) -> tuple[str, ...]:
    """Names, which thousands of call paths share: each is in memory once."""
    return tuple(sys.intern(one.text()) for one in node.items())


def _wholes(node: DocumentNode, low: int = 0, high: int = 10**30) -> tuple[int, ...]:
    values = node.value
    if isinstance(values, list) and all(type(one) is int and low <= one <= high for one in values):
        return tuple(values)  # most of a message is such numbers, and a node for each takes most of the time
    return tuple(one.whole(low, high) for one in node.items())


def _exactly(node: DocumentNode, count: int) -> list[DocumentNode]:
    items = node.items()
    if len(items) != count:
        node.expect(f"a list of {count}")
    return items


def _histogram(node: DocumentNode) -> Histogram:
    parts = node.mapping(required=Histogram.__dataclass_fields__)
    counts = _wholes(parts["counts"], high=2**62)
    if len(counts) > MOST_BUCKETS:
        parts["counts"].expect(f"a list of {MOST_BUCKETS} at most")
    offset, zeros = parts["offset"].whole(-(2**40), 2**40), parts["zeros"].whole()
    scale = parts["scale"].whole(-60, MOST_SCALE)
    return Histogram(scale, offset, np.array(counts, np.int64), zeros)


def _batches(node: DocumentNode) -> Batches:
    parts = node.mapping(required=Batches.__dataclass_fields__)
    # Durations below 1 ns have negative logarithms.
    levels = _wholes(parts["batches"]), _wholes(parts["sum_b"], -(10**30)), _wholes(parts["sum_bb"])
    if len({len(level) for level in levels}) > 1 or len(levels[0]) > LEVELS:
        node.expect(f"sums of as many levels each, at most {LEVELS}")
    return Batches(*levels)


def _by_place(node: DocumentNode, size: int, read: Any) -> dict[int, Any]:
    """A mapping whose keys are places in a list of that size."""
    values = {}
    for key, value in node.mapping().items():
        if not key.isascii() or not key.isdigit() or int(key) >= size:
            value.refuse(f"the key has to be a number below {size}")
        values[int(key)] = read(value)
    return values


def _observed(node: DocumentNode) -> Observed:
    parts = node.mapping(required=Observed.__dataclass_fields__)
    paths = tuple(_texts(path) for path in parts["paths"].items())
    platforms = []
    for one in parts["platforms"].items():
        about = one.mapping(required=Platform.__dataclass_fields__)
        platforms.append(Platform(about["host"].text(), about["build"].text(), about["tick"].number(0.0)))
    observations = []
    for one in parts["observations"].items():
        names = Observation.__dataclass_fields__
        about = one.mapping(("selected",), [name for name in names if name != "selected"])  # earlier stubs do not tell
        observations.append(
            Observation(
                about["start_ns"].whole(high=2**63),
                about["end_ns"].whole(high=2**63),
                _by_place(about["paths"], len(paths), _histogram),
                _batches(about["batches"]),
                _by_place(about["path_batches"], len(paths), _batches),
                about["platform"].whole(high=len(platforms) - 1),
                about["run"].text(),
                about["nested"].whole(),
                _by_place(about["cpu_paths"], len(paths), _histogram),
                about["selected"].text() if "selected" in about else "",
            )
        )
    share = parts["share"]
    return Observed(
        parts["component"].text(),
        parts["metric"].text(),
        parts["unit"].text(),
        paths,
        tuple(observations),
        tuple(platforms),
        parts["probe_ns"].number(0.0),
        None if share.value is None else share.number(0.0),
        _texts(parts["notes"]),
        {run: ns.whole() for run, ns in parts["queued_ns"].mapping().items()},
    )
