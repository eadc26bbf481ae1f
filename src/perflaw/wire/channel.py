"""Channels and their messages. A message has a kind, a small document, and a payload of bytes.

Its form on the wire:

    | "plw1" | length of the text u32 | length of the payload u32 | text: {"kind": …, "document": …} | payload |

Lengths are checked before anything is stored: a peer that announces a giant message is refused and costs no memory.
Channels lie over non-blocking streams of bytes (pipes, local sockets, TLS), and every wait is bounded.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from perflaw.errors import TargetError

SAME_VERSION: Final = "pip install --upgrade perflaw, on both sides"
"""What to do where the two sides do not understand each other."""


class WireError(TargetError):
    """A connection that cannot be made or has failed: refused, damaged, or too slow."""


class Closed(WireError):
    """The other side has ended the connection, or this side has closed it."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that one side sent."""

    kind: str
    """Kind of message, which both sides know."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, texts, lists and mappings, as JSON has them."""
    payload: bytes = b""
    """Bytes beside the document: arrays of records."""


class Channel(Protocol):
    """A connection to one other process. One thread sends and one receives; both may be the same."""

    def send(self, kind: str, document: Mapping[str, Any] | None = None, payload: bytes = b"") -> None:
        """Send a message. :class:`Closed` if the other side has gone, or did not take it within the time for a frame."""

    def receive(self, timeout_s: float) -> Message | None:
        """The next message; None if none came in time. :class:`Closed` at the end, WireError for bytes that are no message.

        With a timeout of 0, it does not wait. A message that was received in part is kept for the next call.
        """

    def close(self) -> None:
        """Close the connection; may be called twice."""

    def fileno(self) -> int:
        """Descriptor, for ``select``, that becomes readable when bytes arrive; -1 once the channel is closed."""


def expect(channel: Channel, kind: str, timeout_s: float) -> Message:
    """The next message, which must be of that kind; WireError if it is not, or does not come in time."""
    message = channel.receive(timeout_s)
    if message is None:
        why = "the other side is busy, stuck or not perflaw's"
        raise WireError(f"no {kind!r} within {timeout_s:g} s", why, "start the other side again")
    if message.kind == "refused":
        what, why, remedy = (str(message.document.get(key, "")) for key in ("what", "why", "try"))
        raise WireError(what or "refused", why, remedy)
    if message.kind != kind:
        raise WireError(
            f"{message.kind!r} where {kind!r} was due", "the other side speaks another version", SAME_VERSION
        )
    return message


MAGIC: Final = b"plw1"
HEADER: Final = struct.Struct("<4sII")


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """Maximum size of one message."""

    text: int = 1 << 23
    """Bytes of its JSON text."""
    payload: int = 1 << 24
    """Bytes of its payload."""


UNGREETED: Final = MessageLimits(4096, 0)
"""Limits for a peer that has not shown the token yet."""


