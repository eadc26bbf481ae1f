"""The extension ``_features_probe`` and the objects whose features the tests read with it."""

from __future__ import annotations

import importlib.util
import subprocess
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NATIVE = Path(__file__).parents[2] / "native"


@cache
def probe_type() -> Any:
    """The extension's one type, built for this interpreter, with the assertions of its headers on."""
    flags: list[str | Path] = [
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O2",
        "-g",
        "-fPIC",
        "-shared",
    ]
    flags += ["-UNDEBUG", "-iquote", NATIVE, "-isystem", sysconfig.get_paths()["include"]]
    sources = [NATIVE / "tests" / "feature_module.c", *sorted((NATIVE / "python" / "features").glob("*.c"))]
    with TemporaryDirectory() as folder:
        library = Path(folder) / "_features_probe.so"
        done = subprocess.run(["gcc", *flags, "-o", library, *sources], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        spec = importlib.util.spec_from_file_location("_features_probe", library)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)  # stays mapped when the file is gone
    return module.Probe


def Probe(function: Callable[..., object]) -> Any:  # noqa: N802 (called as a class is)
    """A reader of calls of the function: ``read(arguments)``, ``repeat(arguments, times)``."""
    return probe_type()(function)


def pairs(function: Callable[..., object], *arguments: object, cells: bool = False) -> list[tuple[str, float]]:
    """What is read of a call: the same while the function is explored and by its finished program."""
    reader = Probe(function)
    first: list[tuple[str, float]] = reader.read(arguments, cells)
    for _ in range(40):
        last = reader.read(arguments, cells)
    assert last == first
    return first


def features(function: Callable[..., object], *arguments: object, cells: bool = False) -> dict[str, float]:
    found = pairs(function, *arguments, cells=cells)
    assert len(dict(found)) == len(found), "a feature is put twice"
    return dict(found)


def of(value: object) -> dict[str, float]:
    """The features of a parameter ``x`` that is this value, but for its type's."""
    found = features(lambda x: None, value)
    assert found.pop("x.type") == 1
    return found


class Plain:
    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


class Inline:
    def __init__(self) -> None:
        self.items, self.n, self.name = [10, 20, 30], 5, "abc"


class Slotted:
    __slots__ = ("left", "right", "table")

    def __init__(self) -> None:
        self.left, self.right, self.table = 2, 10, {1: 2}


class Both(Slotted):
    def __init__(self) -> None:
        super().__init__()
        self.more = (1.5, 2)
