"""What every connection offers: messages sent and received, each a kind, a small document and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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
