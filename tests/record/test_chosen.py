"""--select and --exclude of compiled programs: the chosen functions alone, exactly, whatever happens around them."""

from __future__ import annotations

import subprocess
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.record.compiled import questions
from perflaw.record.compiled.inject import choice
from perflaw.record.compiled.inject.choice import Injection
from perflaw.record.compiled.inject.tables import ModulePatches, module_patches
from perflaw.record.compiled.inlining import may_be_inlined
from perflaw.record.compiled.questions import FOLDER, Answerer
from perflaw.record.compiled.selection import HEAD, PLACE, Globs, chosen, functions, names_of
from tests.conftest import first
from tests.record.test_hooks import HOOKS, PROGRAMS, built, calls, opened, paths, recorded

BUILDS = ("gcc -O0", "gcc -O2", "clang -O2")


@pytest.fixture(scope="module", params=BUILDS)
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The one in C and the one in C++."""
    compiler, level = request.param.split()
    folder = tmp_path_factory.mktemp("programs")
    return tuple(built(folder, source, level, HOOKS, compiler=compiler) for source in ("jumps.c", "throws.cc"))


def test_counts_of_the_selected_are_those_of_a_whole_recording(programs: tuple[Path, Path], tmp_path: Path) -> None:
    """Over threads, and at any depth below functions that are left out."""
    (recording,) = recorded(tmp_path, programs[0], "threads", 500, select=("leaf", "no_such*"))
    assert calls(recording) == {"leaf": 8000}
    assert paths(recording) == {"/leaf": 8000}
    assert opened(recording) == 0
    assert recording.run.lost.unselected_functions == 2


def test_excluded_ones_are_gone_and_their_callers_take_their_place(programs: tuple[Path, Path], tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, programs[0], "inlined", 3, exclude=("inl*",))
    assert paths(recording) == {"/outer": 1, "/outer/leaf": 3}


@pytest.mark.parametrize(("way", "number", "select", "expected", "dead"), first(6, [
    ("longjmp", 4, ("survivor", "leaf"), {"/survivor": 4, "/survivor/leaf": 4}, 0),
    ("longjmp", 4, ("jumper", "leaf"), {"/leaf": 4}, 10),
    ("nested", 5, ("nested",), {"/nested": 5, "/nested/nested": 10, "/nested/nested/nested": 5}, 15),
    ("landing", 5, ("small", "big"), {"/big": 5}, 5),
    ("landing", 5, ("landing", "big", "small"), {"/landing": 5, "/landing/big": 5}, 5),
    ("tail", 2000, ("leaf",), {"/leaf": 2}, 0),
]))  # fmt: skip
def test_frames_die_when_they_should_between_functions_left_out(
    programs: tuple[Path, Path], tmp_path: Path, way: str, number: int, select: tuple[str, ...],
    expected: dict[str, int], dead: int,
) -> None:  # fmt: skip
    (recording,) = recorded(tmp_path, programs[0], way, number, select=select)
    assert paths(recording) == expected
    assert opened(recording) == dead


@pytest.mark.parametrize(("select", "expected"), first(4, [
    (("app::*::try_one", "leaf"), {"/app::Catcher::try_one": 30, "/app::Catcher::try_one/leaf": 30}),
    (("app::Catcher::try_one(int)", "thrower"), {"/app::Catcher::try_one": 30, "/app::Catcher::try_one/thrower": 30}),
    (("middle<*>",), {"/middle<int>": 30}),
    (("Guard::~Guard", "main"), {"/main": 1, "/main/Guard::~Guard": 30}),
]))  # fmt: skip
def test_names_of_cpp_and_exceptions_across_functions_left_out(
    programs: tuple[Path, Path], tmp_path: Path, select: tuple[str, ...], expected: dict[str, int]
) -> None:
    (recording,) = recorded(tmp_path, programs[1], select=select)
    found = paths(recording)
    ended = {path: 20 if path.endswith(("thrower", "middle<int>")) else count for path, count in expected.items()}
    assert found == (ended if opened(recording) else expected)  # clang does not tell of calls that an exception ends
    assert opened(recording) in (0, 10)


def test_a_plug_in_is_asked_for_too(tmp_path: Path) -> None:
    """Also of its hidden functions, and though another file has one of that name."""
    (tmp_path / "plug.c").write_text(
        "static __attribute__((noinline)) void hidden(void) {} void run(void) { hidden(); }"
    )
    (tmp_path / "host.c").write_text(
        "#include <dlfcn.h>\nvoid hidden(void) {}\n"
        'int main(void) { hidden(); void (*run)(void) = dlsym(dlopen("./plug.so", RTLD_NOW), "run");\n'.replace(
            "./", f"{tmp_path}/"
        )
        + "for (int at = 0; at < 3; at++) run(); }"
    )
    for what in (("-shared", "plug.c", "-o", "plug.so"), ("host.c", "-o", "host")):
        subprocess.run(["gcc", "-g", "-fPIC", HOOKS, *what], cwd=tmp_path, check=True)
    (recording,) = recorded(tmp_path, tmp_path / "host", select=("hidden",))
    assert paths(recording) == {"/hidden": 4}


def test_a_program_found_on_the_path_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path, "jumps.c", "-O2", HOOKS)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (recording,) = recorded(tmp_path, "jumps", "inlined", select=("l[e]af",))
    assert calls(recording) == {"leaf": 3}


def test_nothing_selected_says_what_was_seen(perflaw, tmp_path: Path) -> None:
    program = built(tmp_path, "throws.cc", "-O1", HOOKS)
    said = perflaw("record", "--select", "Leaf", "--", program, status=2).stderr
    assert "no function that ran matches Leaf" in said
    assert "app::Catcher::try_one" in said
    assert not list(tmp_path.glob(".perflaw/*/runs/*/run.json"))
    subprocess.run(["strip", program], check=True)
    assert "stripped" in perflaw("record", "--select", "leaf", "--", program, status=2).stderr


def test_selected_functions_cost_what_they_cost_in_a_whole_recording(tmp_path: Path) -> None:
    """By the fake clock, to the nanosecond."""
    program = built(tmp_path, "listing1.c", "-O1", HOOKS)
    sums = []
    for select in ((), ("f", "g4")):
        folder = tmp_path / f"runs{len(select)}"
        folder.mkdir()
        (recording,) = recorded(folder, program, "B", clock="fake", select=select)
        names = {row[0]: row[1] for row in recording.tables()["components"]}
        sums.append({names[row[0]]: row[2] for row in recording.tables()["component_costs"] if row[1] == "time"})
    assert sums[1].keys() == {"f", "g4"}
    assert sums[1] == {name: sums[0][name] for name in sums[1]}


NAMES = st.text("abc*?[]:", max_size=5)


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 1 << 40), st.frozensets(NAMES, max_size=3)), st.lists(NAMES), st.lists(NAMES))
def test_the_answer_says_of_each_place_what_the_globs_say(named, select, exclude) -> None:
    answer = chosen(
        {offset: (offset % 99, names) for offset, names in named.items()}, Globs(tuple(select), tuple(exclude))
    )
    head = np.frombuffer(answer, HEAD, 1)[0]
    places = np.frombuffer(answer, PLACE, offset=HEAD.itemsize)
    assert (head["count"], head["others"]) == (len(named), not select)
    assert places["offset"].tolist() == sorted(named)
    for place in places:
        names = named[int(place["offset"])]
        wanted = not select or any(fnmatchcase(name, glob) for name in names for glob in select)
        assert place["wanted"] == (wanted and not any(fnmatchcase(name, glob) for name in names for glob in exclude))


def test_functions_of_a_file_by_their_place(tmp_path: Path) -> None:
    named = functions(built(tmp_path, "throws.cc", "-O2", HOOKS))
    told = Counter(name for _, names in named.values() for name in names)
    assert told["middle<int>"] == told["int middle<int>(int)"] == told["leaf"] == 1
    assert names_of("_ZN3app3addEi.part.0") == {"app::add", "app::add(int)"}
    assert functions(PROGRAMS / "jumps.c") == {}


POINTED = """
static __attribute__((noinline)) int pointed(int n) { return n * 3; }
static inline __attribute__((always_inline)) int merged(int n) { return n ^ 5; }
static __attribute__((noinline)) int again(int n) { return n < 2 ? n : again(n - 1) + again(n - 2); }
int (*volatile pointer)(int) = 0;
int main(int count, char **words) {
    if (count > 1) pointer = pointed;
    return merged(count) + again(count) + (pointer ? pointer(count) : pointed(count));
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_functions_that_may_be_inlined_are_known(compiler: str, tmp_path: Path) -> None:
    (tmp_path / "pointed.c").write_text(POINTED)
    named = {}
    for debug in ("-g", "-g0"):
        command = [compiler, "-O2", debug, HOOKS, "pointed.c", "-o", f"pointed{debug}"]
        subprocess.run(command, cwd=tmp_path, check=True)
        program = tmp_path / f"pointed{debug}"
        for offset, about in functions(program).items():
            for name in about[1]:
                named[name, debug] = may_be_inlined(program, {offset: about})
    for name, expected in {"merged": True, "again": True, "pointed": False}.items():
        assert named[name, "-g"] is expected, name
    assert named["pointed", "-g0"]  # its address is taken, and nothing tells what for
    assert not named["main", "-g0"]
    assert may_be_inlined(tmp_path / "pointed.c", {})


def test_damaged_questions_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "00.ask").write_bytes(b"functions /no/such\xff\n")
    Answerer(Globs(("a",))).answer(tmp_path)
    Answerer(Globs(("a",))).answer(tmp_path / "gone")
    assert np.frombuffer((tmp_path / FOLDER / "00").read_bytes(), HEAD)["count"] == 0
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["00"]


