"""A collector as seen from the tracer: a process beside us, or one on another host."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perflaw.errors import TargetError, UsageError
from perflaw.record.probes.collector import HERE, Batch, Sender, Source, from_message
from perflaw.wire.channel import Channel, Closed, Message, WireError
from perflaw.wire.streams import spawn
from perflaw.wire.tls import Address, connect, parse_address, read_token

ANSWER_S: Final = 20.0
"""Longest time until a collector answers."""


class Collecting:
    """What a collector sends, in order; requests to it are answered in between."""

    def __init__(self, channel: Channel, sender: Sender = HERE, process: subprocess.Popen[bytes] | None = None) -> None:
        self.channel, self.sender, self.process = channel, sender, process
        self.exact_ns = 0
        """How much the clock of its host may differ from what is taken off."""
        self.sources: Mapping[int, Source] = {}
        """Its processes, as last told."""
        self._waiting: list[Batch] = []

    def poll(self, timeout_s: float = 0.0, most: int = 16) -> list[Batch]:
        """Batches that have come, at most so many; waits for the first. WireError where the collector has gone."""
        batches, self._waiting = self._waiting, []
        while len(batches) < most:
            message = self.channel.receive(0.0 if batches else timeout_s)
            if message is None:
                break
            if message.kind == "batch":
                batches.append(self._batch(message))
        return batches

    def ask(self, kind: str, document: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Have something done; TargetError with the collector's reason where it refuses. Batches in between are kept."""
        self.channel.send(kind, document or {})
        for message in self._until_answered():
            self._waiting.append(self._batch(message))
        return self._answer

    def finish(self, stop: bool = True) -> Iterator[Batch]:
        """Have it drain to the last record; gives what came, as it comes. ``self.refused`` says which files were none."""
        self.channel.send("finish", {"stop": stop})
        yield from self.poll_waiting()
        for message in self._until_answered():
            yield self._batch(message)

    def poll_waiting(self) -> list[Batch]:
        """Batches that came while something else was waited for."""
        batches, self._waiting = self._waiting, []
        return batches

    def close(self) -> None:
        """Say goodbye; a process of ours is waited for, and ended where it does not go."""
        with suppress(WireError):
            self.channel.send("goodbye")
        self.channel.close()
        if self.process:
            try:
                self.process.wait(5.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _until_answered(self) -> Iterator[Message]:
        """Batches that come before the answer, which is in ``_answer`` then."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            message = self.channel.receive(max(deadline - time.monotonic(), 0.0))
            if message is None:
                raise WireError("the collector does not answer", f"waited {ANSWER_S:g} s")
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


def start_collector(folder: Path, *bounds: str) -> Collecting:
    """A collector of this machine's areas in ``folder``, in a process of its own, ready to drain.

    ``bounds``: records a ring and turn, seconds between turns.
    """
    argv = [sys.executable, "-P", "-m", "perflaw.record.probes.process", "{channel}", str(folder), *bounds]
    process, channel = spawn(argv, "collector")
    collecting = Collecting(channel, process=process)
    try:
        collecting.ask("collect", {"remove": True})
    except Closed as error:
        collecting.close()
        why = f"it ended with status {process.returncode}"
        raise TargetError("the collector of probes cannot be started", why, "perflaw --debug record …") from error
    return collecting


# ---- Collectors on other hosts: found by address, told the token, their clocks compared with ours.

_ROUNDS: Final = 8
_APART: Final = 1 << 20
"""Processes that one collector may meet before their numbers reach those of the next."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A collector on another host, and what is needed to talk to it."""

    address: Address
    """Where it listens."""
    token: str
    """What both sides know."""
    authority: Path
    """Certificate to trust."""


def remotes(addresses: Sequence[str], token_file: str | None, authority: str | None) -> tuple[Remote, ...]:
    """As the command line says them; UsageError where token or certificate are missing."""
    if addresses and not (token_file and authority):
        why = "a collector on another host wants --token-file and shows a certificate that --ca must name"
        raise UsageError(f"--remote {addresses[0]}", why, "--remote HOST:PORT --token-file FILE --ca FILE.pem")
    if not addresses:
        return ()
    token = read_token(Path(token_file or ""))
    return tuple(Remote(parse_address(text), token, Path(authority or "")) for text in addresses)


def reach(remote: Remote, number: int = 0) -> Collecting:
    """Connect; ``number``: which of several it is, from 1, this machine's own being 0. WireError, UsageError say why not."""
    collecting = Collecting(connect(remote.address, remote.token, remote.authority))
    ahead, collecting.exact_ns = compare_clocks(collecting)
    collecting.sender = Sender(str(remote.address), number * _APART, ahead)
    return collecting


def compare_clocks(collecting: Collecting) -> tuple[int, int]:
    """What to add to its CLOCK_MONOTONIC to have ours, and how exact that is (half the quickest round trip), ns.

    Cristian, "Probabilistic clock synchronization", 1989: the other side answered somewhere between question and answer.
    """
    best = (1 << 62, 0)
    for _ in range(_ROUNDS):
        before = time.monotonic_ns()
        theirs = int(collecting.ask("clock")["monotonic_ns"])
        after = time.monotonic_ns()
        best = min(best, (after - before, (before + after) // 2 - theirs))
    return best[1], best[0] // 2
