"""``perflaw laws``: the laws that decorators in a program's source carry, as a ``.law`` file."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.decorator import WrittenLaw
    from perflaw.laws.tree import Block
    from perflaw.record.decorated import Decorated


@click.command("laws", short_help="the laws written beside functions, as a .law file")
@click.argument("modules", nargs=-1, required=True, metavar="MODULE...")
def command(modules: tuple[str, ...]) -> int:
    """Print the laws that @perflaw.law attaches to functions of MODULE (a module, a package, or the path of a script).

    \b
    perflaw laws app > app.law
    perflaw check app.law

    The modules are imported; every law is read, and a mistake in one is told with its place.
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.laws.printing import show
    from perflaw.laws.tree import LawFile
    from perflaw.record.decorated import decorated

    found = decorated(modules)
    if not found:
        example = '@perflaw.law("Norm(50*src.len, 0.2*src.len)")'
        raise UsageError(f"no laws in {', '.join(modules)}", "no function there is decorated", f"write {example}")
    click.echo(show(LawFile(tuple(block for function in found for block in _blocks(function)))), nl=False)
    return 0


def _blocks(function: Decorated) -> list[Block]:
    """A block for each metric the function has laws of."""

    def metric(law: WrittenLaw) -> str:
        return law.metric

    return [_block(function, name, list(laws)) for name, laws in groupby(sorted(function.laws, key=metric), metric)]


def _block(function: Decorated, metric: str, laws: list[WrittenLaw]) -> Block:
    """Laws of one metric; their clauses in the order of the source. LawSyntaxError with the function's place."""
    from perflaw.laws.errors import LawSyntaxError
    from perflaw.laws.quoting import quote
    from perflaw.laws.reading import parse

    units = {law.unit for law in laws}
    if len(units) > 1:
        raise UsageError(f"{_place(function)}: laws of {metric} in different units", " and ".join(sorted(units)))
    parameters = ", ".join(quote(name, "`") for name in function.parameters)
    unit = f" [{laws[0].unit}]" if laws[0].unit else ""
    body = ";\n".join(law.text.strip().rstrip(";") for law in laws)
    try:
        blocks = parse(f"{quote(function.component, '`')}.{metric}({parameters}){unit} {{\n{body}\n}}").blocks
    except LawSyntaxError as error:
        said = f"{error.expected} (line {error.line - 1}, column {error.column} of {body!r})"
        raise LawSyntaxError(f"@law of {function.component}: {said}", function.line, 1, function.file) from None
    if len(blocks) != 1:
        raise UsageError(f"{_place(function)}: @law of {function.component}", "a law ends with its closing brace")
    return blocks[0]


def _place(function: Decorated) -> str:
    return f"{function.file}:{function.line}"
