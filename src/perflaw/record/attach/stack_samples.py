"""Samples of the Python stacks of a running program, read from its memory: the program does nothing and is not stopped.

A stack may change while it is read. Its innermost function is read first, so shares of functions are right; a call path may
in rare cases join two moments. Paths only tell which functions are worth recording.
"""

from __future__ import annotations

import os
import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from perflaw.errors import TargetError
from perflaw.record.attach.client_waits import ClientShares, ClientWaits
from perflaw.record.attach.idle_waits import IdleWaits, SleepingThread
from perflaw.record.attach.on_cpu import OnCpu
from perflaw.record.attach.process import RunningProgram, ended, not_permitted

INTERVAL_S: Final = 0.01
"""Mean interval of samples (Brünink & Rosenblum, FSE'16, §3)."""
MAX_DEPTH: Final = 400
"""Frames of a stack that are read; a stack that changes while it is read may lead in circles."""
_THREADS_S: Final = 0.25
"""Interval at which new threads are looked for, and at which it is looked where sleeping ones sleep."""
_MAX_THREADS: Final = 512
_MAX_NAME: Final = 1000
_WORD: Final = struct.Struct("<Q")
_MAIN: Final = ("__main__", "__mp_main__")
_TRAMPOLINE: Final = "<interpreter trampoline>"
"""Name of the code between C and Python of 3.12, which is no function of the program."""


class _Moved(Exception):
    """What was to be read is not there any more."""


@dataclass(frozen=True, slots=True)
class StackSamples:
    """What samples found."""

    stacks: Mapping[tuple[str, ...], int]
    """Functions from the outermost to the innermost → samples of running threads that found them; 0 where all threads that
    were found there only waited for a CPU, which still says who calls whom."""
    looks: int
    """How often the program was looked at."""
    idle: frozenset[str] = frozenset()
    """Functions whose durations contain waits that others decide: for clients, or until anybody asks for anything; as known
    so far."""


@dataclass(slots=True)
class _Thread:
    """A thread that is looked at."""

    state: int
    """Address of its state."""
    on_cpu: OnCpu
    """Says whether it runs."""
    sleeping: SleepingThread | None
    """Says where it sleeps; None if the kernel does not tell."""
    waits: IdleWaits = field(default_factory=IdleWaits)
    """What it is in."""

    @classmethod
    def open(cls, state: int, pid: int, thread: int) -> _Thread:
        """OSError if it has ended."""
        on_cpu = OnCpu(pid, thread)
        try:
            return cls(state, on_cpu, SleepingThread(pid, thread))
        except OSError:
            return cls(state, on_cpu, None)

    def close(self) -> None:
        """Close its files."""
        self.on_cpu.close()
        if self.sleeping:
            self.sleeping.close()


