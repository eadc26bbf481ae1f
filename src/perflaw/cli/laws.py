"""``perflaw laws``: the laws that a program's decorators state, as a ``.law`` file."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import click

from perflaw.decorator import ATTRIBUTE, WrittenLaw
from perflaw.errors import TargetError, UsageError

if TYPE_CHECKING:
    from perflaw.laws.tree import Block

_NEXT: Final = "perflaw laws MODULE > FILE.law"


@click.command("laws", short_help="collect the laws written in source code into a .law file")
@click.argument("modules", nargs=-1, required=True, metavar="MODULE...")
def command(modules: tuple[str, ...]) -> int:
    """Print the laws that @perflaw.law attaches to functions of MODULE (a module, a package, or the path of a script).

    \b
    perflaw laws app > app.law
    perflaw check app.law

    The modules are imported. A mistake in a law is reported with its place.
    """
    from perflaw.laws.printing import show
    from perflaw.laws.tree import LawFile

    functions = decorated_functions(modules)
    if not functions:
        example = '@perflaw.law("Norm(50*src.len, 0.2*src.len)")'
        raise UsageError(f"no laws in {', '.join(modules)}", "no function there is decorated", f"write {example}")
    blocks = []
    for function in functions:
        by_metric = attrgetter("metric")
        for metric, laws in groupby(sorted(function.laws, key=by_metric), by_metric):
            blocks.append(_block(function, metric, list(laws)))
    click.echo(show(LawFile(tuple(blocks))), nl=False)
    return 0


def _block(function: DecoratedFunction, metric: str, laws: list[WrittenLaw]) -> Block:
    """The laws of one metric as a block, in the order of the source; LawSyntaxError names the function's place."""
    from perflaw.laws.errors import LawSyntaxError
    from perflaw.laws.reading import parse
    from perflaw.laws.tree import quote

    place = f"{function.file}:{function.line}"
    units = {law.unit for law in laws}
    if len(units) > 1:
        named = " and ".join(unit or "the metric's own" for unit in sorted(units))
        why = f"they form one block, which has one unit, and are in {named}"
        raise UsageError(f"{place}: laws of {metric} in different units", why, "write all of them in one unit")
    parameters = ", ".join(quote(name, "`") for name in function.parameters)
    unit = f" [{laws[0].unit}]" if laws[0].unit else ""
    body = ";\n".join(law.text.strip().rstrip(";") for law in laws)
    try:
        blocks = parse(f"{quote(function.component, '`')}.{metric}({parameters}){unit} {{\n{body}\n}}").blocks
    except LawSyntaxError as error:
        mistake = f"{error.expected} (line {error.line - 1}, column {error.column} of {body!r})"
        raise LawSyntaxError(f"@law of {function.component}: {mistake}", function.line, 1, function.file) from None
    if len(blocks) != 1:
        raise UsageError(
            f"{place}: @law of {function.component}", "a law ends with its closing brace", "write it without braces"
        )
    return blocks[0]


@dataclass(frozen=True, slots=True)
class DecoratedFunction:
    """A function with written laws."""

    component: str
    """Qualified name, as recordings have it."""
    parameters: tuple[str, ...]
    """Names of its parameters."""
    file: str
    """Source file."""
    line: int
    """First line of the function with its decorators; 0 if unknown."""
    laws: tuple[WrittenLaw, ...]
    """Its laws, the topmost first."""


def decorated_functions(names: Sequence[str]) -> list[DecoratedFunction]:
    """Decorated functions of modules, and of the modules within packages, in the order of their source.

    A name is that of a module, or the path of a script. Anything that a module prints when it is imported goes to standard
    error. TargetError if a module cannot be imported.
    """
    functions: list[DecoratedFunction] = []
    with contextlib.redirect_stdout(sys.stderr):
        for name in names:
            for module in _modules(name):
                functions += sorted(_functions_of(module), key=lambda function: function.line)
    return functions


def _modules(name: str) -> Iterator[ModuleType]:
    """A module and all modules within it but ``__main__``, which would run."""
    path = Path(name)
    if path.suffix in (".py", ".pyw"):
        if not path.is_file():
            raise TargetError(f"{name}: no such file", f"looked in {Path.cwd()}", _NEXT)
        module = _imported(path.stem, str(path.resolve().parent))
    else:
        module = _imported(name, str(Path.cwd()))
    yield module
    inside = pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}.", onerror=_imported)
    for inner in inside:
        if inner.name.rpartition(".")[2] != "__main__":
            yield _imported(inner.name)


def _imported(name: str, folder: str = "") -> ModuleType:
    """The module, looked for in ``folder`` first; TargetError if it cannot be imported."""
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        why = f"looked in {Path.cwd()} and what is installed beside perflaw"
        problem = f"no module {missing!r}" if name.startswith(missing) else f"{name}: no module {missing!r}"
        raise TargetError(problem, why, "python -m pip install perflaw beside the program") from None
    except (Exception, SystemExit) as error:
        raise TargetError(f"{name} cannot be imported", f"{type(error).__name__}: {error}", f"python {name}") from error


def _functions_of(module: ModuleType) -> Iterator[DecoratedFunction]:
    """Decorated functions defined in a module and in its classes."""
    seen: set[int] = set()
    waiting: list[Any] = list(vars(module).values())
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        # The function within a method, property or cached property; the thing itself if it carries the law or is none.
        within = (
            name for name in ("__func__", "fget", "func") if inspect.getattr_static(thing, name, None) is not None
        )
        attribute = None if inspect.isclass(thing) else next(within, None)
        carries = ATTRIBUTE in getattr(thing, "__dict__", {})
        function = getattr(thing, attribute) if attribute and not carries else thing
        if inspect.isclass(thing) and thing.__module__ == module.__name__:
            waiting += vars(thing).values()
        elif getattr(function, "__module__", None) == module.__name__:
            laws = getattr(function, "__dict__", {}).get(ATTRIBUTE)
            if laws:
                inner = inspect.unwrap(getattr(function, "__func__", function))
                code = getattr(inner, "__code__", None)
                try:
                    parameters = tuple(inspect.signature(inner).parameters)
                except (TypeError, ValueError):
                    parameters = ()
                file, line = (code.co_filename, code.co_firstlineno) if code else ("", 0)
                yield DecoratedFunction(f"{inner.__module__}.{inner.__qualname__}", parameters, file, line, laws)
