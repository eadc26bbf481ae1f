"""The readable pure-Python tracer, the only module of perflaw in a recorded program; it imports the standard library only.

It is written in three files (``_perflaw_spool``, ``_perflaw_functions``, this one); ``sitecustomize`` loads them so that
``sys.modules`` holds only this one. It appends records of function calls to mapped files; the recorder, another process,
reads them (``record/python/segment_reader.py``) and builds the call tree. Records survive the death of the program.

Nothing here may raise into the program, run the program's code, or change what it sees. Builtins are a private copy and
functions of other modules are bound at import, because a program may replace them.
"""

from __future__ import annotations

import atexit
import os
import sys
from itertools import count
from time import perf_counter_ns, process_time_ns, thread_time_ns

from _perflaw_functions import ALL_CALLS, ALWAYS, NO_CALLS, OWN_CALLS, Functions, TracedFunction
from _perflaw_spool import (
    CHANGE,
    DEAD,
    ENTER,
    EXIT,
    FEATURE,
    LIBRARY,
    OBSERVE,
    RECORD,
    RESUME,
    SEGMENT,
    TURN,
    YIELD,
    Spool,
    pack_event,
    pack_feature,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RESERVOIR = 512
NEAR = 8
CPU, LEAST_CHANGE_NS = 1, 1000  # number of the metric; smaller changes are added to the next record
setprofile, getprofile, getpid = sys.setprofile, sys.getprofile, os.getpid
_fake_now = [0, 0]


def advance(ns: int, busy: bool = True) -> None:
    """Move the fake clock (``--clock fake``) forward by ``ns``, on the CPU if ``busy``. Programs of known cost call it."""
    _fake_now[0] += ns
    _fake_now[1] += ns * busy


def _fake_clock() -> int:
    return _fake_now[0]


def _fake_cpu_clock() -> int:
    return _fake_now[1]


class Recorder:
    """One recording in this process: the spool, the clock, and a handler for each thread."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.spool = Spool(settings["PERFLAW_TARGET_SPOOL"])
        self.functions = Functions(self.spool, settings)
        self.fake = settings.get("PERFLAW_TARGET_CLOCK") == "fake"
        self.clock = _fake_clock if self.fake else perf_counter_ns
        self.cpu_clock: Any = None
        if "cpu" in settings.get("PERFLAW_TARGET_METRICS", "").split("\n"):
            self.cpu_clock = _fake_cpu_clock if self.fake else thread_time_ns
            self.say("metric", CPU, "cpu", "ns")
        self.seed = int(settings.get("PERFLAW_TARGET_SEED", "0"))
        self.threads = self.missed = 0
        self.own: list[Any] = []
        self.waited: list[Any] = []
        self.calibrated: list[Any] = []
        self.profiled_percent = 100
        self.turns = count(1)
        """Numbers of turns; a thread takes one when it writes after another thread."""
        self.turn = 0
        """Number of the thread whose turn it is."""
        self.active, self.lost, self.pid = True, "", getpid()
        self.paused: Any = None

    def stop(self, why: str) -> None:
        """End the recording for the given reason; the program goes on untraced."""
        self.active = False
        self.lost = self.lost or why
        setprofile(None)

    def pause(self) -> None:
        """Before a fork: stop tracing, because records of the child would overwrite those of the parent."""
        self.paused = getprofile() if _is_handler(getprofile()) else None
        if self.paused is not None:
            setprofile(None)

    def go_on(self) -> None:
        """After a fork, in the parent: trace again."""
        if self.paused is not None and self.active:
            setprofile(self.paused)

    def leave(self) -> None:
        """After a fork, in the child, which is not recorded: trace none of its threads."""
        self.active = False
        threading = sys.modules["threading"]
        if threading._profile_hook == self.start_thread:
            threading._profile_hook = None  # type: ignore[attr-defined]  # private, and the only way back

    def start_thread(self, frame: Any, event: str, arg: Any) -> None:
        """First event of a new thread: give the thread a handler of its own."""
        handler = self.new_handler() if self.active else None
        setprofile(handler)
        if handler is not None:
            handler(frame, event, arg)

    def new_handler(self) -> Any:
        """A profile function with its own segments and clock offset; None if the disk refuses."""
        self.threads += 1
        try:
            handler = _make_handler(self, self.threads)
        except OSError as error:
            self.stop(f"cannot write: {error}")
            self.say("failed", self.lost)
            return None
        return handler

    def calibrate(self, handler: Any, own: Any) -> None:
        """Measure the cost of events beyond the handler's own clock readings; see :class:`Costs`.

        Loops of calls are timed with and without the handler, in frames with no variables and with many. They are recorded
        like functions of the program; the reader drops records of function 0.
        """
        if self.fake:
            return
        known, costs = self.functions.known, self.functions.costs
        for trial in (_nothing, _nothing_wide):
            known[id(trial.__code__)] = TracedFunction(trial.__code__, "", ALWAYS, True, costs)
            known[id(trial.__code__)].bound = 1 << 15  # most calls are not sampled, as in a long run
        self.say("cpu", "call", _shortest(_calls) // _TRIAL_CALLS)
        narrow, wide = _extra(_calls, handler, own), _extra(_calls_wide, handler, own)
        foreign, foreign_wide = _extra(_foreign_calls, handler, own), _extra(_foreign_calls_wide, handler, own)
        costs.event_ns, costs.foreign_ns = max(0.0, narrow), max(0.0, foreign)
        costs.event_variable_ns = max(0.0, wide - narrow) / _VARIABLES
        costs.foreign_variable_ns = max(0.0, foreign_wide - foreign) / _VARIABLES
        plain = _shortest(_steps)
        setprofile(handler)
        self.profiled_percent = max(100, 100 * _shortest(_steps) // plain)
        setprofile(None)

    def finish(self) -> None:
        """At exit: define the end of the recording and its cost."""
        if getpid() != self.pid:
            return
        if self.active and not _is_handler(getprofile()):
            self.lost = self.lost or "the program replaced the profile function, or an exception passed through it"
        self.active = False
        setprofile(None)
        spent = sum(own() for own in self.own)
        self.say("cpu", "ended", process_time_ns())
        self.say("cpu", "waited", sum(waited() for waited in self.waited))
        self.say("cpu", "counting", sum(calibrated() for calibrated in self.calibrated))
        self.say("cpu", "profiled_percent", self.profiled_percent)
        # How many there were is not known here: a program that has loaded the module is taken to have made one.
        if not sys.modules.keys().isdisjoint(("_interpreters", "_xxsubinterpreters")):
            self.say("say", "subinterpreters", "1")
        self.say("end", self.clock(), spent, self.missed, self.lost, *self.functions.left_out())

    def say(self, *fields: object) -> None:
        """Append a definition; without effect on a full disk, where the reader notices that it is missing."""
        try:
            self.spool.define(*fields)
        except OSError:
            pass  # the manifest says that the end is missing


SWITCHED_NS = 200_000
"""Time from which on an event that takes a few microseconds waited: others had the CPU, or the recorder was far behind."""
_TRIAL_CALLS, _TRIALS, _VARIABLES = 200, 9, 10


def _nothing() -> None:
    pass


def _nothing_wide() -> None:
    a = b = c = d = e = f = g = h = i = j = None  # noqa: F841 (a frame of many variables)


def _calls() -> None:
    for _ in range(_TRIAL_CALLS):
        _nothing()


def _calls_wide() -> None:
    for _ in range(_TRIAL_CALLS):
        _nothing_wide()


def _foreign_calls() -> None:
    for _ in range(_TRIAL_CALLS):
        len(())


def _foreign_calls_wide() -> None:
    a = b = c = d = e = f = g = h = i = j = None  # noqa: F841 (a frame of many variables)
    for _ in range(_TRIAL_CALLS):
        len(())


class _Pair:
    """What the trial without calls reads."""

    __slots__ = ("key", "next")
    key: float
    next: _Pair


def _steps() -> None:
    """Code without calls: up to Python 3.11 the interpreter runs no specialised instructions while a function profiles."""
    pair, place = _Pair(), 0
    pair.key, pair.next = 0.5, pair
    while place < 2 * _TRIAL_CALLS and pair.key != place:
        pair = pair.next
        place += 1
    del pair.next  # no cycle is left for the program's garbage collector


def _extra(body: Any, handler: Any, own: Any) -> float:
    """Extra cost of an event under the handler, beyond the time that the handler takes out itself.

    The shortest of several trials is taken, with the handler and without: nothing else ran during those.
    """
    traced: list[int] = []
    for _ in range(_TRIALS):
        before = own()
        setprofile(handler)
        spent = _timed(body)
        setprofile(None)
        traced.append(spent - (own() - before))
    return (min(traced) - _shortest(body)) / (2 * _TRIAL_CALLS)


def _shortest(body: Any) -> int:
    return min(_timed(body) for _ in range(_TRIALS))


def _timed(body: Any) -> int:
    start = perf_counter_ns()
    body()
    return perf_counter_ns() - start


def _reading_ns(clock: Any, cpu_clock: Any) -> int:
    """Cost of reading the CPU clock at both ends, beyond the time that it shows itself: median of trials."""
    extra: list[int] = []
    for _ in range(99):
        begin = clock()
        cpu_begin = cpu_clock()
        cpu_end = cpu_clock()
        extra.append(clock() - begin - (cpu_end - cpu_begin))
    return sorted(extra)[len(extra) // 2]


def _is_ours(error: OSError) -> bool:
    """Whether the error comes from the spool: then no frame between the handler and the error is the program's."""
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_HERE):
            return False
        trace = trace.tb_next
    return True


