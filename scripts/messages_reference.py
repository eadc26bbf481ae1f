"""Writes docs/messages.md from the errors in the sources; with --check only says whether it is up to date.

Every place that makes an error of perflaw's is a row: what it says, the likely cause, and the next command. What is known
only when it happens stands as ``‹name›``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "perflaw"
PAGE = ROOT / "docs" / "messages.md"
KINDS = {
    "UsageError": "the command asks for what cannot be done",
    "TargetError": "the program cannot be found, read or recorded",
    "NotPython": "the program is not Python",
    "StoreError": "a recording is missing, damaged, or cannot be written",
    "DataError": "numbers or files that cannot be used",
    "UnknownFeatureError": "a law asks for a feature that is not there",
    "LawSyntaxError": "a law that cannot be read",
    "BuildError": "a part in C cannot be built",
    "WireError": "a collector or agent cannot be reached, or refuses",
    "NotAnswered": "a controller does not answer",
    "DatabaseLost": "a controller's database is gone",
    "ProcessLost": "a process of perflaw's own has ended",
    "PerflawError": "anything else",
}
"""Class of an error → what it is about."""
ROOMS = {
    "cli": "Command line", "api": "Reading experiments and laws", "record": "Recording", "store": "Recordings on disk",
    "imports": "Importing", "learn": "Learning", "laws": "The annotation language", "specs": "Specifications",
    "check": "Checking", "explore": "Studies", "mine": "Mining and fleets", "report": "Reports", "wire": "Connections",
    "editor": "Editors", "pytest_plugin": "pytest",
}  # fmt: skip
Texts = Mapping[str, str]
SPOKEN = {
    "error": "reason", "strerror": "reason", "msg": "reason", "message": "reason", "did_you_mean": "similar names",
    "suggestion": "similar names", "cwd": "current folder", "gettempdir": "folder for temporary files",
    "executable": "program", "returncode": "status", "argv": "command", "id": "number", "removeprefix": "reason",
    "pid": "PID", "__name__": "kind", "own": "unit of the metric", "at": "place", "timeout_s": "seconds",
    "enrol": "perflaw controller enrol",
}  # fmt: skip
"""Name in the sources → what a reader calls it."""
KEEPING = {
    "lower", "strip", "rstrip", "lstrip", "removeprefix", "removesuffix", "splitlines", "split", "rsplit", "partition",
    "rpartition", "replace", "decode", "encode", "items", "keys", "values", "resolve", "get", "as_posix", "group",
}  # fmt: skip
"""Methods whose value goes by the name of what they are called on."""


def text_of(node: ast.expr | None, known: Texts) -> str:
    """An expression as a person reads it: its literal parts, and ``‹name›`` for the others."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            text_of(part.value if isinstance(part, ast.FormattedValue) else part, known) for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _has_words(node):
        return text_of(node.left, known) + text_of(node.right, known)
    if isinstance(node, ast.IfExp | ast.BoolOp):
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        return " | ".join(dict.fromkeys(filter(None, (text_of(part, known) for part in parts))))
    if isinstance(node, ast.Name | ast.Attribute) and (name := _last(node)) in known:
        return known[name]
    return f"‹{_spoken(name_of(node) or '…')}›"


def _has_words(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in ast.walk(node))


def name_of(node: ast.AST) -> str:
    """The name by which a person knows a value that is known only when it happens."""
    match node:
        case ast.Name() | ast.Attribute():
            return _last(node)
        case ast.Call(func=ast.Attribute(attr="join"), args=[items]):
            return name_of(items)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in KEEPING:
            named = [name_of(one) for one in (node.args if method == "get" else [value])]
            return named[0]
        case ast.Call(func=ast.Name(id=function)) if function in SPOKEN:
            return function
        case ast.Call(func=ast.Name(id="map"), args=[_, items]):
            return name_of(items)
        case ast.Call(func=ast.Attribute(attr=method), args=[]):
            return method
        case ast.Call(func=function, args=arguments):
            named = [name for one in arguments if (name := name_of(one)) and name != "self"]
            return named[0] if named else name_of(function)
        case ast.Constant(value=str(text)) if text.isidentifier():
            return text
        case ast.GeneratorExp(elt=element, generators=[first, *_]) | ast.ListComp(elt=element, generators=[first, *_]):
            return name_of(first.iter) or name_of(element)
        case ast.Constant():
            return ""
    return next((name for child in ast.iter_child_nodes(node) if (name := name_of(child))), "")


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _spoken(name: str) -> str:
    return SPOKEN.get(name) or name.strip("_").replace("_", " ").lower()


