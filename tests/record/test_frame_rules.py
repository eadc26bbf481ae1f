"""Where functions keep what their callers need: read entry by entry, it is what pyelftools reads of whole tables."""

from __future__ import annotations

import subprocess
from pathlib import Path

from elftools.dwarf.callframe import FDE

from perflaw.record.compiled.elf import open_elf
from perflaw.record.compiled.frame_rules import FrameRules
from tests.record.test_client_waits import SERVER


def test_rules_are_those_of_the_whole_tables(tmp_path: Path):
    (tmp_path / "app.c").write_text(SERVER)
    subprocess.run(["gcc", "-O2", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    with open_elf(tmp_path / "app") as elf:
        assert elf
        rules, compared = FrameRules(elf), 0
        entries = elf.file.get_dwarf_info(relocate_dwarf_sections=False).EH_CFI_entries()
        for entry in [one for one in entries if isinstance(one, FDE)]:
            end = entry["initial_location"] + entry["address_range"]
            rows = entry.get_decoded().table
            for row, after in zip(rows, [*(row["pc"] for row in rows[1:]), end], strict=True):
                if row["cfa"].expr is not None:
                    continue
                saved = {of: rule.arg for of, rule in row.items() if isinstance(of, int) and rule.type == "OFFSET"}
                for address in {row["pc"], after - 1}:
                    rule = rules.at(address)
                    assert rule
                    assert (rule.register, rule.offset, rule.saved) == (row["cfa"].reg, row["cfa"].offset, saved)
                    assert rule.function == entry["initial_location"]
                    compared += 1
        assert compared > 40
        assert rules.at(0) is None
        assert rules.at(1 << 40) is None


def test_a_file_without_tables_and_one_with_damaged_ones_tell_nothing(tmp_path: Path):
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    plain, damaged = tmp_path / "plain", tmp_path / "damaged"
    for file, options in ((plain, ["-fno-asynchronous-unwind-tables", "-nostdlib", "-nostartfiles"]), (damaged, [])):
        subprocess.run(["gcc", "-o", file, "app.c", *options, "-Wl,-e,main"], cwd=tmp_path, check=True)
    with open_elf(damaged) as elf:
        assert elf
        section, main = elf.file.get_section_by_name(".eh_frame"), elf.file.get_section_by_name(".text")["sh_addr"]
        place, size = section["sh_offset"], section["sh_size"]
    content = bytearray(damaged.read_bytes())
    content[place : place + size] = b"\xff" * size
    damaged.write_bytes(content)
    for file in (plain, damaged):
        with open_elf(file) as elf:
            assert elf
            assert FrameRules(elf).at(main) is None
