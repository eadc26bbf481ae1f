"""Lists, switches and watches the probes of running processes, on this machine or on others, by name, id or glob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Protocol

from perflaw.errors import StoreError, TargetError, UsageError
from perflaw.record.probes.areas import AttachedArea, RegisteredProbe, area_files, folders
from perflaw.record.probes.client import CollectorConnection, Remote, reach
from perflaw.record.probes.collector import Batch, Collector
from perflaw.record.probes.rings import RingReader

MOST_SUBSAMPLE: Final = (1 << 32) - 1
"""Most executions for one record, which has to fit into 32 bits."""


@dataclass(frozen=True, slots=True)
class ProbeSelection:
    """A choice of probes."""

    names: tuple[str, ...] = ()
    """Names, ids or globs; all probes if empty."""
    pids: tuple[int, ...] = ()
    """Processes; all that have probes if empty."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ProbeSelection:
        """The choice in a message; TypeError or ValueError if it is damaged."""
        return cls(tuple(map(str, document.get("names", ()))), tuple(map(int, document.get("pids", ()))))

    def matches(self, probe: RegisteredProbe) -> bool:
        """Whether a probe is chosen."""
        return not self.names or any(_is(probe, name) for name in self.names)


def _is(probe: RegisteredProbe, name: str) -> bool:
    return name == str(probe.id) or fnmatchcase(probe.name, name)


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """The present state of a running process with probes."""

    pid: int
    """Process id."""
    language: str
    """Language of the program."""
    command: str
    """Its command line."""
    probes: tuple[RegisteredProbe, ...]
    """Registered probes, by id."""
    produced: int
    """Number of records made so far."""
    refusal: str
    """Why a hardware counter cannot be read; empty if none was refused."""


def running(places: Sequence[Path], pids: Sequence[int], stack: ExitStack) -> list[AttachedArea]:
    """Areas of these processes (of all, if none is named), by process; TargetError if there is none."""
    found = []
    for path in area_files(places):
        try:
            area = AttachedArea(path)
        except StoreError:
            continue  # another version's, or not whole yet
        stack.callback(area.close)
        if area.alive() and (not pids or area.pid in pids):
            found.append(area)
    missing = sorted(set(pids) - {area.pid for area in found})
    if missing or not found:
        who = f"process {missing[0]} has no probes" if missing else "no process with probes"
        why = f"no running program that includes perflaw.h or imports perflaw.probes has a file in {places[0]}"
        raise TargetError(who, why, "perflaw record --collect probes -- COMMAND")
    return sorted(found, key=lambda area: (area.pid, area.path.name))


def describe(places: Sequence[Path], pids: Sequence[int] = ()) -> list[RunningProcess]:
    """The running processes and their probes; TargetError if there is none."""
    with ExitStack() as stack:
        processes = []
        for area in running(places, pids, stack):
            rings = [RingReader(area.ring(number)).tally().produced for number in area.used_rings()]
            command, probes, produced = command_of(area.pid), tuple(area.probes()), sum(rings) + area.lost_no_ring
            processes.append(RunningProcess(area.pid, area.language, command, probes, produced, area.refusal))
        return processes


