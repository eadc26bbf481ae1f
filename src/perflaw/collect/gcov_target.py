"""Which commands are compiled programs with gcc's coverage in them, and what the program says of itself.

Nothing is asked of the build: ``--coverage`` links libgcov into the program, and each of its object files names there
the data file (``.gcda``) that it will write. Both are found as bytes, so a stripped program is recognised as well.
"""

from __future__ import annotations

import mmap
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError

LAUNCHERS: Final = ("sh", "bash", "dash", "zsh", "env", "timeout", "nice", "setsid", "stdbuf", "xargs", "make", "ninja")
"""Programs that are not counted themselves and start those that are."""
_LIBGCOV: Final = (b"libgcov profiling error", b"profiling:%s:")
"""What every version of libgcov can say."""
_CLANG: Final = b"llvm_gcda_"
_DATA: Final = re.compile(rb"(/[^\0\n]{1,4096}?\.gcda)\0")
_SYSTEM: Final = ("/lib", "/usr/lib")


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A program whose executions can be counted."""

    path: Path
    """Its file."""
    data: tuple[str, ...]
    """Data files that it will write at its end; empty where only the programs it starts will."""


def is_elf(path: Path) -> bool:
    """Whether a file begins as compiled programs do; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def instrumented(path: Path) -> Instrumented:
    """The program at ``path``; TargetError where it is compiled and has no coverage of gcc's in it.

    Scripts, shells and the like are taken at their word: what they start may have it.
    """
    if not is_elf(path) or path.name in LAUNCHERS:
        return Instrumented(path, ())
    data = _data_files(path)
    if data is None:
        found = [_data_files(library) for library in libraries(path)]
        if not any(one is not None for one in found):
            raise _without(path)
        data = {name for one in found for name in one or ()}
    return Instrumented(path, tuple(sorted(data)))


def _data_files(path: Path) -> set[str] | None:
    """Names of the data files that this program or library writes itself; None where it has no libgcov in it."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(_CLANG) >= 0:
                raise _of_clang(path)
            if not any(content.find(words) >= 0 for words in _LIBGCOV):
                return None
            return {match[1].decode(errors="surrogateescape") for match in _DATA.finditer(content)}
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None


def libraries(path: Path) -> list[Path]:
    """The person's own shared libraries that the program is linked with; none where the loader does not tell."""
    try:
        told = subprocess.run(["ldd", str(path)], capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    named = [Path(word) for line in told.stdout.splitlines() for word in line.split() if word.startswith("/")]
    return [library for library in named if not str(library).startswith(_SYSTEM)]


def _without(path: Path) -> TargetError:
    why = "it was compiled without --coverage (gcc's -fprofile-arcs -ftest-coverage), so it counts nothing"
    return TargetError(f"{path}: no execution counts in it", why, "make clean && make CFLAGS='-O0 -g --coverage'")


def _of_clang(path: Path) -> TargetError:
    why = "its coverage is clang's, whose format of counts is another one; perflaw reads gcc's"
    return TargetError(f"{path}: compiled by clang", why, "make clean && make CC=gcc CFLAGS='-O0 -g --coverage'")
