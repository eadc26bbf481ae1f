"""The functions of the program: their names, whether they are recorded, and the features of their arguments."""

from __future__ import annotations

import os
import sys
from _collections import OrderedDict, defaultdict, deque  # without the modules that collections imports

from _perflaw_spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SKIP, ALWAYS = 0, 1
_FROZEN = ("<frozen importlib", "<frozen zipimport>", "<frozen runpy>", "<frozen site>")
"""Starts of the file names of the interpreter's modules that import modules and start programs."""
ALL_CALLS, OWN_CALLS, NO_CALLS = 0, 1, 2
"""Which calls of library functions are recorded while a frame is the innermost recorded one: all; only those that the frame
makes itself, and nothing of libraries below them; none. So an import is one context, however much it runs."""
_OPTIMIZED = 0x1
_AWAITING = 0x80 | 0x200
"""Flags of the code of coroutines and async generators."""
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x100 | 0x200


class Costs:
    """Calibrated cost of an event beyond the time that the tracer measures itself: a constant, and a cost a variable.

    Up to Python 3.12 the interpreter copies a frame's variables to a dictionary and back at every profile event.
    """

    __slots__ = ("event_ns", "event_variable_ns", "foreign_ns", "foreign_variable_ns")

    def __init__(self) -> None:
        self.event_ns = self.event_variable_ns = self.foreign_ns = self.foreign_variable_ns = 0.0

    def of(self, code: Any) -> tuple[int, int]:
        """Cost in ns of a call event of this code's frame, and of an event of a C function that it calls."""
        variables = len(code.co_varnames) + len(code.co_cellvars) + len(code.co_freevars)
        event_ns = self.event_ns + variables * self.event_variable_ns
        return round(event_ns), round(self.foreign_ns + variables * self.foreign_variable_ns)


class TracedFunction:
    """A code object: how it is recorded, and its sampling state, which the hot path changes."""

    __slots__ = (
        "body", "bound", "code", "event_ns", "foreign_ns", "keys", "left_out_in_imports", "mode", "name", "number",
        "observed", "own", "parameters", "start", "yields",
    )  # fmt: skip

    def __init__(self, code: Any, name: str, mode: int, own: bool, costs: Costs) -> None:
        self.code = code  # kept alive, because its address is its key among the functions
        self.name, self.mode, self.own, self.number = name, mode, own, 0
        self.body = self.left_out_in_imports = self.observed = False
        self.start, self.yields = _suspensions(code) if code.co_flags & _GENERATOR_FLAGS else (-1, frozenset())
        if code.co_flags & 3 == 3:
            count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
            self.parameters = tuple(name for name in code.co_varnames[:count] if not name.startswith("."))
        else:
            self.parameters = ()
        self.event_ns, self.foreign_ns = costs.of(code)
        self.bound = 0x7FFFFFFF
        self.keys: list[int] = []


