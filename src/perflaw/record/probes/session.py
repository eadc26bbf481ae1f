"""Probes of one recorded run: a collector beside the program, a tracer here, and in the end the probes of each process."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.launch import Launch
from perflaw.record.probes.areas import ENABLE, RECORDS, VARIABLE, recording_folder
from perflaw.record.probes.client import CollectorConnection, Remote, reach, start_collector
from perflaw.record.probes.collector import Batch
from perflaw.record.probes.decoding import ProbeRecords
from perflaw.record.probes.tracer import KeptRecords, Tracer
from perflaw.record.probes.trees import ProcessTree, define
from perflaw.record.reader import ProbeAccount, ProbeCount, ProbedProcess, Reader, RecordedProcess, empty_tree
from perflaw.record.tree.core import Export
from perflaw.record.tree.records import Definitions, definitions_without_tracer
from perflaw.record.tree.reservoir import scramble
from perflaw.record.tree.tables import tabulate
from perflaw.store.columns import Tables
from perflaw.store.merge import merge
from perflaw.store.schema import table_of
from perflaw.wire.channel import WireError

EVERYTHING: Final = ("*",)
RING: Final = 1 << 15
"""Records of a thread's ring by default: 2 MB, more than for a live view."""
GRACE_S: Final = 0.5
"""Time that child processes get after the program has ended."""


