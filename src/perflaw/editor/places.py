"""Where a recorded function stands in the text of an editor, which may have changed since it was recorded."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from perflaw.types import Component

PYTHON = (".py", ".pyw", ".pyi")
MODULE = "<module>"


class SourceText:
    """The text of a file in an editor; lines count from 0."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        self.functions = _python_functions(text) if path.suffix in PYTHON else None
        """Qualified name → line, in Python; None in other languages, and while the text cannot be parsed."""

    def line_of(self, component: Component) -> int | None:
        """The line where the function begins; None where this file does not have it."""
        recorded = Path(component.file) if component.file else None
        if recorded is not None and recorded.is_file() and recorded.resolve() != self.path.resolve():
            return None
        if self.functions is not None:
            return self._in_python(component, recorded)
        if recorded is None or not _is_same_file(self.path, recorded):
            return None
        name = re.split(r"[(<\[]", component.name)[0].replace("::", ".").rpartition(".")[2]
        word = re.compile(rf"(?<!\w){re.escape(name)}\s*\(")
        known = max(component.line - 1, 0)
        places = [number for number, line in enumerate(self.lines) if word.search(line)]
        return min(places, key=lambda place: abs(place - known), default=None)

    def _in_python(self, component: Component, recorded: Path | None) -> int | None:
        """By the longest end of the name that is a function here, if the rest of it names this module."""
        parts = component.name.split(".")
        stem = self.path.with_suffix("")
        module = stem.parent if stem.name == "__init__" else stem
        for start in range(1, len(parts)):
            name = ".".join(parts[start:])
            line = 0 if name == MODULE else (self.functions or {}).get(name)
            if line is not None:
                is_here = list(module.parts[-start:]) == parts[:start]
                return line if is_here or (recorded is not None and _is_same_file(self.path, recorded)) else None
        return None


def _is_same_file(path: Path, recorded: Path) -> bool:
    """Whether a file recorded here or on another machine is this one: the names of file and folder agree."""
    return path == recorded or path.parts[-2:] == recorded.parts[-2:]


def _python_functions(text: str) -> dict[str, int] | None:
    """Qualified name of each function, as recordings have it, with the line of its ``def``; None for broken text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found: dict[str, int] = {}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, within = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(within + child.name, child.lineno - 1)
                waiting.append((child, f"{within}{child.name}.<locals>."))
            elif isinstance(child, ast.ClassDef):
                waiting.append((child, f"{within}{child.name}."))
            else:
                waiting.append((child, within))
    return found
