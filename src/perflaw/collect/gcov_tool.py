"""gcc's ``gcov``: the one that fits the compiler, run over the files of one run in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from perflaw.collect.gcov_files import Object
from perflaw.errors import TargetError

OLDEST: Final = 9
"""The first gcc whose gcov writes JSON."""
_BATCH: Final = 64
"""Object files for each call of gcov at most."""
_VERSION: Final = re.compile(r"(\d+)\.\d+(?:\.\d+)?\s*$")


@dataclass(frozen=True, slots=True)
class Gcov:
    """A gcov that fits."""

    path: str
    """Its executable."""
    major: int
    """Major version of the gcc it belongs to."""


@cache
def find_gcov(major: int) -> Gcov:
    """The gcov for counts of that gcc: ``$GCOV``, ``gcov-12``, then ``gcov``. TargetError where there is none that fits."""
    if major < OLDEST:
        why = f"gcc {major}" if major else "clang, or a gcc before 5"
        message = f"compiled by {why}: its counts cannot be read"
        raise TargetError(message, f"gcc {OLDEST} and newer write them as JSON", "gcc --version")
    seen = []
    for name in filter(None, (os.environ.get("GCOV"), f"gcov-{major}", "gcov")):
        path = shutil.which(name)
        version = _major_of(path) if path else 0
        if path and version == major:
            return Gcov(path, version)
        seen += [f"{path} is of gcc {version}"] * bool(version)
    why = "; ".join(seen) or "no gcov is on PATH"
    message = f"gcov of gcc {major}: not found"
    raise TargetError(message, f"the program was compiled by gcc {major}, and {why}", f"sudo apt install gcc-{major}")


def here() -> Gcov | None:
    """The gcov that would be tried for programs of this machine's gcc; None where there is none that writes JSON."""
    for path in filter(None, map(shutil.which, filter(None, (os.environ.get("GCOV"), "gcov")))):
        if (major := _major_of(path)) >= OLDEST:
            return Gcov(path, major)
    return None


def _major_of(path: str) -> int:
    """Major version of a gcov, 0 where it is none: llvm-cov answers otherwise."""
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    first = told.partition("\n")[0]
    match = _VERSION.search(first)
    return int(match[1]) if match and first.startswith("gcov") else 0


def read_documents(gcov: Gcov, objects: Sequence[Object]) -> Iterator[tuple[Object, dict[str, Any]]]:
    """What gcov says of each object file; those that it cannot read are left out. TargetError where gcov itself fails.

    gcov wants counts and notes side by side under one name: they are linked into a temporary folder, where nothing is
    written, so that several recorders may do so at once.
    """
    with tempfile.TemporaryDirectory(prefix="perflaw-gcov-") as folder:
        for number, one in enumerate(objects):
            (Path(folder) / f"{number}.gcda").symlink_to(one.data.resolve())
            (Path(folder) / f"{number}.gcno").symlink_to(one.notes.resolve())
        starts = range(0, len(objects), _BATCH)
        batches = [[f"{number}.gcda" for number in range(at, min(at + _BATCH, len(objects)))] for at in starts]
        with ThreadPoolExecutor(min(len(batches), os.cpu_count() or 1) or 1) as pool:
            for text in pool.map(lambda batch: _run(gcov, folder, batch), batches):
                for document in _documents(gcov, text):
                    name = Path(str(document.get("data_file", ""))).stem
                    if name.isdigit() and document.get("files"):
                        yield objects[int(name)], document


def _run(gcov: Gcov, folder: str, names: Sequence[str]) -> bytes:
    command = [gcov.path, "--json-format", "--branch-probabilities", "--stdout", *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    if done.returncode and not done.stdout:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise TargetError(
            f"{gcov.path}: failed", words[-1] if words else f"exit status {done.returncode}", "gcov --version"
        )
    return done.stdout


def _documents(gcov: Gcov, text: bytes) -> Iterator[dict[str, Any]]:
    """One document a line."""
    for line in text.splitlines():
        try:
            document = json.loads(line)
        except ValueError as error:
            raise TargetError(f"{gcov.path}: its answer is no JSON", str(error), "gcov --version") from error
        if isinstance(document, dict):
            yield document
