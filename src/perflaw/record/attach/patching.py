"""Writes the jumps of injected functions into a process that runs, and takes them back, while all its threads are stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import TargetError
from perflaw.record.attach.priority import urgent
from perflaw.record.attach.process import ended, image_of
from perflaw.record.attach.stopping import StoppedThread, all_stopped

JUMP: Final = np.dtype([("address", "<u8"), ("size", "<u4"), ("loop", "<u4"), ("original", "V24"), ("jump", "V24")])
"""``Jump`` of native/compiled/inject/patches.h."""
NEVER_LEFT: Final = (
    "a thread was in its first instructions, or in a loop back to them, whenever the threads were stopped"
)
"""Why a jump was not written."""
_GAP: Final = 1 << 16
"""Bytes between jumps that are written at once."""
_STEPS: Final = 64
"""Instructions that a thread may need to leave the first ones of a function."""
_PAGES: Final = 1024
"""Pages of code that are changed while the threads are stopped once: about 3 ms."""
_TRIES, _PAUSE_S, _MAX_PAUSE_S = 20, 0.005, 1.0
"""A function in whose first instructions, or loop back to them, a thread is is tried again so often, after these times."""
_CODE_SEGMENT, _FLAG_BITS = 0x33, 22
"""Of user programs on x86-64: the segment of code, and bits of the flags, of which the second is always set."""
_MAX_STACK: Final = 1 << 24
"""Bytes of a thread's stack that are searched for such functions."""