class Sources:
    """What errors are made of, in all sources: constants, functions that return their parts, and classes' own parts."""

    def __init__(self, trees: Mapping[Path, ast.Module]) -> None:
        self.trees = trees
        self.tuples: dict[str, list[tuple[ast.Tuple, Texts]]] = defaultdict(list)
        """Name of a constant or function → the tuples that it is or returns, and the texts known there."""
        self.shapes: dict[str, tuple[list[str], dict[str, ast.expr], list[ast.expr], Texts]] = {}
        """Class of an error → names of its parameters, their defaults, and what it gives to PerflawError."""
        texts: dict[str, set[str]] = defaultdict(set)
        for tree in trees.values():
            for name, text in _texts(tree.body, {}).items():
                texts[name].add(text)
        self.constants = {
            name: next(iter(found))
            for name, found in texts.items()
            if len(found) == 1 and name.isupper() and "‹" not in next(iter(found))
        }
        for tree in trees.values():
            known = _texts(tree.body, self.constants)
            for node in _statements(tree):
                self._add(node, known)

    def _add(self, node: ast.stmt, known: Texts) -> None:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Tuple) and (name := _assigned(node)):
            self.tuples[name].append((value, known))
        elif isinstance(node, ast.FunctionDef):
            for one in _statements(node):
                if isinstance(one, ast.Return) and isinstance(one.value, ast.Tuple):
                    self.tuples[node.name].append((one.value, _texts(_statements(node), known)))
        elif isinstance(node, ast.ClassDef) and node.name in KINDS:
            for made in (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"):
                names = [one.arg for one in made.args.args[1:]]
                defaults = dict(zip(reversed(names), reversed(made.args.defaults), strict=False))
                given = next((one.args for one in ast.walk(made) if isinstance(one, ast.Call) and _is_super(one)), [])
                local = {name: text for name, text in _texts(list(ast.walk(made)), known).items() if name not in names}
                self.shapes[node.name] = (names, defaults, given, local)

    def sites(self, tree: ast.Module) -> Iterator[tuple[int, str, list[str]]]:
        """Line and class of each error that a module makes, with what it says, why, and the next command.

        An error that is made of another one's parts is left out: it stands where that one is made.
        """
        constants = _texts(tree.body, self.constants)
        nodes = list(ast.walk(tree))
        functions = [one for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        for node in nodes:
            if isinstance(node, ast.Call) and (kind := _name(node.func)) in KINDS and (node.args or node.keywords):
                around = [one for one in functions if one.lineno <= node.lineno <= (one.end_lineno or 0)]
                inside = list(ast.walk(max(around, key=lambda one: one.lineno))) if around else []
                known = _texts([one for one in inside if getattr(one, "lineno", 0) <= node.lineno], constants)
                for parts in self._parts(kind, node, known):
                    yield node.lineno, kind, parts

    def _parts(self, kind: str, call: ast.Call, known: Texts) -> Iterator[list[str]]:
        first, named = (call.args or [None])[0], {one.arg: one.value for one in call.keywords if one.arg}
        if isinstance(first, ast.Attribute) and first.attr in ("what", "expected"):
            return  # another error's
        if call.args and isinstance(call.args[-1], ast.Starred):
            before = [text_of(one, known) for one in call.args[:-1]]
            named_there = [one for one in ast.walk(call.args[-1]) if _last(one).isupper() or isinstance(one, ast.Call)]
            for name in dict.fromkeys(_last(one.func if isinstance(one, ast.Call) else one) for one in named_there):
                for found, texts in self.tuples.get(name, ()):
                    yield [*before, *(text_of(one, texts) for one in found.elts)][:3]
            return
        names, defaults, given, local = self.shapes.get(kind, (list(PARTS), {}, [], {}))
        values = {**defaults, **dict(zip(names, call.args, strict=False)), **named}
        if not given:
            yield [text_of(values.get(name), known) for name in PARTS]
            return
        of_class = {**local, **{name: text_of(value, {**local, **known}) for name, value in values.items()}}
        yield [text_of(one, of_class) for one in given]


PARTS = ("what", "why", "next_command")
"""Parameters of an error."""


def _statements(node: ast.AST) -> list[ast.stmt]:
    """The statements in a module, function, or class, at any depth."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            found += _statements(child)
    return found


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == "super().__init__"


def _assigned(statement: ast.AST) -> str:
    """The name that a statement gives a value to."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return target.id if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) else ""


def _name(function: ast.expr) -> str:
    """The name that is called; errors of Click's and pytest's have names like ours."""
    foreign = isinstance(function, ast.Attribute) and ast.unparse(function.value).startswith(("click", "pytest"))
    return "" if foreign else _last(function)


def _texts(nodes: list[ast.AST] | list[ast.stmt], known: Texts) -> dict[str, str]:
    """Names with the literal texts that these statements give them, alone or several at once."""
    found = dict(known)
    for node in sorted(nodes, key=lambda one: getattr(one, "lineno", 0)):  # the nearest assignment above counts
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target, value = node.targets[0] if isinstance(node, ast.Assign) else node.target, node.value
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = (
            value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value] * len(targets)
        )
        for one, given in zip(targets, values, strict=False):
            if isinstance(one, ast.Name) and one.id.isupper() and isinstance(given, ast.Constant):
                found[one.id] = f"{given.value:g}" if isinstance(given.value, float) else str(given.value)
            elif isinstance(one, ast.Name):
                found[one.id] = text_of(given, found) if _is_text(given, found) else f"‹{_spoken(one.id)}›"
    return found


def _is_text(node: ast.expr | None, known: Texts) -> bool:
    """Whether literal text is in an expression, so that its own words say more than its name."""
    if isinstance(node, ast.IfExp | ast.BoolOp):
        return all(
            _is_text(one, known) for one in ([node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values)
        )
    literal = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return literal or isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Name) and node.id in known)


