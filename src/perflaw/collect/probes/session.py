"""Probes of one recorded run: a collector beside the program, a tracer here, and what came of each process in the end."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.collect.definitions import Definitions
from perflaw.collect.probes.areas import ENABLE, RECORDS, VARIABLE
from perflaw.collect.probes.batches import Batch, Source
from perflaw.collect.probes.client import Collecting, start_collector
from perflaw.collect.probes.decoding import Decoded
from perflaw.collect.probes.folders import recording_folder
from perflaw.collect.probes.keeping import KeptRecords
from perflaw.collect.probes.remote import Remote, reach
from perflaw.collect.probes.rings import Tally
from perflaw.collect.probes.tracer import Tracer
from perflaw.collect.probes.trees import ProcessTree, define
from perflaw.collect.recorded import ProbeAccount, ProbeCount, Probed
from perflaw.collect.reservoir import scramble
from perflaw.collect.wire.channel import WireError
from perflaw.errors import TargetError

EVERYTHING: Final = ("*",)
RING: Final = 1 << 15
"""Records of a thread's ring where nobody says otherwise: 2 MB, of which a recording may well use more than a live view."""
GRACE_S: Final = 0.5
"""How long processes may outlive the program."""


@dataclass(frozen=True, slots=True)
class Whole:
    """What holds for all processes of a run."""

    tally: Tally
    """The account of all records."""
    warnings: tuple[str, ...]
    """What a person must know: ids used twice, records not kept, counters refused."""
    notes: tuple[str, ...]
    """What else is to be said: how exact the times of other hosts are."""


