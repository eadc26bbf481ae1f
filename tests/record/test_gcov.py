"""Execution counts of compiled programs: exact where counts are known, isolated by run, and errors that say what to do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from perflaw.store.counts import read_counts, read_matrix, read_sources
from perflaw.store.experiment import open_experiment
from tests.conftest import PROGRAMS, first

COVERAGE = ("-O0", "--coverage", "-w")


@pytest.fixture
def compiled(tmp_path):
    """Compile sources (name → text, or a file of tests/programs) into a program in the test's folder."""

    def build(*sources, name="app", flags=COVERAGE, folder=tmp_path, **texts):
        for file, text in texts.items():
            (folder / file.replace("__", ".")).write_text(text)
        for file in sources:
            if not (folder / file).exists():
                shutil.copy(PROGRAMS / file, folder)
        compiler = "g++" if any(file.endswith(".cpp") for file in sources) else "gcc"
        subprocess.run([compiler, *flags, "-o", name, *sources], cwd=folder, check=True)
        return folder / name

    return build


@pytest.fixture
def matrix(perflaw, tmp_path):
    """Record a program with its lines counted; a mapping location → counts by run."""

    def record(*arguments, kinds=("line",), options=(), status=0, **more):
        perflaw("record", "--collect", "lines", *options, "--", *arguments, status=status, **more)
        found = read_matrix(open_experiment("default", tmp_path).recordings(), kinds)
        return {place.name: row.astype(int).tolist() for place, row in zip(found.locations, found.counts, strict=True)}

    return record


def line_of(file, text):
    """Number of the only line that has this text."""
    lines = Path(file).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return f"{Path(file).name}:{number}"


def no_data_beside(folder):
    return not list(folder.glob("*.gcda"))


def bubble_lines():
    places = [f"location {number}:" for number in range(1, 9)]
    return [line_of(PROGRAMS / "bubble.c", place) for place in places]


