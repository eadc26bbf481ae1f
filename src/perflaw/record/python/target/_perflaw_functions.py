"""What is known of the functions of the target: their names, whether they are recorded, the features of their arguments."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from _perflaw_spool import Spool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TYPE_CHECKING = False

SKIP, ALWAYS, FROM_OWN = 0, 1, 2
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x100 | 0x200


class Costs:
    """What an event costs beyond what the tracer times itself, calibrated: for frames without variables, and for each one.

    Up to 3.12 the interpreter copies a frame's variables to a dictionary and back at every event of a profile function.
    """

    __slots__ = ("event_ns", "event_variable_ns", "foreign_ns", "foreign_variable_ns")

    def __init__(self) -> None:
        self.event_ns = self.event_variable_ns = self.foreign_ns = self.foreign_variable_ns = 0.0

    def of(self, code: Any) -> tuple[int, int]:
        """Cost of a call event of this code's frame, and of an event of a C function that it calls."""
        variables = len(code.co_varnames) + len(code.co_cellvars) + len(code.co_freevars)
        event_ns = self.event_ns + variables * self.event_variable_ns
        return round(event_ns), round(self.foreign_ns + variables * self.foreign_variable_ns)


class Function:
    """What is known of a code object: how it is recorded, and its sampling state, which the hot path mutates."""

    __slots__ = (
        "bound", "code", "event_ns", "foreign_ns", "keys", "mode", "name", "number", "own", "parameters", "start", "yields",
    )  # fmt: skip

    def __init__(self, code: Any, name: str, mode: int, own: bool, costs: Costs) -> None:
        self.code = code  # kept alive: its address is its key among the functions, and must not be given to another
        self.name, self.mode, self.own, self.number = name, mode, own, 0
        self.start, self.yields = _suspensions(code) if code.co_flags & _GENERATOR_FLAGS else (-1, frozenset())
        self.parameters = _parameters(code) if code.co_flags & 3 == 3 else ()
        self.event_ns, self.foreign_ns = costs.of(code)
        self.bound = 0x7FFFFFFF
        self.keys: list[int] = []


class Functions:
    """All functions seen so far, by the address of their code."""

    def __init__(self, spool: Spool, settings: dict[str, str]) -> None:
        self.spool, self.defined, self.costs = spool, 0, Costs()
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
            found = self.known[id(code)] = Function(
                code, names[0], self._mode(names, origin), origin == "own", self.costs
            )
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

    def read(self, function: Function, values: Any) -> Iterator[tuple[int, float]]:
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