def test_a_library_without_chosen_functions_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding two hundred libraries of ffmpeg took two minutes before one of them was recorded."""
    prepared: list[Path] = []
    decoded: set[Path] = set()
    monkeypatch.setattr(questions, "prepare_registers", lambda module, _: prepared.append(module))

    def seen(module: Path) -> ModulePatches:
        decoded.add(module)
        return module_patches(module)

    monkeypatch.setattr(choice, "module_patches", seen)
    (tmp_path / "f.c").write_text("int wanted(int n) { return n * n; }\nint main(void) { return wanted(0); }\n")
    program, library = tmp_path / "program", tmp_path / "lib.so"
    for output, kind in ((program, ()), (library, ("-shared", "-fPIC", "-Dwanted=other"))):
        subprocess.run(["gcc", "-O1", *kind, "-o", output, tmp_path / "f.c"], check=True)
    globs = Globs(("wanted",))
    answerer = Answerer(globs, Injection(program, globs))
    (tmp_path / FOLDER).mkdir()
    for number, module in enumerate((library, program)):
        (tmp_path / FOLDER / f"{number}.ask").write_text(f"patches {module}")
        (tmp_path / FOLDER / f"functions-{number}.ask").write_text(f"functions {module}")
    answerer.answer(tmp_path)
    assert prepared == [program]
    assert decoded == {program}
    assert len((tmp_path / FOLDER / "1").read_bytes()) > len((tmp_path / FOLDER / "0").read_bytes())
