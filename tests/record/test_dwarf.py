"""Names and places of functions from DWARF, as compilers write it: several units, sections, link-time optimisation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from perflaw.record.compiled.dwarf import functions_at
from perflaw.record.compiled.elf import identify, open_elf

ONE = """namespace one {
template <class T> struct A { __attribute__((noinline)) T get(T x) const { return x + 1; } };
__attribute__((noinline)) int f(int x) {
    auto inner = [&](int y) __attribute__((noinline)) { return y + x; };
    auto other = [&](int z) __attribute__((noinline)) { return z - x; };
    return inner(3) + other(x) + A<int>().get(x);
}
}
int two(int);
namespace { __attribute__((noinline)) int hidden(int q) { return two(q); } }
int main(int c, char **) { return one::f(c) + hidden(c) == 99; }
"""
TWO = """

static __attribute__((noinline)) int far(int z) { return z * 3; }
int two(int z) { return far(z) + far(z + 1); }
"""
EXPECTED = {
    ("(anonymous namespace)::hidden", "one.cc", 10, ("q",)), ("main", "one.cc", 11, ("c",)),
    ("one::A<int>::get", "one.cc", 2, ("x",)), ("one::f", "one.cc", 3, ("x",)), ("far", "two.cc", 3, ("z",)),
    ("two", "two.cc", 4, ("z",)),
}  # fmt: skip
BUILDS = ("-O0 -gdwarf-5", "-O2 -gdwarf-4", "-O2 -gdwarf-5 -ffunction-sections", "-O2 -g -flto")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", BUILDS)
def test_functions_of_two_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, flags: str) -> None:
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    (tmp_path / "one.cc").write_text(ONE)
    (tmp_path / "two.cc").write_text(TWO)
    command = [compiler, *flags.split(), "-finstrument-functions", "one.cc", "two.cc", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with open_elf(tmp_path / "program") as elf:
        assert elf
        places = sorted({one.address - elf.base for one in elf.functions()})
    for _ in range(2):  # read, then kept
        found = functions_at(tmp_path / "program", places)
        known = {(one.name, Path(one.file).name, one.line, one.parameters) for one in found.values() if one.line}
        lambdas = {row for row in known if "operator()" in row[0]}
        assert known - lambdas == EXPECTED
        assert {row[1:] for row in lambdas} == {("one.cc", 4, ("y",)), ("one.cc", 5, ("z",))}
        assert all(one.language == "c++" for one in found.values() if one.line)
        assert all(str(tmp_path) == str(Path(one.file).parent) for one in found.values() if one.line)


def test_a_cache_of_other_code_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, program = tmp_path / "cache", tmp_path / "program"
    monkeypatch.setenv("PERFLAW_CACHE", str(cache))
    (tmp_path / "one.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-g", "one.c", "-o", "program"], cwd=tmp_path, check=True)
    with open_elf(program) as elf:
        assert elf
        place, identity = next(one.address - elf.base for one in elf.functions() if one.symbol == "main"), elf.identity
    assert functions_at(program, [place])[place].name == "main"
    (kept,) = cache.iterdir()
    assert kept.name.endswith(f"-{identity}.json")
    kept.write_text(kept.read_text().replace('"main"', '"kept"'))
    assert functions_at(program, [place])[place].name == "kept"
    kept.rename(cache / f"dwarf-0123456789ab-{identity}.json")
    assert functions_at(program, [place])[place].name == "main"


def test_a_damaged_file_has_no_names_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """benchmarks/fuzz.py tries many more; one of its finds was a section as large as the address space."""
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    whole = (Path(__file__).parents[2] / "benchmarks" / "corpora" / "elf" / "a").read_bytes()
    damaged = tmp_path / "damaged"
    for at in range(0, len(whole), 61):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        functions_at(damaged, [0, 4096])
    sizes = len(whole) - 64 + 32  # of the last section, in its header
    damaged.write_bytes(whole[:sizes] + (1 << 46).to_bytes(8, "little") + whole[sizes + 8 :])
    assert functions_at(damaged, [0, 4096]) == {}
    many = whole[:56] + b"\xff\xff" + whole[58:]  # segments: their number is then that of a section without a name
    damaged.write_bytes(many[: sizes - 8] + b"\xff" * 8 + many[sizes:])
    assert functions_at(damaged, [0, 4096]) == {}


def test_a_file_that_is_built_again_at_its_place_is_another_one(tmp_path: Path) -> None:
    found = []
    for number in range(2):
        (tmp_path / "app.c").write_text(f"int main(void) {{ return {number}; }}\n")
        subprocess.run(["gcc", "-Wl,--build-id", "-o", "app", "app.c"], cwd=tmp_path, check=True)
        found += [identify(tmp_path / "app"), identify(tmp_path / "app")]
    assert found[0] == found[1] != found[2] == found[3]
    assert all(found)
    assert identify(tmp_path / "app.c") is None
    assert identify(tmp_path / "none") is None


@pytest.mark.parametrize("path", [sys.executable, "/lib/x86_64-linux-gnu/libc.so.6"])
def test_files_are_read_as_pyelftools_reads_them(path):
    path = Path(path)
    with open_elf(path) as elf, path.open("rb") as stream:
        plain = ELFFile(stream)
        linked = plain.get_section_by_name(".dynsym")
        assert elf.linked_names == {symbol.name for symbol in linked.iter_symbols()}
        headers = [(one.name, dict(one.header)) for one in plain.iter_sections()]
        assert [(one.name, dict(one.header)) for one in elf.file.iter_sections()] == headers
        assert [dict(one.header) for one in elf.file.iter_segments()] == [
            dict(one.header) for one in plain.iter_segments()
        ]
