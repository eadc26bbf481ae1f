"""A trace to runs of an experiment: one of each of its processes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perflaw.collect.build import Tell
from perflaw.collect.claim import Claim
from perflaw.collect.definitions import Ended, Started
from perflaw.collect.definitions import Process as Known
from perflaw.collect.describe import Process
from perflaw.collect.imports.recognise import read_trace
from perflaw.collect.imports.trace import Trace
from perflaw.collect.imports.tree import core_file, tree_of
from perflaw.collect.keep import What, conclude
from perflaw.collect.layout import FEATURE
from perflaw.collect.recorded import Reader, Recorded
from perflaw.collect.tree_builder import Event
from perflaw.errors import StoreError
from perflaw.store.experiment import Experiment
from perflaw.types import Clock, Run


@dataclass(frozen=True, slots=True)
class ImportedTrace:
    """Stands where a tracer's name and reason are told."""

    reason: str
    """What wrote the trace."""
    name: str = "import"
    module: str = ""
    file: Path | None = None

    def reader(self, spool: Path, seed: int) -> Reader:
        """There is none: nothing is running."""
        raise RuntimeError("a trace that was recorded elsewhere has nothing that runs")


@dataclass(frozen=True, slots=True)
class _What(What):
    """A trace says nothing of the machine; its clock is the one that its stamps show."""

    tick_ns: int = 1
    """Step of that clock."""

    def run(self, folder: Path, process: Process, recorded: Recorded) -> Run:
        """See :class:`What`."""
        run = What.run(self, folder, process, recorded)
        return replace(run, clock=Clock("imported", self.tick_ns, 0, 0), host="", environment={})


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of one file."""

    run: Run
    """Of its first process."""
    children: tuple[Run, ...]
    """Of the others."""
    said: Mapping[str, int]
    """What had to be decided about calls → how many."""


def import_trace(experiment: Experiment, path: Path, features: Mapping[str, float], tell: Tell) -> Imported:
    """Keep the trace in a file. Raises what :func:`read_trace` does, and StoreError where the experiment takes nothing."""
    trace = read_trace(path)
    first, library = trace.first(), core_file(tell)
    name = trace.processes[0].name or path.name.removesuffix(".gz").removesuffix(".json")
    process = Process((str(path),), name, _began(path, trace, first), _last(trace) - first, 0)
    try:
        claim = Claim(experiment, secrets.token_hex(8))
        (claim.folder / "spool").mkdir(mode=0o700)
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise StoreError(f"{experiment.folder}: cannot be written", why, "cd ~ && perflaw import FILE") from error
    with claim:
        tracer = ImportedTrace(f"{trace.tool} in {path.name}")
        what = _What(experiment, tracer, {"imported": path.name}, features, False, claim, tick_ns=trace.tick_ns)
        outcome = conclude(what, claim.folder, process, _recorded(trace, str(path), library, int(claim.folder.name)))
    said = sum((one.said for one in trace.processes), start=type(trace.processes[0].said)())
    return Imported(outcome.run, outcome.children, said)


def _recorded(trace: Trace, command: str, library: Path | None, run: int) -> Iterator[Recorded]:
    for number, process in enumerate(trace.processes):
        known, tracks = process.definitions, process.ordered()
        last = max(_end(track) for track in tracks)
        known.process = Known(process.pid, 0, (command,))
        known.started = Started(tracks[0][0][0], 0, 0, "")
        known.ended = Ended(last, 0, 0, trace.lost, 0, 0, ())
        yield Recorded(known, tree_of(process, library, run + (number << 20)), 0 if number else None)


def _began(path: Path, trace: Trace, first: int) -> str:
    """When, as far as is known: the first stamp where stamps are dates, else when the file was written."""
    when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=first // 1000) if trace.epoch else _written(path)
    return when.isoformat(timespec="milliseconds")


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _last(trace: Trace) -> int:
    return max(_end(track) for process in trace.processes for track in process.ordered())


def _end(track: list[Event]) -> int:
    """The last stamp of a track; records of features have none."""
    return max(event[0] for event in track if event[5] != FEATURE)