@dataclass(slots=True)
class Patching:
    """The jumps of a process."""

    pid: int
    """Id of the process."""
    rows: NDArray[np.void]
    """Rows ``JUMP``, in order of address."""
    image: bytes = b""
    """The program that the process runs (``process.image_of``); another one is left alone. Empty: whatever it runs."""
    stopped_ms: float = 0.0
    """How long its threads were stopped, at most."""
    gathering_ms: float = 0.0
    """How much of that passed until the last of them had stopped."""
    left_out: list[int] = field(default_factory=list)
    """Addresses of functions whose jumps were not written, because a thread was in them."""

    def enable(self) -> None:
        """Write the jumps. Threads that are within the bytes to be overwritten leave them first."""
        self._write("jump")

    def disable(self) -> None:
        """Write the original bytes back; the code that they were moved to stays, because threads may be in it."""
        self._write("original")

    def _write(self, column: Literal["jump", "original"]) -> None:
        """Stop the threads several times for a short while, rather than once for long."""
        written = [np.empty(0, JUMP)]
        for batch in self._batches():
            for _ in range(_TRIES):
                rest = batch._try_to_write(column)
                written.append(batch.rows)
                batch.rows = rest
                if not len(rest):
                    break
                _let_run(self.pid)
            self.left_out += batch.rows["address"].tolist()
            if batch.stopped_ms > self.stopped_ms:
                self.stopped_ms, self.gathering_ms = batch.stopped_ms, batch.gathering_ms
        self.rows = np.sort(np.concatenate(written), order="address")

    def _batches(self) -> list[Patching]:
        """The jumps in batches of which each changes so many pages at most."""
        if not len(self.rows):
            return []
        pages = np.cumsum(np.diff(self.rows["address"] >> 12, prepend=self.rows["address"][:1] >> 12) > 0)
        breaks = np.flatnonzero(np.diff(pages // _PAGES)) + 1
        return [Patching(self.pid, rows, self.image) for rows in np.split(self.rows, breaks)]

    def _try_to_write(self, column: Literal["jump", "original"]) -> NDArray[np.void]:
        """The rows that a thread is in the functions of, which stay as they are; the others are left, and are written."""
        with (Path("/proc") / str(self.pid) / "mem").open("r+b", buffering=0) as file, urgent():
            memory = file.fileno()
            prepared = self._prepared(memory, column)
            with all_stopped(self.pid) as stop:
                if (
                    self.image and image_of(self.pid) != self.image
                ):  # what is opened is of this program, or of an earlier one
                    raise TargetError(*ended(self.pid))
                rest = self._change(column, stop.threads, memory, prepared)
        if stop.lasted_ms > self.stopped_ms:
            self.stopped_ms, self.gathering_ms = stop.lasted_ms, stop.gathering_ms
        return rest

    def _change(
        self, column: str, threads: list[StoppedThread], memory: int,
        prepared: list[tuple[NDArray[np.void], bytes, bytes]],
    ) -> NDArray[np.void]:  # fmt: skip
        """:meth:`_try_to_write` while the threads are stopped."""
        rest = self.rows[:0]
        if column == "jump":
            for thread in threads:
                self._leave(thread)
            interrupted = self._interrupted(threads, memory)
            if interrupted.any():
                self.rows, rest = self.rows[~interrupted], self.rows[interrupted]
                prepared = self._prepared(memory, column)
        for part, before, block in prepared:
            first = int(part["address"][0])
            with suppress(OSError):  # the library was closed meanwhile
                if os.pread(memory, len(before), first) != before:  # something else changed code meanwhile
                    _, block = self._changed(memory, part, column)
                os.pwrite(memory, block, first)
        return rest

    def _interrupted(self, threads: list[StoppedThread], memory: int) -> NDArray[np.bool_]:
        """The functions in which a thread would come to within a jump, or take a turn of a loop for a call.

        It is there, or goes on there when a signal handler returns: the kernel has put the place where it does on the thread's
        stack, and no call returns to there.
        """
        first, loops = self.rows["address"].astype(np.int64), self.rows["loop"].astype(np.int64)
        sizes, found = np.maximum(self.rows["size"], loops), np.zeros(len(first), np.bool_)
        spans = [span for span, rights in _mappings(self.pid) if "w" in rights]
        places = np.array([thread.place() for thread in threads], np.int64)
        for words in (places, *(_interrupted_places(_stack_words(thread, memory, spans)) for thread in threads)):
            near = words[(words >= first[0]) & (words < first[-1] + sizes[-1])]
            at = np.searchsorted(first, near, "right") - 1
            inside = near - first[at]
            # A thread that is at the first instruction may begin a turn of a loop; on the stack, that may be a pointer to it.
            found[at[(inside < sizes[at]) & ((inside > 0) | ((loops[at] > 0) & (words is places)))]] = True
        return found

    def _prepared(self, memory: int, column: str) -> list[tuple[NDArray[np.void], bytes, bytes]]:
        """Each stretch of code with jumps, its bytes, and what they are to be. Libraries that were closed have none."""
        found = []
        for part in self._parts():
            with suppress(OSError):  # it was closed just now
                found.append((part, *self._changed(memory, part, column)))
        return found

    def _parts(self) -> list[NDArray[np.void]]:
        """The jumps that lie in code, by stretch that is read and written at once."""
        spans = [span for span, rights in _mappings(self.pid) if "x" in rights]
        first, end = (np.array([getattr(span, side) for span in spans], np.int64) for side in ("start", "stop"))
        starts = self.rows["address"].astype(np.int64)
        at = np.searchsorted(first, starts, "right") - 1
        is_code = (at >= 0) & (starts + self.rows["size"] <= end[at]) if len(end) else np.zeros(len(starts), np.bool_)
        rows, starts, at = self.rows[is_code], starts[is_code], at[is_code]
        breaks = (np.diff(starts) > _GAP) | (np.diff(at) > 0)
        return [part for part in np.split(rows, np.flatnonzero(breaks) + 1) if len(part)]

    def _changed(self, memory: int, part: NDArray[np.void], column: str) -> tuple[bytes, bytes]:
        """The bytes of a stretch of code, and what they are to be. A function that is not as expected stays as it is."""
        other, first = "original" if column == "jump" else "jump", int(part["address"][0])
        before = os.pread(memory, int(part["address"][-1]) + JUMP["jump"].itemsize - first, first)
        block = bytearray(before)
        for address, size, _, original, jump in part.tolist():
            at, texts = address - first, {"original": original, "jump": jump}
            if block[at : at + size] == texts[other][:size]:
                block[at : at + size] = texts[column][:size]
        return before, bytes(block)

    def _leave(self, thread: StoppedThread) -> None:
        """Have a thread go on until it is not between the first and the last byte of a jump."""
        for _ in range(_STEPS):
            address = thread.place()
            at = int(np.searchsorted(self.rows["address"], address, "right")) - 1
            if at < 0 or not 0 < address - int(self.rows["address"][at]) < int(self.rows["size"][at]):
                return
            if self.rows["loop"][at]:  # the loop may be long, and is looked at later
                return
            thread.step()
        raise TargetError(f"process {self.pid}", "a thread does not leave the beginning of a function", "try it again")


def _stack_words(thread: StoppedThread, memory: int, spans: list[range]) -> NDArray[np.int64]:
    """The words of a thread's stack, from its innermost call outwards."""
    low = thread.stack_pointer() // 8 * 8
    for span in spans:
        if low in span:
            with suppress(OSError):  # a guard page
                content = os.pread(memory, min(span.stop - low, _MAX_STACK), low)
                return np.frombuffer(content[: len(content) // 8 * 8], "<i8")
    return np.empty(0, np.int64)


def _interrupted_places(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places among the words of a stack where signal handlers return to.

    Behind such a place, the kernel has put the flags and the code segment (``struct sigcontext``). Words that functions have
    left there, which may happen to be places too, have none behind them.
    """
    place, flags, segment = words[:-2], words[1:-1], words[2:]
    is_returned_to = (segment & 0xFFFF == _CODE_SEGMENT) & (flags & 2 != 0) & (flags >> _FLAG_BITS == 0)
    return np.asarray(place[is_returned_to], np.int64)


def _let_run(pid: int) -> None:
    """Pause until all threads that can run have done so: on a busy machine one may have no processor for many tries."""
    waiting, deadline = _runnable(pid), time.monotonic() + _MAX_PAUSE_S
    time.sleep(_PAUSE_S)
    while waiting and time.monotonic() < deadline:
        now = _runnable(pid)
        waiting = {thread: ran for thread, ran in waiting.items() if now.get(thread) == ran}
        time.sleep(_PAUSE_S if waiting else 0)


def _runnable(pid: int) -> dict[str, str]:
    """Threads that run or wait for a processor → how long they have run."""
    found = {}
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # the thread has ended
                if (task / "stat").read_text().rpartition(")")[2].split(None, 1)[0] == "R":
                    found[task.name] = (task / "schedstat").read_text().split(None, 1)[0]
    return found


def _mappings(pid: int) -> Iterator[tuple[range, str]]:
    """What a process has mapped, in order of address: addresses and rights."""
    with (Path("/proc") / str(pid) / "maps").open() as maps:
        for line in maps:
            span, rights, *_ = line.split(maxsplit=2)
            begin, end = (int(part, 16) for part in span.split("-"))
            if end < 1 << 63:  # not the kernel's own page
                yield range(begin, end), rights
