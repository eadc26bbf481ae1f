"""A program's time limit: when it is over, the program and all it started get SIGTERM, and later what is left SIGKILL."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

GRACE_S = 3.0
"""Seconds between SIGTERM and SIGKILL."""
Family = dict[int, str]
"""Processes by number, with when they began: a number is given again to another process later."""


class Deadline:
    """The limit of one run. Like ``timeout``, which signals its whole group; ours is also the recorder's."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.begun = time.monotonic()
        self.family: Family = {}
        """Whom SIGTERM was sent to."""
        self.sent: signal.Signals | None = None
        """The gravest signal that was sent."""

    @property
    def told(self) -> str:
        """What it did, in words; empty where the run kept to its time."""
        return f"ran over its {self.seconds:g} s, ended by {self.sent.name}" if self.sent else ""

    def enforce(self, process: Popen[bytes]) -> None:
        """To be called often while the program runs."""
        if self.seconds is None:
            return
        passed = time.monotonic() - self.begun
        if self.sent is None and passed >= self.seconds:
            self.family = _family(process.pid)
            self._send(signal.SIGTERM)
        elif self.sent is signal.SIGTERM and passed >= self.seconds + GRACE_S:
            self._send(signal.SIGKILL)

    def finish(self) -> None:
        """The program has ended: what it started has the rest of the grace to end as well."""
        while self.sent and _alive(self.family) and time.monotonic() < self.begun + (self.seconds or 0) + GRACE_S:
            time.sleep(0.01)
        if self.sent and _alive(self.family):
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        self.sent = number
        for pid in _alive(self.family):
            with suppress(ProcessLookupError, PermissionError):  # it has ended, or is another user's by now
                os.kill(pid, number)


def _alive(family: Family) -> list[int]:
    """Those that still are what they were and have not ended."""
    return [pid for pid, began in family.items() if (now := _status(pid)) and now[1] == began and now[2] != "Z"]


def _family(pid: int) -> Family:
    """A process and its descendants."""
    everyone = {
        int(entry.name): status for entry in Path("/proc").glob("[0-9]*") if (status := _status(int(entry.name)))
    }
    found: Family = {}
    waiting = [pid]
    while waiting:
        number = waiting.pop()
        if number in everyone and number not in found:
            found[number] = everyone[number][1]
            waiting += [child for child, (parent, _, _) in everyone.items() if parent == number]
    return found


def _status(pid: int) -> tuple[int, str, str] | None:
    """Parent, start and state of a process, None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return int(fields[1]), fields[19].decode(), fields[0].decode()