@dataclass
class StackSampler:
    """Reads the stacks of a program; ``close`` it at the end."""

    program: RunningProgram
    """The program."""
    offsets: Mapping[str, int]
    """Where its interpreter keeps frames (native/python/interpreter/offsets.c)."""
    _names: dict[int, str] = field(default_factory=dict)
    """Address of a code object → name of the function."""
    _threads: dict[int, _Thread] = field(default_factory=dict)
    """Threads by their ids."""

    def __post_init__(self) -> None:
        try:
            self._memory = os.open(f"/proc/{self.program.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError as error:
            raise not_permitted(self.program.pid) from error
        except OSError as error:
            raise TargetError(*ended(self.program.pid)) from error
        self._client_waits, self._client_shares = ClientWaits(self.program.pid, self._memory), ClientShares()

    def close(self) -> None:
        """Close all files."""
        os.close(self._memory)
        for thread in self._threads.values():
            thread.close()
        self._threads = {}

    def collect(self, seconds: float, is_over: Callable[[], bool]) -> StackSamples:
        """Samples of these seconds, or until it is over or the program ends."""
        stacks: Counter[tuple[str, ...]] = Counter()
        looks, next_search = 0, 0.0
        deadline = time.monotonic() + seconds
        while (now := time.monotonic()) < deadline and not is_over():
            is_search = now >= next_search
            if is_search:
                self._find_threads()
                next_search = now + _THREADS_S
            looks += 1
            for thread in list(self._threads.values()):
                with suppress(_Moved, OSError):  # the thread or a frame of it has ended meanwhile
                    runs = thread.on_cpu.runs()
                    if runs is None:
                        thread.waits.add_asleep()
                        if is_search and thread.sleeping:
                            self._look_at_sleeping(thread, thread.sleeping)
                    elif stack := self._stack(thread.state):
                        stacks[stack] += runs
                        thread.waits.add_running(stack)
                        self._client_shares.add(stack, 1, is_wait=False)
            # At random, so that a program that does something every 10 ms is not always met at the same place.
            time.sleep(INTERVAL_S * random.uniform(0.5, 1.5))
        idle = self._client_shares.functions().union(*(one.waits.functions() for one in self._threads.values()))
        return StackSamples(stacks, looks, idle)

    def _look_at_sleeping(self, thread: _Thread, sleeping: SleepingThread) -> None:
        """Note where a thread sleeps, unless it wakes up meanwhile."""
        call = sleeping.call()
        stack = self._stack(thread.state)
        if call and call == sleeping.call() and stack:
            looks = thread.waits.add_sleeping(stack, is_wait=sleeping.is_wait(call))
            self._client_shares.add(stack, looks, is_wait=self._client_waits.is_one(call))

    def _find_threads(self) -> None:
        """Find the threads that the interpreter knows."""
        found: dict[int, int] = {}
        at, steps = self.offsets, 0  # lists that change while they are read may lead in a circle
        with suppress(_Moved):  # the interpreter ends
            interpreter = self._word(self.program.evaluation.address + at["runtime"] + at["interpreters"])
            while interpreter and steps < _MAX_THREADS:
                state, steps = self._word(interpreter + at["threads"]), steps + 1
                while state and steps < _MAX_THREADS:
                    found[self._word(state + at["thread_id"])] = state
                    state, steps = self._word(state + at["next_thread"]), steps + 1
                interpreter = self._word(interpreter + at["next_interpreter"])
        for thread in self._threads.keys() - found.keys():
            self._threads.pop(thread).close()
        for thread, state in found.items():
            with suppress(OSError):  # it has ended
                if known := self._threads.get(thread):
                    known.state = state
                else:
                    self._threads[thread] = _Thread.open(state, self.program.pid, thread)

    def _stack(self, state: int) -> tuple[str, ...]:
        """Functions of a thread, the outermost first."""
        at = self.offsets
        holder = self._word(state + at["cframe"]) if at["cframe"] >= 0 else state
        frame = self._word(holder + at["current_frame"])
        names: list[str] = []
        try:
            while frame and len(names) < MAX_DEPTH:
                content = self._read(frame, at["frame_size"])
                (code,) = _WORD.unpack_from(content, at["code"])
                if name := self._names.get(code) or self._name(code, *_WORD.unpack_from(content, at["globals"])):
                    names.append(name)
                (frame,) = _WORD.unpack_from(content, at["previous"])
        except _Moved:
            if not names:
                raise
        return tuple(name for name in reversed(names) if name != _TRAMPOLINE)

    def _name(self, code: int, variables: int) -> str:
        """Name of a function as recordings have it; empty for what is no function."""
        at = self.offsets
        if self._word(code + at["type"]) != self.program.evaluation.address + at["code_type"]:
            return ""
        name = self._text(self._word(code + at["qualified_name"]))
        if name == _TRAMPOLINE:
            self._names[code] = name
            return name
        module = self._module(variables)
        module = self.program.main if module in _MAIN else module
        if name.endswith(">") and name != "<module>":
            line = struct.unpack("<i", self._read(code + at["first_line"], 4))[0]
            name = f"{name}:{line}"
        self._names[code] = f"{module}.{name}" if module else name
        return self._names[code]

    def _module(self, variables: int) -> str:
        """``__name__`` of global variables, which modules define first."""
        at = self.offsets
        keys = self._word(variables + at["keys"])
        head = self._read(keys, at["indices"])
        entries = keys + at["indices"] + (1 << head[at["index_bits"]])
        has_hash = head[at["key_kind"]] == 0  # DICT_KEYS_GENERAL; else DICT_KEYS_UNICODE
        size = 24 if has_hash else 16
        rows = self._read(entries, 8 * size)
        for row in range(8):
            key, value = struct.unpack_from("<QQ", rows, row * size + 8 * has_hash)
            if key and value and self._text(key) == "__name__":
                return self._text(value)
        return ""

    def _text(self, address: int) -> str:
        """A text object; those whose parts lie apart (made before 3.12 by old functions of C) are empty."""
        at = self.offsets
        head = self._read(address, at["ascii_text"])
        (length,) = struct.unpack_from("<q", head, at["text_length"])
        (state,) = struct.unpack_from("<I", head, at["text_state"])
        if not 0 <= length <= _MAX_NAME:
            raise _Moved
        kind, is_compact, is_ascii = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
        if not is_compact or kind not in (1, 2, 4):
            return ""
        data = self._read(address + at["ascii_text" if is_ascii else "compact_text"], length * kind)
        return data.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind], errors="replace")

    def _word(self, address: int) -> int:
        return int(_WORD.unpack(self._read(address, 8))[0])

    def _read(self, address: int, size: int) -> bytes:
        try:
            data = os.pread(self._memory, size, address)
        except (OSError, OverflowError, ValueError) as error:
            raise _Moved from error
        if len(data) != size:
            raise _Moved
        return data
