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


def text_of(node: ast.expr | None, known: Texts) -> str:
    """An expression as a person reads it: its literal parts, and ``‹name›`` for the others."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            text_of(part, known) if isinstance(part, ast.Constant) else _hole(part.value, known)
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left, known) + text_of(node.right, known)
    if isinstance(node, ast.IfExp):
        return f"{text_of(node.body, known)} | {text_of(node.orelse, known)}"
    if isinstance(node, ast.BoolOp):
        return " | ".join(text_of(one, known) for one in node.values)
    return known[node.id] if isinstance(node, ast.Name) and node.id in known else _hole(node, known)


def _hole(node: ast.expr, known: Texts) -> str:
    """A value that is known only when it happens: the last name in it."""
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.Constant):
        return str(node.value)
    names = re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\"[^\"]*\"", "", ast.unparse(node)))
    return f"‹{names[-1].strip('_') if names else '…'}›"


def sites(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Class of each error that a module makes, with what it says, why, and the next command."""
    constants = _texts(tree.body, {})
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    within = {id(node): function for function in functions for node in ast.walk(function)}  # the innermost is last
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _name(node.func)) in KINDS and (node.args or node.keywords):
            function = within.get(id(node))
            before = [one for one in ast.walk(function) if getattr(one, "lineno", 0) <= node.lineno] if function else []
            known = _texts(before, constants)
            named = {one.arg: one.value for one in node.keywords}
            given: list[ast.expr | None] = [*node.args[:3], *[None] * (3 - len(node.args))]
            for place, word in enumerate(("what", "why", "next_command")):
                given[place] = named.get(word, given[place])
            if name == "LawSyntaxError":  # it is made of a message and a place
                given = [given[0], ast.Constant("a law does not follow the grammar in language.md"), None]
            yield name, [text_of(one, known) for one in given]


def _name(function: ast.expr) -> str:
    """The name that is called; errors of Click's have names like ours."""
    of_click = isinstance(function, ast.Attribute) and ast.unparse(function.value).startswith("click")
    return "" if of_click else function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _texts(nodes: list[ast.AST] | list[ast.stmt], known: Texts) -> dict[str, str]:
    """Names with the literal texts that these statements give them."""
    found = dict(known)
    for node in sorted(nodes, key=lambda one: getattr(one, "lineno", 0)):  # the nearest assignment above counts
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            literal = isinstance(value, ast.JoinedStr) or (
                isinstance(value, ast.Constant) and isinstance(value.value, str)
            )
            found[target.id] = text_of(value, known) if literal else f"‹{target.id.strip('_')}›"
    return found


def page() -> str:
    """The whole page."""
    rows: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for path in sorted(SOURCES.rglob("*.py")):
        room = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        for kind, parts in sites(ast.parse(path.read_text(encoding="utf-8"))):
            rows[ROOMS.get(room, "Elsewhere")].add((*parts, kind))
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
