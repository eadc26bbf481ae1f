"""Filters of system calls (seccomp) of a running process: whether one would end the process for what a recording does there.

What is injected makes system calls that the program may never make. A filter that refuses one by an error does no harm; one
that answers by a signal would end the program, so such a program is left alone. The kernel tells the filters, programs of
classic BPF, to who may administrate it; they are evaluated here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError
from perflaw.record.attach.stopping import Unusable, stopped_thread

CALLS: Final[tuple[tuple[str, int, tuple[int, ...]], ...]] = (
    # What creates the thread, loads the library, and makes code executable.
    ("mmap", 9, (0, 1 << 22, 3, 0x22)), ("mmap", 9, (0, 1 << 22, 5, 2, 3)), ("mprotect", 10, (0, 4096, 5)),
    ("munmap", 11, ()), ("madvise", 28, ()), ("brk", 12, ()), ("clone3", 435, ()), ("clone", 56, (0x3D0F00,)),
    ("set_robust_list", 273, ()), ("rseq", 334, ()), ("futex", 202, ()), ("rt_sigprocmask", 14, ()), ("exit", 60, ()),
    ("membarrier", 324, ()), ("getrandom", 318, ()), ("sysinfo", 99, ()), ("sched_getaffinity", 204, ()),
    ("prlimit64", 302, ()),
    # What reads and writes the files of the recording, and of the libraries.
    ("openat", 257, (0xFFFFFF9C, 0, 0x80042)), ("close", 3, ()), ("read", 0, ()), ("pread64", 17, ()), ("write", 1, ()),
    ("lseek", 8, ()), ("fstat", 5, ()), ("newfstatat", 262, ()), ("readlink", 89, ()), ("rename", 82, ()),
    ("unlink", 87, ()), ("mkdir", 83, ()), ("fallocate", 285, ()), ("flock", 73, ()),
    # What measures and waits.
    ("clock_gettime", 228, ()), ("clock_nanosleep", 230, ()), ("process_vm_readv", 310, ()), ("getpid", 39, ()),
    ("getppid", 110, ()), ("gettid", 186, ()), ("kill", 62, ()), ("getrusage", 98, ()),
)  # fmt: skip
"""System calls that a recording makes in the process, with typical arguments."""
_ARCHITECTURE: Final = 0xC000003E
"""AUDIT_ARCH_X86_64."""
_DATA: Final = struct.Struct("<iIQ6Q")
"""``struct seccomp_data``: number, architecture, instruction pointer, arguments."""
_INSTRUCTION: Final = struct.Struct("<HBBI")
"""``struct sock_filter``: code, jumps if true and if false, constant."""
_ENDS: Final = (0x80000000, 0, 0x00030000)
"""Actions that end the process or thread, or send SIGSYS, which ends it unless it has a handler."""
_WORDS: Final = 1 << 32
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
    for name, number, arguments in CALLS:
        for program in filters:
            if action(program, number, arguments) in _ENDS:
                why = f"its filter of system calls (seccomp) would end it at {name}, which a recording calls there"
                raise TargetError(f"process {pid}", why, _TRY)


def action(program: bytes, number: int, arguments: Sequence[int] = ()) -> int:
    """What a filter answers to a system call: the action, without its data. Filters were checked by the kernel."""
    data = _DATA.pack(number, _ARCHITECTURE, 0, *arguments, *[0] * (6 - len(arguments)))
    memory, a, x, at = [0] * 16, 0, 0, 0
    while True:
        code, if_true, if_false, k = _INSTRUCTION.unpack_from(program, at * _INSTRUCTION.size)
        at += 1
        kind, operand = code & 7, x if code & 8 else k
        if kind in (0, 1):  # load into A or X
            mode = code & 0xE0
            value = {0x00: k, 0x60: memory[k & 15], 0x80: len(data)}.get(mode, 0)
            value = struct.unpack_from("<I", data, k)[0] if mode == 0x20 else value
            a, x = (value, x) if kind == 0 else (a, value)
        elif kind in (2, 3):
            memory[k] = a if kind == 2 else x
        elif kind == 4:
            a = _calculated(code & 0xF0, a, operand)
        elif kind == 5:
            tests = {0x10: a == operand, 0x20: a > operand, 0x30: a >= operand, 0x40: bool(a & operand)}
            at += k if code & 0xF0 == 0 else if_true if tests[code & 0xF0] else if_false
        elif kind == 6:
            return (a if code & 0x18 == 0x10 else k) & 0xFFFF0000
        else:
            a, x = (x, x) if code & 0x80 else (a, a)


def _calculated(operation: int, a: int, operand: int) -> int:
    """Arithmetic of classic BPF on words of 32 bits."""
    if operation == 0x30:
        return a // operand if operand else 0
    results = {
        0x00: a + operand, 0x10: a - operand, 0x20: a * operand, 0x40: a | operand, 0x50: a & operand,
        0x60: a << (operand & 31), 0x70: a >> (operand & 31), 0x80: -a, 0xA0: a ^ operand,
    }  # fmt: skip
    return results[operation] % _WORDS
