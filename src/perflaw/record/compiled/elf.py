"""Compiled files (ELF), as far as perflaw reads them. It uses pyelftools, which is imported when it is needed."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from perflaw.record.cache import distrust

if TYPE_CHECKING:
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.elf.elffile import ELFFile

HOOK: Final = "__cyg_profile_func_enter"
"""Function that a program built with ``-finstrument-functions`` calls."""
DEBUG: Final = Path("/usr/lib/debug/.build-id")
"""Folder where distributions keep debug information apart from programs."""
_MAX_SEGMENTS, _MAX_SECTIONS = 1 << 12, 1 << 16
"""What a file has at most of each; more would take longer to read than a person waits."""
_PAGE: Final = 4096
"""Bytes of a page: the loader places whole pages."""
_FUNCTION: Final = 2
"""STT_FUNC: the kind of symbol that names a function."""
_OBJECT: Final = 1
"""STT_OBJECT: the kind of symbol that names data."""
_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("in", "<u2"), ("address", "<u8"), ("size", "<u8")]
)
"""Elf64_Sym. Read as an array, because pyelftools needs 10 µs a symbol."""
SYSTEM: Final = ("/lib", "/usr/lib")
"""Folders of the system's libraries."""

SizeAndNames = tuple[int, frozenset[str]]
"""Bytes of a function's code, 0 if the symbols do not tell, and the names that it has."""


@dataclass(frozen=True, slots=True)
class FunctionSymbol:
    """A function, or data, in a symbol table."""

    address: int
    """Address in the file."""
    size: int
    """Bytes of its code; 0 if the table does not say."""
    symbol: str
    """Mangled name."""


