"""Dependencies point one way (docs/architecture.md): read from the sources, so that lazy imports count as well."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import perflaw

ROOT = Path(perflaw.__file__).parent
ALLOWED = {
    "confidence": set(),
    "errors": set(),
    "special": set(),
    "parts": set(),
    "bounds": set(),
    "documents": {"bounds", "errors"},
    "laws": {"errors", "special"},
    "types": {"laws"},
    "specs": {"errors", "documents", "types"},
    "learn": {"confidence", "errors", "special", "parts", "types", "laws"},
    "cluster": {"errors", "parts"},
    "store": {"bounds", "errors", "parts", "types"},
    "wire": {"bounds", "errors", "types"},
    "record": {"bounds", "errors", "documents", "notices", "types", "store", "wire", "decorator", "listening"},
    "imports": {"bounds", "errors", "documents", "notices", "types", "store", "record"},
    "check": {"confidence", "errors", "special", "types", "learn", "laws", "specs"},
    "explore": {"confidence", "errors", "documents", "types", "store", "record", "wire", "learn"},
    "mine": {"errors", "documents", "notices", "types", "learn", "store", "record", "wire"},
    "live": {"types", "store", "wire"},
    "report": {"confidence", "errors", "types", "laws", "specs"},
    "notices": set(),
    "progress": set(),
    "api": {
        "bounds",
        "errors",
        "parts",
        "notices",
        "progress",
        "types",
        "store",
        "record",
        "learn",
        "report",
        "laws",
        "specs",
        "check",
        "explore",
        "mine",
        "listening",
    },
    "editor": {"errors", "notices", "types", "laws", "check", "report", "api"},
    "cli": {
        "api",
        "editor",
        "notices",
        "progress",
        "bounds",
        "cluster",
        "errors",
        "types",
        "store",
        "record",
        "imports",
        "wire",
        "learn",
        "report",
        "laws",
        "specs",
        "check",
        "explore",
        "mine",
        "decorator",
        "live",
    },
    "pytest_plugin": {"confidence", "errors", "listening", "types", "store", "record", "learn", "report"},
    "decorator": set(),
    "listening": set(),
    "probes": set(),
    "__init__": {"decorator", "listening", "api"},
    "__main__": {"cli"},
}
READ = (ast.Import, ast.ImportFrom, ast.Call)
"""What the tests below read of a source."""
TARGET = ROOT / "record" / "python" / "target"


def part(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def nodes(path):
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, READ)]


def imports(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


SOURCES = [path for path in sorted(ROOT.rglob("*.py")) if TARGET not in path.parents]


def test_dependencies_point_one_way():
    wrong = {}
    for path in SOURCES:
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("perflaw.")}
        if against := ours - {part(path)} - ALLOWED[part(path)]:
            wrong[str(path.relative_to(ROOT))] = against
    assert wrong == {}


def test_scipy_is_for_tests_alone():
    """It would be larger than all else that is installed."""
    assert not [path for path in SOURCES for name in imports(path) if name.split(".")[0] == "scipy"]


def test_what_enters_the_target_uses_the_standard_library_alone():
    paths = sorted(TARGET.glob("*.py"))
    allowed = sys.stdlib_module_names | {path.stem for path in paths if path.name.startswith("_perflaw_")}
    foreign = {path.name: {name.split(".")[0] for name in imports(path)} - allowed for path in paths}
    assert paths
    assert not any(foreign.values()), foreign
    for path in paths:  # typing is slow to import and would be in the program's sys.modules
        names = {node.module for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)}
        assert "typing" not in names, path


def test_learners_open_no_files_and_only_the_command_line_prints():
    for path in SOURCES:
        names = {node.func.id for node in nodes(path) if _is_named_call(node)}
        if part(path) == "learn":
            assert not names & {"open", "print"}, path
        if part(path) != "cli":
            assert not names & {"print", "exit", "input"}, path


def _is_named_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_no_module_of_a_cycle():
    """Within a package as well: the modules can be put in an order."""
    names = {".".join(("perflaw", *path.relative_to(ROOT).with_suffix("").parts)): path for path in SOURCES}
    graph = {name: {used for used in imports(path) if used in names} for name, path in names.items()}
    while free := [name for name, used in graph.items() if not used & graph.keys()]:
        for name in free:
            del graph[name]
    assert not graph


def test_no_module_takes_the_place_of_a_public_name():
    """``import perflaw.law`` would put a module where programs find the decorator ``perflaw.law``.

    The module ``perflaw.record`` is itself what the public name means: it can be called.
    """
    modules = {part(path) for path in SOURCES}
    assert modules & (set(perflaw.__all__) - {"__version__"}) == {"record"}
    for first in ("perflaw.record.settings", "perflaw.api.recording", "perflaw"):
        code = f"import {first}, perflaw; print(type(perflaw.record('x', features={{'n': 1}})).__module__)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "perflaw.api.recording\n"


NATIVE = ROOT.parents[1] / "native"
MAY_INCLUDE = {
    "core/base": set(),
    "core/tree": {"core/base"},
    "core/paths": {"core/base", "core/tree"},
    "core/library": {"core/base", "core/tree", "core/paths"},
    "core/traces": {"core/base", "core/tree", "core/library"},
    "python": {"core/base"},
    "compiled": {"core/base"},
    "include": set(),
}
"""Room of ``native/`` -> the other rooms whose headers it may include."""


def test_c_units_form_no_cycle_and_their_layers_point_one_way():
    """A unit is a ``.c`` file with the header of its name; headers for users include the C library's and each other alone."""
    files = [path for path in NATIVE.rglob("*.[ch]") if not {"tests", "build"} & set(path.relative_to(NATIVE).parts)]
    units = {path: path.relative_to(NATIVE).with_suffix("") for path in files}
    graph = {unit: set() for unit in units.values()}
    for path, unit in units.items():
        for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE):
            header = next(place for place in ((path.parent / name).resolve(), NATIVE / name) if place in units)
            assert room(units[header]) in MAY_INCLUDE[room(unit)] | {room(unit)}, f"{path} includes {name}"
            graph[unit] |= {units[header]} - {unit}
    while free := [unit for unit, used in graph.items() if not used & graph.keys()]:
        for unit in free:
            del graph[unit]
    assert not graph


def room(unit):
    return "/".join(unit.parts[:2]) if unit.parts[0] == "core" else unit.parts[0]
