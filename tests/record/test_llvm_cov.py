"""Execution counts of programs with clang's source-based coverage: exact where counts are known, errors that say what to do."""

import subprocess

import pytest

from perflaw.record.compiled.gcov_files import mapped_objects
from perflaw.store.counts import read_counts, read_matrix, read_sources
from perflaw.store.experiment import open_experiment

FLAGS = ("-g", "-w", "-fprofile-instr-generate", "-fcoverage-mapping")
WALK = """#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

static long walk(int n)
{
    long total = 0;

    // pairs
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            total += i % 3 == 0 ? i : j;
    return total;
}

static long never(int n) { return n; }

int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    if (argc > 2 && !fork())
        return walk(2) < 0;
    wait(0);
    return n > 0 ? walk(n) < 0 : never(n);
}
"""


@pytest.fixture
def program(tmp_path):
    def build(*flags, source=WALK, name="app.c", compiler="clang"):
        (tmp_path / name).write_text(source)
        subprocess.run([compiler, *FLAGS, *flags, "-o", "app", name], cwd=tmp_path, check=True)
        return tmp_path / "app"

    return build


@pytest.fixture
def counts(perflaw, tmp_path):
    def record(*arguments, options=()):
        perflaw("record", "--collect", "lines", *options, "--", "./app", *arguments)
        matrix = read_matrix(open_experiment("default", tmp_path).recordings(), ("line", "block", "function"))
        return {
            place.name: row.astype(int).tolist() for place, row in zip(matrix.locations, matrix.counts, strict=True)
        }

    return record


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lines_branches_and_functions_are_counted_exactly_whatever_the_optimisation(program, counts, tmp_path, level):
    program(level)
    found = counts(9)
    assert [found[f"app.c:{line}"] for line in (7, 10, 11, 12, 13, 16)] == [[1], [10], [90], [81], [1], [0]]
    assert "app.c:8" not in found  # an empty line
    assert (found["app.c:11 branch 1"], found["app.c:11 branch 2"]) == ([81], [9])
    assert (found["app.c:12 branch 1"], found["app.c:12 branch 2"]) == ([27], [54])
    assert (found["walk"], found["never"], found["main"]) == ([1], [0], [1])
    [recording] = open_experiment("default", tmp_path).recordings()
    assert recording.run.tracer.startswith("llvm-cov")
    assert read_sources([recording]) == {str(tmp_path / "app.c"): WALK}
    places = {place.name: place.function for place in read_counts(recording.folder).locations}
    assert (places["app.c:12"], places["app.c:20"]) == ("walk", "main")
    assert not list(tmp_path.glob("*.profraw"))


def test_children_count_with_the_program_and_functions_are_selected(program, counts):
    program()
    found = counts(3, "again", options=("--select", "walk"))
    assert found["app.c:12"] == [9 + 4]
    assert "main" not in found


TEMPLATES = """#include <cstdlib>
template <typename T> T twice(T n)
{
    return n + n;
}
int main(int, char **argv)
{
    int sum = 0;
    for (int i = 0; i < atoi(argv[1]); i++)
        sum += twice(i) + (int)twice(1.5);
    return sum < 0;
}
"""


def test_instantiations_of_a_template_are_added_up(program, counts):
    program(source=TEMPLATES, name="app.cpp", compiler="clang++")
    found = counts(6)
    assert found["app.cpp:4"] == [12]
    assert found["int twice<int>(int)"] == found["double twice<double>(double)"] == [6]


@pytest.mark.slow
def test_a_trend_of_clang_s_counts(program, perflaw):
    program()
    perflaw("record", "--collect", "lines", "--vary", "n=10,20,40,80,160,320", "--", "./app", "{n}")
    assert "app.c:11-12" in perflaw("trend").stdout
    refused = perflaw("trend", "--kind", "edge", status=2).stderr
    assert "not who calls whom" in refused
    assert "-finstrument-functions" in refused
    assert "coverage does not count them" in perflaw("trend", "--kind", "line,edge").stdout


def test_tools_that_are_missing_or_fail_are_told(program, perflaw, tmp_path, monkeypatch):
    program()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "sudo apt install llvm" in perflaw("record", "--collect", "lines", "--", "./app", 3, status=2).stderr


def test_programs_without_a_mapping_are_not_clang_s(tmp_path, program):
    assert mapped_objects(program()) == (tmp_path / "app",)
    subprocess.run(["strip", "app"], cwd=tmp_path, check=True)
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert mapped_objects(tmp_path / "script") == ()
    assert mapped_objects(tmp_path / "none") == ()