class ProbeSession:
    """From before a program starts until all its records are taken."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        names: Sequence[str] = EVERYTHING,
        remotes: Sequence[Remote] = (),
        bounds: Sequence[str] = (),
    ) -> None:
        """``folder``: the run's. ``remotes``: collectors of other hosts, whose records belong to the run as well.

        ``bounds``: see :func:`start_collector`. TargetError where a collector cannot be started or reached.
        """
        self._seed, self._names = seed, names
        self._others: list[Collecting] = []
        self._areas = recording_folder(folder / "spool")
        self._trees: dict[int, ProcessTree] = {}
        self._problems: list[str] = []
        self._notes: list[str] = []
        """What is to be said of the records, and is no problem."""
        self.records = KeptRecords(folder)
        self.tracer = Tracer([self.records.take, self._grow])
        self._collecting: Collecting | None = None
        try:
            for number, remote in enumerate(remotes, 1):
                self._others.append(self._begin_there(remote, number))
            self._collecting = start_collector(self._areas, *bounds)
        except BaseException:
            self.__exit__()
            raise

    def environment(self) -> dict[str, str]:
        """What programs with probes are told: where to make their areas, and what to enable."""
        told = {VARIABLE: str(self._areas), ENABLE: ",".join(self._names)}
        return told | {RECORDS: os.environ.get(RECORDS, str(RING))}

    def step(self) -> int:
        """Take what has come; how many records that was."""
        return sum(self._take(batch) for batch in self._guarded())

    def _begin_there(self, remote: Remote, number: int) -> Collecting:
        """Have another host's collector send what its programs write from now on, and enable what is asked for."""
        collecting = reach(remote, number)
        try:
            collecting.ask("collect", {"from_now": True, "standing": True, "remove": True})
            collecting.ask("switch", {"names": list(self._names), "enabled": True, "standing": True})
        except TargetError:
            collecting.close()
            raise
        exact_ms = collecting.exact_ns / 1e6
        self._notes.append(f"times of {remote.address} are as on this machine's clock to within {exact_ms:.2g} ms")
        return collecting

    def finish(self) -> Whole:
        """Take everything that is left, the program being gone; end the collector and remove the areas."""
        self._wait_for_others()
        ours, self._collecting = self._collecting, None
        for collecting in filter(None, (*self._others, ours)):
            try:
                if collecting is not ours:
                    collecting.ask("switch", {"names": list(self._names), "enabled": False, "standing": True})
                for batch in collecting.finish(stop=collecting is ours):
                    self._take(batch)
            except TargetError as error:  # its programs have ended, or it has gone itself
                self._problems.append(f"the collector of probes {collecting.sender.host}: {error}")
            collecting.close()
        self._others.clear()
        shutil.rmtree(self._areas, ignore_errors=True)
        try:
            self.records.finish()
        except OSError as error:
            self._problems.append(f"records of probes are not kept: {error}")
        return Whole(self._settled(), tuple(self._warnings()), tuple(self._notes))

    def probed(self) -> dict[tuple[str, int], list[Probed]]:
        """Host and process id → what came of its probes: of each program that it was (``exec``), in their order."""
        found: dict[tuple[str, int], list[Probed]] = {}
        for number, source in self.tracer.sources.items():
            known, tree = Definitions(), self._trees[number].finish() if number in self._trees else None
            define(known, source)
            kept = self.records.kept.get(number, 0)
            found.setdefault((source.host, source.pid), []).append(
                Probed(known, tree, self._counts(source), self._account(source), kept)
            )
        return found

    def _guarded(self) -> list[Batch]:
        """Batches, none from a collector that has gone: the program is recorded on without its probes."""
        found: list[Batch] = []
        for collecting in list(filter(None, (*self._others, self._collecting))):
            try:
                found += collecting.poll()
            except WireError as error:
                self._problems.append(f"the collector of probes {collecting.sender.host}: {error}")
                collecting.close()
                self._others = [one for one in self._others if one is not collecting]
                self._collecting = None if collecting is self._collecting else self._collecting
        return found

    def _take(self, batch: Batch) -> int:
        self.tracer.take(batch)
        return batch.count

    def _grow(self, records: Decoded) -> None:
        number = records.source.number
        if number not in self._trees:
            self._trees[number] = ProcessTree(scramble(self._seed + number))
        self._trees[number].take(records)

    def _wait_for_others(self) -> None:
        """Give processes that outlive the program a moment, as tracers do."""
        deadline = time.monotonic() + GRACE_S
        while self._collecting and time.monotonic() < deadline:
            self.step()
            if all(source.gone for source in self.tracer.sources.values() if not source.host):
                return
            time.sleep(0.005)

    def _counts(self, source: Source) -> tuple[ProbeCount, ...]:
        received = self.tracer.received.get(source.number, np.zeros(0, np.int64))
        return tuple(
            ProbeCount(
                probe.id, probe.name, probe.type, probe.unit, _in_ns(probe.fields), probe.executions,
                int(received[probe.id]) if len(received) else 0,
            )
            for probe in source.probes
        )  # fmt: skip

    def _account(self, source: Source) -> ProbeAccount:
        tally = source.tally
        whole = (
            tally.produced - tally.received
        )  # what a process that lives on has written since is lost to this recording
        return ProbeAccount(
            source.pid, source.parent, source.command, source.host, source.language, tally.produced, tally.received, whole,
            source.clock.ns_per_tick,
        )  # fmt: skip

    def _settled(self) -> Tally:
        tally = self.tracer.tally
        return Tally(tally.produced, tally.received, tally.produced - tally.received)

    def _warnings(self) -> Iterator[str]:
        yield from self.tracer.conflicts()
        if not self.tracer.sources and not self._problems:
            yield "no process with probes ran: none includes perflaw.h or imports perflaw.probes, or /dev/shm is full"
        else:
            yield from self._unknown()
        if self.records.left_out:
            yield f"{self.records.left_out} records are not kept: {self.records.most} a run are"
        yield from self._problems
        yield from self.tracer.failures
        refused = [probe for source in self.tracer.sources.values() for probe in source.probes if probe.refused]
        if refused:
            names = ", ".join(sorted({probe.name for probe in refused}))
            yield f"hardware counters cannot be read: no records of {names}"

    def _unknown(self) -> Iterator[str]:
        """Which of the probes that are asked for no program has."""
        probes = [probe for source in self.tracer.sources.values() for probe in source.probes]
        known = {"*", *(probe.name for probe in probes), *(str(probe.id) for probe in probes)}
        if missing := [name for name in self._names if name not in known]:
            yield f"no probe {', '.join(missing)}"

    def __enter__(self) -> ProbeSession:
        """Nothing is to be done."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the collector, whatever happened."""
        for collecting in filter(None, (*self._others, self._collecting)):
            collecting.close()
        self._others, self._collecting = [], None
        shutil.rmtree(self._areas, ignore_errors=True)


def _in_ns(fields: Sequence[str]) -> tuple[str, ...]:
    """Cycles became ns on the way."""
    return tuple("ns" if name == "cycles" else name for name in fields)
