"""What every connection offers: messages sent and received, each a kind, a small document and bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from perflaw.errors import TargetError


class WireError(TargetError):
    """A connection that cannot be made or went wrong: refused, damaged, or too slow."""


class Closed(WireError):  # noqa: N818 (what happened, which is not always an error)
    """The other side has gone, or this side has closed."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said."""

    kind: str
    """Which of the messages that both sides know."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, texts, lists and mappings, as JSON has them."""
    payload: bytes = b""
    """Bytes beside it: arrays of records."""


class Channel(Protocol):
    """A connection to one other process. One thread sends and one receives; both may be the same."""

    def send(self, kind: str, document: Mapping[str, Any] | None = None, payload: bytes = b"") -> None:
        """Say something. :class:`Closed` where nobody listens any more, or nobody took it within the time for a frame."""

    def receive(self, timeout_s: float) -> Message | None:
        """The next message, None where none came in time. :class:`Closed` at the end, WireError for what is no message.

        0 looks without waiting. What was received in part is kept for the next call.
        """

    def close(self) -> None:
        """End the connection; may be called twice."""

    def fileno(self) -> int:
        """Descriptor that becomes readable when something came, for ``select``; -1 once closed."""


def expect(channel: Channel, kind: str, timeout_s: float) -> Message:
    """The next message, which must be of that kind; WireError where it is not, or does not come in time."""
    message = channel.receive(timeout_s)
    if message is None:
        raise WireError(f"no {kind!r} within {timeout_s:g} s", "the other side is busy, stuck or not perflaw's")
    if message.kind == "refused":
        raise WireError(str(message.document.get("what", "refused")), str(message.document.get("why", "")))
    if message.kind != kind:
        raise WireError(f"{message.kind!r} where {kind!r} was due", "the other side speaks another version")
    return message


# ---- Messages as bytes, and back: magic, two lengths, a JSON text, a payload.
#
#     | "plw1" | length of the text u32 | length of the payload u32 | text: {"kind": …, "document": …} | payload |
#
# Lengths are looked at before anything is kept: a peer that names giant ones is refused, and costs no memory.

MAGIC: Final = b"plw1"
HEADER: Final = struct.Struct("<4sII")


@dataclass(frozen=True, slots=True)
class Limits:
    """Most that one message may be."""

    text: int = 1 << 23
    """Bytes of its JSON text."""
    payload: int = 1 << 24
    """Bytes of its payload."""


STRANGER: Final = Limits(4096, 0)
"""What a peer may send before it has shown the token."""


def encode(kind: str, document: Mapping[str, Any], payload: bytes, limits: Limits) -> bytes:
    """A message as bytes; WireError where it is larger than anybody would take, or JSON cannot say it."""
    try:
        text = json.dumps({"kind": kind, "document": dict(document)}, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise WireError(f"message {kind!r} cannot be sent", f"JSON has no such value ({error})") from error
    _check(len(text), len(payload), limits)
    return HEADER.pack(MAGIC, len(text), len(payload)) + text + payload


def _check(text: int, payload: int, limits: Limits) -> None:
    if text > limits.text or payload > limits.payload:
        why = f"{text} and {payload} bytes; at most {limits.text} and {limits.payload} are taken"
        raise WireError("a message that is too large", why)


class Decoder:
    """Takes bytes as they come and gives whole messages. Holds one message at most, and what came after it in one read."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._buffer = bytearray()

    @property
    def begun(self) -> bool:
        """Whether part of a message is there, the rest of which is still to come."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take bytes in."""
        self._buffer += data

    def wanted(self) -> int:
        """Bytes missing until the next message (or its header) is whole; WireError where what came is no header of ours."""
        have = len(self._buffer)
        if have < HEADER.size:
            if not MAGIC.startswith(bytes(self._buffer[: len(MAGIC)])):
                raise _garbage()
            return HEADER.size - have
        magic, text, payload = HEADER.unpack_from(self._buffer)
        if magic != MAGIC:
            raise _garbage()
        _check(text, payload, self.limits)
        return max(0, HEADER.size + int(text) + int(payload) - have)

    def messages(self) -> Iterator[Message]:
        """Every message that is whole."""
        while self._buffer and not self.wanted():
            yield self.take()

    def take(self) -> Message:
        """The first message, where ``wanted()`` is 0."""
        _, text, payload = HEADER.unpack_from(self._buffer)
        middle = HEADER.size + text
        said, rest = bytes(self._buffer[HEADER.size : middle]), bytes(self._buffer[middle : middle + payload])
        del self._buffer[: middle + payload]
        return _message(said, rest)


def _message(text: bytes, payload: bytes) -> Message:
    try:
        said = json.loads(text, parse_constant=_no_constant)
        kind, document = said["kind"], said["document"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WireError("a message that cannot be read", f"its text is damaged ({type(error).__name__})") from error
    if not isinstance(kind, str) or not isinstance(document, dict):
        raise WireError("a message that cannot be read", "its kind or document is of the wrong type")
    return Message(kind, document, payload)


def _no_constant(name: str) -> float:
    raise ValueError(name)  # NaN and infinity are no JSON


def _garbage() -> WireError:
    return WireError("what came is no message", "the other side is not perflaw's, or speaks without TLS")
