"""What processes of the target were really given: ``/proc/PID/cmdline`` and ``environ`` of those that run, else as started."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from perflaw.explore.injectors.context import Context

_LOOKS: Final = 20


def commands(context: Context) -> Iterator[list[str]]:
    """Arguments of the trial's processes: of each started one and its children now, and as it was started."""
    for one in context.launched:
        for pid in [one.pid, *_children(one.pid)]:
            yield _words(f"/proc/{pid}/cmdline")
        yield list(one.command)


def environments(context: Context) -> Iterator[dict[str, str]]:
    """Environments of the trial's processes: as the kernel has them, and as they were started."""
    for one in context.launched:
        for pid in [one.pid, *_children(one.pid)]:
            yield dict(word.split("=", 1) for word in _words(f"/proc/{pid}/environ") if "=" in word)
        yield dict(one.environment)


def mentioned(text: str, context: Context) -> bool:
    """Whether a process was given a text within an argument, as a word or number of its own."""
    alone = re.compile(rf"(?<![\w.]){re.escape(text)}(?![\w.])")
    return any(alone.search(word) for words in commands(context) for word in words)


def _words(path: str) -> list[str]:
    for _ in range(_LOOKS):
        try:
            text = Path(path).read_bytes()
        except OSError:  # it has gone, or belongs to somebody else
            break
        if text:
            return text.decode(errors="replace").removesuffix("\0").split("\0")
        time.sleep(0.001)  # within execve(2) it is empty for an instant; of a zombie it stays so
    return []


def _children(pid: int, depth: int = 0) -> list[int]:
    try:
        told = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    below = [int(one) for one in told[:100]]
    return below + [deep for one in below if depth < 3 for deep in _children(one, depth + 1)]
