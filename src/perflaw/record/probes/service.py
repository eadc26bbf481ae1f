"""A collector that serves a channel: it drains areas in turns, sends the records, and switches probes on request.

A peer that reads slowly makes the collector wait, so that rings overflow, which is counted; memory stays bounded. As a
process of its own it is ``python -m perflaw.record.probes.service DESCRIPTOR FOLDER``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from perflaw.errors import PerflawError
from perflaw.record.probes.collector import MOST, Collector, ProbeProcess, as_message
from perflaw.record.probes.control import ProbeSelection, describe, switch
from perflaw.wire.channel import Channel, WireError, over

LOOK_S: Final = 0.002
"""Interval of the search for new areas and rings, and for processes that have ended."""
IDLE_S: Final = 0.002
"""Wait after a turn without records."""
ACCOUNT_S: Final = 0.2
"""Interval at which the account is sent while no record comes."""
LAST_TURNS: Final = 10_000
"""Maximum number of turns of the last drain."""


class Service:
    """Serves one peer until it goes."""

    def __init__(
        self, channel: Channel, folders: Callable[[], Sequence[Path]], *, most: int = MOST, pause_s: float = 0.0
    ) -> None:
        """``pause_s``: wait after every turn, which limits the rate of records."""
        self.channel, self.folders, self.most, self.pause_s = channel, folders, most, pause_s
        self.collector: Collector | None = None
        self.known: Mapping[int, ProbeProcess] = {}
        self._next_look = self._next_account = 0.0
        self._busy = self._standing = False

    def run(self) -> None:
        """Serve until the peer says goodbye or has gone."""
        try:
            while True:
                message = self.channel.receive(0.0 if self._busy else IDLE_S if self.collector else 1.0)
                if message and message.kind == "goodbye":
                    return
                if message:
                    try:
                        kind, reply = "done", self._do(message.kind, message.document)
                    except PerflawError as error:
                        kind, reply = "failed", {"what": error.what, "why": error.why, "next": error.next_command}
                    except (KeyError, TypeError, ValueError) as error:
                        kind, reply = "failed", {"what": f"{message.kind}: not understood", "why": str(error)}
                    self.channel.send(kind, reply)
                elif self.collector:
                    now = time.monotonic()
                    if now >= self._next_look:
                        self.collector.folders = self._places({"standing": self._standing})
                        self.collector.look()
                        self._next_look = now + LOOK_S
                    self._busy = self._send(self.collector, now >= self._next_account)
                    if self.pause_s:
                        time.sleep(self.pause_s)
        except WireError:
            return  # the peer has gone, or sent a message that is not understood
        finally:
            if self.collector:
                self.collector.close()
            self.channel.close()

    def _send(self, collector: Collector, always: bool) -> bool:
        """Drain once and send the batch; whether it had records."""
        batch = collector.drain()
        if batch.count or (always and batch.sources != self.known):
            self.channel.send("batch", *as_message(batch, self.known))
            self.known = batch.sources
            self._next_account = time.monotonic() + ACCOUNT_S
        return batch.count > 0

    def _do(self, kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
        if kind == "collect":
            pids = [int(pid) for pid in document.get("pids", ())]
            remove, from_now = (bool(document.get(name, False)) for name in ("remove", "from_now"))
            if self.collector:
                self.collector.close()
            self._standing = bool(document.get("standing", False))
            self.collector = Collector(self._places(document), pids, most=self.most, remove=remove, from_now=from_now)
            self.known = {}
            self.collector.look()
            return {}
        if kind == "list":
            found = describe(self.folders(), [int(pid) for pid in document.get("pids", ())])
            return {"processes": [asdict(one) for one in found]}
        if kind == "switch":
            done = switch(
                self._places(document), ProbeSelection.of(document), document.get("enabled"), document.get("subsample")
            )
            return {"probes": done}
        if kind == "clock":
            return {"monotonic_ns": time.monotonic_ns()}
        if kind == "finish":
            # Drain to the last record.
            collector = self.collector
            if collector is None:
                return {"refused": []}
            collector.folders = self._places({"standing": self._standing})
            collector.look()
            if bool(document.get("stop", False)):
                for area in collector.areas():
                    area.enable_all(False)
            for _ in range(LAST_TURNS):
                if not self._send(collector, False):
                    break
            self._send(collector, True)
            refused = [f"{path.name}: {why}" for path, why in collector.refused.items()]
            collector.close()
            self.collector = None
            return {"refused": refused}
        raise ValueError("no such request")

    def _places(self, document: Mapping[str, Any]) -> Sequence[Path]:
        """Folders of areas. ``standing``: without those of recordings on this machine, whose recorders drain them."""
        found = self.folders()
        return found[:1] if document.get("standing", False) else found


def main(arguments: list[str]) -> None:
    """Serve the recorder at a descriptor. Further arguments: records a ring and turn, and seconds between turns."""
    descriptor, folder, *bounds = arguments
    most, pause_s = (int(bounds[0]), float(bounds[1])) if bounds else (MOST, 0.0)
    number = int(descriptor)
    # The recorder may be stopped for a while (Ctrl-Z); records that rings lose in that time are counted.
    channel = over(number, number, "recorder", frame_s=86_400.0)
    Service(channel, lambda: [Path(folder)], most=most, pause_s=pause_s).run()


if __name__ == "__main__":
    main(sys.argv[1:])
