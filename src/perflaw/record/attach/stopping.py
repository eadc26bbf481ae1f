"""Threads of another process that are stopped (ptrace): one, or all of them at the same time."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError
from perflaw.record.attach.priority import hastened
from perflaw.record.attach.process import Place, ended, not_permitted

_SYSCALL: Final = b"\x0f\x05"
_PAGE: Final = 4096
_RED_ZONE: Final = 128
"""Bytes below the stack pointer that a function may use."""

_SEIZE, _INTERRUPT, _DETACH, _CONT, _SINGLESTEP, _GETREGS, _SETREGS = 0x4206, 0x4207, 17, 7, 9, 12, 13
_GETREGSET, _SETREGSET, _GETSIGMASK, _SETSIGMASK = 0x4204, 0x4205, 0x420A, 0x420B
_SECCOMP_GET_FILTER: Final = 0x420C
_XSTATE: Final = 0x202
"""NT_X86_XSTATE: the floating-point and vector registers."""
_WALL: Final = 0x40000000
_SIGTRAP: Final = 5
WAITING: Final = frozenset(
    # read, write, poll, select, nanosleep, connect, accept, sendto, recvfrom, sendmsg, recvmsg, wait4, io_getevents,
    # restart_syscall, clock_nanosleep, futex, epoll_wait, waitid, pselect6, ppoll, epoll_pwait, accept4, epoll_pwait2
    (0, 1, 7, 23, 35, 42, 43, 44, 45, 46, 47, 61, 208, 219, 230, 202, 232, 247, 270, 271, 281, 288, 441)
)
"""Numbers of system calls in which a thread waits. The C library makes none of them while it holds its own locks but
``futex``, and a thread that waits for one of its locks does not have the others that ``pthread_create`` needs."""


class _Registers(ctypes.Structure):
    """``user_regs_struct`` of x86-64."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
            *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
        )
    ]


