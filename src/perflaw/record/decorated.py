"""Laws that a program's source carries: ``@perflaw.law`` on functions of modules, found by importing these."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from perflaw.decorator import ATTRIBUTE, WrittenLaw
from perflaw.errors import TargetError

NEXT = "perflaw laws MODULE > FILE.law"


@dataclass(frozen=True, slots=True)
class Decorated:
    """A function with written laws."""

    component: str
    """Qualified name, as recordings have it."""
    parameters: tuple[str, ...]
    """Names of its parameters."""
    file: str
    """Source file."""
    line: int
    """First line of the function with its decorators, 0 where unknown."""
    laws: tuple[WrittenLaw, ...]
    """Its laws, the topmost first."""


def decorated(names: Sequence[str]) -> list[Decorated]:
    """Decorated functions of modules, and of the modules within packages, in the order of their source.

    A name is a module's, or the path of a script. What a module prints when it is imported goes to standard error.
    Raises TargetError where one cannot be imported.
    """
    found: list[Decorated] = []
    with contextlib.redirect_stdout(sys.stderr):
        for name in names:
            for module in _modules(name):
                found += sorted(_of_module(module), key=lambda one: one.line)
    return found


def _modules(name: str) -> Iterator[ModuleType]:
    """A module and all within it but ``__main__``, which would run."""
    module = _imported(*_place(name))
    yield module
    for inner in pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}.", onerror=_refuse):
        if inner.name.rpartition(".")[2] != "__main__":
            yield _imported(inner.name, None)


def _refuse(name: str) -> None:
    _imported(name, None)  # raises what it raised then, in words


def _place(name: str) -> tuple[str, str | None]:
    """Module name and the folder it is looked for in first."""
    path = Path(name)
    if path.suffix in (".py", ".pyw"):
        if not path.is_file():
            raise TargetError(f"{name}: no such file", f"looked in {Path.cwd()}", NEXT)
        return path.stem, str(path.resolve().parent)
    return name, str(Path.cwd())


def _imported(name: str, folder: str | None) -> ModuleType:
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        why = f"looked in {Path.cwd()} and what is installed beside perflaw"
        what = f"no module {missing!r}" if name.startswith(missing) else f"{name}: no module {missing!r}"
        raise TargetError(what, why, "python -m pip install perflaw beside the program") from None
    except (Exception, SystemExit) as error:
        raise TargetError(f"{name} cannot be imported", f"{type(error).__name__}: {error}", f"python {name}") from error


def _of_module(module: ModuleType) -> Iterator[Decorated]:
    """Functions defined in it and in its classes."""
    seen: set[int] = set()
    waiting: list[Any] = list(vars(module).values())
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        function = _function(thing)
        if inspect.isclass(thing) and thing.__module__ == module.__name__:
            waiting += vars(thing).values()
        elif getattr(function, "__module__", None) == module.__name__:
            laws = getattr(function, "__dict__", {}).get(ATTRIBUTE)
            if laws:
                yield _decorated(function, laws)


def _function(thing: Any) -> Any:
    """The function within a method, property or cached property."""
    for name in ("__func__", "fget", "func"):
        inner = inspect.getattr_static(thing, name, None)
        if inner is not None and not inspect.isclass(thing):
            function = getattr(thing, name)
            # A decorator may stand above or below: what carries the law counts.
            return thing if ATTRIBUTE in getattr(thing, "__dict__", {}) else function
    return thing


def _decorated(function: Any, laws: tuple[WrittenLaw, ...]) -> Decorated:
    below = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(below, "__code__", None)
    try:
        parameters = tuple(inspect.signature(below).parameters)
    except (TypeError, ValueError):
        parameters = ()
    file, line = (code.co_filename, code.co_firstlineno) if code else ("", 0)
    return Decorated(f"{below.__module__}.{below.__qualname__}", parameters, file, line, laws)
