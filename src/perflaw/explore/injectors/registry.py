"""Injectors by name: ours, those of installed packages (entry points ``perflaw.injectors``), and ``file.py:Class``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from perflaw.errors import UsageError, did_you_mean
from perflaw.explore.injectors.context import Injector

GROUP: Final = "perflaw.injectors"
"""Entry points of packages that bring injectors."""
OURS: Final = {
    "arg": "argument:Argument",
    "env": "environment:Environment",
    "file": "file:File",
    "pragma": "sql:Pragma",
    "sql": "sql:Sql",
    "http": "http:Http",
    "sysctl": "sysctl:Sysctl",
    "python": "python_call:PythonCall",
    "command": "command:Command",
    "path": "result:Path",
    "regex": "result:Regex",
}
"""Name → module:class in this package."""
OPTIONS: Final = ("expr", "map", "when")
"""Keys that every injection may have beside the injector's own."""


def name_of(how: Mapping[str, Any]) -> str:
    """The injector that an injection names: its first key that is no common option."""
    return next((name for name in how if name not in OPTIONS), "")


def find(how: Mapping[str, Any], folder: str) -> Injector:
    """The injector of an ``apply`` or ``verify``; UsageError where there is none of its name, or it cannot be loaded."""
    name = name_of(how)
    return _from_file(name, Path(folder).resolve()) if ".py:" in name else _by_name(name)


@cache
def _by_name(name: str) -> Injector:
    if name in OURS:
        module, _, wanted = OURS[name].partition(":")
        return _made(getattr(importlib.import_module(f"perflaw.explore.injectors.{module}"), wanted), name)
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise UsageError(f"unknown injector {name!r}", did_you_mean(name, [*OURS, *points]).removeprefix("; "))
    try:
        return _made(points[name].load(), name)
    except Exception as error:  # whatever a package does when it is imported
        raise UsageError(f"injector {name!r} cannot be loaded", f"{type(error).__name__}: {error}") from error


@cache
def _from_file(name: str, folder: Path) -> Injector:
    file, _, wanted = name.rpartition(":")
    path = folder / file
    if not path.is_file():
        raise UsageError(f"injector {name!r}", f"there is no file {path}")
    module = load_file(path, f"injector {name!r}")
    if not hasattr(module, wanted):
        raise UsageError(f"injector {name!r}", f"{path} has no class {wanted}")
    return _made(getattr(module, wanted), name)


def load_file(path: Path, what: str) -> Any:
    """A Python file as a module; UsageError with what it raised."""
    spec = importlib.util.spec_from_file_location(f"perflaw_injector_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(what, f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a person's file does when it is imported
        raise UsageError(f"{what} cannot be loaded", f"{path}: {type(error).__name__}: {error}") from error
    return module


def _made(kind: Any, name: str) -> Injector:
    """An instance with the methods that are needed."""
    try:
        found: Injector = kind()
    except Exception as error:  # whatever a person's class does when it is made
        raise UsageError(f"injector {name!r} cannot be made", f"{type(error).__name__}: {error}") from error
    if not callable(getattr(found, "verify", None)):
        raise UsageError(f"injector {name!r} is none", "it has no method verify", "docs/study-files.md shows one")
    return found
