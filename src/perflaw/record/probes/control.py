"""Probes of running processes listed and switched from outside, by name, id or glob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Protocol

from perflaw.errors import StoreError, TargetError, UsageError
from perflaw.record.probes.areas import Area, Probe, area_files, folders
from perflaw.record.probes.client import Collecting, Remote, reach
from perflaw.record.probes.collector import Batch, Collector
from perflaw.record.probes.rings import Ring

MOST_SUBSAMPLE: Final = (1 << 32) - 1
"""Most executions for one record: the entry has 32 bits for it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which probes of which processes."""

    names: tuple[str, ...] = ()
    """Names, ids or globs; empty: all."""
    pids: tuple[int, ...] = ()
    """Processes; empty: all that have probes."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Chosen:
        """As a message says it; TypeError or ValueError where it does not."""
        return cls(tuple(map(str, document.get("names", ()))), tuple(map(int, document.get("pids", ()))))

    def matches(self, probe: Probe) -> bool:
        """Whether a probe is meant."""
        return not self.names or any(_is(probe, name) for name in self.names)


def _is(probe: Probe, name: str) -> bool:
    return name == str(probe.id) or fnmatchcase(probe.name, name)


@dataclass(frozen=True, slots=True)
class Running:
    """A running process with probes, as it is now."""

    pid: int
    """Its number."""
    language: str
    """As its probes say."""
    command: str
    """What it runs."""
    probes: tuple[Probe, ...]
    """Those that are registered, by id."""
    produced: int
    """Records made so far."""
    refusal: str
    """Why a hardware counter cannot be read; empty where none was refused."""


def running(places: Sequence[Path], pids: Sequence[int], stack: ExitStack) -> list[Area]:
    """Areas of these processes (none named: of all), by process; TargetError where there is none."""
    found = []
    for path in area_files(places):
        try:
            area = Area(path)
        except StoreError:
            continue  # another version's, or not whole yet
        stack.callback(area.close)
        if area.alive() and (not pids or area.pid in pids):
            found.append(area)
    missing = sorted(set(pids) - {area.pid for area in found})
    if missing or not found:
        raise _nobody(missing, places)
    return sorted(found, key=lambda area: (area.pid, area.path.name))


def _nobody(pids: Sequence[int], places: Sequence[Path]) -> TargetError:
    who = f"process {pids[0]} has no probes" if pids else "no process with probes"
    why = f"looked in {places[0]}: nothing there is of a running program that includes perflaw.h or imports perflaw.probes"
    return TargetError(who, why, "perflaw record --collect probes -- COMMAND")


def describe(places: Sequence[Path], pids: Sequence[int] = ()) -> list[Running]:
    """The running processes and their probes; TargetError where there is none."""
    with ExitStack() as stack:
        return [_running(area) for area in running(places, pids, stack)]


def _running(area: Area) -> Running:
    rings = [Ring(*area.ring(number)).tally().produced for number in area.used_rings()]
    refusal = bytes(area.head["refusal"][0]).decode("utf-8", "replace")
    return Running(
        area.pid, area.language, command_of(area.pid), tuple(area.probes()), sum(rings) + area.lost_no_ring, refusal
    )


def command_of(pid: int) -> str:
    """Short command line of a process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()[:4096].split(b"\0")
    except OSError:
        return ""
    text = " ".join(word.decode("utf-8", "replace") for word in words if word)
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def switch(
    places: Sequence[Path], chosen: Chosen, enabled: bool | None = None, subsample: int | None = None
) -> list[tuple[int, str]]:
    """Enable, disable or subsample; gives process and name of each probe that was meant.

    UsageError where a name is nobody's: then nothing is switched at all.
    """
    if subsample is not None and not 0 <= subsample <= MOST_SUBSAMPLE:
        raise UsageError(
            f"subsample {subsample}", f"0 (what the code says) to {MOST_SUBSAMPLE}", "perflaw probes --help"
        )
    with ExitStack() as stack:
        areas = running(places, chosen.pids, stack)
        known = [(area, probe) for area in areas for probe in area.probes()]
        _check_names(chosen, [probe for _, probe in known])
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


def _check_names(chosen: Chosen, known: Sequence[Probe]) -> None:
    for name in chosen.names:
        if name != "*" and not any(_is(probe, name) for probe in known):
            there = ", ".join(sorted({probe.name for probe in known})) or "none yet"
            raise UsageError(f"no probe {name}", f"there are {there}", "perflaw probes list")


# ---- One way to list, switch and watch probes, on this machine or on others.


class Host(Protocol):
    """A machine whose processes have probes."""

    @property
    def name(self) -> str:
        """Its address; empty: this one."""

    def processes(self, pids: Sequence[int]) -> list[Running]:
        """Running processes with probes; TargetError where there is none."""

    def switch(self, chosen: Chosen, enabled: bool | None, subsample: int | None) -> list[tuple[int, str]]:
        """See :func:`perflaw.record.probes.control.switch`."""

    def watch(self, pids: Sequence[int]) -> None:
        """Begin to take records from now on."""

    def poll(self) -> list[Batch]:
        """What has come since."""

    def close(self) -> None:
        """Let go of it."""


class Here:
    """The machine that we are on."""

    name = ""

    def __init__(self) -> None:
        self._collector: Collector | None = None

    def processes(self, pids: Sequence[int]) -> list[Running]:
        """See :class:`Host`."""
        return describe(folders(), pids)

    def switch(self, chosen: Chosen, enabled: bool | None, subsample: int | None) -> list[tuple[int, str]]:
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


class There:
    """Another machine, through the collector that listens there."""

    def __init__(self, remote: Remote, number: int) -> None:
        """WireError where it cannot be reached or refuses us."""
        self._collecting: Collecting = reach(remote, number)
        self.name = str(remote.address)

    def processes(self, pids: Sequence[int]) -> list[Running]:
        """See :class:`Host`."""
        found = self._collecting.ask("list", {"pids": list(pids)})["processes"]
        return [_hosts_running(one) for one in found]

    def switch(self, chosen: Chosen, enabled: bool | None, subsample: int | None) -> list[tuple[int, str]]:
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


def _hosts_running(document: dict[str, Any]) -> Running:
    probes = tuple(Probe(**{**one, "fields": tuple(one["fields"])}) for one in document["probes"])
    return Running(**{**document, "probes": probes})


def hosts(remotes: Sequence[Remote]) -> list[Host]:
    """The remotes, or this machine where there are none."""
    return [There(remote, number) for number, remote in enumerate(remotes, 1)] if remotes else [Here()]