def encode(kind: str, document: Mapping[str, Any], payload: bytes, limits: MessageLimits) -> bytes:
    """A message as bytes; WireError if it exceeds the limits, or is not expressible in JSON."""
    try:
        text = json.dumps({"kind": kind, "document": dict(document)}, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        why = f"JSON has no such value ({error})"
        raise WireError(f"message {kind!r} cannot be sent", why, "perflaw --debug … shows where") from error
    _check(len(text), len(payload), limits)
    return HEADER.pack(MAGIC, len(text), len(payload)) + text + payload


def _check(text: int, payload: int, limits: MessageLimits) -> None:
    if text > limits.text or payload > limits.payload:
        why = f"{text} and {payload} bytes; at most {limits.text} and {limits.payload} are accepted"
        raise WireError("a message that is too large", why, SAME_VERSION)


class Decoder:
    """Takes bytes as they arrive and gives whole messages. It holds at most one message and the bytes read after it."""

    def __init__(self, limits: MessageLimits) -> None:
        self.limits = limits
        self._buffer = bytearray()

    @property
    def begun(self) -> bool:
        """Whether it holds a part of a message."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take bytes in."""
        self._buffer += data

    def wanted(self) -> int:
        """Bytes missing until the next message (or its header) is whole; WireError if the bytes are not a header of ours."""
        if not MAGIC.startswith(bytes(self._buffer[: len(MAGIC)])):
            why = "the other side is not perflaw's, or speaks without TLS"
            raise WireError("the bytes received are no message", why, "connect to the port of perflaw's, with its --ca")
        have = len(self._buffer)
        if have < HEADER.size:
            return HEADER.size - have
        _, text, payload = HEADER.unpack_from(self._buffer)
        _check(text, payload, self.limits)
        return max(0, HEADER.size + int(text) + int(payload) - have)

    def take(self) -> Message:
        """The first message; ``wanted()`` must be 0."""
        _, text_size, payload_size = HEADER.unpack_from(self._buffer)
        middle = HEADER.size + text_size
        end = middle + payload_size
        text, payload = bytes(self._buffer[HEADER.size : middle]), bytes(self._buffer[middle:end])
        del self._buffer[:end]

        def refuse_constant(name: str) -> float:
            raise ValueError(name)  # NaN and infinity are not JSON

        try:
            content = json.loads(text, parse_constant=refuse_constant)
            kind, document = content["kind"], content["document"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"its text is damaged ({type(error).__name__})"
            raise WireError("a message that cannot be read", why, SAME_VERSION) from error
        if not isinstance(kind, str) or not isinstance(document, dict):
            raise WireError("a message that cannot be read", "its kind or document is of the wrong type", SAME_VERSION)
        return Message(kind, document, payload)


FRAME_S: Final = 30.0
"""Longest time that a message may take from its first byte to its last, in either direction."""
_READ: Final = 1 << 18


class WantRead(Exception):
    """The stream has to become readable first."""


class WantWrite(Exception):
    """The stream has to become writable first."""


class Stream(Protocol):
    """Bytes in both directions without blocking. May raise WantRead and WantWrite, and OSError if the connection broke."""

    def read(self, most: int) -> bytes:
        """Read up to ``most`` bytes; empty at the end."""

    def write(self, data: memoryview) -> int:
        """Write some of the bytes; gives their number."""

    def descriptors(self) -> tuple[int, int]:
        """Descriptors to wait for before reading, and before writing."""

    def close(self) -> None:
        """Close the stream."""


class StreamChannel:
    """A :class:`~perflaw.wire.channel.Channel` over a stream."""

    def __init__(
        self, stream: Stream, name: str, limits: MessageLimits | None = None, frame_s: float = FRAME_S
    ) -> None:
        self.name = name
        """Name of the other side, for errors."""
        self.limits = limits or MessageLimits()
        self.frame_s = frame_s
        self._stream = stream
        self._decoder = Decoder(self.limits)
        self._begun_at = 0.0
        self._open = True

    def send(self, kind: str, document: Mapping[str, Any] | None = None, payload: bytes = b"") -> None:
        """See :class:`~perflaw.wire.channel.Channel`."""
        left = memoryview(encode(kind, document or {}, payload, self.limits))
        deadline = time.monotonic() + self.frame_s
        while left:
            try:
                left = left[self._checked().write(left) :]
            except WantRead:
                self._wait(False, deadline)
            except WantWrite:
                self._wait(True, deadline)
            except OSError as error:
                raise self._broken(error) from error

    def receive(self, timeout_s: float) -> Message | None:
        """See :class:`~perflaw.wire.channel.Channel`."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                is_whole = self._decoder.begun and not self._decoder.wanted()
            except WireError:
                self.close()  # nothing after garbage can be trusted
                raise
            if is_whole:
                message = self._decoder.take()
                self._begun_at = time.monotonic()  # for the bytes after it
                return message
            if not self._more(deadline):
                return None

    def widen(self, limits: MessageLimits, frame_s: float) -> None:
        """Allow larger messages and longer times, once the other side has shown the token."""
        self.limits = self._decoder.limits = limits
        self.frame_s = frame_s

    def close(self) -> None:
        """See :class:`~perflaw.wire.channel.Channel`."""
        if self._open:
            self._open = False
            self._stream.close()

    def fileno(self) -> int:
        """See :class:`~perflaw.wire.channel.Channel`."""
        return self._stream.descriptors()[0] if self._open else -1

    def _checked(self) -> Stream:
        if not self._open:
            raise Closed(f"{self.name}: the connection is closed")
        return self._stream

    def _more(self, deadline: float) -> bool:
        """Read once; False if nothing came before the deadline."""
        begun = self._decoder.begun
        try:
            data = self._checked().read(_READ)
        except WantRead:
            return self._wait_for_more(False, deadline, begun)
        except WantWrite:
            return self._wait_for_more(True, deadline, begun)
        except OSError as error:
            raise self._broken(error) from error
        if not data:
            self.close()
            raise Closed(f"{self.name}: the other side has gone", "in the middle of a message" if begun else "")
        if not begun:
            self._begun_at = time.monotonic()
        self._decoder.feed(data)
        return True

    def _wait_for_more(self, write: bool, deadline: float, begun: bool) -> bool:
        frame = self._begun_at + self.frame_s
        now = time.monotonic()
        if begun and now >= frame:
            self.close()
            why = f"the rest did not come within {self.frame_s:g} s"
            raise WireError(f"{self.name}: half a message", why, "look at the network, then start it again")
        until = min(deadline, frame) if begun else deadline
        self._poll(write, max(0.0, until - now))
        return now < deadline

    def _wait(self, write: bool, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            self.close()
            raise Closed(f"{self.name}: does not take what is sent", f"waited {self.frame_s:g} s")
        self._poll(write, left)

    def _poll(self, write: bool, seconds: float) -> None:
        reading, writing = self._checked().descriptors()
        poll = select.poll()
        poll.register(writing if write else reading, select.POLLOUT if write else select.POLLIN)
        poll.poll(int(seconds * 1000 + 0.999))

    def _broken(self, error: OSError) -> Closed:
        self.close()
        return Closed(f"{self.name}: the connection broke", error.strerror or str(error))


class Descriptors:
    """A stream over a descriptor to read and one to write, which may be the same. It owns and closes them."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)

    def read(self, most: int) -> bytes:
        """See :class:`~perflaw.wire.channel.Stream`."""
        try:
            return os.read(self._reading, most)
        except BlockingIOError:
            raise WantRead from None

    def write(self, data: memoryview) -> int:
        """See :class:`~perflaw.wire.channel.Stream`."""
        try:
            return os.write(self._writing, data)
        except BlockingIOError:
            raise WantWrite from None

    def descriptors(self) -> tuple[int, int]:
        """See :class:`~perflaw.wire.channel.Stream`."""
        return self._reading, self._writing

    def close(self) -> None:
        """See :class:`~perflaw.wire.channel.Stream`."""
        for descriptor in {self._reading, self._writing}:
            os.close(descriptor)


def over(
    reading: int, writing: int, name: str, limits: MessageLimits | None = None, frame_s: float = FRAME_S
) -> StreamChannel:
    """A channel over descriptors of this process: its standard input and output, or a descriptor that it was given."""
    return StreamChannel(Descriptors(reading, writing), name, limits, frame_s)


def dismiss(channel: Channel, word: str, process: subprocess.Popen[bytes] | None, seconds: float) -> None:
    """Say goodbye and close a channel; a process that was started for it is waited for, then killed."""
    with suppress(WireError):  # the other end has gone already
        channel.send(word)
    channel.close()
    if process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def pair(name: str = "pair") -> tuple[StreamChannel, StreamChannel]:
    """The two ends of a connection."""
    ours, theirs = (one.detach() for one in socket.socketpair())
    return over(ours, ours, name), over(theirs, theirs, name)


def spawn(
    argv: Sequence[str], name: str, environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], StreamChannel]:
    """Start a process with a channel to it, over a descriptor whose number replaces ``{channel}`` in its arguments.

    The process has its own session, so that Ctrl-C at the terminal reaches only this process, which then stops the other.
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
