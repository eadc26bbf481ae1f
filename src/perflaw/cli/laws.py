"""``perflaw laws``: the laws that a program's decorators state, as a ``.law`` file."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import click

from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.decorator import WrittenLaw
    from perflaw.laws.tree import Block
    from perflaw.record.decorated import Decorated


@click.command("laws", short_help="collect the laws written in source code into a .law file")
@click.argument("modules", nargs=-1, required=True, metavar="MODULE...")
def command(modules: tuple[str, ...]) -> int:
    """Print the laws that @perflaw.law attaches to functions of MODULE (a module, a package, or the path of a script).

    \b
    perflaw laws app > app.law
    perflaw check app.law

    The modules are imported. A mistake in a law is reported with its place.
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.laws.printing import show
    from perflaw.laws.tree import LawFile
    from perflaw.record.decorated import decorated

    functions = decorated(modules)
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


def _block(function: Decorated, metric: str, laws: list[WrittenLaw]) -> Block:
    """The laws of one metric as a block, in the order of the source; LawSyntaxError names the function's place."""
    from perflaw.laws.errors import LawSyntaxError
    from perflaw.laws.quoting import quote
    from perflaw.laws.reading import parse

    place = f"{function.file}:{function.line}"
    units = {law.unit for law in laws}
    if len(units) > 1:
        raise UsageError(f"{place}: laws of {metric} in different units", " and ".join(sorted(units)))
    parameters = ", ".join(quote(name, "`") for name in function.parameters)
    unit = f" [{laws[0].unit}]" if laws[0].unit else ""
    body = ";\n".join(law.text.strip().rstrip(";") for law in laws)
    try:
        blocks = parse(f"{quote(function.component, '`')}.{metric}({parameters}){unit} {{\n{body}\n}}").blocks
    except LawSyntaxError as error:
        mistake = f"{error.expected} (line {error.line - 1}, column {error.column} of {body!r})"
        raise LawSyntaxError(f"@law of {function.component}: {mistake}", function.line, 1, function.file) from None
    if len(blocks) != 1:
        raise UsageError(f"{place}: @law of {function.component}", "a law ends with its closing brace")
    return blocks[0]