@cache
def all_sites() -> list[tuple[Path, int, str, list[str]]]:
    """File, line, class and parts of every error that the sources make."""
    sources = Sources({path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCES.rglob("*.py"))})
    return [(path.relative_to(SOURCES), *site) for path, tree in sources.trees.items() for site in sources.sites(tree)]


def page() -> str:
    """The whole page."""
    rows: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for path, _, kind, parts in all_sites():
        if not re.sub("‹[^›]*›", "", "".join(parts)).strip(" |"):
            continue  # passed on from another process, where it stands with its words
        rows[ROOMS.get(path.parts[0].removesuffix(".py"), "Elsewhere")].add((*parts, kind))
    parts = [
        "# Messages: cause and cure\n",
        "Generated from the sources by `scripts/messages_reference.py`. An error is one line on standard error,"
        " `perflaw: what: why · try: next`,\nand exit status 2. `‹name›` stands for what is known only when it happens;"
        " `|` stands between texts of which one is told. Search for a few words\nof the message. An error that begins with"
        " `unexpected` is a fault of perflaw's: run the same with `--debug`, and report it.\n",
        "| kind | it means that |\n|---|---|\n" + "".join(f"| `{kind}` | {text} |\n" for kind, text in KINDS.items()),
    ]
    for room in dict.fromkeys((*ROOMS.values(), "Elsewhere")):
        if rows[room]:
            head = f"## {room}\n\n| what it says | likely cause | what to do next | kind |\n|---|---|---|---|\n"
            parts.append(head + "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in sorted(rows[room])))
    return "\n".join(parts)


def _cell(text: str) -> str:
    """A text as the cell of a table; angle brackets and stars would be markup."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_<>\[\]|{}#])", r"\\\1", flat)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
