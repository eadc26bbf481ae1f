"""The ready-made studies under examples/: all are understood; SQLite's and the compiler's are made end to end."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perflaw.explore.space import Space
from perflaw.explore.study_file import read_study

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
STUDIES = sorted(EXAMPLES.glob("*/*.yaml"))
SIZES = {
    "sqlite": 256, "page-sizes": 4, "redis": 512, "postgresql": 1152, "service": 120, "compiler": 96, "fftw": 144,
}  # fmt: skip


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_is_understood_and_short(path):
    study = read_study(path)
    assert len(path.read_text().splitlines()) <= 40
    assert Space(study.knobs, study.constraints).size == SIZES[path.stem]
    assert (path.parent / "README.md").read_text().count(f"perflaw explore {path.name}") == 1


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("source", ["sqlite/query_trips.c", "sqlite/make_trips.c", "compiler/kernel.c"])
def test_programs_compile_without_a_warning(compiler, source):
    command = [
        compiler,
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsyntax-only",
        f"-I{ROOT / 'native' / 'include'}",
    ]
    subprocess.run([*command, EXAMPLES / source], check=True)


@pytest.fixture
def explored(tmp_path, monkeypatch):
    def run(name, study, *options):
        folder = tmp_path / name
        shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns(".perflaw", "work"))
        monkeypatch.setenv("TRIPS_ROWS", "20000")
        monkeypatch.setenv("KERNEL_SECONDS", "0.05")
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
        command = [sys.executable, "-m", "perflaw", "explore", study, "--json", *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.slow
def test_sqlite(explored):
    found = explored("sqlite", "sqlite.yaml", "--trials", "3")
    assert [one["reason"] for one in found["trials"] if not one["valid"]] == []
    assert all(one["metrics"]["throughput"] > 0 for one in found["trials"])
    assert found["best"]["configuration"] in [one["configuration"] for one in found["trials"]]


@pytest.mark.slow
def test_page_sizes_that_sqlite_ignores_are_no_data_points(explored, tmp_path):
    found = explored("sqlite", "page-sizes.yaml")
    told = {one["configuration"]["page_size"]: one for one in found["trials"]}
    assert [size for size, one in told.items() if one["valid"]] == [1024, 4096]
    for size in (2 << 20, 1 << 30):
        assert "page_size did not take effect" in told[size]["reason"], told[size]
        assert told[size]["metrics"] == {}
    assert _page_size(tmp_path / "sqlite" / "work" / "trips.db") == 4096  # as before the study


@pytest.mark.slow
def test_flags_of_a_compiler(explored):
    found = explored("compiler", "compiler.yaml", "--trials", "4")
    for one in found["trials"]:
        assert one["valid"], one["reason"]
        assert one["verified"] == one["configuration"]


def _page_size(path):
    return int.from_bytes(path.read_bytes()[16:18], "big")
