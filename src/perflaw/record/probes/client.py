"""Connections to collectors: a process on this machine, or one on another host."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perflaw.errors import TargetError, UsageError
from perflaw.record.probes.collector import THIS_MACHINE, Batch, ProbeProcess, Sender, from_message
from perflaw.wire.channel import Channel, Closed, Message, WireError, dismiss, spawn
from perflaw.wire.tls import Address, connect, parse_address, read_token

ANSWER_S: Final = 20.0
"""Longest time until a collector answers."""


class CollectorConnection:
    """A connection to a collector: batches come in order, answers to requests between them."""

    def __init__(
        self, channel: Channel, sender: Sender = THIS_MACHINE, process: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.channel, self.sender, self.process = channel, sender, process
        self.exact_ns = 0
        """Error of the difference between its host's clock and ours, ns."""
        self.sources: Mapping[int, ProbeProcess] = {}
        """The latest account of its processes."""
        self._waiting: list[Batch] = []

    def poll(self, timeout_s: float = 0.0, most: int = 16) -> list[Batch]:
        """Batches that have come, at most ``most``; waits for the first one. WireError if the collector has gone."""
        batches, self._waiting = self._waiting, []
        while len(batches) < most:
            message = self.channel.receive(0.0 if batches else timeout_s)
            if message is None:
                break
            if message.kind == "batch":
                batches.append(self._batch(message))
        return batches

    def ask(self, kind: str, document: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Send a request; gives the answer. TargetError if the collector refuses. Batches in between are kept."""
        self.channel.send(kind, document or {})
        for message in self._until_answered():
            self._waiting.append(self._batch(message))
        return self._answer

    def finish(self, stop: bool = True) -> Iterator[Batch]:
        """Make it drain to the last record; gives the batches as they come."""
        self.channel.send("finish", {"stop": stop})
        yield from self.poll_waiting()
        for message in self._until_answered():
            yield self._batch(message)

    def poll_waiting(self) -> list[Batch]:
        """Batches that came before the answer to a request."""
        batches, self._waiting = self._waiting, []
        return batches

    def close(self) -> None:
        """Say goodbye. A process that this one started is waited for, and killed if it does not end."""
        dismiss(self.channel, "goodbye", self.process, 5.0)

    def _until_answered(self) -> Iterator[Message]:
        """Batches that come before the answer; then the answer is in ``_answer``."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            message = self.channel.receive(max(deadline - time.monotonic(), 0.0))
            if message is None:
                why = f"waited {ANSWER_S:g} s; its machine is too busy, or it was stopped"
                raise WireError("the collector does not answer", why, "start it again: perflaw collector …")
            if message.kind == "batch":
                deadline = time.monotonic() + ANSWER_S
                yield message
            elif message.kind == "done":
                self._answer: Mapping[str, Any] = message.document
                return
            else:
                told = message.document
                what, why, remedy = (str(told.get(name, "")) for name in ("what", "why", "next"))
                raise TargetError(what, why, remedy)

    def _batch(self, message: Message) -> Batch:
        batch = from_message(message, self.sources, self.sender)
        self.sources = batch.sources
        return batch


def start_collector(folder: Path, *bounds: str) -> CollectorConnection:
    """Start a collector of the areas in ``folder``, in its own process.

    ``bounds``: records a ring and turn, and seconds between turns.
    """
    argv = [sys.executable, "-P", "-m", "perflaw.record.probes.service", "{channel}", str(folder), *bounds]
    process, channel = spawn(argv, "collector")
    collecting = CollectorConnection(channel, process=process)
    try:
        collecting.ask("collect", {"remove": True})
    except Closed as error:
        collecting.close()
        why = f"it ended with status {process.returncode}"
        raise TargetError("the collector of probes cannot be started", why, "perflaw --debug record …") from error
    return collecting


_ROUNDS: Final = 8
_APART: Final = 1 << 20
"""Distance between the numbers of processes of two collectors."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A collector on another host, and the credentials for it."""

    address: Address
    """Its address."""
    token: str
    """The token that both sides know."""
    authority: Path
    """Certificate to trust."""


def remotes(addresses: Sequence[str], token_file: str | None, authority: str | None) -> tuple[Remote, ...]:
    """The collectors of ``--remote``; UsageError if token or certificate are missing."""
    if addresses and not (token_file and authority):
        why = "a collector on another host wants --token-file and shows a certificate that --ca must name"
        raise UsageError(f"--remote {addresses[0]}", why, "--remote HOST:PORT --token-file FILE --ca FILE.pem")
    if not addresses:
        return ()
    token = read_token(Path(token_file or ""))
    return tuple(Remote(parse_address(text), token, Path(authority or "")) for text in addresses)


def reach(remote: Remote, number: int = 0) -> CollectorConnection:
    """Connect to a collector. ``number``: its number, from 1; that of this machine is 0. Raises WireError and UsageError."""
    collecting = CollectorConnection(connect(remote.address, remote.token, remote.authority))
    ahead, collecting.exact_ns = compare_clocks(collecting)
    collecting.sender = Sender(str(remote.address), number * _APART, ahead)
    return collecting


def compare_clocks(collecting: CollectorConnection) -> tuple[int, int]:
    """Our CLOCK_MONOTONIC minus that of the collector, and the error of that (half the quickest round trip), ns.

    Cristian, "Probabilistic clock synchronization", 1989: the other clock was read between question and answer.
    """
    best = (1 << 62, 0)
    for _ in range(_ROUNDS):
        before = time.monotonic_ns()
        theirs = int(collecting.ask("clock")["monotonic_ns"])
        after = time.monotonic_ns()
        best = min(best, (after - before, (before + after) // 2 - theirs))
    return best[1], best[0] // 2
