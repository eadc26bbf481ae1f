"""A process that stands in for this one: signals meant for us reach it, and its end is ours."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import IO


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, output: IO[bytes] | None = None) -> int:
    """Exit status of a command, 128 + signal where one killed it; both its outputs may go to a file.

    A terminal sends Ctrl-C to the whole process group, so there the command stays in ours. Elsewhere it comes to us
    alone: the command has a group of its own then, and all of that is sent what we are sent.
    """
    alone = not os.isatty(0)
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        process_group=0 if alone else None,
    )

    def hand_on(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and alone:
            os.killpg(process.pid, number)
        elif number != signal.SIGINT:
            process.send_signal(number)  # the recorder hands it on to the target by itself

    before = {number: signal.signal(number, hand_on) for number in _ours()}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def _ours() -> list[signal.Signals]:
    """Signals to hand on: none outside of the main thread, and none that nohup made us ignore."""
    if threading.current_thread() is not threading.main_thread():
        return []
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]