class Functions:
    """All functions met so far, by the address of their code."""

    def __init__(self, spool: Spool, settings: dict[str, str]) -> None:
        self.spool, self.defined, self.costs = spool, 0, Costs()
        self.known: dict[int, TracedFunction] = {}
        self.features: dict[tuple[int, str], int] = {}
        self.types: dict[int, tuple[int, type]] = {}
        self.own = tuple(filter(None, settings.get("PERFLAW_TARGET_OWN", "").split(",")))
        self.only_own = bool(settings.get("PERFLAW_TARGET_ONLY_OWN"))
        self.select = tuple(filter(None, settings.get("PERFLAW_TARGET_SELECT", "").split("\n")))
        self.exclude = tuple(filter(None, settings.get("PERFLAW_TARGET_EXCLUDE", "").split("\n")))
        per = settings.get("PERFLAW_TARGET_PER", "")
        self.per = (per, "*." + per) if per else ()
        self.main = settings.get("PERFLAW_TARGET_MAIN", "__main__")
        libraries = [prefix + lib for prefix in (sys.prefix, sys.base_prefix) for lib in ("/lib/", "/lib64/")]
        self.library_roots = (os.path.dirname(os.__file__) + "/", *libraries)
        self.here = os.path.dirname(os.path.abspath(__file__))

    def look_up(self, frame: Any) -> TracedFunction:
        """The function that a frame executes; it is classified on first sight."""
        code = frame.f_code
        found = self.known.get(id(code))
        if found is None:
            module = frame.f_globals.get("__name__")
            names = _names(code, module if type(module) is str else "", self.main)
            origin = self._origin(code, frame, names[0])
            # What imports modules and starts programs is not recorded: its time belongs to the code that asks it.
            left_out = origin in ("perflaw", "interpreter") or _matches(names, self.exclude)
            observed = origin not in ("perflaw", "interpreter") and _matches(names, self.per)
            if self.select:
                left_out = left_out or not _matches(names, self.select)
            elif self.only_own:
                left_out = left_out or origin == "library"
            mode = SKIP if left_out and not observed else ALWAYS
            found = self.known[id(code)] = TracedFunction(code, names[0], mode, origin == "own", self.costs)
            found.observed = observed
            # Code of a module's file or of a class runs when it is imported; it has no fast variables.
            is_main = names[-1] == "__main__.<module>"
            found.body = not code.co_flags & _OPTIMIZED and not code.co_filename.startswith("<") and not is_main
            found.left_out_in_imports = origin == "library" and not self.select
        return found

    def define(self, function: TracedFunction) -> None:
        """Give a function its number when its first call is recorded."""
        self.defined += 1
        function.number = self.defined
        code, origin = function.code, "own" if function.own else "library"
        lines = tuple(code.co_lines()) if function.own else ()
        place = code.co_filename, code.co_firstlineno, origin
        self.spool.define("code", function.number, function.name, *place, function.parameters, lines)
        if code.co_flags & _AWAITING:
            self.spool.define("coroutine", function.number)

    def left_out(self) -> tuple[int, tuple[str, ...]]:
        """Number of functions met that the selection leaves out, and some of their names."""
        internal = (self.here, *_FROZEN)
        known = [one for one in self.known.values() if not one.code.co_filename.startswith(internal)]
        names = [one.name for one in known if one.mode == SKIP]
        names.sort(key=lambda name: name.split(".")[0] != self.main)
        return len(names), tuple(names[:20])

    def _origin(self, code: Any, frame: Any, name: str) -> str:
        file = code.co_filename
        if name.split(".")[0] in self.own or name.startswith(self.main + "."):
            return "own"
        if file.startswith(self.here):
            return "perflaw"
        if file.startswith("<"):
            if file.startswith(_FROZEN):
                return "interpreter"
            if file.startswith("<frozen "):  # os, posixpath, abc, codecs: other libraries are in files
                return "library"
            file = frame.f_globals.get("__file__")
            if type(file) is not str:
                # Code made by exec with bare globals belongs to the function that executes it.
                back = frame.f_back
                return "own" if back is not None and self.look_up(back).own else "library"
        library = "/site-packages/" in file or "/dist-packages/" in file or file.startswith(self.library_roots)
        return "library" if library else "own"

    def feature(self, function: TracedFunction, name: str) -> int:
        """The number of a feature of a function; it is defined on first sight."""
        found = self.features.get((function.number, name))
        if found is None:
            found = self.features[function.number, name] = len(self.features) + 1
            self.spool.define("feature", found, function.number, name)
        return found

    def type_number(self, kind: type) -> int:
        """The number of a dynamic type. Its name is read by ``type``'s own descriptor, because a metaclass may override it."""
        found = self.types.get(id(kind))
        if found is None:
            found = self.types[id(kind)] = (
                len(self.types) + 1,
                kind,
            )  # the type is kept alive, because its address is the key
            self.spool.define("type", found[0], _TYPE_QUALNAME(kind))
        return found[0]

    def read(self, function: TracedFunction, values: Any) -> Iterator[tuple[int, float]]:
        """Yield (feature number, value) of the arguments.

        Only exact built-in types are read, so that no code of the program runs.
        """
        for name in function.parameters:
            if name not in values:
                continue
            value = values[name]
            kind = type(value)
            yield self.feature(function, name + ".type"), float(self.type_number(kind))
            if id(kind) in _SIZED:
                yield self.feature(function, name + ".len"), float(len(value))
            elif _TYPE_BASE(kind) is dict and _TYPE_NAME(kind) == "Counter":
                yield self.feature(function, name + ".len"), float(dict.__len__(value))
            elif id(kind) in _NUMBERS and -_LARGEST <= value <= _LARGEST:
                yield self.feature(function, name), float(value)


_TYPE_QUALNAME = type.__dict__["__qualname__"].__get__
_TYPE_NAME = type.__dict__["__name__"].__get__
_TYPE_BASE = type.__dict__["__base__"].__get__
_BUILT_IN = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range, OrderedDict, defaultdict, deque)
_SIZED = {id(kind) for kind in _BUILT_IN}
_NUMBERS = {id(kind) for kind in (int, float, bool)}
_LARGEST = sys.float_info.max  # larger integers, infinities and NaN are no features


def _names(code: Any, module: str, main: str) -> tuple[str, ...]:
    """Names of a component: the qualified name, and in the main script also ``__main__.f``.

    Names of lambdas and comprehensions end with their line, because many share one name.
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


def _suspensions(code: Any) -> tuple[int, frozenset[int]]:
    """Offset at which a generator or coroutine starts, and offsets at which a 'return' event is a suspension.

    Up to Python 3.12 a suspended frame is at YIELD_VALUE, from 3.13 on at the RESUME behind it.
    """
    from opcode import opmap

    text = code.co_code
    resumes = [i for i in range(0, len(text), 2) if text[i] == opmap["RESUME"]]
    start = next((i for i in resumes if text[i + 1] & 3 == 0), -1)
    if sys.version_info >= (3, 13):
        return start, frozenset(i for i in resumes if text[i + 1] & 3)
    return start, frozenset(i for i in range(0, len(text), 2) if text[i] == opmap["YIELD_VALUE"])
