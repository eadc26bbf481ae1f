"""``perflaw lsp``: laws in the editor."""

from __future__ import annotations

import click

from perflaw.cli.options import at_option, own_experiment_option
from perflaw.errors import UsageError


@click.command("lsp", short_help="show laws in the editor: a language server")
@own_experiment_option
@click.option("--metric", default="time", show_default=True, metavar="NAME", help="Metric, if LAWS is an experiment.")
@at_option
@click.argument("laws", nargs=-1, metavar="[LAWS]...")
def command(experiment: str, metric: str, at: tuple[str, ...], laws: tuple[str, ...]) -> int:
    """Answer an editor on standard input and output, in the Language Server Protocol. Editors start it.

    LAWS are .law files or experiments; without one, the .law files of the project's folder, else the experiment. Each
    function gets a lens with its law and its cost at a size; diagnostics name laws that the recordings of the
    experiment violate, and functions without a committed law.

    \b
    perflaw lsp
    perflaw lsp perf.law --at n=1e6
    """
    try:
        from perflaw.editor.server import serve
    except ImportError as error:
        raise UsageError("the language server", f"{error.name} is missing", "pip install 'perflaw[lsp]'") from error
    from perflaw import __version__
    from perflaw.cli.annotate import point_of

    serve(laws, experiment, metric, point_of(at), __version__)
    return 0
