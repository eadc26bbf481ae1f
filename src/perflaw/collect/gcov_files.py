"""The files of gcc's coverage: counts that a run wrote (``.gcda``) and notes that the compiler wrote (``.gcno``).

Both begin with a magic, the version of gcc (``B22*``: 12.2) and the stamp of the compilation, 4 bytes each in the order
of the machine. Counts belong to notes of equal stamp and to no others.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from perflaw.errors import UsageError

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
