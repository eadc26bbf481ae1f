"""Classes by name: perflaw's own, those of installed packages (entry points), and ``file.py:Class`` of a person's own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from perflaw.errors import UsageError, did_you_mean


def find_class(name: str, kind: str, group: str, own: Mapping[str, tuple[str, str]], folder: Path | str) -> Any:
    """Return what a name, or ``file.py:Class`` relative to ``folder``, stands for; UsageError where that cannot be loaded.

    ``own`` is the module and class of perflaw's own, by name; entry points of ``group`` bring more. Messages name the
    ``kind``.
    """
    what = f"{kind} {name!r}"
    if ".py:" in name:
        file, _, wanted = name.rpartition(":")
        module = load_file(Path(folder).resolve() / file, what)
        if hasattr(module, wanted):
            return getattr(module, wanted)
        classes = [each for each, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        why = f"it has {', '.join(classes) or 'none'}"
        raise UsageError(f"{what}: {file} has no class {wanted!r}", why, f"{file}:{classes[0] if classes else 'CLASS'}")
    if name in own:
        where, wanted = own[name]
        return getattr(importlib.import_module(where), wanted)
    points = {point.name: point for point in entry_points(group=group)}
    if name not in points:
        similar = did_you_mean(name, [*own, *points]).removeprefix("; ")
        raise UsageError(f"unknown {what}", similar, "correct it, or name a class of yours as FILE.py:CLASS")
    try:
        return points[name].load()
    except Exception as error:  # a package may raise anything when it is imported
        raise UsageError(f"{what} cannot be loaded", f"{type(error).__name__}: {error}", "pip check") from error


def load_file(path: Path, what: str) -> ModuleType:
    """Return a Python file as a module; UsageError where there is none, or with what it raised."""
    if not path.is_file():
        raise UsageError(f"{what}: there is no file {path}", "it is looked for beside the study", f"ls {path.parent}")
    spec = importlib.util.spec_from_file_location(f"perflaw_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{what}: {path} is not a Python file", "its name ends otherwise than in .py", "rename it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a person's file may raise anything when it is imported
        why = f"{path}: {type(error).__name__}: {error}"
        raise UsageError(f"{what} cannot be loaded", why, f"python {path}") from error
    return module