class ProbeSession:
    """Collects the records of a run, from before its program starts until all records are taken."""

    def __init__(
        self, folder: Path, seed: int, names: Sequence[str] = EVERYTHING, remotes: Sequence[Remote] = ()
    ) -> None:
        """``folder``: that of the run. ``remotes``: collectors of other hosts, whose records belong to the run as well.

        TargetError if a collector cannot be started or reached.
        """
        self._seed, self._names = seed, names
        self._others: list[CollectorConnection] = []
        self._areas = recording_folder(folder / "spool")
        self._trees: dict[int, ProcessTree] = {}
        self._problems: list[str] = []
        self._notes: list[str] = []
        """Remarks on the records that are no problems."""
        self.records = KeptRecords(folder)
        self.tracer = Tracer([self.records.take, self._grow])
        self._collecting: CollectorConnection | None = None
        try:
            for number, remote in enumerate(remotes, 1):
                # Make another host's collector send new records, and enable the chosen probes there.
                collecting = reach(remote, number)
                try:
                    collecting.ask("collect", {"from_now": True, "standing": True, "remove": True})
                    collecting.ask("switch", {"names": list(self._names), "enabled": True, "standing": True})
                except TargetError:
                    collecting.close()
                    raise
                exact_ms = collecting.exact_ns / 1e6
                self._notes.append(
                    f"times of {remote.address} are as on this machine's clock to within {exact_ms:.2g} ms"
                )
                self._others.append(collecting)
            self._collecting = start_collector(self._areas)
        except BaseException:
            self.__exit__()
            raise

    def environment(self) -> dict[str, str]:
        """Environment variables for programs with probes: where to make their areas, and which probes to enable."""
        told = {VARIABLE: str(self._areas), ENABLE: ",".join(self._names)}
        return told | {RECORDS: os.environ.get(RECORDS, str(RING))}

    def step(self) -> int:
        """Take the records that have come; gives their number."""
        found: list[Batch] = []
        for collecting in list(filter(None, (*self._others, self._collecting))):
            try:
                found += collecting.poll()
            except WireError as error:
                self._problems.append(f"the collector of probes {collecting.sender.host}: {error}")
                collecting.close()
                self._others = [one for one in self._others if one is not collecting]
                self._collecting = None if collecting is self._collecting else self._collecting
        return sum(self._take(batch) for batch in found)

    def finish(self) -> dict[str, str]:
        """Take all remaining records after the program has ended; end the collector and remove the areas.

        Returns messages for the manifest by topic: ids used twice, records not kept, the error of times of other hosts.
        """
        # Processes that outlive the program have some time, as tracers do.
        deadline = time.monotonic() + GRACE_S
        while self._collecting and time.monotonic() < deadline:
            self.step()
            if all(source.gone for source in self.tracer.sources.values() if not source.host):
                break
            time.sleep(0.005)
        ours, self._collecting = self._collecting, None
        for collecting in filter(None, (*self._others, ours)):
            try:
                if collecting is not ours:
                    collecting.ask("switch", {"names": list(self._names), "enabled": False, "standing": True})
                for batch in collecting.finish(stop=collecting is ours):
                    self._take(batch)
            except TargetError as error:  # its programs have ended, or the collector itself
                self._problems.append(f"the collector of probes {collecting.sender.host}: {error}")
            collecting.close()
        self._others.clear()
        shutil.rmtree(self._areas, ignore_errors=True)
        try:
            self.records.finish()
        except OSError as error:
            self._problems.append(f"records of probes are not kept: {error}")
        warnings = list(self.tracer.conflicts())
        if not self.tracer.sources and not self._problems:
            warnings.append(
                "no process with probes ran: none includes perflaw.h or imports perflaw.probes, or /dev/shm is full"
            )
        else:
            probes = [probe for source in self.tracer.sources.values() for probe in source.probes]
            known = {"*", *(probe.name for probe in probes), *(str(probe.id) for probe in probes)}
            if missing := [name for name in self._names if name not in known]:
                warnings.append(f"no probe {', '.join(missing)}")
        if self.records.left_out:
            warnings.append(f"{self.records.left_out} records are not kept: {self.records.most} a run are")
        warnings += self._problems
        warnings += self.tracer.failures
        refused = [probe for source in self.tracer.sources.values() for probe in source.probes if probe.refused]
        if refused:
            names = ", ".join(sorted({probe.name for probe in refused}))
            warnings.append(f"hardware counters cannot be read: no records of {names}")
        told = {"probes": warnings, "probes of other hosts": self._notes}
        return {topic: "; ".join(messages) for topic, messages in told.items() if messages}

    def probed(self) -> dict[tuple[str, int], list[ProbedProcess]]:
        """Host and process id → its probes, for each program that the process executed (``exec``), in order."""
        found: dict[tuple[str, int], list[ProbedProcess]] = {}
        for number, source in self.tracer.sources.items():
            known, tree = Definitions(), self._trees[number].finish() if number in self._trees else None
            define(known, source)
            kept = self.records.kept.get(number, 0)
            received = self.tracer.received.get(source.number, np.zeros(0, np.int64))
            counts = tuple(
                ProbeCount(
                    probe.id, probe.name, probe.type, probe.unit,
                    tuple("ns" if name == "cycles" else name for name in probe.fields), probe.executions,
                    int(received[probe.id]) if len(received) else 0,
                )
                for probe in source.probes
            )  # fmt: skip
            # What a process that lives on has written since is lost to this recording.
            produced, taken = source.tally.produced, source.tally.received
            account = ProbeAccount(
                source.pid, source.parent, source.command, source.host, source.language, produced, taken,
                produced - taken, source.clock.ns_per_tick,
            )  # fmt: skip
            probed = ProbedProcess(known, tree, counts, account, kept)
            found.setdefault((source.host, source.pid), []).append(probed)
        return found

    def _take(self, batch: Batch) -> int:
        self.tracer.take(batch)
        return batch.count

    def _grow(self, records: ProbeRecords) -> None:
        number = records.source.number
        if number not in self._trees:
            self._trees[number] = ProcessTree(scramble(self._seed + number))
        self._trees[number].take(records)

    def __enter__(self) -> ProbeSession:
        """Enter the session."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the collector."""
        for collecting in filter(None, (*self._others, self._collecting)):
            collecting.close()
        self._others, self._collecting = [], None
        shutil.rmtree(self._areas, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class ProbesTracer:
    """The tracer of programs of which only probes are recorded, and no calls."""

    reason: str = "the program has no hooks: probes alone"
    name: str = "probes"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """The environment of this process."""
        return dict(os.environ)

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader that finds the program, and no call in it."""
        return _NoCalls()

    def tick_ns(self) -> None:
        """Unknown: probes bring their own clocks."""


@dataclass(slots=True)
class _NoCalls:
    """The reader of a program without recorded calls."""

    idle_s: float = 0.002
    paths: bool = False

    def step(self) -> int:
        """No records come."""
        return 0

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """The program, without calls."""
        yield RecordedProcess(definitions_without_tracer(pid), empty_tree())


def nothing_recorded(pid: int, parent: int, command: tuple[str, ...], place: int) -> RecordedProcess:
    """A process that no tracer recorded, a child of the process at ``place``."""
    return RecordedProcess(definitions_without_tracer(pid, parent, command), empty_tree(), place)


def with_probes(
    recorded: Iterator[RecordedProcess], session: ProbeSession, program_pid: int
) -> Iterator[RecordedProcess]:
    """The processes of a recording with their probes, then the processes that have only probes.

    ``program_pid``: process id of the program, which its tracer may not know. A process without a recorded call gets the
    call tree of its probes; other processes have both trees.
    """
    program = next(recorded)
    program.definitions.words.update(session.finish())
    left = session.probed()
    places: dict[int, int] = {}
    for place, one in enumerate(itertools.chain([program], recorded)):
        pid = one.definitions.process.pid if one.definitions.process else program_pid
        places.setdefault(pid, place)
        yield _joined(one, left.pop(("", pid), []))
    for host, pid in sorted(left, key=lambda key: key[0] != ""):
        probed = left[host, pid]
        account = probed[0].account
        parent = 0 if host else places.get(account.parent, 0)
        if not host:
            places[pid] = place = place + 1
        yield _joined(nothing_recorded(pid, account.parent, account.command, parent), probed)


def _joined(one: RecordedProcess, probed: list[ProbedProcess]) -> RecordedProcess:
    grown = [each for each in probed if each.tree is not None]
    if grown and len(one.tree.nodes) < 2:
        known, first = one.definitions, grown[0]
        known.components.update(first.definitions.components)
        known.features.update(first.definitions.features)
        assert first.tree is not None
        moved = [replace(each, tree=None) if each is first else each for each in probed]
        return replace(one, tree=first.tree, probed=tuple(moved))
    return replace(one, probed=tuple(probed))


def add_calls_of_probes(run: str, tables: Tables, recorded: RecordedProcess) -> Tables:
    """The tables of a run, merged with the call trees of its probes."""
    found, calls = [tables], recorded.tree.calls
    for probed in recorded.probed:
        if probed.tree is not None:
            # The tree with its invocations numbered after those of other trees of the run.
            changed = dict(probed.tree.tables)
            for table in (Export.SAMPLES, Export.WORST):
                changed[table] = probed.tree.tables[table].copy()
                changed[table]["sequence"] += calls
            found.append(tabulate(run, replace(probed.tree, tables=changed), probed.definitions))
            calls += probed.tree.calls
    return merge(found) if len(found) > 1 else tables


def probe_tables(recorded: RecordedProcess) -> Tables | None:
    """Tables of the probes and their accounts; None if the process has none."""
    if not recorded.probed:
        return None
    probes, processes = [], []
    for probed in recorded.probed:
        account = probed.account
        for one in probed.counts:
            whole = (one.received, one.received, 0) if not account.lost else (None, one.received, None)
            probes.append(
                (account.process, one.id, one.name, one.type, one.unit, ",".join(one.fields), one.subsample, *whole)
            )
        row = (account.process, account.host, account.language, account.produced, account.received, account.lost)
        processes.append((*row, probed.kept, account.ns_per_tick))
    rows = {"probes": probes, "probe_processes": processes}
    return {name: table_of(name, some) for name, some in rows.items()}
