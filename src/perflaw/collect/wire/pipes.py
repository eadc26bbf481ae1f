"""Channels between processes of one machine: a pair of local sockets, or a pipe each way."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence

from perflaw.collect.wire.frames import Limits
from perflaw.collect.wire.streams import FRAME_S, StreamChannel, WantRead, WantWrite


class Descriptors:
    """A descriptor to read and one to write, which may be one. Owned: closed with the channel."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)

    def read(self, most: int) -> bytes:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        try:
            return os.read(self._reading, most)
        except BlockingIOError:
            raise WantRead from None

    def write(self, data: memoryview) -> int:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        try:
            return os.write(self._writing, data)
        except BlockingIOError:
            raise WantWrite from None

    def descriptors(self) -> tuple[int, int]:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        return self._reading, self._writing

    def close(self) -> None:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        for descriptor in {self._reading, self._writing}:
            os.close(descriptor)


def over(
    reading: int, writing: int, name: str, limits: Limits | None = None, frame_s: float = FRAME_S
) -> StreamChannel:
    """A channel over descriptors that this process has: its standard input and output, or one it was given."""
    return StreamChannel(Descriptors(reading, writing), name, limits, frame_s)


def pair(name: str = "pair") -> tuple[StreamChannel, StreamChannel]:
    """Two channels, each the other's end."""
    ours, theirs = (one.detach() for one in socket.socketpair())
    return over(ours, ours, name), over(theirs, theirs, name)


def spawn(
    argv: Sequence[str], name: str, environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], StreamChannel]:
    """Start a process that speaks over a descriptor, whose number stands for ``{channel}`` in its arguments.

    It is in a session of its own: Ctrl-C at the terminal is for this process, which then tells it.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        words = [word.replace("{channel}", str(number)) for word in argv]
        process = subprocess.Popen(
            words, pass_fds=(number,), env=environment, stdin=subprocess.DEVNULL, start_new_session=True
        )
    descriptor = ours.detach()
    return process, over(descriptor, descriptor, name)
