"""Signals to the recorder while a target runs: the target gets them, and we stay to keep what it completed."""

from __future__ import annotations

import signal
from subprocess import Popen
from types import FrameType, TracebackType
from typing import Any

RELAYED = (signal.SIGTERM, signal.SIGHUP)
"""Sent to us alone, so we pass them on. Ctrl-C reaches the target by itself: it is in our process group."""


class Relay:
    """While entered, signals end the recording in order instead of ending us."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.process: Popen[bytes] | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Relay:
        """Take the signals over."""
        for number in (signal.SIGINT, *RELAYED):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asked for that: it stays
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        if number in RELAYED and self.process is not None:
            self.process.send_signal(number)
