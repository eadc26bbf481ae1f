"""Filters of system calls (seccomp) of a running process: whether one would end the process for what a recording does there.

What is injected makes system calls that the program may never make. A filter that refuses one by an error does no harm; one
that answers by a signal would end the program, so such a program is left alone. The kernel tells the filters, programs of
classic BPF, to who may administrate it; native/core/base/filters.c evaluates them, as in a program that installs one while it
is recorded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perflaw.errors import TargetError
from perflaw.record.attach.stopping import Unusable, stopped_thread
from perflaw.record.build import build, core
from perflaw.record.tree.core import load

_INSTRUCTION_BYTES: Final = 8
_FUNCTIONS: Final[Mapping[str, tuple[Any, ...]]] = {
    "core_filter_obstacle": (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t),
    "core_filter_action": (ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p),
}
_TRY: Final = "start it without this filter (systemd: SystemCallFilter=)"


def check_filters(pid: int) -> None:
    """TargetError if a thread of the process has a filter that would end it, or may have one that is not told.

    Filters that this process has as well, as all of a container have those of the container, are no reason.
    """
    own, looked_at = _filters("self"), set[tuple[int, int]]()
    for task in Path(f"/proc/{pid}/task").iterdir():
        mode = _filters(f"{pid}/task/{task.name}")
        if mode[0] == 0 or mode == own or mode in looked_at:
            continue
        looked_at.add(mode)
        if mode[0] == 1:
            raise TargetError(f"process {pid}", "it has given up all system calls but read and write (seccomp)", _TRY)
        with suppress(Unusable):  # the thread has ended
            _check_thread(pid, int(task.name))


def _filters(process: str) -> tuple[int, int]:
    """Mode (0: none, 1: strict, 2: filters) and number of filters, as far as told."""
    found = {"Seccomp": 0, "Seccomp_filters": 0}
    with suppress(OSError):  # it has ended
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = int(value)
    return found["Seccomp"], found["Seccomp_filters"]


def _check_thread(pid: int, thread: int) -> None:
    with stopped_thread(pid, thread) as stopped:
        filters = stopped.seccomp_filters()
    if filters is None:
        why = (
            "it has a filter of system calls (seccomp) that may end it, and the kernel tells only root what it forbids"
        )
        raise TargetError(f"process {pid}", why, f"sudo perflaw attach {pid}")
    for name in filter(None, map(_obstacle, filters)):
        why = f"its filter of system calls (seccomp) would end it at {name}, which a recording calls there"
        raise TargetError(f"process {pid}", why, _TRY)


def action(program: bytes, number: int, arguments: Sequence[int] = ()) -> int:
    """What a filter answers to a system call: one of ``SECCOMP_RET_*``, without its data."""
    given = (ctypes.c_uint64 * 6)(*arguments)
    return int(_core().core_filter_action(program, len(program) // _INSTRUCTION_BYTES, number, given))


def _obstacle(program: bytes) -> str:
    """The name of a system call of a recording at which a filter would end the process; empty if there is none."""
    return (_core().core_filter_obstacle(program, len(program) // _INSTRUCTION_BYTES) or b"").decode()


def _core() -> ctypes.CDLL:
    return load(build(core()), _FUNCTIONS)
