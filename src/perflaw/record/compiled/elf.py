"""Compiled files (ELF) as far as perflaw looks into them; by pyelftools, which is imported when it is needed."""

from __future__ import annotations

import hashlib
import mmap
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Self

import numpy as np

from perflaw.errors import TargetError

if TYPE_CHECKING:
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Symbol

HOOK = "__cyg_profile_func_enter"
"""What a program that is built with ``-finstrument-functions`` calls."""
_PAGE = 4096
_FUNCTION = 2
"""STT_FUNC: what kind of thing a symbol names."""
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("in", "<u2"), ("address", "<u8"), ("size", "<u8")]
)
"""Elf64_Sym. Read as an array, for pyelftools needs 10 µs a symbol."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function as a table of symbols has it."""

    address: int
    """In the file's own addresses."""
    size: int
    """Bytes of its code; 0 where it is not said."""
    symbol: str
    """Its name, mangled."""


@dataclass(frozen=True, slots=True)
class Elf:
    """An open ELF file."""

    path: Path
    """Where it is."""
    file: ELFFile
    """What pyelftools reads it by."""
    stream: IO[bytes]
    """The open file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stream.close()

    @property
    def base(self) -> int:
        """Address in the file that stands at the beginning of where it is loaded."""
        loaded = [one["p_vaddr"] for one in self.file.iter_segments() if one["p_type"] == "PT_LOAD"]
        return int(min(loaded, default=0)) // _PAGE * _PAGE

    @property
    def identity(self) -> str:
        """Build id in hexadecimal; where the linker gave none, a digest of what tells one file from another."""
        from elftools.elf.segments import NoteSegment

        for segment in self.file.iter_segments():
            if isinstance(segment, NoteSegment):
                for note in segment.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
        about = self.path.stat()
        return hashlib.sha256(f"{self.path.resolve()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()[:40]

    @property
    def is_dynamic(self) -> bool:
        """Whether the loader starts it, so that a library can be preloaded."""
        return any(one["p_type"] == "PT_INTERP" for one in self.file.iter_segments())

    def calls_hooks(self) -> bool:
        """Whether it was built with ``-finstrument-functions``; also a stripped file says so."""
        return any(symbol.name == HOOK for symbol in self._symbols(".dynsym"))

    def _symbols(self, table: str) -> Iterator[Symbol]:
        from elftools.elf.sections import SymbolTableSection

        section = self.file.get_section_by_name(table)
        if isinstance(section, SymbolTableSection):
            yield from section.iter_symbols()

    @property
    def has_symbols(self) -> bool:
        """Whether it names all its functions, not only those that it exports."""
        return self.file.get_section_by_name(".symtab") is not None

    def functions(self) -> Iterator[Function]:
        """Every function that a table of symbols names."""
        for name in (".symtab", ".dynsym"):
            table = self.file.get_section_by_name(name)
            if table is not None and self.file.elfclass == 64:
                names = self.file.get_section(table["sh_link"]).data()
                rows = np.frombuffer(table.data(), _SYMBOL)
                rows = rows[(rows["info"] & 15 == _FUNCTION) & (rows["address"] != 0)]
                for at, address, size in zip(*(rows[of].tolist() for of in ("name", "address", "size")), strict=True):
                    yield Function(address, size, names[at : names.index(b"\0", at)].decode(errors="replace"))

    def symbols(self) -> Iterator[tuple[int, str]]:
        """Address and name of each of them."""
        return ((one.address, one.symbol) for one in self.functions())

    def dwarf(self) -> DWARFInfo | None:
        """Its debug information; None where it has none."""
        return self.file.get_dwarf_info() if self.file.has_dwarf_info() else None


def open_elf(path: Path) -> Elf | None:
    """The file at ``path``; None where it cannot be read or is not an ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        stream = path.open("rb")
    except OSError:
        return None
    try:
        return Elf(path, ELFFile(stream), stream)
    except ELFError:
        stream.close()
        return None


# ---- Which commands are compiled programs with gcc's coverage in them, and what the program says of itself.
#
# Nothing is asked of the build: ``--coverage`` links libgcov into the program, and each of its object files names
# there
# the data file (``.gcda``) that it will write. Both are found as bytes, so a stripped program is recognised as well.

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
