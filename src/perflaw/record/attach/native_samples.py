"""Samples of where the threads of a running compiled program are, and probably came from.

The kernel samples them by their CPU time. Where it does not, as in many containers, a thread that runs is stopped for some
microseconds, and its place and the top of its stack are read. Callers are the words there that follow a call of the program's
own code. Some of them are left over from calls that have returned: call paths of samples only tell which functions are worth
recording.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.attach.client_waits import ClientShares, ClientWaits
from perflaw.record.attach.cpu_samples import PERIOD_NS, STACK_BYTES, ProcessSamples
from perflaw.record.attach.on_cpu import OnCpu
from perflaw.record.attach.process import NativeProgram, ended, inside, mapped_files, not_permitted
from perflaw.record.attach.sleeping_stacks import SleepingThreads
from perflaw.record.attach.stack_samples import StackSamples
from perflaw.record.attach.stopping import Unusable, stopped_thread
from perflaw.record.compiled.dwarf import functions_at
from perflaw.record.compiled.inject.choice import all_functions, nameless

_MAX_KNOWN: Final = 256
"""Threads whose files are kept open."""
READ_S: Final = 0.04
"""Interval at which the kernel's samples are read."""
INTERVAL_S: Final = 0.02
"""Mean interval of samples that stop a thread; twice that of Python."""
MAX_DEPTH: Final = 32
"""Callers that are kept."""
_Places = tuple[int, ...]
"""Functions by their index, from the outermost to the innermost."""


class NativeSampler:
    """Reads where the threads of a program are; ``close`` it at the end."""

    def __init__(self, program: NativeProgram) -> None:
        """TargetError if the program has ended."""
        self.program = program
        self._memory = -1
        path = inside(program.pid, str(program.executable))
        try:
            loaded = mapped_files(program.pid).get(str(program.executable), 0)
        except OSError as error:
            raise TargetError(*ended(program.pid)) from error
        named = all_functions(path)
        self._offsets = sorted(named)
        self._starts = [loaded + offset for offset in self._offsets]
        # Of a function that no symbol names it is only known where the next one begins.
        ends = [*self._offsets[1:], self._offsets[-1] + 1] if named else []
        self._sizes = [named[offset][0] or end - offset for offset, end in zip(self._offsets, ends, strict=True)]
        self._path = path
        self._names: dict[int, str] = {}
        try:
            self._memory = os.open(f"/proc/{program.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError as error:
            raise not_permitted(program.pid) from error
        except OSError as error:
            raise TargetError(*ended(program.pid)) from error
        self._asleep = SleepingThreads(program.pid, self._memory)
        self._client_waits, self._shares = ClientWaits(program.pid, self._memory), ClientShares()

    def close(self) -> None:
        """Close all files."""
        os.close(self._memory)
        self._asleep.close()

    def collect(self, seconds: float, is_over: Callable[[], bool]) -> StackSamples:
        """Samples of these seconds, or until it is over or the program ends."""
        try:
            samples = ProcessSamples(self.program.pid)
        except OSError:
            return self._collect_stopping(seconds, is_over)
        stacks: Counter[_Places] = Counter()
        asleep: Counter[tuple[_Places, bool]] = Counter()
        looks, deadline = 0, time.monotonic() + seconds
        try:
            with suppress(FileNotFoundError):  # the program has ended
                while time.monotonic() < deadline and not is_over():
                    time.sleep(READ_S)
                    self._look_at_sleeping(asleep)
                    for one in samples.read():
                        looks += 1
                        with suppress(OSError):  # its code is gone
                            if path := self._path_of(one.place, one.stack):
                                stacks[path] += 1
        finally:
            samples.close()
        return self._named(stacks, asleep, looks, PERIOD_NS / 1e9 / READ_S)

    def _collect_stopping(self, seconds: float, is_over: Callable[[], bool]) -> StackSamples:
        """The same by stopping threads that run."""
        stacks: Counter[_Places] = Counter()
        asleep: Counter[tuple[_Places, bool]] = Counter()
        looks, deadline = 0, time.monotonic() + seconds
        tasks, threads = Path(f"/proc/{self.program.pid}/task"), dict[str, OnCpu]()
        with ExitStack() as files:
            while time.monotonic() < deadline and not is_over() and tasks.exists():
                looks += 1
                for task in tasks.iterdir():
                    with suppress(OSError, Unusable, TargetError):  # the thread has ended
                        if len(threads) == _MAX_KNOWN:  # most have ended
                            files.pop_all().close()
                            threads.clear()
                        if task.name not in threads:
                            one = OnCpu(self.program.pid, int(task.name))
                            threads[task.name] = files.enter_context(closing(one))
                        if not threads[task.name].runs():
                            continue
                        with stopped_thread(self.program.pid, int(task.name)) as thread:
                            place, stack = thread.place(), thread.stack_pointer()
                            words = os.pread(self._memory, STACK_BYTES, stack)
                        if path := self._path_of(place, words):
                            stacks[path] += 1
                with suppress(FileNotFoundError):  # the program has ended
                    self._look_at_sleeping(asleep)
                time.sleep(INTERVAL_S * random.uniform(0.5, 1.5))
        return self._named(stacks, asleep, looks, 1)

    def _look_at_sleeping(self, asleep: Counter[tuple[_Places, bool]]) -> None:
        """Count in which functions threads sleep, and whether they wait for a client."""
        for call, places in self._asleep.look():
            path = tuple(at for at in map(self._function, places) if at >= 0)
            with suppress(OSError):  # it has ended
                asleep[path, self._client_waits.is_one(call)] += 1

    def _named(
        self, stacks: Counter[_Places], asleep: Counter[tuple[_Places, bool]], looks: int, weight: float
    ) -> StackSamples:
        """The samples with names, which take long to find: they are looked for when sampling is over.

        ``weight``: looks at sleeping threads in the time that a sample of a running one stands for.
        """
        used = {at for places in (*stacks, *(places for places, _ in asleep)) for at in places}
        if missing := used - self._names.keys():
            found = functions_at(self._path, sorted(self._offsets[at] for at in missing))
            for at in missing:
                offset = self._offsets[at]
                code = found.get(offset)
                self._names[at] = code.name if code else nameless(self._path, offset)
        named: Counter[tuple[str, ...]] = Counter()
        for places, count in stacks.items():
            named[tuple(self._names[at] for at in places)] += count
        for path, count in named.items():
            self._shares.add(path, count * weight, is_wait=False)
        for (places, is_wait), count in asleep.items():
            self._shares.add((self._names[at] for at in places), count, is_wait=is_wait)
        return StackSamples(named, looks, self._shares.functions())

    def _path_of(self, place: int, stack: bytes) -> _Places:
        """Functions of the program from the outermost to the innermost."""
        places = [self._function(place)]
        words = np.frombuffer(stack[: len(stack) // 8 * 8], "<u8")
        low, high = self._starts[0] if self._starts else 0, (self._starts[-1] + self._sizes[-1]) if self._starts else 0
        for word in words[(words > low) & (words <= high)].tolist():
            at = self._function(word - 1)
            if at >= 0 and _is_behind_call(os.pread(self._memory, 7, word - 7)):
                places.append(at)
        known = [at for at in places if at >= 0][:MAX_DEPTH]
        return tuple(reversed(known))

    def _function(self, address: int) -> int:
        """Index of the function that has an address; -1 for none."""
        at = bisect_right(self._starts, address) - 1
        return at if at >= 0 and address < self._starts[at] + max(self._sizes[at], 1) else -1


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
