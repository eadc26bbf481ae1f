"""Injectors by name: perflaw's own, those of installed packages, and ``file.py:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from perflaw.errors import UsageError
from perflaw.explore.injectors.context import Injector
from perflaw.explore.plugins import find_class

GROUP: Final = "perflaw.injectors"
"""Entry points of packages that bring injectors."""
INJECTORS: Final = {
    "arg": ("perflaw.explore.injectors.launch", "Argument"),
    "env": ("perflaw.explore.injectors.launch", "Environment"),
    "file": ("perflaw.explore.injectors.files", "ConfigurationFile"),
    "sysctl": ("perflaw.explore.injectors.files", "Sysctl"),
    "pragma": ("perflaw.explore.injectors.calls", "Pragma"),
    "sql": ("perflaw.explore.injectors.calls", "Statement"),
    "http": ("perflaw.explore.injectors.calls", "HttpRequest"),
    "command": ("perflaw.explore.injectors.calls", "Command"),
    "python": ("perflaw.explore.injectors.calls", "PythonCall"),
    "path": ("perflaw.explore.injectors.calls", "ResultPath"),
    "regex": ("perflaw.explore.injectors.calls", "ResultPattern"),
}
"""Module and class of perflaw's own injectors, by name."""
COMMON_OPTIONS: Final = ("expr", "map", "when")
"""Keys that every injection may have beside those of its injector."""


def name_of(how: Mapping[str, Any]) -> str:
    """Return the injector that an injection names: its first key that is no common option."""
    return next((name for name in how if name not in COMMON_OPTIONS), "")


def find(how: Mapping[str, Any], folder: str) -> Injector:
    """Return the injector of an ``apply`` or ``verify``; UsageError where there is none, or it cannot be loaded."""
    return _made(name_of(how), Path(folder).resolve())


@cache
def _made(name: str, folder: Path) -> Injector:
    kind = find_class(name, "injector", GROUP, INJECTORS, folder)
    try:
        injector: Injector = kind()
    except Exception as error:  # a person's class may raise anything
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"injector {name!r} cannot be made", why, "docs/study-files.md shows an injector") from error
    if not callable(getattr(injector, "verify", None)):
        why = "it has no method verify"
        raise UsageError(f"{name!r} is not an injector", why, "docs/study-files.md shows an injector")
    return injector
