"""The patches of a file, kept by its build id and a digest of the code that makes them, and the table that the program gets.

The layout of the table is that of native/compiled/inject/patches.c.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.cache import keep, read_kept
from perflaw.record.compiled import code as code_module
from perflaw.record.compiled import elf as elf_module
from perflaw.record.compiled.code import Code, code_of, cold_parts, entry_points
from perflaw.record.compiled.elf import Elf, open_elf
from perflaw.record.compiled.inject.relocation import (
    BRANCH_INTO,
    LOOP_WINDOW,
    WINDOW,
    Named,
    Patch,
    Unpatchable,
    patch_of,
)

HEAD: Final = np.dtype([("magic", "<u8"), ("patches", "<u4"), ("fixups", "<u4"), ("bytes", "<u4"), ("unused", "<u4")])
PATCH: Final = np.dtype(
    [("offset", "<u8"), ("first_byte", "<u4"), ("first_fixup", "<u4"), ("original", "u1"), ("relocated", "u1"),
     ("fixups", "u1"), ("loop", "u1"), ("unused", "V4")]
)  # fmt: skip
FIXUP: Final = np.dtype([("target", "<u8"), ("at", "u1"), ("kind", "u1"), ("behind", "u1"), ("unused", "V5")])
_MAGIC: Final = int.from_bytes(b"FPRFPAT1", "little")
_MACHINE: Final = "EM_X86_64"
_ARRAYS: Final = ("patches", "fixups", "code", "refused", "reasons")


@dataclass(frozen=True, slots=True)
class ModulePatches:
    """The patches of all functions of a file, by offset from where it is loaded."""

    patches: NDArray[np.void]
    """(F,) rows ``PATCH``, in order of offset."""
    fixups: NDArray[np.void]
    """Rows ``FIXUP``."""
    code: NDArray[np.uint8]
    """Bytes of the patches."""
    refused: NDArray[np.int64]
    """(R,) offsets of the functions that cannot be patched, in order."""
    reasons: NDArray[np.str_]
    """(R,) why."""

    @property
    def patchable(self) -> frozenset[int]:
        """Offsets of the functions that can be patched."""
        return frozenset(self.patches["offset"].tolist())

    @property
    def loops(self) -> frozenset[int]:
        """Offsets of those among them with a loop back to their first instructions, which would run as a copy."""
        return frozenset(self.patches["offset"][self.patches["loop"] > 0].tolist())

    @property
    def refusals(self) -> dict[int, str]:
        """Offset of each function that cannot be patched → why."""
        return dict(zip(self.refused.tolist(), self.reasons.tolist(), strict=True))

    def table(self, wanted: Collection[int]) -> bytes:
        """The table of those of the wanted functions that can be patched."""
        rows = self.patches[np.isin(self.patches["offset"], np.fromiter(wanted, np.uint64, len(wanted)))]
        head = np.array([(_MAGIC, len(rows), len(self.fixups), len(self.code), 0)], HEAD)
        return head.tobytes() + rows.tobytes() + self.fixups.tobytes() + self.code.tobytes()


_NOTHING: Final = ModulePatches(
    np.empty(0, PATCH), np.empty(0, FIXUP), np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.str_)
)


NO_PATCHES: Final = _NOTHING.table(())
"""The table of a file in which nothing is patched."""


def module_patches(module: Path) -> ModulePatches:
    """The patches of a file; none if it cannot be read or is of another machine."""
    try:
        about = module.stat()
        return _patches(module, about.st_size, about.st_mtime_ns)
    except OSError:
        return _NOTHING


@lru_cache(maxsize=16)
def _patches(module: Path, size: int, time: int) -> ModulePatches:
    with open_elf(module) as elf:
        if elf is None or elf.file["e_machine"] != _MACHINE or elf.file.elfclass != 64:
            return _NOTHING
        file = f"patches-{_version()}-{elf.key}.npz"
        if content := read_kept(file):
            with suppress(OSError, ValueError, KeyError), np.load(io.BytesIO(content)) as kept:  # it is damaged
                return ModulePatches(*(kept[name] for name in _ARRAYS))
        made, stream = _make(elf), io.BytesIO()
        np.savez(stream, **{name: getattr(made, name) for name in _ARRAYS})
        keep(file, stream.getvalue())
        return made


@cache
def _version() -> str:
    digest = blake2b(version("iced-x86").encode(), digest_size=6)
    for path in [*sorted(Path(__file__).parent.glob("*.py")), Path(code_module.__file__), Path(elf_module.__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _make(elf: Elf) -> ModulePatches:
    """The patches of a file, from its code."""
    code, sizes, cold, base = code_of(elf), entry_points(elf), cold_parts(elf), elf.base
    starts = sorted(sizes)
    patches: list[Patch] = []
    refused: dict[int, str] = {}
    for number, address in enumerate(starts):
        after = starts[number + 1 : number + 2]
        size = sizes[address] or min([WINDOW, *(next_ - address for next_ in after)])
        try:
            if patch := patch_at(code, range(address, address + size), cold.get(address, ())):
                if after and after[0] < address + len(patch.original):
                    raise Unpatchable(BRANCH_INTO)
                patches.append(patch)
        except Unpatchable as reason:
            refused[address - base] = str(reason)
    return _arrays(patches, refused, base)


def patch_at(code: Code, function: range, cold: Sequence[range] = ()) -> Patch | None:
    """The patch of a function of a file; None if the file has no code there. Unpatchable says why there can be none.

    ``cold``: where more of its code is.
    """
    address, found = function.start, code.at(function.start, min(len(function), LOOP_WINDOW))
    if not found:
        return None
    behind, targets = code.named(address, address + len(found))
    is_own = np.zeros(len(behind), np.bool_)
    for part in (function, *cold):
        is_own |= (behind > part.start) & (behind <= part.stop)
    chosen = is_own | (targets > address)  # others that name its beginning call it
    named = [
        Named(after, target, own and not code.is_call(after))
        for after, target, own in zip(*(each[chosen].tolist() for each in (behind, targets, is_own)), strict=True)
    ]
    named += [Named(0, target, True) for target in code.table_targets(function)]
    return patch_of(found, address, named)


def _arrays(patches: list[Patch], refused: dict[int, str], base: int) -> ModulePatches:
    rows: list[tuple[object, ...]] = []
    fixups: list[tuple[object, ...]] = []
    code = bytearray()
    for patch in patches:
        sizes = len(patch.original), len(patch.relocated), len(patch.fixups)
        rows.append((patch.address - base, len(code), len(fixups), *sizes, patch.loop, b""))
        fixups += [((fix.target - base) % 2**64, fix.at, fix.kind, fix.behind, b"") for fix in patch.fixups]
        code += patch.original + patch.relocated
    offsets = sorted(refused)
    return ModulePatches(
        np.array(rows, PATCH),
        np.array(fixups, FIXUP),
        np.frombuffer(bytes(code), np.uint8),
        np.array(offsets, np.int64),
        np.array([refused[offset] for offset in offsets], np.str_),
    )


def counted_reasons(reasons: Counter[str]) -> str:
    """Refusals in words: ``12 shorter than a jump, 3 a jump into its first instructions``."""
    return ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
