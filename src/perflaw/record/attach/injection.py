"""Has a running process create a thread of ours, which loads the extension and calls its function ``perflaw_attach``.

One thread of the process is stopped (ptrace) where it certainly holds no lock of the C library: in a system call that
waits, or while it executes Python code itself. It calls ``mmap`` for a few pages and ``pthread_create`` for the new thread;
then it has its registers back and goes on, mostly within a millisecond. The other threads run all the time. All else happens
in the new thread: the code for it is written to the pages, and no code of the program is changed.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from perflaw.errors import TargetError
from perflaw.record.attach.process import (
    NO_PTRACE,
    Attachable,
    Place,
    ended,
    find_functions,
    not_permitted,
    other_machine,
    yama_refusal,
)  # fmt: skip

SYMBOL: Final = "perflaw_attach"
"""Function of the extension that the new thread calls (native/python/attach.c)."""
PATIENCE_S: Final = 5.0
"""Time in which a thread has to come to a place where it can be used."""
_LIBC_FUNCTIONS: Final = {"pthread_create", "dlopen", "dlsym", "dlerror", "syscall"}
_SYSCALL: Final = b"\x0f\x05"
_PAGE: Final = 4096
_RED_ZONE: Final = 128
"""Bytes below the stack pointer that a function may use."""
_HEAD: Final = struct.Struct("<QQQ")
"""``AttachRequest`` of native/python/attach.h: size, failure, settings."""

_RECORDS_ALREADY: Final = 2
"""``has_failed`` of a library that records already (native/compiled/inject/launch.c)."""

_SEIZE, _INTERRUPT, _DETACH, _CONT, _SINGLESTEP, _GETREGS, _SETREGS = 0x4206, 0x4207, 17, 7, 9, 12, 13
_GETREGSET, _SETREGSET, _GETSIGMASK, _SETSIGMASK = 0x4204, 0x4205, 0x420A, 0x420B
_XSTATE: Final = 0x202
"""NT_X86_XSTATE: the floating-point and vector registers."""
_WALL: Final = 0x40000000
_SIGTRAP: Final = 5
_MMAP, _MPROTECT, _MUNMAP = 9, 10, 11
_READ_WRITE, _READ_EXECUTE, _PRIVATE_ANONYMOUS = 3, 5, 0x22
_WAITING: Final = frozenset(
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


@dataclass(frozen=True, slots=True)
class NewThread:
    """The thread that was created in a process."""

    pid: int
    """Id of the process."""
    pages: int
    """Address of what it was given."""
    message: int
    """Address of the message there."""
    stopped_ms: float
    """How long the thread that created it was stopped."""

    def failure(self) -> str:
        """Why it could not load the extension, in the words of the system's loader; empty as far as is known."""
        # Of a process that is gone, nothing is known.
        with suppress(OSError), (Path("/proc") / str(self.pid) / "mem").open("rb", buffering=0) as memory:
            _, failed, _ = _HEAD.unpack(os.pread(memory.fileno(), _HEAD.size, self.pages))
            if failed == _RECORDS_ALREADY:
                return "another recorder has begun at the same moment"
            if failed:
                return os.pread(memory.fileno(), 500, self.message).split(b"\0")[0].decode(errors="replace")
        return ""


def refusal() -> tuple[str, str] | None:
    """Why processes of the same user cannot be attached to here, and the way out; None if they can. Tries it out."""
    if why := other_machine():
        return why, "perflaw record -- python app.py"
    if os.geteuid() and (refused := yama_refusal()):
        return refused
    with subprocess.Popen(["sleep", "10"]) as process:
        try:
            _ptrace(_SEIZE, process.pid)
        except PermissionError:
            return NO_PTRACE
        finally:
            process.kill()
    return None


def start_thread(program: Attachable, extension: Path, settings: Mapping[str, str], loaded: int = 0) -> NewThread:
    """Create the thread. TargetError if the process ended, cannot be traced, or has no thread that can be used.

    ``loaded``: the address of ``SYMBOL`` in an extension that the process has loaded before; 0 if it is to load this one.

    A helper process does it, in a session of its own: a thread that is being used dies if its tracer does, so the helper
    completes its few milliseconds of work even where the recorder is killed meanwhile.
    """
    reading, writing = os.pipe()
    helper = os.fork()
    if not helper:
        _answer(program.pid, writing, lambda: _start_thread(program, extension, settings, loaded))
    os.close(writing)
    with open(reading, "rb") as answer:  # noqa: PTH123 (a descriptor)
        text = answer.read()
    os.waitpid(helper, 0)
    if not text:
        raise TargetError(f"process {program.pid}", "the process that attaches to it was killed", "perflaw doctor")
    result = json.loads(text)
    if isinstance(result, list):
        raise TargetError(*result)
    return NewThread(**result)


