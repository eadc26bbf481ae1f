"""Samples of where the threads of a running compiled program are, and probably came from.

A thread that runs is stopped for some microseconds, and its place and the top of its stack are read. Callers are the words
there that follow a call of the program's own code. Some of them are left over from calls that have returned: call paths of
samples only tell which functions are worth recording.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.attach.injection import Unusable, stopped_thread
from perflaw.record.attach.process import NativeProgram, ended, inside, mapped_files
from perflaw.record.attach.stack_samples import StackSamples
from perflaw.record.compiled.dwarf import functions_at
from perflaw.record.compiled.selection import functions

INTERVAL_S: Final = 0.02
"""Mean interval of samples; twice that of Python, because each stops a thread."""
STACK_BYTES: Final = 4096
"""Part of the stack that is read."""
MAX_DEPTH: Final = 32
"""Callers that are kept."""


class NativeSampler:
    """Reads where the threads of a program are."""

    def __init__(self, program: NativeProgram) -> None:
        """TargetError if the program has ended."""
        self.program = program
        path = inside(program.pid, str(program.executable))
        try:
            loaded = mapped_files(program.pid).get(str(program.executable), 0)
        except OSError as error:
            raise TargetError(*ended(program.pid)) from error
        named = functions(path)
        self._offsets = sorted(named)
        self._starts = [loaded + offset for offset in self._offsets]
        self._sizes = [named[offset][0] for offset in self._offsets]
        self._path = path
        self._names: dict[int, str] = {}

    def collect(self, seconds: float, is_over: Callable[[], bool]) -> StackSamples:
        """Samples of these seconds, or until it is over or the program ends."""
        stacks: Counter[tuple[str, ...]] = Counter()
        looks, deadline = 0, time.monotonic() + seconds
        tasks = Path(f"/proc/{self.program.pid}/task")
        with (Path("/proc") / str(self.program.pid) / "mem").open("rb", buffering=0) as memory:
            while time.monotonic() < deadline and not is_over() and tasks.exists():
                looks += 1
                for task in tasks.iterdir():
                    with suppress(OSError, Unusable, TargetError):  # the thread has ended
                        if (task / "stat").read_bytes().rpartition(b")")[2].split(None, 1)[0] != b"R":
                            continue
                        with stopped_thread(self.program.pid, int(task.name)) as thread:
                            place, stack = thread.place(), thread.stack_pointer()
                            words = os.pread(memory.fileno(), STACK_BYTES, stack)
                        if path := self._path_of(place, words, memory.fileno()):
                            stacks[path] += 1
                time.sleep(INTERVAL_S * random.uniform(0.5, 1.5))
        return StackSamples(stacks, looks)

    def _path_of(self, place: int, stack: bytes, memory: int) -> tuple[str, ...]:
        """Functions of the program from the outermost to the innermost."""
        places = [self._function(place)]
        words = np.frombuffer(stack[: len(stack) // 8 * 8], "<u8")
        low, high = self._starts[0] if self._starts else 0, (self._starts[-1] + self._sizes[-1]) if self._starts else 0
        for word in words[(words > low) & (words <= high)].tolist():
            at = self._function(word - 1)
            if at >= 0 and _is_behind_call(os.pread(memory, 7, word - 7)):
                places.append(at)
        known = [at for at in places if at >= 0][:MAX_DEPTH]
        return tuple(self._name(at) for at in reversed(known))

    def _function(self, address: int) -> int:
        """Index of the function that has an address; -1 for none."""
        at = bisect_right(self._starts, address) - 1
        return at if at >= 0 and address < self._starts[at] + max(self._sizes[at], 1) else -1

    def _name(self, at: int) -> str:
        """Its name as recordings have it."""
        if at not in self._names:
            offset = self._offsets[at]
            code = functions_at(self._path, [offset]).get(offset)
            self._names[at] = code.name if code else f"{self.program.name}+{offset:#x}"
        return self._names[at]


def _is_behind_call(before: bytes) -> bool:
    r"""Whether the seven bytes before an address may end with a call instruction.

    >>> _is_behind_call(b"..\xe8....") and _is_behind_call(b".....\xff\xd0"), _is_behind_call(b"......\x90")
    (True, False)
    """
    if len(before) != 7:
        return False
    direct = before[2] == 0xE8
    # call r/m: FF /2, with a register, a register and an offset of 8 or 32 bits, or more
    return direct or any(before[at] == 0xFF and before[at + 1] >> 3 & 7 == 2 for at in range(1, 6))
