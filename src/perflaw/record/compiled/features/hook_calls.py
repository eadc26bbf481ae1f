"""Where the code of a file calls the hook of ``-finstrument-functions``: found in its machine code (x86-64)."""

from __future__ import annotations

from typing import Final

from perflaw.record.compiled.code import relative_targets
from perflaw.record.compiled.elf import HOOK, Elf

_EXECUTABLE: Final = 0x4
"""SHF_EXECINSTR."""
_CALL, _CALL_INDIRECT, _JUMP_INDIRECT = b"\xe8", b"\xff\x15", b"\xff\x25"
_BEFORE_JUMP: Final = (0, 1, 4, 5)
"""Bytes of a stub before its jump: none, ``bnd``, ``endbr64``, both."""


def hook_returns(elf: Elf) -> list[int]:
    """Addresses behind the calls of the entry hook, in order: what the hook returns to."""
    slots = _slots(elf)
    stubs: set[int] = set()
    direct: list[tuple[int, int]] = []
    returns: list[int] = []
    for section in elf.file.iter_sections():
        if not section["sh_flags"] & _EXECUTABLE or section["sh_type"] == "SHT_NOBITS":
            continue
        start, code = section["sh_addr"], section.data()
        direct += _pairs(code, start, _CALL)
        returns += [behind for behind, target in _pairs(code, start, _CALL_INDIRECT) if target in slots]
        jumps = [behind - 6 for behind, target in _pairs(code, start, _JUMP_INDIRECT) if target in slots]
        stubs |= {jump - before for jump in jumps for before in _BEFORE_JUMP}
    return sorted(returns + [behind for behind, target in direct if target in stubs])


def _slots(elf: Elf) -> set[int]:
    """Where the loader puts the hook's address."""
    from elftools.elf.relocation import RelocationSection
    from elftools.elf.sections import SymbolTableSection

    symbols = elf.file.get_section_by_name(".dynsym")
    if not isinstance(symbols, SymbolTableSection) or HOOK.encode() not in symbols.stringtable.data():
        return set()  # looking at each symbol would take a large file's recorder seconds
    hooks = {number for number, symbol in enumerate(symbols.iter_symbols()) if symbol.name == HOOK}
    tables = (table for table in elf.file.iter_sections() if isinstance(table, RelocationSection))
    return {
        int(relocation["r_offset"])
        for table in tables
        if table["sh_flags"]  # it is loaded
        for relocation in table.iter_relocations()
        if relocation["r_info_sym"] in hooks
    }


def _pairs(code: bytes, start: int, instruction: bytes) -> list[tuple[int, int]]:
    """The two arrays of :func:`relative_targets` as pairs."""
    behind, targets = relative_targets(code, start, instruction)
    return list(zip(behind.tolist(), targets.tolist(), strict=True))