def command_of(pid: int) -> str:
    """Short command line of a process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()[:4096].split(b"\0")
    except OSError:
        return ""
    text = " ".join(word.decode("utf-8", "replace") for word in words if word)
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def switch(
    places: Sequence[Path], chosen: ProbeSelection, enabled: bool | None = None, subsample: int | None = None
) -> list[tuple[int, str]]:
    """Enable, disable or subsample the chosen probes; gives process and name of each.

    UsageError if no probe has one of the names; then nothing is switched.
    """
    if subsample is not None and not 0 <= subsample <= MOST_SUBSAMPLE:
        why = f"0 (what the code says) to {MOST_SUBSAMPLE}"
        raise UsageError(f"subsample {subsample}", why, "perflaw probes --help")
    with ExitStack() as stack:
        areas = running(places, chosen.pids, stack)
        known = [(area, probe) for area in areas for probe in area.probes()]
        for name in chosen.names:
            if name != "*" and not any(_is(probe, name) for _, probe in known):
                there = ", ".join(sorted({probe.name for _, probe in known})) or "none yet"
                raise UsageError(f"no probe {name}", f"there are {there}", "perflaw probes list")
        meant = [(area, probe) for area, probe in known if chosen.matches(probe)]
        for area, probe in meant:
            if enabled is not None:
                area.enable([probe.id], enabled)
            if subsample is not None:
                area.subsample([probe.id], subsample)
        if enabled is not None and (not chosen.names or "*" in chosen.names):
            for area in areas:
                area.enable_all(enabled)
        return [(area.pid, probe.name) for area, probe in meant]


class Host(Protocol):
    """A machine whose probes can be listed, switched and watched."""

    @property
    def name(self) -> str:
        """Its address; empty for this machine."""

    def processes(self, pids: Sequence[int]) -> list[RunningProcess]:
        """Running processes with probes; TargetError if there is none."""

    def switch(self, chosen: ProbeSelection, enabled: bool | None, subsample: int | None) -> list[tuple[int, str]]:
        """See :func:`perflaw.record.probes.control.switch`."""

    def watch(self, pids: Sequence[int]) -> None:
        """Begin to take records."""

    def poll(self) -> list[Batch]:
        """Batches since the last call."""

    def close(self) -> None:
        """End the connection."""


class LocalHost:
    """The machine of this process."""

    name = ""

    def __init__(self) -> None:
        self._collector: Collector | None = None

    def processes(self, pids: Sequence[int]) -> list[RunningProcess]:
        """See :class:`Host`."""
        return describe(folders(), pids)

    def switch(self, chosen: ProbeSelection, enabled: bool | None, subsample: int | None) -> list[tuple[int, str]]:
        """See :class:`Host`."""
        return switch(folders(), chosen, enabled, subsample)

    def watch(self, pids: Sequence[int]) -> None:
        """See :class:`Host`."""
        self._collector = Collector(folders(), pids, remove=False, from_now=True)
        self._collector.look()

    def poll(self) -> list[Batch]:
        """See :class:`Host`."""
        if not self._collector:
            return []
        self._collector.folders = folders()
        self._collector.look()
        return [self._collector.drain()]

    def close(self) -> None:
        """See :class:`Host`."""
        if self._collector:
            self._collector.close()


class RemoteHost:
    """Another machine, through the collector that listens there."""

    def __init__(self, remote: Remote, number: int) -> None:
        """WireError if it cannot be reached or refuses the connection."""
        self._collecting: CollectorConnection = reach(remote, number)
        self.name = str(remote.address)

    def processes(self, pids: Sequence[int]) -> list[RunningProcess]:
        """See :class:`Host`."""
        found = self._collecting.ask("list", {"pids": list(pids)})["processes"]
        running_process = []
        for one in found:
            probes = tuple(RegisteredProbe(**{**each, "fields": tuple(each["fields"])}) for each in one["probes"])
            running_process.append(RunningProcess(**{**one, "probes": probes}))
        return running_process

    def switch(self, chosen: ProbeSelection, enabled: bool | None, subsample: int | None) -> list[tuple[int, str]]:
        """See :class:`Host`."""
        document = {"names": chosen.names, "pids": chosen.pids, "enabled": enabled, "subsample": subsample}
        return [(int(pid), str(name)) for pid, name in self._collecting.ask("switch", document)["probes"]]

    def watch(self, pids: Sequence[int]) -> None:
        """See :class:`Host`."""
        self._collecting.ask("collect", {"pids": list(pids), "from_now": True})

    def poll(self) -> list[Batch]:
        """See :class:`Host`."""
        return self._collecting.poll()

    def close(self) -> None:
        """See :class:`Host`."""
        self._collecting.close()


def hosts(remotes: Sequence[Remote]) -> list[Host]:
    """The remote machines, or this machine if there are none."""
    return [RemoteHost(remote, number) for number, remote in enumerate(remotes, 1)] if remotes else [LocalHost()]
