"""The files of gcc's coverage: counts that a run wrote (``.gcda``) and notes that the compiler wrote (``.gcno``).

Both begin with a magic, the version of gcc (``B22*``: 12.2) and the stamp of the compilation, 4 bytes each in the order
of the machine. Counts belong to notes of equal stamp and to no others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Final

from perflaw.errors import TargetError, UsageError

_DATA, _NOTES = 0x67636461, 0x67636E6F
"""``gcda`` and ``gcno``."""
_HEADER: Final = struct.Struct("=III")


@dataclass(frozen=True, slots=True)
class Header:
    """How a file of coverage begins."""

    version: str
    """``B22*``."""
    stamp: int
    """Tells one compilation from another."""

    @property
    def major(self) -> int:
        """Major version of gcc, 0 where it is older than 5 or not gcc (clang says 4.08).

        >>> Header("B22*", 0).major, Header("A93*", 0).major, Header("408*", 0).major
        (12, 9, 0)
        """
        first, second = self.version[0], self.version[1]
        return 10 * (ord(first) - ord("A")) + int(second) if first.isalpha() and second.isdigit() else 0


@dataclass(frozen=True, slots=True)
class Object:
    """The counts of one object file and the notes they are read by."""

    data: Path
    """Its ``.gcda`` in the run's spool."""
    notes: Path
    """Its ``.gcno``."""
    major: int
    """Major version of the gcc that compiled it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are that were built elsewhere or moved since."""

    maps: tuple[tuple[str, str], ...] = ()
    """Folder at the time of the build → where it is now, as ``--source-map`` says."""
    notes: Path | None = None
    """Folder to look for notes in, as ``--notes`` says."""

    def now(self, path: str) -> str:
        """Where a file of the build is now: the longest folder that was mapped decides."""
        for old, new in sorted(self.maps, key=lambda pair: -len(pair[0])):
            if path == old or path.startswith(old.rstrip("/") + "/"):
                return os.path.normpath(new + "/" + path[len(old) :])
        return path


def places_of(notes: str | None, maps: Iterable[str]) -> Places:
    """The options ``--notes DIR`` and ``--source-map OLD=NEW``; UsageError where they make no sense."""
    if notes is not None and not Path(notes).is_dir():
        raise UsageError(f"--notes {notes}: no such folder", "it is where the .gcno files are now", f"ls {notes}")
    pairs = []
    for text in maps:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            example = "perflaw record --collect lines --source-map /build/app=. -- ./app"
            raise UsageError(f"--source-map {text}", "OLD=NEW is wanted: a folder then, and where it is now", example)
        pairs.append((os.path.normpath(old), str(Path(new).absolute())))
    return Places(tuple(pairs), Path(notes) if notes is not None else None)


def read_header(path: Path) -> Header | None:
    """How a file begins; None where it is no file of coverage, or torn."""
    try:
        with path.open("rb") as file:
            magic, version, stamp = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return None
    if magic not in (_DATA, _NOTES):
        return None
    return Header(version.to_bytes(4, "big").decode("latin-1"), stamp)


class NotesFinder:
    """Finds the notes that belong to counts: where they were made, as mapped, or by name in a folder of notes."""

    def __init__(self, places: Places, program: Path) -> None:
        self.places = places
        """What was moved."""
        self.beside = program.parent
        """Notes may have been moved together with the program."""
        self._index: dict[str, list[Path]] | None = None

    def find(self, data: str, stamp: int | None) -> tuple[Path | None, bool]:
        """Notes for the data file of that original path, and whether they are of another build (``stamp`` None: any do)."""
        stale = None
        for path in self._candidates(data.removesuffix(".gcda") + ".gcno"):
            header = read_header(path)
            if header and (stamp is None or header.stamp == stamp):
                return path, False
            stale = stale or (path if header else None)
        return stale, stale is not None

    def _candidates(self, name: str) -> Sequence[Path]:
        if "#" in Path(name).name:  # with -fprofile-dir the name is the path, mangled
            name = Path(name).name.replace("#", "/")
        if self.places.notes is None:
            usual = [Path(name), Path(self.places.now(name)), self.beside / Path(name).name]
            return list(dict.fromkeys(usual))
        if self._index is None:
            self._index = {}
            for path in sorted(self.places.notes.rglob("*.gcno")):
                self._index.setdefault(path.name, []).append(path)
        same = self._index.get(Path(name).name, [])
        return sorted(same, key=lambda path: -_common(path, PurePath(name)))


def _common(one: PurePath, other: PurePath) -> int:
    """How many of their last parts two paths share."""
    pairs = zip(
        reversed(one.absolute().parts if isinstance(one, Path) else one.parts), reversed(other.parts), strict=False
    )
    count = 0
    for mine, its in pairs:
        if mine != its:
            break
        count += 1
    return count


# ---- gcc's ``gcov``: the one that fits the compiler, run over the files of one run in a folder of its own.

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
