"""Trace-event JSON in pieces, by the C core (native/core/traces/traces.h): a million events a second, in bounded memory.

Results are those of :mod:`perflaw.imports.chrome`, which reads the file where the core does not: where there is no library,
where what is not an array of events at first sight may be one, and where a small file is damaged, to tell what is wrong.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from perflaw.bounds import read_pieces
from perflaw.errors import DataError
from perflaw.imports import chrome
from perflaw.imports.formats import ForeignFile
from perflaw.imports.tracks import BEGUN_EARLIER, CUT, OVERLAPS, TOO_MANY_FEATURES, ProcessEvents, Trace
from perflaw.notices import progress
from perflaw.record.tree.core import Core, TreeTables, load
from perflaw.record.tree.reservoir import scramble
from perflaw.store.columns import Array

ADVICE: Final = "write the trace anew and import it"
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_SMALL: Final = 1 << 26
"""A damaged file up to this size is read again, by the reader whose errors tell more."""
_KEYS: Final = (1 << 31) - 1
_FRACTIONS, _CUT, _VIZTRACER, _UFTRACE, _SAMPLES = 1, 2, 4, 8, 16
"""Flags of native/core/traces/chrome.h."""
_NAMES, _NUMBER_NAMES, _IDENTITIES, _COMPONENTS, _NUMBER_USES = range(5)
"""Tables of texts of native/core/traces/traces.h."""
_HANDLE, _U64, _U32, _I64, _INT = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "trace_open": (_HANDLE, _INT),
    "trace_feed": (_INT, _HANDLE, ctypes.c_char_p, _U64),
    "trace_finish": (_INT, _HANDLE),
    "trace_place": (None, _HANDLE, ctypes.POINTER(_U64), ctypes.POINTER(_U64)),
    "trace_flags": (_U32, _HANDLE),
    "trace_texts": (_U32, _HANDLE, _U32, ctypes.POINTER(_HANDLE), ctypes.POINTER(_HANDLE)),
    "trace_process": (_INT, _HANDLE, _U32, _HANDLE),
    "trace_play": (_INT, _HANDLE, _U32, _HANDLE, _HANDLE, _HANDLE, _U32, _HANDLE, ctypes.c_int32, _I64, _HANDLE),
    "trace_close": (None, _HANDLE),
}
"""Result and arguments of each function of native/core/traces/traces.h."""


def text_table(texts_of: Any, handle: int | None, table: int) -> list[bytes]:
    """A table of texts by number, as a function of the core such as ``trace_texts`` gives it; 0 is empty."""
    texts, ends = _HANDLE(), _HANDLE()
    count = texts_of(handle, table, texts, ends)
    if not count:
        return [b""]
    places = np.ctypeslib.as_array(ctypes.cast(ends, ctypes.POINTER(_U64)), (count + 1,)).tolist()
    data = ctypes.string_at(texts.value or 0, places[-1])
    return [b"", *(data[a:b] for a, b in pairwise(places))]


class _DamagedError(Exception):
    """The file is not what it should be."""


class _Events:
    """The events of a file as the core has read them."""

    def __init__(self, path: Path, library: Path, pieces: Iterable[bytes], tool: str = "") -> None:
        """Read the pieces of a file. _DamagedError where it is not as it should be, DataError where it cannot be read.

        A ``tool`` of another format than this has made the pieces.
        """
        self.path, self._library, self._tool = path, load(library, _FUNCTIONS), tool
        self._beside: IO[bytes] = tempfile.TemporaryFile(prefix="perflaw-")  # noqa: SIM115 (it lives as long as this)
        self.handle: int | None = self._library.trace_open(self._beside.fileno())
        if not self.handle:
            raise MemoryError
        try:
            for piece in pieces:
                self._check(self._library.trace_feed(self.handle, piece, len(piece)))
        except ValueError as error:
            raise DataError(f"{path}: cannot be read", str(error), f"ls -l {path}") from None
        self._check(self._library.trace_finish(self.handle))
        self.flags = int(self._library.trace_flags(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.trace_close(self.handle)
            self._beside.close()

    def _check(self, error: int) -> None:
        """Raise what the number of an error means."""
        if not error:
            return
        if error == errno.ENOMEM:
            raise MemoryError
        if error != errno.EBADMSG:
            why = "calls overlap, or lie within each other, more often than is read"
            if error != errno.EOVERFLOW:
                why = f"a file in {tempfile.gettempdir()} takes its events: {os.strerror(error).lower()}"
            raise DataError(f"{self.path}: cannot be read", why, "TMPDIR=FOLDER perflaw import FILE")
        size, events = _U64(), _U64()
        self._library.trace_place(self.handle, size, events)
        if size.value < _SMALL:
            raise _DamagedError
        what = f"{self.path}: event {events.value + 1} of traceEvents, after byte {size.value}"
        raise DataError(what, "it is not an event as trace-event JSON has it", ADVICE)

    @property
    def tool(self) -> str:
        """The tool that wrote the file."""
        if self._tool:
            return self._tool
        if self.flags & _VIZTRACER:
            return chrome.VIZTRACER
        return chrome.UFTRACE if self.flags & _UFTRACE else chrome.TOOL

    @property
    def tick_ns(self) -> int:
        """Step of its clock."""
        return 1 if self.flags & _FRACTIONS else chrome.US

    def table(self, table: int) -> list[bytes]:
        """A table of texts by number; 0 is empty."""
        return text_table(self._library.trace_texts, self.handle, table)

    def texts(self, table: int) -> list[str]:
        """The same as texts; _DamagedError where one is not UTF-8."""
        try:
            return [text.decode("utf-8", "surrogatepass") for text in self.table(table)]
        except UnicodeDecodeError:
            raise _DamagedError from None

    @cached_property
    def names(self) -> list[str]:
        """Names of events and processes, by number."""
        return self.texts(_NAMES)

    @cached_property
    def number_names(self) -> list[str]:
        """Names of arguments that are numbers, by number."""
        return self.texts(_NUMBER_NAMES)

    @cached_property
    def components(self) -> Array:
        """Number of a process, number of a name: of all components, in the order in which they came."""
        return np.frombuffer(b"".join(self.table(_COMPONENTS)), "<u4").reshape(-1, 2)

    @cached_property
    def number_uses(self) -> Array:
        """Number of a process, number of the name of a number: of all that calls have, in the order in which they came."""
        return np.frombuffer(b"".join(self.table(_NUMBER_USES)), "<u4").reshape(-1, 2)

    def processes(self) -> list[StreamedProcess]:
        """The processes that have calls, by their first time stamp."""
        found = []
        identities = self.texts(_IDENTITIES)
        words = np.zeros(6, np.int64)
        number = 0
        while self._library.trace_process(self.handle, number, words.ctypes.data):
            first, asynchronous, left_out, identity, name, has_calls = words.tolist()
            if has_calls:
                pid = identities[identity]
                process = StreamedProcess(self, number, first, int(pid[1:]) if re.fullmatch("n[0-9]{1,10}", pid) else 0)
                process.name = chrome.process_name(self.names[name])
                process.notes[chrome.ASYNCHRONOUS] += asynchronous
                process.notes[TOO_MANY_FEATURES] += left_out
                found.append(process)
            number += 1
        return sorted(found, key=StreamedProcess.first_stamp)

    def play(self, process: int, seed: int, known: ProcessEvents) -> tuple[TreeTables, list[int]]:
        """The tree of a process, and what came of its calls: see ``trace_play``."""
        library = Path(self._library._name)
        core = Core(library, seed, known.definitions.lanes())
        codes = np.zeros(len(self.names), np.int32)
        for name in self.components[self.components[:, 0] == process, 1].tolist():
            codes[name] = known.component(chrome.component_of(self.names[name], self.tool))
        features = np.zeros(len(self.number_names), np.int32)
        for name in self.number_uses[self.number_uses[:, 0] == process, 1].tolist():
            features[name] = known.feature(self.number_names[name]) or 0
        sites = np.array(known.sites(), np.int32)
        outcome = np.zeros(6, np.int64)
        places = [array.ctypes.data for array in (codes, sites)]
        self._check(
            self._library.trace_play(
                self.handle, process, core.handle, *places, len(sites), features.ctypes.data,
                scramble(seed) & _KEYS, self.tick_ns, outcome.ctypes.data,
            )
        )  # fmt: skip
        return core.finish(), outcome.tolist()


class StreamedProcess:
    """A process of such a file; implements :class:`perflaw.imports.tracks.TraceProcess`."""

    def __init__(self, events: _Events, number: int, first: int, pid: int) -> None:
        self._events, self._number, self._first = events, number, first
        self._known = ProcessEvents("", pid if pid < 1 << 31 else 0)
        self._last = first
        self.name, self.pid = "", self._known.pid
        self.definitions = self._known.definitions
        self.notes: Counter[str] = self._known.notes

    def first_stamp(self) -> int:
        """See :class:`perflaw.imports.tracks.TraceProcess`."""
        return self._first

    def last_stamp(self) -> int:
        """See :class:`perflaw.imports.tracks.TraceProcess`."""
        return self._last

    def tree(self, library: Path | None, seed: int) -> TreeTables:
        """See :class:`perflaw.imports.tracks.TraceProcess`; the library is the one that has read the file."""
        tree, (earlier, overlaps, cut, left_out, self._last, _) = self._events.play(self._number, seed, self._known)
        self.notes.update({BEGUN_EARLIER: earlier, OVERLAPS: overlaps, CUT: cut, TOO_MANY_FEATURES: left_out})
        return tree


def recognises(path: Path) -> bool:
    """Whether the first part of a file is that of an array of events, or of an object with one."""
    if not path.is_file():
        return False
    try:
        head = next(read_pieces(path), b"").removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, ValueError):
        return False  # the other readers say why
    if head[:1] == b"{":
        return bool(_EVENTS.search(head))
    text = head.decode("utf-8", "replace")
    try:
        first, _ = json.JSONDecoder().raw_decode(text, text.index("{")) if text[:1] == "[" else (None, 0)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and isinstance(first.get("ph"), str)


def read(path: Path, library: Path) -> Trace | None:
    """The calls of a file; None where the other reader tells what is wrong with it. DataError where it is damaged."""
    try:
        with progress(f"reading {path.name}") as show:
            events = _Events(path, library, read_pieces(path, progress=show))
        processes = events.processes()
        lost = chrome.CUT_SHORT if events.flags & _CUT else ""
    except _DamagedError:
        return None
    if not processes and events.flags & _SAMPLES:
        return None
    return Trace(events.tool, tuple(processes), events.tick_ns, lost)


def read_converted(
    tool: str, path: Path, pieces: Iterable[bytes], library: Path | None, lost: Callable[[], str]
) -> Trace:
    """The calls of a file of another format, whose reader gives them as trace-event JSON with stamps that count from 1970.

    ``lost`` tells in the end why calls are missing. Memory does not grow with the file if there is a ``library``.
    """
    if library is None:
        trace = chrome.read(ForeignFile(path, b"".join(pieces)))
        return replace(trace, tool=tool, tick_ns=1, epoch=True, lost=lost())
    try:
        events = _Events(path, library, pieces, tool)
        return Trace(tool, tuple(events.processes()), 1, lost(), epoch=True)
    except _DamagedError:
        raise DataError(f"{path}: cannot be read", "a name or a time in it is none", ADVICE) from None
