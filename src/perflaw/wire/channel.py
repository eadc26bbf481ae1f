"""Channels and their messages. A message has a kind, a small document, and a payload of bytes.

Its form on the wire:

    | "plw1" | length of the text u32 | length of the payload u32 | text: {"kind": …, "document": …} | payload |

Lengths are checked before anything is stored: a peer that announces a giant message is refused and costs no memory.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from perflaw.errors import TargetError


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
        raise WireError(f"no {kind!r} within {timeout_s:g} s", "the other side is busy, stuck or not perflaw's")
    if message.kind == "refused":
        raise WireError(str(message.document.get("what", "refused")), str(message.document.get("why", "")))
    if message.kind != kind:
        raise WireError(f"{message.kind!r} where {kind!r} was due", "the other side speaks another version")
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
        raise WireError(f"message {kind!r} cannot be sent", f"JSON has no such value ({error})") from error
    _check(len(text), len(payload), limits)
    return HEADER.pack(MAGIC, len(text), len(payload)) + text + payload


def _check(text: int, payload: int, limits: MessageLimits) -> None:
    if text > limits.text or payload > limits.payload:
        why = f"{text} and {payload} bytes; at most {limits.text} and {limits.payload} are accepted"
        raise WireError("a message that is too large", why)


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
        have = len(self._buffer)
        if have < HEADER.size:
            if not MAGIC.startswith(bytes(self._buffer[: len(MAGIC)])):
                raise WireError(
                    "the bytes received are no message", "the other side is not perflaw's, or speaks without TLS"
                )
            return HEADER.size - have
        magic, text, payload = HEADER.unpack_from(self._buffer)
        if magic != MAGIC:
            raise WireError(
                "the bytes received are no message", "the other side is not perflaw's, or speaks without TLS"
            )
        _check(text, payload, self.limits)
        return max(0, HEADER.size + int(text) + int(payload) - have)

    def messages(self) -> Iterator[Message]:
        """Every message that is whole."""
        while self._buffer and not self.wanted():
            yield self.take()

    def take(self) -> Message:
        """The first message; ``wanted()`` must be 0."""
        _, text, payload = HEADER.unpack_from(self._buffer)
        middle = HEADER.size + text
        content, rest = bytes(self._buffer[HEADER.size : middle]), bytes(self._buffer[middle : middle + payload])
        del self._buffer[: middle + payload]
        return _message(content, rest)


def _message(text: bytes, payload: bytes) -> Message:
    def refuse_constant(name: str) -> float:
        raise ValueError(name)  # NaN and infinity are not JSON

    try:
        content = json.loads(text, parse_constant=refuse_constant)
        kind, document = content["kind"], content["document"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WireError("a message that cannot be read", f"its text is damaged ({type(error).__name__})") from error
    if not isinstance(kind, str) or not isinstance(document, dict):
        raise WireError("a message that cannot be read", "its kind or document is of the wrong type")
    return Message(kind, document, payload)
