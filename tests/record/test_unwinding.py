"""Where functions of stripped files begin: the tables for unwinding say the same to us as to pyelftools."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.dwarf.callframe import FDE

from perflaw.record.compiled.elf import Elf, open_elf
from perflaw.record.compiled.unwinding import called_functions
from tests.record.test_hooks import built


def reference(elf: Elf) -> dict[int, int]:
    """The functions of all entries, in whichever way their tables begin, but for those entered by signals."""
    entries = elf.file.get_dwarf_info(relocate_dwarf_sections=False).EH_CFI_entries()
    return {
        entry["initial_location"]: entry["address_range"]
        for entry in entries
        if isinstance(entry, FDE) and b"S" not in entry.cie.header["augmentation"]
    }


def libgcc() -> Path:
    command = ["gcc", "-print-file-name=libgcc_s.so.1"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def test_functions_of_the_tables_are_those_that_pyelftools_finds(tmp_path: Path) -> None:
    for path in (built(tmp_path, "busy.cc", "-O2", "-pthread"), libgcc()):
        with open_elf(path) as elf:
            assert elf
            found, expected = dict(called_functions(elf)), reference(elf)
            assert found.items() <= expected.items()
            named = {symbol.address for symbol in elf.functions() if ".cold" not in symbol.symbol}
            assert found.keys() >= named & expected.keys()
            assert len(found) > 10


def test_a_damaged_table_gives_what_stands_before_the_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_elf(libgcc()) as elf:
        assert elf
        section = elf.file.get_section_by_name(".eh_frame")
        whole, data = list(called_functions(elf)), section.data()
        for left in range(0, 200, 7):
            damaged = data[:left] + b"\xee" * 40
            monkeypatch.setattr(type(section), "data", lambda self, damaged=damaged: damaged)
            found = list(called_functions(elf))[:-1]  # the last one may be the damage's
            assert found == whole[: len(found)]
