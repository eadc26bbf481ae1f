"""The readable pure-Python tracer: the only module of ours inside a recorded program; imports the standard library alone.

It appends fixed-layout records of function calls to memory-mapped segment files and definitions to a text file; the
recorder drains both from another process (``collect/drain.py``) and builds the call tree there. What was appended
survives the death of the target. Nothing here may raise into the target, run the target's code, or change what it sees.

Record, 32 bytes, little endian (``collect/layout.py`` reads it, a test compares the two)::

    0       8        16      20      24      28     32
    | value | frame  | code  | site  | key   | kind |

    value  ENTER, EXIT, YIELD, RESUME: int64 clock in ns, the tracer's own time taken out; FEATURE: float64
    frame  identity of the frame (its address): pairs the events of one invocation
    code   number of the function's definition; FEATURE: number of the feature
    site   bytecode offset of the call in the caller, -1 unknown
    key    sampling priority if the reservoir may keep the invocation, else -1
    kind   written last, 0 = not written yet
"""

from __future__ import annotations

import atexit
import mmap
import os
import sys
import time
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # annotations alone use it: typing is not imported into the target

ENTER, EXIT, YIELD, RESUME, FEATURE = 1, 2, 3, 4, 5
RECORD = 32
SEGMENT = 32768 * RECORD
RESERVOIR = 512
PENDING_SEGMENTS, PATIENCE_S = 64, 10.0
SKIP, ALWAYS, FROM_OWN = 0, 1, 2
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x100 | 0x200
_event, _feature = Struct("<qqiiii").pack_into, Struct("<dqiiii").pack_into
_fake_now = [0]


def advance(ns: int) -> None:
    """Move the fake clock (``--clock fake``) forward by ``ns``; programs of known cost call it."""
    _fake_now[0] += ns


def _fake_clock() -> int:
    return _fake_now[0]


