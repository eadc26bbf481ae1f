"""Who called the system call in which a thread sleeps, read from its memory while it goes on sleeping.

Stopping a thread would make some system calls fail (signal(7): epoll_wait and others give EINTR), so it is not stopped. The
kernel tells the stack pointer and the place of a thread that sleeps; its callers follow from the tables for unwinding, of the
libraries between as well. Where those need a register whose value the kernel does not tell, the caller is searched for: it is
known if it calls the function directly.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.attach.idle_waits import SleepingThread
from perflaw.record.attach.process import inside
from perflaw.record.compiled.elf import open_elf
from perflaw.record.compiled.frame_rules import RETURN_ADDRESS, STACK_POINTER, FrameRules

_STACK_BYTES: Final = 1 << 16
"""Part of the stack that is read."""
_MAX_DEPTH: Final = 256
_MOST_THREADS: Final = 64
"""Threads that are looked at in one turn."""
_WORD: Final = 8
_CALL, _CALL_BYTES = b"\xe8", 5
"""The instruction that calls a function at a fixed distance."""


class SleepingThreads:
    """Looks at the threads of one process that sleep; ``close`` it at the end."""

    def __init__(self, pid: int, memory: int) -> None:
        """``memory``: descriptor of the process's memory."""
        self._tasks = Path(f"/proc/{pid}/task")
        self._pid, self._stacks = pid, SleepingStacks(pid, memory)
        self._files: dict[str, SleepingThread] = {}

    def close(self) -> None:
        """Close all files."""
        for one in self._files.values():
            one.close()
        self._files = {}

    def look(self) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """The system call of each thread that sleeps, or of some where there are many, and the places in its functions.

        OSError if the process has ended.
        """
        names = [task.name for task in self._tasks.iterdir()]
        for name in self._files.keys() - names:
            self._files.pop(name).close()
        for name in random.sample(names, min(len(names), _MOST_THREADS)):
            with suppress(OSError):  # the thread has ended
                if name not in self._files:
                    self._files[name] = SleepingThread(self._pid, int(name))
                if call := self._files[name].call():
                    places = self._stacks.places(call)
                    if call == self._files[name].call():
                        yield call, places


@dataclass(frozen=True, slots=True)
class _Code:
    """A part of the address space that has code."""

    begin: int
    end: int
    loaded: int
    """Address at which its file begins, less the one that the file itself says."""
    rules: FrameRules | None


@dataclass
class SleepingStacks:
    """Reads the callers of sleeping threads of one process."""

    pid: int
    memory: int
    """Descriptor of the process's memory."""
    _code: list[_Code] = field(default_factory=list)
    _files: dict[str, tuple[FrameRules, int] | None] = field(default_factory=dict)
    """Path → its rules, and the address that it says it begins at."""

    def places(self, call: bytes) -> tuple[int, ...]:
        """Addresses in the functions that are open, the innermost first, as far as they are known.

        ``call``: what the kernel tells of the system call. OSError if the process has ended.
        """
        pointer, place = (int(word, 16) for word in call.split()[-2:])
        try:
            stack = np.frombuffer(os.pread(self.memory, _STACK_BYTES, pointer // _WORD * _WORD), "<u8")
        except (OverflowError, ValueError):
            return ()
        # A return address is behind the call, which may be the last instruction of its function.
        registers, base, found = {STACK_POINTER: pointer}, pointer // _WORD * _WORD, [place - 1]
        while len(found) < _MAX_DEPTH:
            code = self._code_at(found[-1])
            rule = code.rules.at(found[-1] - code.loaded) if code and code.rules else None
            if code is None or rule is None:
                break
            if rule.register in registers:
                frame = registers[rule.register] + rule.offset
            else:
                frame = self._searched(stack, base, registers[STACK_POINTER], code.loaded + rule.function)
            words = {}
            for register, offset in rule.saved.items():
                at = (frame + offset - base) // _WORD
                if 0 <= at < len(stack):
                    words[register] = int(stack[at])
            back = words.pop(RETURN_ADDRESS, 0)
            if not back or frame <= registers[STACK_POINTER]:
                break
            registers |= {**words, STACK_POINTER: frame}
            found.append(back - 1)
        return tuple(found)

    def _searched(self, stack: NDArray[np.uint64], base: int, pointer: int, function: int) -> int:
        """Where the frame of a function ends, which is behind a return address to a call of this function; 0 if none is found.

        Other words on the stack, which may be left over from calls that have ended, hardly look like this.
        """
        first = (pointer - base) // _WORD
        low, high = min(one.begin for one in self._code), max(one.end for one in self._code)
        for at in first + np.flatnonzero((stack[first:] > low) & (stack[first:] < high)):
            word = int(stack[at])
            instruction = os.pread(self.memory, _CALL_BYTES, word - _CALL_BYTES)
            if instruction[:1] == _CALL and word + int.from_bytes(instruction[1:], "little", signed=True) == function:
                return base + (int(at) + 1) * _WORD
        return 0

    def _code_at(self, address: int) -> _Code | None:
        for _ in range(2):
            for code in self._code:
                if code.begin <= address < code.end:
                    return code
            self._map()  # a library was loaded since
        return None

    def _map(self) -> None:
        """Read where which file's code is."""
        lowest: dict[str, int] = {}
        self._code = []
        for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            words = line.split(maxsplit=5)
            if len(words) < 6 or not words[5].startswith("/"):
                continue
            begin, end = (int(word, 16) for word in words[0].split("-"))
            loaded = lowest.setdefault(words[5], begin)
            if "x" in words[1]:
                known = self._rules(words[5])
                rules, first = known or (None, 0)
                self._code.append(_Code(begin, end, loaded - first, rules))

    def _rules(self, path: str) -> tuple[FrameRules, int] | None:
        if path not in self._files:
            with open_elf(inside(self.pid, path)) as elf:
                self._files[path] = (FrameRules(elf), elf.base) if elf else None
        return self._files[path]
