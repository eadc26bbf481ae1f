"""Dependencies point one way (docs/architecture.md): read from the sources, so that lazy imports count as well."""

import ast
import sys
from pathlib import Path

import pytest

import perflaw

ROOT = Path(perflaw.__file__).parent
ALLOWED = {
    "errors": set(),
    "types": set(),
    "store": {"errors", "types"},
    "collect": {"errors", "types", "store", "decorator"},
    "learn": {"errors", "types"},
    "language": {"errors", "types"},
    "check": {"errors", "types", "learn", "language"},
    "explore": {"errors", "types", "store", "collect", "learn"},
    "report": {"errors", "types", "language"},
    "cli": {"errors", "types", "store", "collect", "learn", "report", "language", "check", "explore", "decorator"},
    "pytest_plugin": {"errors", "types", "store", "collect", "learn", "report"},
    "decorator": set(),
    "probes": set(),
    "__init__": {"decorator"},
    "__main__": {"cli"},
}
TARGET = ROOT / "collect" / "target"


def part(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


SOURCES = [path for path in sorted(ROOT.rglob("*.py")) if TARGET not in path.parents]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_dependencies_point_one_way(path):
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("perflaw.")}
    assert ours - {part(path)} <= ALLOWED[part(path)]


@pytest.mark.parametrize("path", sorted(TARGET.glob("*.py")), ids=lambda path: path.name)
def test_what_enters_the_target_uses_the_standard_library_alone(path):
    beside = {part.stem for part in TARGET.glob("_perflaw_*.py")}
    assert {name.split(".")[0] for name in imports(path)} <= sys.stdlib_module_names | beside


def test_learners_open_no_files_and_only_the_command_line_prints():
    for path in SOURCES:
        names = {node.func.id for node in ast.walk(ast.parse(path.read_text())) if _is_named_call(node)}
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
