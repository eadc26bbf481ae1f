"""Which functions are injected: those of the program itself, and with ``--select`` those of its libraries that are named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from perflaw.record.compiled.elf import SizeAndNames, libraries, open_elf
from perflaw.record.compiled.inject.tables import NO_PATCHES, module_patches
from perflaw.record.compiled.selection import Globs, functions

PROGRAM, LIBRARIES = "program", "libraries"
"""What a program asks patches for: itself, or also the libraries that it loads."""
SYSTEM, LOCAL = ("/usr/", "/bin/", "/sbin/", "/lib"), "/usr/local/"
"""Where the programs of the system are; below the last one a person's own are."""
LEFT_ALONE: Final = (
    *("libc.so", "libc-", "ld-", "libpthread", "libdl", "librt.", "librt-", "libgcc_s"),
    *("linux-vdso", "linux-gate", "libperflaw_"),
)
"""How the names of files begin that what is injected uses itself, or is."""
_CANCELLED: Final = "a loop back to its first instructions, where pthread_cancel may end it at any instruction"
_MOST_NAMED: Final = 3
"""Functions named for each reason."""


@lru_cache(maxsize=64)
def _cancels_anywhere(file: Path) -> bool:
    """Whether a file, or a library of the person's that it is linked with, may have threads end at any instruction.

    What such a thread is to clean up is found by the tables for unwinding, which copies of loops do not have.
    """
    for each in (file, *libraries(file)):
        with open_elf(each) as elf:
            if elf is not None and "pthread_setcanceltype" in elf.linked_names:
                return True
    return False


def nameless(module: Path, offset: int) -> str:
    """What a function is called that no symbol names."""
    return f"{module.name}+{offset:#x}"


def all_functions(module: Path) -> Mapping[int, SizeAndNames]:
    """The functions of a file by offset; those that no symbol names are named by their place."""
    try:
        about = module.stat()
    except OSError:
        return {}
    return _all_functions(module, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=16)
def _all_functions(module: Path, size: int, time: int) -> Mapping[int, SizeAndNames]:
    patches, named = module_patches(module), dict(functions(module))
    for offset in [*patches.patchable, *patches.refusals]:
        if offset not in named:
            named[offset] = 0, frozenset([nameless(module, offset)])
    return named


@dataclass(frozen=True, slots=True)
class Injection:
    """Chooses the functions of each loaded file, and remembers which of them cannot be patched."""

    program: Path
    """The program that was started."""
    globs: Globs
    """The functions that the person chose."""
    only_program: bool = False
    """Whether libraries have none of them, so that nobody has to look."""
    by: str = "injected code"
    """What records them, in words."""
    wanted: dict[Path, set[int]] = field(default_factory=dict)
    """Each file of which functions were chosen → their offsets."""
    _refused: dict[str, list[str]] = field(default_factory=dict)
    """Reason → names of functions."""
    _patched: Counter[Path] = field(default_factory=Counter)
    _also_refused: set[tuple[Path, int]] = field(default_factory=set)
    """Files and offsets of functions that could not be recorded when a program had them."""

    @property
    def scope(self) -> str:
        """``program`` or ``libraries``."""
        return LIBRARIES if self.globs.select and not self.only_program else PROGRAM

    def table(self, module: Path) -> bytes:
        """The table of patches for a loaded file."""
        wanted = self.chosen(module)
        return module_patches(module).table(wanted) if wanted else NO_PATCHES

    def chosen(self, module: Path) -> set[int]:
        """Offsets of the functions of a loaded file that are injected.

        Programs of the system that the program starts are left alone.
        """
        place = str(module)
        is_system = place.startswith(SYSTEM) and not place.startswith(LOCAL)
        if not self.globs.select and module != self.program and is_system:
            return set()
        if module != self.program and not self._may_have(module):
            return set()
        if module in self.wanted:
            return self.wanted[module]
        patches, chosen = module_patches(module), self.globs.wanted_of(all_functions(module))
        wanted, refusals = chosen & patches.patchable, patches.refusals
        if patches.loops & wanted and (_cancels_anywhere(module) or _cancels_anywhere(self.program)):
            refusals |= dict.fromkeys(patches.loops, _CANCELLED)
            wanted -= patches.loops
        self.wanted[module] = wanted
        self._patched[module] = len(wanted)
        self._note(module, {offset: refusals[offset] for offset in sorted(refusals.keys() & chosen)})
        return wanted

    def refuse(self, module: Path, refused: Mapping[int, str]) -> None:
        """Note functions of a file that could be patched and yet are not recorded: offset → why."""
        new = {offset: why for offset, why in refused.items() if (module, offset) not in self._also_refused}
        self._also_refused.update((module, offset) for offset in new)  # another program may refuse them again
        self._patched[module] -= len(new)
        self._note(module, new)

    def _note(self, module: Path, refused: Mapping[int, str]) -> None:
        named = all_functions(module)
        for offset, reason in refused.items():
            self._refused.setdefault(reason, []).append(min(named[offset][1], key=len))

    def _may_have(self, module: Path) -> bool:
        """Whether a library may have functions that are wanted: decoding it takes long.

        Those without a name are known only when it is decoded.
        """
        if module.name.startswith(LEFT_ALONE):
            return False
        is_placed = any("+" in glob for glob in self.globs.select)
        return is_placed or self.globs.wants([nameless(module, 0)]) or bool(self.globs.wanted_of(functions(module)))

    def described(self) -> str:
        """How many functions are recorded, and which are not and why; empty if nothing was asked for."""
        if not self._patched:
            return ""
        parts = []
        for reason, names in sorted(self._refused.items(), key=lambda row: -len(row[1])):
            few = ", ".join(sorted(names, key=lambda name: (len(name), name))[:_MOST_NAMED])
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            parts.append(f"{few}{more} ({reason})")
        refused = f"; not recorded: {'; '.join(parts)}" if parts else ""
        number = sum(self._patched.values())
        return f"{number} function{'s are' if number != 1 else ' is'} recorded by {self.by}{refused}"