@pytest.mark.parametrize(("kind", "swaps"), [("sorted", lambda n: 0), ("reversed", lambda n: n * (n - 1) // 2)])
def test_the_eight_locations_of_bubble_sort(compiled, matrix, tmp_path, kind, swaps):
    compiled("bubble.c", name="bubble")
    counts = matrix("./bubble", kind, "{n}", 1, options=("--vary", "n=10,60,200"))
    for column, n in enumerate((10, 60, 200)):
        seen = [counts[place][column] for place in bubble_lines()]
        pairs = n * (n - 1) // 2
        assert seen == [1, n + 1, n, pairs + n, pairs, swaps(n), pairs, n]
    assert no_data_beside(tmp_path)


@pytest.mark.parametrize("kind", ["random", "nearly"])
def test_swaps_are_what_the_program_says(compiled, matrix, kind):
    program = compiled("bubble.c", name="bubble")
    said = subprocess.run([program, kind, "80", "3"], capture_output=True, text=True, env={"GCOV_PREFIX": "/dev/null"})
    assert matrix("./bubble", kind, 80, 3)[bubble_lines()[5]] == [int(said.stdout)]


def test_a_list_append_that_walks_the_list(compiled, matrix):
    compiled("list_append.c", name="la")
    walk = line_of(PROGRAMS / "list_append.c", "n = n->next;")
    assert matrix("./la", "{n}", 0, options=("--vary", "n=5,50"))[walk] == [6, 49 * 48 // 2]
    assert matrix("./la", "{n}", 10, options=("--vary", "n=50"))[walk][2:] == [5 * 36]


def test_runs_are_kept_apart_and_the_data_beside_the_program_is_not_touched(compiled, matrix, tmp_path):
    compiled("list_append.c", name="la")
    subprocess.run(["./la", "7", "0"], cwd=tmp_path, check=True)
    (before,) = tmp_path.glob("*.gcda")
    content, modified = before.read_bytes(), before.stat().st_mtime_ns
    counts = matrix("./la", "{n}", 0, options=("--vary", "n=3,4", "--repeat", 2))
    assert counts[line_of(PROGRAMS / "list_append.c", "list = append(list, added);")] == [3, 4, 3, 4]
    assert (before.read_bytes(), before.stat().st_mtime_ns) == (content, modified)


def test_features_come_as_for_other_programs(compiled, matrix, tmp_path, perflaw):
    compiled("app.c", app__c="#include <stdio.h>\nint main(void) { int c; while ((c = getchar()) >= 0) ; return 0; }\n")
    (tmp_path / "in.txt").write_text("a\nbc\n")
    with (tmp_path / "in.txt").open() as stdin:
        matrix("./app", "--input", "in.txt", 5, stdin=stdin)
    (recording,) = open_experiment("default", tmp_path).recordings()
    assert recording.run.features == {"input.bytes": 5, "input.lines": 2, "argv3": 5, "stdin.bytes": 5}
    assert recording.run.complete


CPP = """#include <stdexcept>
#include <thread>
#include "both.h"
int other(int n);
int risky(int n)
{
    if (n % 2 == 0)
        throw std::runtime_error("even");
    return n;
}
int main()
{
    int caught = 0;
    for (int i = 0; i < 7; i++) {
        try {
            risky(i);
        } catch (const std::exception &) {
            caught++;
        }
    }
    twice(1); twice(2.5); other(3);
    std::thread one([] { for (int i = 0; i < 50000; i++) twice(i); });
    std::thread two([] { for (int i = 0; i < 50000; i++) twice(i); });
    one.join(); two.join();
    return caught == 4 ? 0 : 1;
}
"""
OTHER = """#include "both.h"
int other(int n) { for (int i = 0; i < 5; i++) plain(i); return twice(n) + twice('c') + plain(n); }
"""
BOTH = """template <class T> T twice(T value)
{
    return value + value; // template
}
static inline int plain(int n)
{
    return n + 1; // inline
}
"""


def test_cpp_exceptions_templates_headers_and_threads(compiled, matrix, tmp_path):
    flags = (*COVERAGE, "-pthread")
    compiled("main.cpp", "other.cpp", flags=flags, main__cpp=CPP, other__cpp=OTHER, both__h=BOTH)
    counts = matrix("./app", kinds=("line", "function"))
    assert counts[line_of(tmp_path / "main.cpp", "throw std")] == [4]
    assert counts[line_of(tmp_path / "main.cpp", "return n;")] == [3]
    assert counts[line_of(tmp_path / "main.cpp", "caught++")] == [4]
    assert counts["risky(int)"] == [7]
    assert counts[line_of(tmp_path / "both.h", "// template")] == [4 + 100000], "all instantiations, threads included"
    assert counts["int twice<int>(int)"] == [2 + 100000]
    assert counts["double twice<double>(double)"] == counts["char twice<char>(char)"] == [1]
    assert counts[line_of(tmp_path / "both.h", "// inline")] == [6], "of both object files"
    languages = {place.language for place in read_counts(tmp_path / ".perflaw/default/runs/0001").locations}
    assert languages == {"c++"}


BRANCHES = """#include <stdlib.h>
int both(int a, int b) { return a && b; }
int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 0; i < 10; i++) { if (i < 3) sum++; else sum += 2; }
    for (int i = 0; i < 4; i++) both(i > 0, i > 1);
    return 0;
}
"""


def test_outcomes_of_branches_are_blocks(compiled, matrix):
    compiled("app.c", app__c=BRANCHES)
    counts = matrix("./app", kinds=("block",))
    assert sorted(counts[f"app.c:6 branch {number}"][0] for number in range(1, 5)) == [1, 3, 7, 10]
    assert sorted(counts[f"app.c:2 branch {number}"][0] for number in range(1, 5)) == [1, 1, 2, 3]


LOOPS_INC = """long NAME(int n)
{
    long total = 0;
    for (int i = 0; i < n; i++)
        total += i;
    return total;
}
"""
BODY_INC = """    for (int i = 0; i < n; i++)
        total += i OP n;
"""
INCLUDING = """#include <stdlib.h>
#define NAME absent
#include "loops.inc"
#undef NAME
#define NAME walk
#include "loops.inc"
#define OP +
long sums(int n)
{
    long total = 0;
#include "body.inc"
    return total;
}
#undef OP
#define OP *
long never(int n)
{
    long total = 0;
#include "body.inc"
    return total;
}
long other(int n);
int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    return n < 0 ? absent(n) + never(n) : (walk(n) + sums(2 * n) + other(3 * n)) * 0;
}
"""
OTHER_UNIT = """#define OP -
long other(int n)
{
    long total = 0;
#include "body.inc"
    return total;
}
"""


@pytest.mark.parametrize("flags", [COVERAGE, ("-O0", "--coverage", "-w", "-fprofile-update=atomic")])
def test_a_file_included_several_times_has_lines_in_each_function(compiled, matrix, tmp_path, flags):
    texts = {"a__c": INCLUDING, "b__c": OTHER_UNIT, "loops__inc": LOOPS_INC, "body__inc": BODY_INC}
    compiled("a.c", "b.c", flags=flags, **texts)
    counts = matrix("./app", 10, kinds=("line", "block"))
    assert counts["loops.inc:5 (walk)"] == [10]
    assert counts["loops.inc:5 (absent)"] == [0]
    assert [counts[f"body.inc:2 ({name})"] for name in ("sums", "other", "never")] == [[20], [30], [0]]
    assert sorted(counts[f"body.inc:1 (other) branch {number}"][0] for number in (1, 2)) == [1, 30]
    places = read_counts(tmp_path / ".perflaw/default/runs/0001").locations
    assert all(place.function in place.name for place in places if place.name.startswith(("loops", "body")))


def test_the_table_names_the_function_of_an_included_line(compiled, matrix, perflaw):
    texts = {"a__c": INCLUDING, "b__c": OTHER_UNIT, "loops__inc": LOOPS_INC, "body__inc": BODY_INC}
    compiled("a.c", "b.c", **texts)
    matrix("./app", "{n}", options=("--vary", "n=50,100,200,400,800,1600"))
    told = perflaw("trend").stdout
    assert "body.inc:1-2 in sums()" in told
    assert "loops.inc:4-5 in walk()" in told
    assert "absent" not in told
    assert "never(" not in told


CHILDREN = """#include <sys/wait.h>
#include <unistd.h>
int work(int n) { int sum = 0; for (int i = 0; i < n; i++)
    sum += i;
    return sum; }
int main(int argc, char **argv)
{
    if (argc > 1) { work(100); return 0; }
    if (!fork()) { work(10); return 0; }
    wait(0);
    if (!fork()) { work(1); execl(argv[0], argv[0], "again", (char *)0); }
    wait(0);
    work(1000);
    return 0;
}
"""


def test_children_by_fork_and_exec_count_with_the_program(compiled, matrix, tmp_path):
    compiled("app.c", app__c=CHILDREN)
    assert matrix("./app")["app.c:4"] == [1111]
    assert no_data_beside(tmp_path)


def test_programs_that_a_shell_starts_are_counted(compiled, matrix):
    compiled("list_append.c", name="la")
    counts = matrix("sh", "-c", "./la 3 0 && ./la 4 0")
    assert counts[line_of(PROGRAMS / "list_append.c", "list = append(list, added);")] == [7]


def test_a_library_with_coverage_in_a_program_without(compiled, matrix, tmp_path):
    text = "int lib(int n) {\n    int sum = 0;\n    while (n--)\n        sum += n;\n    return sum;\n}\n"
    compiled("lib.c", name="libx.so", flags=(*COVERAGE, "-fPIC", "-shared"), lib__c=text)
    link = ("-O0", f"-L{tmp_path}", "-Wl,--no-as-needed", "-lx", f"-Wl,-rpath,{tmp_path}")
    compiled("app.c", flags=link, app__c="int lib(int);\nint main(void) { return lib(5) - 10; }\n")
    assert matrix("./app")["lib.c:4"] == [5]


def test_selected_functions_only(compiled, matrix):
    compiled("bubble.c", name="bubble")
    counts = matrix("./bubble", "sorted", 9, 1, options=("--select", "bubble_*"))
    assert set(bubble_lines()) <= set(counts) <= {f"bubble.c:{number}" for number in range(20, 34)}


def test_sources_are_kept_as_they_were(compiled, matrix, tmp_path):
    compiled("list_append.c", name="la")
    matrix("./la", 2, 0)
    sources = read_sources(open_experiment("default", tmp_path).recordings())
    assert sources[str(tmp_path / "list_append.c")] == (PROGRAMS / "list_append.c").read_text()


def refused(perflaw, *arguments, options=(), status=2, **more):
    return perflaw("record", "--collect", "lines", *options, "--", *arguments, status=status, **more).stderr


def test_without_collect_lines_its_calls_are_recorded(compiled, perflaw):
    compiled("list_append.c", name="la")
    assert "recorded by injected code" in perflaw("record", "--", "./la", 3, 0).stderr
    said = perflaw("record", "--native", "hooks", "--", "./la", 3, 0, status=2).stderr
    assert "a compiled program" in said
    assert "--coverage" in said
    assert "--collect lines" in said


def test_a_program_without_coverage(compiled, perflaw):
    compiled("list_append.c", name="la", flags=("-O0",))
    assert "compiled without --coverage" in refused(perflaw, "./la", 3, 0)


@pytest.mark.parametrize(
    ("flags", "said"),
    first(
        1,
        [(("-O2",), "built with optimisation"), (("-O2", "-g"), "built with -O2"), (("-O0",), ""), (("-O0", "-g"), "")],
    ),
)
def test_a_build_with_optimisation_is_warned_of(compiled, perflaw, flags, said):
    compiled("list_append.c", name="la", flags=("--coverage", *flags))
    warned = perflaw("record", "--collect", "lines", "--", "./la", 3, 0).stderr
    assert said in warned
    assert bool(said) == ("build with -O0" in warned)
    assert "who calls whom" in perflaw("trend", "--kind", "edge", status=2).stderr


def test_clang_s_coverage_is_told_from_gcc_s(perflaw, tmp_path):
    program = tmp_path / "app"
    program.write_bytes(b"\x7fELF" + b"\0" * 64 + b"llvm_gcda_start_file\0")
    program.chmod(0o755)
    assert "compiled by clang" in refused(perflaw, "./app")


def test_notes_that_are_gone_are_asked_for_before_the_run(compiled, perflaw, tmp_path):
    compiled("app.c", app__c='#include <stdio.h>\nint main(void) { fclose(fopen("ran", "w")); return 0; }\n')
    (notes,) = tmp_path.glob("*.gcno")
    notes.unlink()
    said = refused(perflaw, "./app")
    assert f"{notes}: no such file" in said
    assert "--notes DIR" in said
    assert not (tmp_path / "ran").exists()


def test_notes_of_another_build_are_refused(compiled, perflaw, tmp_path):
    compiled("list_append.c", name="la")
    (notes,) = tmp_path.glob("*.gcno")
    shutil.move(tmp_path / "la", tmp_path / "old")
    (tmp_path / "list_append.c").write_text("int unused; int main(void) { return 0; }\n")
    compiled("list_append.c", name="la")
    assert f"notes of {notes.stem}.gcda do not belong" in refused(perflaw, "./old", 3, 0)
    assert "another build" in refused(perflaw, "./old", 3, 0)
    assert not open_experiment("default", tmp_path).unfinished()


def test_counts_in_a_folder_of_the_build_s_choice(compiled, matrix, tmp_path):
    compiled("list_append.c", name="la", flags=(*COVERAGE, f"-fprofile-dir={tmp_path}/profiles"))
    counts = matrix("./la", 3, 0)
    assert counts[line_of(PROGRAMS / "list_append.c", "list = append(list, added);")] == [3]
    assert not (tmp_path / "profiles").exists()


def test_notes_and_sources_that_were_moved(compiled, matrix, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    compiled("list_append.c", name="la", folder=there)
    (tmp_path / "notes").mkdir()
    shutil.move(*[next(there.glob("*.gcno")), tmp_path / "notes"])
    shutil.move(there / "la", tmp_path)
    shutil.move(there, tmp_path / "here")
    options = ("--notes", "notes", "--source-map", f"{there}=here")
    counts = matrix("./la", 3, 0, options=options)
    assert counts[line_of(PROGRAMS / "list_append.c", "list = append(list, added);")] == [3]
    (source,) = read_sources(open_experiment("default", tmp_path).recordings())
    assert source == str(tmp_path / "here" / "list_append.c")


def test_a_source_changed_since_the_build_is_told(compiled, perflaw, tmp_path):
    compiled("list_append.c", name="la")
    later = (tmp_path / "list_append.c").stat().st_mtime + 100
    os.utime(tmp_path / "list_append.c", (later, later))
    assert "list_append.c: changed since the program was built" in refused(perflaw, "./la", 3, 0, status=0)


@pytest.mark.parametrize(("how", "status"), [("kill(getpid(), SIGKILL)", 137), ("_exit(0)", 0), ("abort()", 134)])
def test_a_program_that_does_not_end_by_exit_writes_no_counts(compiled, perflaw, tmp_path, how, status):
    text = f"#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) {{ {how}; return 0; }}\n"
    compiled("app.c", app__c=text)
    assert "no counts were written" in refused(perflaw, "./app", status=status)
    (recording,) = open_experiment("default", tmp_path).recordings()
    assert not recording.run.complete
    assert read_counts(recording.folder) is None


def test_gcov_of_another_version_is_told(compiled, perflaw, tmp_path):
    compiled("list_append.c", name="la")
    tools = tmp_path / "tools"
    tools.mkdir()
    fake = tools / "gcov"
    fake.write_text("#!/bin/sh\necho 'gcov (GCC) 5.1.0'\n")
    fake.chmod(0o755)
    path = {**os.environ, "PATH": str(tools), "GCOV": ""}
    said = refused(perflaw, "./la", 3, 0, env=path)
    assert f"{fake} is of gcc 5" in said
    fake.unlink()
    assert "no gcov is on PATH" in refused(perflaw, "./la", 3, 0, env=path)


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--notes", "nowhere"), "no such folder"), (("--source-map", "x"), "OLD=NEW is expected")],
)
def test_options_that_make_no_sense(perflaw, options, said):
    assert said in refused(perflaw, "./la", options=options)


@pytest.mark.slow
def test_two_recorders_at_once_do_not_mix(compiled, perflaw, tmp_path):
    compiled("list_append.c", name="la")
    command = [perflaw_python(), "-m", "perflaw", "record", "--collect", "lines", "--repeat", "3", "--", "./la"]
    both = [subprocess.Popen([*command, n, "0"], cwd=tmp_path, stderr=subprocess.DEVNULL) for n in ("3", "40")]
    assert [process.wait(100) for process in both] == [0, 0]
    recordings = open_experiment("default", tmp_path).recordings()
    place = line_of(PROGRAMS / "list_append.c", "list = append(list, added);")
    for recording in recordings:
        counts = read_counts(recording.folder)
        by_name = {one.name: count for one, count in zip(counts.locations, counts.counts.tolist(), strict=True)}
        assert by_name[place] == recording.run.features["argv1"]
    assert len(recordings) == 6


def perflaw_python():
    import sys

    return sys.executable