def _is_handler(function: Any) -> bool:
    """Whether a profile function is one of ours. No list holds them, so a thread's handler and segment end with it."""
    return getattr(function, "__qualname__", "") == "_make_handler.<locals>.handler"


_HERE = os.path.dirname(os.path.abspath(__file__))


def _make_handler(recorder: Recorder, thread: int) -> Any:
    """The profile function of one thread. Long and flat: every name it reads is a local or a cell, because it is hot."""
    now, fake, functions = recorder.clock, recorder.fake, recorder.functions
    known, look_up = functions.known, functions.look_up
    segment, position, taken_out, last = recorder.spool.segment(thread), 0, 0, 0
    cpu_now, cpu_taken_out, off_written, waited, calibrated = recorder.cpu_clock, 0, 0, 0, 0
    reading_ns = _reading_ns(now, cpu_now) if cpu_now else 0
    opened: list[int] = []
    library_calls: list[int] = []  # of each frame in ``opened``, which calls of library functions are recorded
    alive: set[int] = set()  # the frames in ``opened``, because most returns are of other frames
    seed = recorder.seed + thread * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF

    def room(records: int) -> None:
        """Make sure that ``records`` more records fit."""
        nonlocal segment, position
        if position + records * RECORD > SEGMENT:
            segment, position = recorder.spool.segment(thread), 0

    def sampling_key(function: TracedFunction) -> int:
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

    def write_record(kind: int, frame: Any, function: TracedFunction, site: int, key: int, stamp: int) -> None:
        nonlocal position
        room(1 + 2 * len(function.parameters))
        pack_event(segment, position, stamp, id(frame), function.number, site, key, kind)
        position += RECORD
        if key >= 0 and function.parameters:
            for feature, value in functions.read(function, frame.f_locals):
                pack_feature(segment, position, value, id(frame), feature, -1, -1, FEATURE)
                position += RECORD

    def write_off(off: int) -> None:
        """Write how long the thread was off the CPU since the last such record, if that is worth a record.

        The first record of a thread holds the distance of two clocks; no call is open then.
        """
        nonlocal position, off_written
        if abs(off - off_written) >= (1 if fake else LEAST_CHANGE_NS):
            room(1)
            pack_event(segment, position, off - off_written, 0, CPU, -1, -1, CHANGE)
            position += RECORD
            off_written = off

    def take_turn() -> None:
        """Write that another thread wrote since this one did."""
        nonlocal position
        room(1)
        recorder.turn = thread
        pack_event(segment, position, taken_out, next(recorder.turns), 0, -1, -1, TURN)
        position += RECORD

    def bury(identity: int) -> None:
        """Forget the frames above this one, which ended without an event."""
        above = opened.index(identity) + 1
        alive.difference_update(opened[above:])
        del opened[above:], library_calls[above:]

    def called(frame: Any, function: TracedFunction, stamp: int) -> None:
        site, back = -1, frame.f_back
        if opened and back is not None:
            if id(back) == opened[-1]:
                site = back.f_lasti
            elif id(back) in opened[-NEAR:]:
                # Frames above the caller ended without an event, by an exception through the handler.
                bury(id(back))
                site = back.f_lasti
                write_record(DEAD, back, function, -1, -1, stamp)
        above = library_calls[-1] if library_calls else ALL_CALLS
        if function.left_out_in_imports and above == NO_CALLS:
            return
        if not function.number and function.name:
            functions.define(function)
            if not function.own:
                write_record(LIBRARY, frame, function, -1, -1, stamp)
            if function.observed:
                write_record(OBSERVE, frame, function, -1, -1, stamp)
        opened.append(id(frame))
        if function.body:
            library_calls.append(OWN_CALLS if function.own else NO_CALLS)
        else:
            library_calls.append(NO_CALLS if function.left_out_in_imports and above == OWN_CALLS else ALL_CALLS)
        alive.add(id(frame))
        if function.start >= 0 and frame.f_lasti != function.start:
            write_record(RESUME, frame, function, site, -1, stamp)
        else:
            write_record(ENTER, frame, function, site, sampling_key(function), stamp)

    def returned(frame: Any, function: TracedFunction, stamp: int, result: object) -> None:
        identity = id(frame)
        if identity not in alive:
            return
        if opened[-1] != identity:
            bury(identity)  # the reader closes the frames above when this one ends
        opened.pop()
        library_calls.pop()
        alive.discard(identity)
        if frame.f_lasti not in function.yields:
            write_record(EXIT, frame, function, -1, -1, stamp)
        else:  # an async generator hands a wrapped value to its consumer; what it awaits passes other objects on
            site = 0 if type(result).__name__ == "async_generator_wrapped_value" else -1
            write_record(YIELD, frame, function, site, -1, stamp)

    def handler(frame: Any, event: str, arg: Any) -> None:
        nonlocal taken_out, cpu_taken_out, waited, calibrated, last
        function = known.get(id(frame.f_code))
        if event[0] == "c" and event != "call":
            taken_out += function.foreign_ns if function else 0
            cpu_taken_out += function.foreign_ns if function else 0
            return
        begin = now()
        cpu_begin = cpu_now() if cpu_now else 0
        try:
            if function is None:
                function = look_up(frame)
            if function.mode:
                last = max(last, begin - taken_out)
                if recorder.turn != thread:
                    take_turn()
                if cpu_now:
                    write_off(last - (cpu_begin - cpu_taken_out))
                if event == "call":
                    called(frame, function, last)
                else:
                    returned(frame, function, last, arg)
        except RecursionError:
            recorder.missed += 1  # the program is at its recursion limit and will notice; this call has no sample
        except OSError as error:
            if not _is_ours(error):
                raise  # a signal handler of the program raised it while this ran
            recorder.stop(f"cannot write: {error.strerror}")
        if not fake:
            event_ns = function.event_ns if function else 0
            if cpu_now:
                cpu_taken_out += cpu_now() - cpu_begin + reading_ns + event_ns
            spent = now() - begin
            if spent > SWITCHED_NS:
                waited += spent
            calibrated += event_ns
            taken_out += spent + event_ns

    recorder.own.append(lambda: taken_out)
    recorder.waited.append(lambda: waited)
    recorder.calibrated.append(lambda: calibrated)
    return handler


def start(settings: dict[str, str]) -> None:
    """Begin to record this process by the recorder's settings; called once, before the program's first line."""
    recorder = Recorder(settings)
    handler = recorder.new_handler()
    if handler is None:
        return
    recorder.calibrate(handler, recorder.own[0])
    import threading

    atexit.register(recorder.finish)
    os.register_at_fork(before=recorder.pause, after_in_parent=recorder.go_on, after_in_child=recorder.leave)
    threading.setprofile(recorder.start_thread)
    costs = recorder.functions.costs
    recorder.say("cpu", "entered", int(settings["PERFLAW_TARGET_ENTERED_NS"]))
    recorder.say("cpu", "begun", process_time_ns())
    recorder.say("start", recorder.clock(), round(costs.event_ns), round(costs.foreign_ns), sys.version.split()[0])
    setprofile(handler)