class Spool:
    """The files that a recording is appended to. A failure to write stops the recording, never the target."""

    def __init__(self, folder: str) -> None:
        self.folder, self.segments = folder, 0
        self.definitions = os.open(os.path.join(folder, "definitions"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def define(self, *fields: Any) -> None:
        """Append one definition line: the kind, a number, and what it stands for."""
        os.write(self.definitions, (repr(fields) + "\n").encode("utf-8", "backslashreplace"))

    def segment(self, thread: int) -> mmap.mmap:
        """A new zeroed segment, its disk space allocated before it is mapped (a full disk must not become SIGBUS)."""
        self._wait_for_reader()
        self.segments += 1
        path = os.path.join(self.folder, f"{self.segments:06d}-{thread}.part")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(fd, 0, SEGMENT)
            mapped = mmap.mmap(fd, SEGMENT)
        finally:
            os.close(fd)
        os.rename(path, path[:-5] + ".events")
        return mapped

    def _wait_for_reader(self) -> None:
        """Bound the disk: where the reader is far behind, wait for it a while, then give the recording up."""
        deadline = time.monotonic() + PATIENCE_S
        while sum(name.endswith(".events") for name in os.listdir(self.folder)) > PENDING_SEGMENTS:
            if time.monotonic() > deadline:
                raise OSError("the recorder does not keep up or has gone")
            time.sleep(0.002)


class Function:
    """What is known of a code object: how it is recorded, and its sampling state, which the hot path mutates."""

    __slots__ = ("bound", "code", "keys", "mode", "name", "number", "own", "parameters", "start", "yields")

    def __init__(self, code: Any, name: str, mode: int, own: bool) -> None:
        self.code = code  # kept alive: its address is its key among the functions, and must not be given to another
        self.name, self.mode, self.own, self.number = name, mode, own, 0
        self.start, self.yields = _suspensions(code) if code.co_flags & _GENERATOR_FLAGS else (-1, frozenset())
        self.parameters = _parameters(code) if code.co_flags & 3 == 3 else ()
        self.bound = 0x7FFFFFFF
        self.keys: list[int] = []


class Functions:
    """All functions seen so far, by the address of their code."""

    def __init__(self, spool: Spool, settings: dict[str, str]) -> None:
        self.spool, self.defined = spool, 0
        self.known: dict[int, Function] = {}
        self.features: dict[tuple[int, str], int] = {}
        self.types: dict[int, tuple[int, type]] = {}
        self.own = tuple(filter(None, settings.get("PERFLAW_TARGET_OWN", "").split(",")))
        self.select = tuple(filter(None, settings.get("PERFLAW_TARGET_SELECT", "").split("\n")))
        self.exclude = tuple(filter(None, settings.get("PERFLAW_TARGET_EXCLUDE", "").split("\n")))
        self.main = settings.get("PERFLAW_TARGET_MAIN", "__main__")
        libraries = [prefix + lib for prefix in (sys.prefix, sys.base_prefix) for lib in ("/lib/", "/lib64/")]
        self.library_roots = (os.path.dirname(os.__file__) + "/", *libraries)
        self.here = os.path.dirname(os.path.abspath(__file__))

    def look_up(self, frame: Any) -> Function:
        """The function that a frame executes, classified on first sight."""
        code = frame.f_code
        found = self.known.get(id(code))
        if found is None:
            module = frame.f_globals.get("__name__")
            names = _names(code, module if type(module) is str else "", self.main)
            origin = self._origin(code, frame, names[0])
            found = self.known[id(code)] = Function(code, names[0], self._mode(names, origin), origin == "own")
        return found

    def define(self, function: Function) -> None:
        """Give a function its number when the first call of it is recorded."""
        self.defined += 1
        function.number = self.defined
        code, origin = function.code, "own" if function.own else "library"
        lines = tuple(code.co_lines()) if function.own else ()
        what = function.name, code.co_filename, code.co_firstlineno, origin, function.parameters, lines
        self.spool.define("code", function.number, *what)

    def left_out(self) -> tuple[int, int, tuple[str, ...]]:
        """How many functions were seen but not recorded: library internals, unselected ones, and names of the latter."""
        internal = (self.here, "<frozen")
        unseen = [
            one for one in self.known.values() if not one.number and not one.code.co_filename.startswith(internal)
        ]
        names = [one.name for one in unseen if one.mode == SKIP]
        names.sort(key=lambda name: name.split(".")[0] != self.main)
        return len(unseen) - len(names), len(names), tuple(names[:20])

    def _origin(self, code: Any, frame: Any, name: str) -> str:
        file = code.co_filename
        if name.split(".")[0] in self.own or name.startswith(self.main + "."):
            return "own"
        if file.startswith(self.here):
            return "perflaw"
        if file.startswith("<"):
            if file.startswith("<frozen"):
                return "interpreter"
            file = frame.f_globals.get("__file__")
            if type(file) is not str:
                # Code made by exec with bare globals belongs to whoever runs it.
                back = frame.f_back
                return "own" if back is not None and self.look_up(back).own else "library"
        library = "/site-packages/" in file or "/dist-packages/" in file or file.startswith(self.library_roots)
        return "library" if library else "own"

    def _mode(self, names: tuple[str, ...], origin: str) -> int:
        # The interpreter's frozen part (import, runpy) is nobody's function: its time is that of the code that imports.
        if origin in ("perflaw", "interpreter") or _matches(names, self.exclude):
            return SKIP
        if self.select:
            return ALWAYS if _matches(names, self.select) else SKIP
        return ALWAYS if origin == "own" else FROM_OWN

    def feature(self, function: Function, name: str) -> int:
        """The number of a feature of a function, defined on first sight."""
        found = self.features.get((function.number, name))
        if found is None:
            found = self.features[function.number, name] = len(self.features) + 1
            self.spool.define("feature", found, function.number, name)
        return found

    def type_number(self, kind: type) -> int:
        """The number of a dynamic type. Its name is read by ``type``'s own descriptor: a metaclass may override it."""
        found = self.types.get(id(kind))
        if found is None:
            found = self.types[id(kind)] = (len(self.types) + 1, kind)  # the type is kept alive: its address is the key
            self.spool.define("type", found[0], _TYPE_QUALNAME(kind))
        return found[0]

    def read(self, function: Function, values: Any) -> Any:
        """Yield (feature number, value) of the arguments.

        Only exact built-in types are touched: no code of the target's runs.
        """
        for name in function.parameters:
            if name not in values:
                continue
            value = values[name]
            kind = type(value)
            yield self.feature(function, name + ".type"), float(self.type_number(kind))
            if id(kind) in _SIZED:
                yield self.feature(function, name + ".len"), float(len(value))
            elif id(kind) in _NUMBERS and -_LARGEST <= value <= _LARGEST:
                yield self.feature(function, name), float(value)


_TYPE_QUALNAME = type.__dict__["__qualname__"].__get__
_SIZED = {id(kind) for kind in (list, tuple, dict, set, frozenset, str, bytes, bytearray, range)}
_NUMBERS = {id(kind) for kind in (int, float, bool)}
_LARGEST = sys.float_info.max  # larger integers have no place on any axis, and infinity and NaN are no sizes


def _names(code: Any, module: str, main: str) -> tuple[str, ...]:
    """Names a component goes by: the qualified name, and for the main script also ``__main__.f``.

    Lambdas and comprehensions carry their line, for many share one name.
    """
    qualname = code.co_qualname
    if qualname.endswith(">") and qualname != "<module>":
        qualname += f":{code.co_firstlineno}"
    if module == "__main__":
        return main + "." + qualname, "__main__." + qualname
    return ((module + "." if module else "") + qualname,)


def _matches(names: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    if not globs:
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def _parameters(code: Any) -> tuple[str, ...]:
    """Names of a function's parameters, ``*args`` and ``**kwargs`` last."""
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return tuple(name for name in code.co_varnames[:count] if not name.startswith("."))


def _suspensions(code: Any) -> tuple[int, frozenset[int]]:
    """For a generator or coroutine: the offset it starts at, and the offsets at which a 'return' event is a suspension.

    Up to 3.12 a suspended frame stands at YIELD_VALUE, from 3.13 on at the RESUME behind it.
    """
    from opcode import opmap

    text = code.co_code
    resumes = [i for i in range(0, len(text), 2) if text[i] == opmap["RESUME"]]
    start = next((i for i in resumes if text[i + 1] & 3 == 0), -1)
    if sys.version_info >= (3, 13):
        return start, frozenset(i for i in resumes if text[i + 1] & 3)
    return start, frozenset(i for i in range(0, len(text), 2) if text[i] == opmap["YIELD_VALUE"])


class Recorder:
    """One recording in this process: the spool, the clock, and a handler for each thread."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.spool = Spool(settings["PERFLAW_TARGET_SPOOL"])
        self.functions = Functions(self.spool, settings)
        self.fake = settings.get("PERFLAW_TARGET_CLOCK") == "fake"
        self.clock = _fake_clock if self.fake else time.perf_counter_ns
        self.seed = int(settings.get("PERFLAW_TARGET_SEED", "0"))
        self.dispatch_ns = self.foreign_ns = self.threads = self.missed = 0
        self.handlers: list[Any] = []
        self.own: list[Any] = []
        self.active, self.lost, self.pid = True, "", os.getpid()

    def stop(self, why: str) -> None:
        """End the recording for good, remembering why; the target goes on untraced."""
        self.active = False
        self.lost = self.lost or why
        sys.setprofile(None)

    def start_thread(self, frame: Any, event: str, arg: Any) -> None:
        """The profile function of a new thread: gives the thread its own handler."""
        handler = self.new_handler() if self.active else None
        sys.setprofile(handler)
        if handler is not None:
            handler(frame, event, arg)

    def new_handler(self) -> Any:
        """A profile function with segments and a clock offset of its own, or None where the disk refuses."""
        self.threads += 1
        try:
            handler = _make_handler(self, self.threads)
        except OSError as error:
            self.stop(f"cannot write: {error}")
            self.spool.define("failed", self.lost)
            return None
        self.handlers.append(handler)
        return handler

    def calibrate(self, handler: Any, own: Any) -> None:
        """Measure what a call event costs beyond the handler's own clock reads, and all that a foreign (C) event costs.

        Loops of calls with the real handler are held against the same loops without one. The smallest of several
        trials is taken, so that the correction never takes out more than the tracer spent.
        """
        if not self.fake:
            events = 2 * _TRIAL_CALLS
            self.foreign_ns = max(0, _extra(_foreign_calls, handler, own) // events)
            self.dispatch_ns = max(0, _extra(_python_calls, handler, own) // events)

    def finish(self) -> None:
        """At exit: say that the end was reached, and what the recording cost."""
        if os.getpid() != self.pid:
            return
        if self.active and sys.getprofile() not in self.handlers:
            self.lost = self.lost or "the program replaced the profile function, or an exception passed through it"
        self.active = False
        sys.setprofile(None)
        spent = sum(own() for own in self.own)
        try:
            self.spool.define("end", self.clock(), spent, self.missed, self.lost, *self.functions.left_out())
        except OSError:
            pass  # a full disk: the reader sees that the end is missing


_TRIAL_CALLS, _TRIALS = 400, 5


def _nothing() -> None:
    pass


def _python_calls() -> None:
    for _ in range(_TRIAL_CALLS):
        _nothing()


def _foreign_calls() -> None:
    for _ in range(_TRIAL_CALLS):
        len(())


def _extra(body: Any, handler: Any, own: Any) -> int:
    """What a loop costs more under the handler, beyond what the handler takes out by itself."""
    plain = traced = 1 << 62
    for _ in range(_TRIALS):
        plain = min(plain, _timed(body))
        before = own()
        sys.setprofile(handler)
        spent = _timed(body)
        sys.setprofile(None)
        traced = min(traced, spent - (own() - before))
    return traced - plain


def _timed(body: Any) -> int:
    start = time.perf_counter_ns()
    body()
    return time.perf_counter_ns() - start


def _make_handler(recorder: Recorder, thread: int) -> Any:
    """The profile function of one thread. Long and flat, because every name it reads is a local or a cell: this is hot."""
    now, fake, functions = recorder.clock, recorder.fake, recorder.functions
    known, look_up = functions.known, functions.look_up
    segment, position, taken_out, last = recorder.spool.segment(thread), 0, 0, 0
    opened: list[int] = []
    seed = recorder.seed + thread * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF

    def room(records: int) -> None:
        """Make sure that ``records`` more records fit."""
        nonlocal segment, position
        if position + records * RECORD > SEGMENT:
            segment, position = recorder.spool.segment(thread), 0

    def sampling_key(function: Function) -> int:
        """Draw a priority; keep the invocation if it is among the smallest RESERVOIR of its function so far."""
        nonlocal seed
        seed = (seed * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        key = seed >> 33
        if key >= function.bound:
            return -1
        keys = function.keys
        keys.append(key)
        if len(keys) >= 2 * RESERVOIR:
            keys.sort()
            del keys[RESERVOIR:]
            function.bound = keys[-1] + 1
        return key

    def write(kind: int, frame: Any, function: Function, site: int, key: int, stamp: int) -> None:
        nonlocal position
        room(1 + 2 * len(function.parameters))
        _event(segment, position, stamp, id(frame), function.number, site, key, kind)
        position += RECORD
        if key >= 0 and function.parameters:
            for feature, value in functions.read(function, frame.f_locals):
                _feature(segment, position, value, id(frame), feature, -1, -1, FEATURE)
                position += RECORD

    def called(frame: Any, function: Function, stamp: int) -> None:
        site, back = -1, frame.f_back
        if function.mode == FROM_OWN and (back is None or not look_up(back).own):
            return
        if opened and back is not None and id(back) == opened[-1]:
            site = back.f_lasti
        if not function.number:
            functions.define(function)
        opened.append(id(frame))
        if function.start >= 0 and frame.f_lasti != function.start:
            write(RESUME, frame, function, site, -1, stamp)
        else:
            write(ENTER, frame, function, site, sampling_key(function), stamp)

    def returned(frame: Any, function: Function, stamp: int) -> None:
        identity = id(frame)
        if not opened or opened[-1] != identity:
            if identity not in opened:
                return
            # Frames above it died without an event: they are closed by the reader when this one ends.
            del opened[opened.index(identity) + 1 :]
        opened.pop()
        write(YIELD if frame.f_lasti in function.yields else EXIT, frame, function, -1, -1, stamp)

    def handler(frame: Any, event: str, arg: Any) -> None:
        nonlocal taken_out, last
        if event[0] == "c" and event != "call":
            taken_out += recorder.foreign_ns
            return
        begin = now()
        try:
            function = known.get(id(frame.f_code)) or look_up(frame)
            if function.mode:
                last = max(last, begin - taken_out)
                (called if event == "call" else returned)(frame, function, last)
        except RecursionError:
            recorder.missed += 1  # the target stands at its limit and will see so itself; this call has no sample
        except (OSError, ValueError, MemoryError) as error:
            recorder.stop(f"{type(error).__name__}: {error}")
        if not fake:
            taken_out += now() - begin + recorder.dispatch_ns

    recorder.own.append(lambda: taken_out)
    return handler


def start(settings: dict[str, str]) -> None:
    """Begin to record this process as the recorder's settings say; called once, before the target's first line."""
    try:
        recorder = Recorder(settings)
    except OSError:
        return  # the recorder sees the missing definitions and says so
    handler = recorder.new_handler()
    if handler is None:
        return
    recorder.calibrate(handler, recorder.own[0])
    import threading

    atexit.register(recorder.finish)
    os.register_at_fork(after_in_child=lambda: recorder.stop("forked"))
    threading.setprofile(recorder.start_thread)
    recorder.spool.define("start", recorder.clock(), recorder.dispatch_ns, recorder.foreign_ns, sys.version.split()[0])
    sys.setprofile(handler)