def _answer(pid: int, descriptor: int, work: Callable[[], NewThread]) -> NoReturn:
    """The life of the helper: write the new thread, or the three parts of an error, as JSON."""
    try:
        os.setsid()
        result: object = asdict(work())
    except (FileNotFoundError, ProcessLookupError):  # what is read of it below /proc
        result = ended(pid)
    except TargetError as error:
        result = [error.what, error.why, error.next_command]
    except BaseException as error:
        result = ["perflaw attach", f"unexpected {type(error).__name__}: {error}", "perflaw doctor"]
    try:
        os.write(descriptor, json.dumps(result).encode())
    finally:
        os._exit(0)


def _start_thread(program: Attachable, extension: Path, settings: Mapping[str, str], loaded: int) -> NewThread:
    """Create the thread from this process."""
    functions = find_functions(program.pid, set(_LIBC_FUNCTIONS))
    if missing := sorted(_LIBC_FUNCTIONS - functions.keys()):
        why = f"its C library has no function {missing[0]} (is it linked statically?)"
        raise TargetError(f"process {program.pid}", why, "perflaw record -- python app.py")
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for thread in _threads(program.pid):
            with suppress(Unusable):  # the next thread may be usable, or this one later
                return _use(program, thread, functions, partial(_layout, functions, extension, settings, loaded))
        time.sleep(0.002)
    why = f"for {PATIENCE_S:g} s every thread of it was inside a long call into C"
    raise TargetError(f"process {program.pid}", why, f"perflaw attach {program.pid}")


