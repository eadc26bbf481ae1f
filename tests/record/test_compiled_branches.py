"""Branches of compiled programs: the exact number of times that each went each way, and the laws of the ways."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from perflaw.record.build import sources_folder
from perflaw.store.experiment import Recording
from tests.conftest import first, run_perflaw
from tests.record.test_hooks import HOOKS, PROGRAMS, recorded

SOURCE = PROGRAMS / "branching.cc"
LINES = {mark: number for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
         if (mark := line.partition("// ")[2])}  # fmt: skip
FLAGS = ("-g", "-fsanitize-coverage=trace-pc", f"-I{sources_folder() / 'include'}", "-include", "perflaw/branches.h")
BUILDS = ("g++ -O0", "g++ -O2", "clang++ -O0 -fno-sanitize-link-runtime", "clang++ -O2 -fno-sanitize-link-runtime")
CALLS = 24
ARGUMENTS = ("items", "count", "which", "depth", "ns")


@pytest.fixture(scope="module", params=first(1, BUILDS))
def branching(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("branching") / "branching"
    command = [*request.param.split(), *FLAGS, str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return program


def outcomes(recording: Recording, function: str) -> list[tuple[int, dict[str, float]]]:
    """The argument of each call of a function and its outcomes, by the marks of the lines between which they lead."""
    tables = recording.tables()
    marks = {line: mark for mark, line in LINES.items()}
    names = {row[0]: row[1] for row in tables["components"]}
    found: dict[int, tuple[list[float], dict[str, float]]] = {
        row[1]: ([], {}) for row in tables["invocations"] if names[row[2]] == function
    }
    for _, sequence, feature, value, _ in tables["features"]:
        if sequence in found:
            way = re.fullmatch(r"branch\.L(\d+)\.to_L(\d+)(_\d+)?", feature)
            if way:
                found[sequence][1][f"{marks.get(int(way[1]), way[1])} -> {marks.get(int(way[2]), way[2])}"] = value
            elif feature in ARGUMENTS:
                found[sequence][0].append(value)
    return [(int(arguments[0]), ways) for _, (arguments, ways) in sorted(found.items()) if arguments]


def test_each_branch_is_counted_exactly(branching: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, branching, CALLS, collect=("branches",))
    for count, ways in outcomes(recording, "loops"):
        second, both = -(-count // 3), -(-count // 6)
        assert ways["loop -> closing"] == 1
        assert ways.get("loop -> first", 0) == count
        assert sum(number for way, number in ways.items() if way.endswith("-> both")) == both
        assert sum(number for way, number in ways.items() if way.endswith("-> other")) == count - both
        if "first -> second" in ways:
            assert ways["first -> second"] == second
    for which, ways in outcomes(recording, "chooses"):
        cases = {way for way in ways if way.startswith("switch -> case")}
        assert cases <= {f"switch -> case {which}"}
        assert cases or which not in (1, 2, 4, 5)  # clang -O2 gives some cases no lines
        assert all(number == 1 for number in ways.values())
    for depth, ways in outcomes(recording, "recurses"):
        assert ways == ({"deeper -> again": 1} if depth else {"deeper -> back": 1})
    for items, ways in outcomes(recording, "serve"):
        expected = {"rounds -> slow": items, "hidden -> rounds": 1, "rounds -> end": 1}
        assert ways in ({"hidden -> fast": 1}, expected)
    assert all(not ways for _, ways in outcomes(recording, "plain"))


def test_calls_that_an_exception_came_back_to_are_not_counted(branching: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, branching, CALLS, collect=("branches",))
    for which, ways in outcomes(recording, "catches"):
        assert ways == ({} if which % 2 else {"above -> yes": 1} if which > 3 else {"above -> no": 1})
    assert "exception" in recording.run.words["branches"]


def test_each_way_of_a_branch_has_a_law_of_its_own(branching: Path, tmp_path: Path) -> None:
    """Which way it goes is hidden from the arguments."""
    run_perflaw(tmp_path, "record", "--clock", "fake", "--collect", "branches", "--", branching, 300)
    annotations = json.loads(run_perflaw(tmp_path, "annotate", "--json").stdout)["annotations"]
    [serve] = [one for one in annotations if one["component"] == "serve" and one["metric"] == "time"]
    laws = {scope["condition"]: scope["law"] for scope in serve["scopes"]}
    assert all(re.match(rf"branch\.L({LINES['hidden']}|{LINES['rounds']})\.to_L", condition) for condition in laws)
    assert all(law["features"] == ["items"] for law in laws.values())
    assert sorted(round(law["slope"]["items"], 1) for law in laws.values()) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("flags", "words"), first(1, [((), "trace-pc"), ((HOOKS, *FLAGS), "finstrument"), (("-s", *FLAGS), "trace-pc")])
)
def test_a_build_without_branches_is_refused_with_the_flags(flags: tuple[str, ...], words: str, tmp_path: Path) -> None:
    subprocess.run(["g++", "-O1", *flags, str(SOURCE), "-o", str(tmp_path / "branching")], check=True)
    done = run_perflaw(tmp_path, "record", "--collect", "branches", "--", tmp_path / "branching", status=2)
    assert words in done.stderr
    assert "-fsanitize-coverage=trace-pc $(perflaw --cflags) -include perflaw/branches.h" in done.stderr