class _Vector(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Unusable(Exception):
    """A thread cannot be used now."""


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    if _libc.ptrace(request, thread, address, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def seize(thread: int) -> None:
    """Trace a thread, which goes on; PermissionError if that is not permitted, ProcessLookupError if it has ended."""
    _ptrace(_SEIZE, thread)


def _seize(pid: int, thread: int) -> None:
    """:func:`seize`; Unusable if it has ended, TargetError if it may not be traced."""
    try:
        seize(thread)
    except ProcessLookupError as error:
        raise Unusable from error
    except PermissionError as error:
        raise not_permitted(pid, thread) from error


def _ask_to_stop(thread: int) -> None:
    with suppress(ProcessLookupError):  # it has ended just now, as waiting for it tells
        _ptrace(_INTERRUPT, thread)


def _is_running(thread: int) -> bool:
    """Whether a thread that was asked to stop has neither stopped nor ended."""
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, thread, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT | _WALL) is None
    return False


@dataclass(slots=True)
class Stop:
    """All threads of a process are stopped once."""

    threads: list[StoppedThread] = field(default_factory=list)
    """The threads."""
    gathering_ms: float = 0.0
    """Time until the last of them had stopped."""
    lasted_ms: float = 0.0
    """Time until all of them went on; known behind it."""


@contextmanager
def all_stopped(pid: int) -> Iterator[Stop]:
    """All threads of a process, stopped while entered. TargetError if it ended or may not be traced.

    The kernel is asked first for all that does not stop a thread. Then all are asked to stop at the same time, and those that
    wait for a processor get one.
    """
    stop, begun, known = Stop(), 0.0, set[int]()
    with ExitStack() as stack:
        while new := _threads(pid) - known:
            known |= new
            seized, refused = list[int](), None
            for thread in new:
                try:
                    _seize(pid, thread)
                    seized.append(thread)
                except Unusable:  # it has ended
                    continue
                except TargetError as error:
                    refused = error
                    break
            begun = begun or time.perf_counter()
            for thread in seized:
                _ask_to_stop(thread)
            with hastened([thread for thread in seized if _is_running(thread)]):
                for thread in seized:
                    with suppress(Unusable):
                        stop.threads.append(stack.enter_context(stopped_thread(pid, thread, is_asked=True)))
            if refused:  # those that were seized go on when the stack is left
                raise refused
        stop.gathering_ms = (time.perf_counter() - begun) * 1e3
        yield stop
    stop.lasted_ms = (time.perf_counter() - begun) * 1e3


def _threads(pid: int) -> set[int]:
    try:
        return {int(entry) for entry in os.listdir(f"/proc/{pid}/task")}  # noqa: PTH208 (quicker than paths)
    except OSError as error:
        raise TargetError(*ended(pid)) from error


@contextmanager
def stopped_thread(pid: int, thread: int, *, is_asked: bool = False) -> Iterator[StoppedThread]:
    """The thread, stopped while entered; Unusable if it ended, TargetError if it may not be traced.

    ``is_asked``: it was asked to stop, so that several threads stop at the same time.
    """
    if not is_asked:
        _seize(pid, thread)
        _ask_to_stop(thread)
    begun = time.perf_counter()
    stopped = None
    try:
        _, status = os.waitpid(thread, _WALL)
        if not os.WIFSTOPPED(status):
            raise Unusable
        stopped = StoppedThread(pid, thread)
        # A signal that arrived just before is given to the program when it goes on.
        stopped.signal = os.WSTOPSIG(status) if status >> 16 == 0 else 0
        yield stopped
    except (ProcessLookupError, ChildProcessError) as error:
        raise TargetError(*ended(pid)) from error
    finally:
        with suppress(OSError):  # the process ended while it was stopped
            _ptrace(_DETACH, thread, 0, stopped.signal if stopped else 0)
        if stopped:
            stopped.stopped_ms = (time.perf_counter() - begun) * 1e3


class StoppedThread:
    """A thread under ptrace."""

    def __init__(self, pid: int, thread: int) -> None:
        self.pid, self.thread = pid, thread
        self.signal = 0
        self.stopped_ms = 0.0
        self.registers = self._registers()

    def is_between_calls(self, evaluation: Place) -> bool:
        """Whether it certainly holds no lock of the C library."""
        place = self.registers.rip - evaluation.address
        # A system call that was interrupted has its number here; the processor's exceptions have -1.
        return self.registers.orig_rax in WAITING or 0 <= place < evaluation.size

    @contextmanager
    def kept(self) -> Iterator[None]:
        """While entered, the thread's registers and signal mask may change, and no signal handler runs in it."""
        vectors = ctypes.create_string_buffer(1 << 16)
        vector = _Vector(ctypes.addressof(vectors), len(vectors))
        mask = ctypes.c_uint64()
        ptrace, thread = _ptrace, self.thread
        ptrace(_GETREGSET, thread, _XSTATE, ctypes.addressof(vector))
        ptrace(_GETSIGMASK, thread, 8, ctypes.addressof(mask))
        without_traps = ctypes.c_uint64(2**64 - 1 & ~(1 << (_SIGTRAP - 1)))
        ptrace(_SETSIGMASK, thread, 8, ctypes.addressof(without_traps))
        try:
            yield
        finally:
            ptrace(_SETSIGMASK, thread, 8, ctypes.addressof(mask))
            ptrace(_SETREGSET, thread, _XSTATE, ctypes.addressof(vector))
            ptrace(_SETREGS, thread, 0, ctypes.addressof(self.registers))

    def find_syscall(self, function: Place) -> int:
        """Address of the instruction that enters the kernel, in the C library's function ``syscall``."""
        code = self.read(function.address, min(function.size or 64, 256))
        if _SYSCALL not in code:
            why = "its C library's function syscall is not as expected"
            raise TargetError(f"process {self.pid}", why, "perflaw record -- COMMAND")
        return function.address + code.index(_SYSCALL)

    def syscall(self, gate: int, number: int, *arguments: int) -> int:
        """Result of a system call that the thread makes; TargetError if the kernel refuses it."""
        names = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
        self._set(rip=gate, rax=number, **dict(zip(names, arguments, strict=False)))
        self._go_on(_SINGLESTEP)
        result = self._registers().rax
        if result > 2**64 - _PAGE:
            why = f"it may not have memory for code: {os.strerror(2**64 - result)}"
            raise TargetError(f"process {self.pid}", why, "perflaw record -- COMMAND")
        return int(result)

    def call(self, code: int) -> int:
        """Have the thread execute code up to its breakpoint; returns what is in ``eax``."""
        stack = (self.registers.rsp - _RED_ZONE) // 16 * 16
        self._set(rip=code, rsp=stack, rax=0)
        self._go_on(_CONT)
        return int(self._registers().rax & 0xFFFFFFFF)

    def place(self) -> int:
        """Where it stands."""
        return int(self._registers().rip)

    def stack_pointer(self) -> int:
        """The top of its stack."""
        return int(self._registers().rsp)

    def step(self) -> None:
        """Have it execute one instruction. A signal that comes meanwhile is given to the program when it goes on."""
        with hastened([self.thread]):
            _ptrace(_SINGLESTEP, self.thread)
            _, status = os.waitpid(self.thread, _WALL)
        if not os.WIFSTOPPED(status):
            raise ProcessLookupError
        if status >> 16 == 0 and os.WSTOPSIG(status) != _SIGTRAP:
            self.signal = os.WSTOPSIG(status)

    def seccomp_filters(self) -> list[bytes] | None:
        """Its filters of system calls, each the instructions of a classic BPF program; None if the kernel does not tell."""
        filters: list[bytes] = []
        while (count := _libc.ptrace(_SECCOMP_GET_FILTER, self.thread, len(filters), None)) > 0:
            program = ctypes.create_string_buffer(8 * count)
            _libc.ptrace(_SECCOMP_GET_FILTER, self.thread, len(filters), program)
            filters.append(program.raw)
        return filters if ctypes.get_errno() == errno.ENOENT else None

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the process."""
        with (Path("/proc") / str(self.pid) / "mem").open("rb", buffering=0) as memory:
            return os.pread(memory.fileno(), size, address)

    @contextmanager
    def memory(self) -> Iterator[int]:
        """A descriptor of the memory of the process, which stays that of the program that it runs now."""
        with (Path("/proc") / str(self.pid) / "mem").open("r+b", buffering=0) as memory:
            yield memory.fileno()

    def _registers(self) -> _Registers:
        registers = _Registers()
        _ptrace(_GETREGS, self.thread, 0, ctypes.addressof(registers))
        return registers

    def _set(self, **changes: int) -> None:
        """Set registers; all others are those that the thread was stopped with."""
        registers = _Registers.from_buffer_copy(self.registers)
        registers.orig_rax = 2**64 - 1  # no system call is to be restarted
        for name, value in changes.items():
            setattr(registers, name, value)
        _ptrace(_SETREGS, self.thread, 0, ctypes.addressof(registers))

    def _go_on(self, request: int) -> None:
        """Let the thread run until its next trap. Signals are blocked, except those that stop a whole process."""
        while True:
            _ptrace(request, self.thread)
            _, status = os.waitpid(self.thread, _WALL)
            if not os.WIFSTOPPED(status):
                raise ProcessLookupError
            if status >> 16 == 0 and os.WSTOPSIG(status) == _SIGTRAP:
                return