def _threads(pid: int) -> Iterator[int]:
    """Ids of the threads, those that wait first; TargetError if the process has ended."""
    try:
        found = [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # the process is gone, which is said below
        found = []
    if not found:
        raise TargetError(*ended(pid))
    yield from sorted(found, key=lambda thread: (not _seems_to_wait(pid, thread), thread))


def _seems_to_wait(pid: int, thread: int) -> bool:
    """Whether a thread is in a system call that waits, as far as the kernel says without stopping it."""
    with suppress(OSError, ValueError):  # it runs, has ended, or the kernel does not say
        return int(Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()[0]) in _WAITING
    return False


def _use(
    program: Attachable, thread: int, functions: Mapping[str, Place], layout_at: Callable[[int], _Layout]
) -> NewThread:
    """Have this thread create the new one; Unusable if it is at another place."""
    with stopped_thread(program.pid, thread) as stopped:
        if not stopped.is_between_calls(program.evaluation):
            raise Unusable
        with stopped.kept():
            gate = stopped.find_syscall(functions["syscall"])
            size = len(layout_at(0).image)
            pages = stopped.syscall(gate, _MMAP, 0, size, _READ_WRITE, _PRIVATE_ANONYMOUS, -1 & 2**64 - 1, 0)
            layout = layout_at(pages)
            stopped.write(pages, layout.image)
            try:
                stopped.syscall(gate, _MPROTECT, layout.code, _PAGE, _READ_EXECUTE)
                error = stopped.call(layout.code)
            except TargetError:
                stopped.syscall(gate, _MUNMAP, pages, size)
                raise
            if error:
                stopped.syscall(gate, _MUNMAP, pages, size)
                why = f"it cannot create a thread: {os.strerror(error)}"
                raise TargetError(f"process {program.pid}", why, f"cat /proc/{program.pid}/limits")
    return NewThread(program.pid, pages, layout.message, stopped.stopped_ms)


# ---- what is written to the process ----


@dataclass(frozen=True, slots=True)
class _Layout:
    """The pages of the new thread: the request and its strings, then a page of code."""

    image: bytes
    """Their content."""
    code: int
    """Address of the code, which begins with the call of ``pthread_create``."""
    message: int
    """Address of the message if the extension cannot be loaded."""


def _layout(
    functions: Mapping[str, Place], extension: Path, settings: Mapping[str, str], loaded: int, pages: int
) -> _Layout:
    strings = bytearray()

    def add(text: bytes) -> int:
        strings.extend(text + b"\0")
        return pages + _HEAD.size + len(strings) - len(text) - 1

    path, symbol = add(os.fsencode(extension)), add(SYMBOL.encode())
    pairs = (part for name, value in settings.items() for part in (f"PERFLAW_TARGET_{name}", value))
    given = add(b"".join(os.fsencode(part) + b"\0" for part in pairs))
    identity, message = add(bytes(16)), add(bytes(_PAGE))  # the id of the thread; the loader's message
    code = pages + (_HEAD.size + len(strings) + _PAGE - 1) // _PAGE * _PAGE
    at = {name: struct.pack("<Q", function.address) for name, function in functions.items()}
    create = b"".join(
        (
            b"\x48\xbf" + struct.pack("<Q", identity),  # mov rdi, identity
            b"\x31\xf6",  # xor esi, esi: default attributes
            b"\x48\xba" + struct.pack("<Q", code + 64),  # mov rdx, the body
            b"\x48\xb9" + struct.pack("<Q", pages),  # mov rcx, its argument
            b"\x48\xb8" + at["pthread_create"] + b"\xff\xd0",  # mov rax, pthread_create; call rax
            b"\xcc",  # int3
        )
    )
    call = b"".join(
        (
            b"\x48\x89\xdf\x5b",  # mov rdi, rbx: the request; pop rbx
            b"\xff\xe0",  # jmp rax: it returns to the C library, so that it may unmap this code
        )
    )
    find = b"".join(
        (
            b"\x48\x89\xc7",  # mov rdi, rax
            b"\x48\xbe" + struct.pack("<Q", symbol),  # mov rsi, symbol
            b"\x48\xb8" + at["dlsym"] + b"\xff\xd0",  # mov rax, dlsym; call rax
            b"\x48\x85\xc0\x74" + bytes([len(call)]),  # test rax, rax; jz failed
        )
    )
    body = b"".join(
        (
            b"\xf3\x0f\x1e\xfa\x53\x48\x89\xfb",  # endbr64; push rbx; mov rbx, rdi
            b"\x48\xbf" + struct.pack("<Q", path),  # mov rdi, path
            b"\xbe\x02\x00\x00\x00",  # mov esi, RTLD_NOW
            b"\x48\xb8" + at["dlopen"] + b"\xff\xd0",  # mov rax, dlopen; call rax
            b"\x48\x85\xc0\x74" + bytes([len(find) + len(call)]),  # test rax, rax; jz failed
            find,
            call,
            b"\x48\xb8" + at["dlerror"] + b"\xff\xd0",  # failed: mov rax, dlerror; call rax
            b"\x48\x89\xc6\x48\xbf" + struct.pack("<Q", message),  # mov rsi, rax; mov rdi, message
            b"\xac\xaa\x84\xc0\x75\xfa",  # copy: lodsb; stosb; test al, al; jnz copy
            b"\x48\xc7\x43\x08\x01\x00\x00\x00",  # mov qword [rbx + 8], 1
            b"\x31\xc0\x5b\xc3",  # xor eax, eax; pop rbx; ret
        )
    )
    if loaded:
        body = (
            b"\xf3\x0f\x1e\xfa\x48\xb8" + struct.pack("<Q", loaded) + b"\xff\xe0"
        )  # endbr64; mov rax, loaded; jmp rax
    head = _HEAD.pack(code + _PAGE - pages, 0, given)
    data = (head + bytes(strings)).ljust(code - pages, b"\0")
    return _Layout(data + (create.ljust(64, b"\xcc") + body).ljust(_PAGE, b"\xcc"), code, message)


# ---- a stopped thread ----

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    if _libc.ptrace(request, thread, address, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def ask_to_stop(pid: int, thread: int) -> None:
    """Ask a thread to stop; Unusable if it ended, TargetError if it may not be traced."""
    try:
        _ptrace(_SEIZE, thread)
    except ProcessLookupError as error:
        raise Unusable from error
    except PermissionError as error:
        raise not_permitted(pid) from error
    with suppress(ProcessLookupError):  # it has ended just now, as waiting for it tells
        _ptrace(_INTERRUPT, thread)


@contextmanager
def stopped_thread(pid: int, thread: int, *, is_asked: bool = False) -> Iterator[StoppedThread]:
    """The thread, stopped while entered; Unusable if it ended, TargetError if it may not be traced.

    ``is_asked``: it was asked to stop, so that several threads stop at the same time.
    """
    if not is_asked:
        ask_to_stop(pid, thread)
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
        return self.registers.orig_rax in _WAITING or 0 <= place < evaluation.size

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
            raise TargetError(f"process {self.pid}", why, "perflaw record -- python app.py")
        return function.address + code.index(_SYSCALL)

    def syscall(self, gate: int, number: int, *arguments: int) -> int:
        """Result of a system call that the thread makes; TargetError if the kernel refuses it."""
        names = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
        self._set(rip=gate, rax=number, **dict(zip(names, arguments, strict=False)))
        self._go_on(_SINGLESTEP)
        result = self._registers().rax
        if result > 2**64 - _PAGE:
            why = f"it may not have memory for code: {os.strerror(2**64 - result)}"
            raise TargetError(f"process {self.pid}", why, "perflaw record -- python app.py")
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
        _ptrace(_SINGLESTEP, self.thread)
        _, status = os.waitpid(self.thread, _WALL)
        if not os.WIFSTOPPED(status):
            raise ProcessLookupError
        if status >> 16 == 0 and os.WSTOPSIG(status) != _SIGTRAP:
            self.signal = os.WSTOPSIG(status)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the process."""
        with (Path("/proc") / str(self.pid) / "mem").open("rb", buffering=0) as memory:
            return os.pread(memory.fileno(), size, address)

    def write(self, address: int, content: bytes) -> None:
        """Change bytes of the process."""
        with (Path("/proc") / str(self.pid) / "mem").open("r+b", buffering=0) as memory:
            os.pwrite(memory.fileno(), content, address)

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
