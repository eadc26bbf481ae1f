"""A collector as seen from the tracer: a process beside us, or one on another host."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perflaw.collect.probes.batches import HERE, Batch, Sender, Source, from_message
from perflaw.collect.wire.channel import Channel, Closed, Message, WireError
from perflaw.collect.wire.pipes import spawn
from perflaw.errors import TargetError

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
    argv = [sys.executable, "-P", "-m", "perflaw.collect.probes.process", "{channel}", str(folder), *bounds]
    process, channel = spawn(argv, "collector")
    collecting = Collecting(channel, process=process)
    try:
        collecting.ask("collect", {"remove": True})
    except Closed as error:
        collecting.close()
        why = f"it ended with status {process.returncode}"
        raise TargetError("the collector of probes cannot be started", why, "perflaw --debug record …") from error
    return collecting
