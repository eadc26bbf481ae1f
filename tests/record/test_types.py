"""Features of compiled functions from the types of their arguments: the right values, and no harm by bad pointers."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from perflaw.store.experiment import Recording, open_experiment
from tests.conftest import first, run_perflaw
from tests.record.test_hooks import HOOKS, PROGRAMS, calls, recorded

ROUNDS = 8
EVEN = [at for at in range(ROUNDS) if at % 2 == 0]
Values = dict[str, list[float | str]]
EXPECTED: dict[str, Values] = {
    "scalars": {
        "n": [10 * at for at in range(ROUNDS)],
        "mode": [7 * (at % 2) for at in range(ROUNDS)],
        "ratio": [at / 8 for at in range(ROUNDS)],
        "part": [at / 2 for at in range(ROUNDS)],
        "wide": [-at for at in range(ROUNDS)],
    },
    "pointer": {"count": [10 * at for at in range(ROUNDS)], "text.len": [8 - at % 8 for at in range(ROUNDS)]},
    "structure": {
        "box.width": [10 * at for at in range(ROUNDS)],
        "box.title.len": [5 - at % 5 for at in range(ROUNDS)],
        "box.inner.depth": [-at for at in range(ROUNDS)],
        "box.inner.share": [at / 4 for at in range(ROUNDS)],
        "box.weight": [at + 0.25 for at in range(ROUNDS)],
        "box.cells.len": [4] * ROUNDS,
        "box.cells.sum": [at + 6 for at in range(ROUNDS)],
    },
    "span": {
        "last-first": [2 * at for at in range(ROUNDS)],
        "range.end-range.begin": [at % 30 for at in range(ROUNDS)],
    },
    "globals": {"level": [10 * at for at in range(ROUNDS)], "table_size": [1] * ROUNDS},
    "containers": {
        **{f"{name}.len": list(range(ROUNDS)) for name in ("items", "name", "tree", "hash", "chain")},
        "queue.len": [20 * at for at in range(ROUNDS)],
    },
    "library": {
        "kept.len": [min(at, 1) for at in range(ROUNDS)],
        "view.len": [10 - at % 9 for at in range(ROUNDS)],
        "owned.len": [3 * at for at in range(ROUNDS)],
        "shared.width": list(range(ROUNDS)),
    },
    "by_value": {
        "extent.width": list(range(ROUNDS)),
        "extent.height": [-at for at in range(ROUNDS)],
        "mixed.count": [2 * at for at in range(ROUNDS)],
        "second.height": list(range(ROUNDS)),
        "other.count": list(range(ROUNDS)),
        "third.width": [5 * at for at in range(ROUNDS)],
        "last": [6 * at for at in range(ROUNDS)],
    },
    "measured": {
        "shape.type": ["Shape" if at % 2 else "Square" for at in range(ROUNDS)],
        "shape.sides": list(range(ROUNDS)),
    },
    "Square::area": {"this.sides": EVEN, "this.type": ["Square"] * len(EVEN)},
}
LAWS = {
    "of_structure": ("linear", "grid.width"),
    "of_pointer": ("quadratic", "count"),
    "of_vector": ("linear", "items.len"),
    "of_string": ("quadratic", "name.len"),
    "of_text": ("linear", "text.len"),
    "of_global": ("quadratic", "level"),
}
"""Function → family of its law and the feature that it is over."""
HOOKED = ("g++ -O2 {hooks}", "clang++ -O0 {hooks}", "clang++ -O2 {hooks}", "g++ -O0 {hooks}")
INJECTED = ("g++ -O2", "clang++ -O2 -stdlib=libc++", "clang++ -O0 -gdwarf-4", "g++ -O0", "clang++ -O0 -stdlib=libc++ -gdwarf-4",
            "clang++ -O2", "g++ -O2 -gdwarf-4")  # fmt: skip
QUICK = (HOOKED[0], INJECTED[0])
PARTLY = {"by_value", "library"}
"""Functions some of whose arguments are nowhere any more where an optimised one calls its hook."""
BUILDS = ("g++ -O2", "clang++ -O0", *(pytest.param(one, marks=pytest.mark.slow) for one in ("g++ -O0", "clang++ -O2")))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(one.format(hooks=HOOKS), marks=() if one in QUICK else pytest.mark.slow)
        for one in (*HOOKED, *INJECTED)
    ],
)
def arguments(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("types"), request.param, "arguments")


def compiled(folder: Path, build: str, name: str, *flags: str) -> Path:
    program = folder / name
    command = [*build.split(), *flags, "-std=c++17", "-g", str(PROGRAMS / f"{name}.cc"), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return program


def features(recording: Recording) -> dict[str, Values]:
    """The values of each feature of each function, in the order of the calls."""
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    functions = {row[1]: names[row[2]] for row in tables["invocations"]}
    found: dict[str, Values] = {}
    for _, sequence, feature, value, text in sorted(tables["features"], key=lambda row: row[1]):
        found.setdefault(functions[sequence], {}).setdefault(feature, []).append(value if text is None else text)
    return found


def test_each_feature_has_its_value(arguments: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, arguments, ROUNDS)
    found = features(recording)
    hooked = recording.run.tracer.startswith("hooks")
    for function, expected in EXPECTED.items():
        known = found[function]
        told = expected.keys() & known.keys() if hooked and function in PARTLY else expected.keys()
        assert {name: known.get(name) for name in told} == {name: expected[name] for name in told}, function
    # The function does not read it, and what clang's code calls it with may then be anything.
    assert found["by_value"].get("mixed.share") in (None, [at / 2 for at in range(ROUNDS)])


@pytest.mark.slow
def test_bad_pointers_are_features_that_are_not_there(arguments: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, arguments, 3000)
    assert recording.run.complete


def annotated(folder: Path, *command: object, refused: set[str] | None = None) -> list[dict]:
    """The annotations of a recording with the fake clock, of time. Names of functions that were refused are added."""
    said = run_perflaw(folder, "record", "--clock", "fake", "--", *command).stderr.partition("not recorded: ")[2]
    if refused is not None:
        refused |= set(re.findall(r"\w+", said.partition("\n")[0]))
    annotations = json.loads(run_perflaw(folder, "annotate", "--json").stdout)["annotations"]
    return [one for one in annotations if one["metric"] == "time"]


@pytest.mark.parametrize("flags", [(), pytest.param((HOOKS,), marks=pytest.mark.slow)], ids=["injected", "hooks"])
@pytest.mark.parametrize("build", first(1, BUILDS))
def test_laws_are_over_what_the_cost_depends_on(build: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    program = compiled(tmp_path, build, "argument_laws", *flags)
    found, refused = {}, set[str]()
    for annotation in annotated(tmp_path, program, 400, refused=refused):
        if annotation["component"] in LAWS:
            [scope] = annotation["scopes"]
            law = scope["law"]
            assert law["verdict"] == "law"
            found[annotation["component"]] = law["family"], *law["slope"]
    # Any bytes of the program may look like a jump into a function, which is then refused by name.
    assert found == {name: law for name, law in LAWS.items() if name not in refused}
    assert len(found) >= len(LAWS) - 1


@pytest.mark.slow
@pytest.mark.parametrize("build", first(1, ["g++ -O2", pytest.param("clang++ -O2", marks=pytest.mark.slow)]))
def test_the_class_of_an_object_is_a_condition(build: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, build, "argument_laws", HOOKS)
    [of_type] = [one for one in annotated(tmp_path, program, 400) if one["component"] == "of_type"]
    laws = {scope["condition"]: scope["law"] for scope in of_type["scopes"]}
    conditions = {f'shape.type == "{name}"': names for name, names in (("Mesh", ["shape.sides"]), ("Shape", []))}
    assert {condition: law["features"] for condition, law in laws.items()} == conditions


SORTS = """
#include <list>
int main() {
    for (int size = 1; size <= 20; size++) {
        std::list<int> numbers(size, 1);
        numbers.sort();
    }
}
"""


@pytest.mark.slow
def test_chosen_functions_of_the_library_have_features_too(tmp_path: Path) -> None:
    """All others have none: what a program's containers are called with is no question of its own functions."""
    source, program = tmp_path / "sorts.cc", tmp_path / "sorts"
    source.write_text(SORTS)
    subprocess.run(["g++", "-O2", "-g", HOOKS, str(source), "-o", str(program)], check=True)
    sort = "std::__cxx11::list<int, std::allocator<int> >::sort"
    for folder in ("chosen", "all"):
        (tmp_path / folder).mkdir()
    (recording,) = recorded(tmp_path / "chosen", program, select=(sort,))
    assert features(recording) == {sort: {"this.len": list(range(1, 21))}}
    (recording,) = recorded(tmp_path / "all", program)
    assert calls(recording)[sort] == 20
    assert sort not in features(recording)


