"""One way to list, switch and watch probes, on this machine or on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from perflaw.collect.probes.areas import Probe
from perflaw.collect.probes.batches import Batch
from perflaw.collect.probes.client import Collecting
from perflaw.collect.probes.collector import Collector
from perflaw.collect.probes.control import Chosen, Running, describe, switch
from perflaw.collect.probes.folders import folders
from perflaw.collect.probes.remote import Remote, reach


class Host(Protocol):
    """A machine whose processes have probes."""

    @property
    def name(self) -> str:
        """Its address; empty: this one."""

    def processes(self, pids: Sequence[int]) -> list[Running]:
        """Running processes with probes; TargetError where there is none."""

    def switch(self, chosen: Chosen, enabled: bool | None, subsample: int | None) -> list[tuple[int, str]]:
        """See :func:`perflaw.collect.probes.control.switch`."""

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
        return [_running(one) for one in found]

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


def _running(document: dict[str, Any]) -> Running:
    probes = tuple(Probe(**{**one, "fields": tuple(one["fields"])}) for one in document["probes"])
    return Running(**{**document, "probes": probes})


def hosts(remotes: Sequence[Remote]) -> list[Host]:
    """The remotes, or this machine where there are none."""
    return [There(remote, number) for number, remote in enumerate(remotes, 1)] if remotes else [Here()]