@dataclass(frozen=True)
class Elf:
    """An open ELF file."""

    path: Path
    """Its path."""
    file: ELFFile
    """Its reader of pyelftools."""

    @cached_property
    def base(self) -> int:
        """Address in the file that corresponds to the start of the loaded image."""
        loaded = [segment["p_vaddr"] for segment in self.file.iter_segments() if segment["p_type"] == "PT_LOAD"]
        return int(min(loaded, default=0)) // _PAGE * _PAGE

    @property
    def identity(self) -> str:
        """Build id in hexadecimal; a digest of path, size and time of the file if the linker gave none."""
        from elftools.elf.segments import NoteSegment

        with suppress(Exception):  # pyelftools raises whatever its code meets in damaged notes
            for segment in self.file.iter_segments():
                if isinstance(segment, NoteSegment):
                    for note in segment.iter_notes():
                        if note["n_type"] == "NT_GNU_BUILD_ID":
                            return str(note["n_desc"])
        about = self.path.stat()
        return hashlib.sha256(f"{self.path.resolve()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()[:40]

    @property
    def key(self) -> str:
        """What the cache keeps things of this file by: its identity, and which file it is if another user may change it.

        That user could give it the identity of another file.
        """
        about, is_trusted = os.fstat(self.file.stream.fileno()), False
        with suppress(OSError):  # it is gone
            place = self.path.resolve()
            is_trusted = not distrust(place) and os.path.samestat(place.stat(), about)
        return (
            self.identity if is_trusted else f"{self.identity}-{about.st_dev:x}-{about.st_ino:x}-{about.st_ctime_ns:x}"
        )

    @property
    def is_dynamic(self) -> bool:
        """Whether the loader starts it, so that a library can be preloaded."""
        return any(segment["p_type"] == "PT_INTERP" for segment in self.file.iter_segments())

    @property
    def is_at_fixed_place(self) -> bool:
        """Whether it is always loaded at the addresses that it says."""
        return bool(self.file["e_type"] == "ET_EXEC")

    @property
    def linked_names(self) -> frozenset[str]:
        """Names that it has from other files or gives them; a stripped file tells too."""
        from elftools.elf.sections import SymbolTableSection

        section = self.file.get_section_by_name(".dynsym")
        if not isinstance(section, SymbolTableSection):
            return frozenset()
        if self.file.elfclass != 64:
            return frozenset(symbol.name for symbol in section.iter_symbols())
        names = self.file.get_section(section["sh_link"]).data()
        return frozenset(_name_at(names, at) for at in np.frombuffer(section.data(), _SYMBOL)["name"].tolist())

    @property
    def has_symbols(self) -> bool:
        """Whether it names all its functions, not only those that it exports."""
        return self.file.get_section_by_name(".symtab") is not None

    @property
    def debug_file(self) -> Path:
        """Place where the distribution keeps the symbols and debug information of this file, if it does."""
        return DEBUG / self.identity[:2] / f"{self.identity[2:]}.debug"

    def functions(self) -> Iterator[FunctionSymbol]:
        """Every function in a symbol table."""
        return self._symbols(_FUNCTION)

    def object_at(self, address: int) -> str:
        """The mangled name of the object that contains an address; empty if nothing names it."""
        found = (one.symbol for one in self._symbols(_OBJECT) if one.address <= address < one.address + one.size)
        return next(found, "")

    def symbols(self) -> Iterator[FunctionSymbol]:
        """Every function and object in a symbol table."""
        yield from self._symbols(_FUNCTION)
        yield from self._symbols(_OBJECT)

    def bytes_at(self, address: int, limit: int) -> bytes:
        """At most so many bytes of what the file loads at an address; empty if that is nothing."""
        for segment in self.file.iter_segments():
            at = address - segment["p_vaddr"]
            if segment["p_type"] == "PT_LOAD" and 0 <= at < segment["p_filesz"]:
                return bytes(segment.data()[at : at + limit])
        return b""

    def _symbols(self, kind: int) -> Iterator[FunctionSymbol]:
        for name in (".symtab", ".dynsym"):
            table = self.file.get_section_by_name(name)
            if table is not None and self.file.elfclass == 64:
                names = self.file.get_section(table["sh_link"]).data()
                rows = np.frombuffer(table.data(), _SYMBOL)
                rows = rows[(rows["info"] & 15 == kind) & (rows["address"] != 0)]
                for at, address, size in zip(*(rows[of].tolist() for of in ("name", "address", "size")), strict=True):
                    yield FunctionSymbol(address, size, _name_at(names, at))

    def dwarf(self) -> DWARFInfo | None:
        """Its debug information; None if it has none."""
        return self.file.get_dwarf_info() if self.file.has_dwarf_info() else None


def _name_at(names: bytes, at: int) -> str:
    """The name that begins at a place of a table of names."""
    return names[at : names.index(b"\0", at)].decode(errors="replace")


@cache
def _elf_reader() -> type[ELFFile]:
    """The reader of pyelftools, which makes each section once.

    It makes all sections again for each look at a segment, and reads the loader's hash table of symbols for each of them.
    """
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

    class ElfReader(ELFFile):
        def __init__(self, stream: IO[bytes]) -> None:
            self._made: dict[int, Section] = {}
            super().__init__(stream)

        def get_section(self, n: int, type: Any = None) -> Section:  # noqa: A002 (as pyelftools has it)
            if type is not None:
                return super().get_section(n, type)
            if n not in self._made:
                self._made[n] = super().get_section(n)
            return self._made[n]

        def _make_section(self, section_header: Any) -> Section:
            if section_header["sh_type"] == "SHT_GNU_HASH":
                return Section(section_header, self._get_section_name(section_header), self)
            return super()._make_section(section_header)

    return ElfReader


@contextmanager
def open_elf(path: Path) -> Iterator[Elf | None]:
    """The file at ``path`` while entered; None if it cannot be read, is no ELF file, or its sections reach beyond its end."""
    from elftools.common.exceptions import ELFError

    elf = None
    with ExitStack() as stack:
        with suppress(OSError, ELFError, ValueError):  # ValueError: a place beyond the largest file
            if path.is_file():  # a pipe would be waited for
                file = _elf_reader()(stack.enter_context(path.open("rb")))
                if _is_whole(file, path.stat().st_size):
                    elf = Elf(path, file)
        yield elf


def identify(path: Path) -> tuple[str, str] | None:
    """``identity`` and ``key`` of a file; None if it is no ELF file that can be read.

    It is remembered as long as the file is the same: the children of a program are of the same few files.
    """
    try:
        about = path.stat()
    except OSError:
        return None
    return _identified(path, (about.st_dev, about.st_ino, about.st_size, about.st_ctime_ns))


@lru_cache(maxsize=1024)
def _identified(path: Path, about: tuple[int, ...]) -> tuple[str, str] | None:
    with open_elf(path) as elf:
        return (elf.identity, elf.key) if elf else None


def _is_whole(file: ELFFile, size: int) -> bool:
    """Whether all headers can be read and all sections are within the file: a reader asks for as much memory as they say."""
    try:
        if file.num_segments() > _MAX_SEGMENTS or file.num_sections() > _MAX_SECTIONS:
            return False
        headers = [section.header for section in file.iter_sections()]
        sum(1 for _ in file.iter_segments())
    except Exception:  # pyelftools raises whatever its code meets in damaged headers
        return False
    return all(one["sh_type"] == "SHT_NOBITS" or one["sh_offset"] + one["sh_size"] <= size for one in headers)


def is_elf(path: Path) -> bool:
    """Whether a file begins like a compiled program; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:  # the program cannot be read either when it is started, and that error is reported
        return False


def libraries(path: Path) -> list[Path]:
    """The person's own shared libraries that the program is linked with; empty if the loader does not tell."""
    try:
        answer = subprocess.run(["ldd", str(path)], capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    named = [Path(word) for line in answer.stdout.splitlines() for word in line.split() if word.startswith("/")]
    return [library for library in named if not str(library).startswith(SYSTEM)]


def calls_hooks(path: Path) -> bool:
    """Whether a program, or a library of the person's that it is linked with, was built with ``-finstrument-functions``."""
    for each in (path, *libraries(path)):
        with open_elf(each) as elf:
            if elf is not None and HOOK in elf.linked_names:
                return True
    return False