HOSTILE = (
    "gcc -O2",
    "gcc -O0",
    "clang -O0",
    "clang -O1 -fsanitize=address",
    "gcc -O1 -fsanitize=address -static-libasan",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        *(f"{build} {HOOKS}" for build in HOSTILE),
        *HOSTILE,
    ],
)
def test_a_million_hostile_calls_do_no_harm(build: str, tmp_path: Path) -> None:
    program = tmp_path / "hostile"
    subprocess.run([*build.split(), "-g", str(PROGRAMS / "hostile.c"), "-o", str(program)], check=True)
    (recording,) = recorded(tmp_path, program, 1_000_000)
    assert recording.run.complete
    assert calls(recording)["hostile"] == 1_000_000
    assert "text.len" in features(recording)["hostile"]


RETURNED = {
    "number": ("linear", "returned"),
    "share": ("quadratic", "returned"),
    "object": ("linear", "returned.hits"),
    "items": ("linear", "returned.len"),
}
"""Function → family of its law and the feature that it is over."""


@pytest.mark.parametrize("build", first(1, BUILDS))
def test_laws_are_over_what_functions_return(build: str, tmp_path: Path) -> None:
    """It is read where they have returned, which injected code knows and hooks do not."""
    program = tmp_path / "returning"
    command = [*build.split(), "-g", str(PROGRAMS / "returning.cc"), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    found = {}
    for annotation in annotated(tmp_path, program, 400):
        if annotation["component"] in RETURNED:
            [scope] = annotation["scopes"]
            found[annotation["component"]] = scope["law"]["family"], *scope["law"]["slope"]
    assert found == RETURNED
    [recording] = open_experiment("default", tmp_path).recordings()
    truths = features(recording)["nothing"]
    assert truths["returned"] == [left % 2 for left in truths["left"] if not isinstance(left, str)]
