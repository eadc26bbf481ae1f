"""``perflaw``: finds the verb, runs it, and turns our errors into one line and exit status 2."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from importlib import import_module
from typing import Any

import click

from perflaw import __version__
from perflaw.errors import PerflawError

# ---- ``perflaw --cflags``: what a compiler needs to find ``perflaw.h``.


def show(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    """Print the flag and end; UsageError where the header is missing."""
    if not asked or ctx.resilient_parsing:
        return
    from perflaw.errors import UsageError
    from perflaw.record.build import sources_folder

    folder = sources_folder() / "include"
    if not (folder / "perflaw.h").is_file():
        raise UsageError(
            f"{folder}: no perflaw.h", "the installation is damaged", "pip install --force-reinstall perflaw"
        )
    click.echo(f"-I{shlex.quote(str(folder))}")
    ctx.exit()


VERBS = {
    "record": "run a program and keep how its functions' cost came about",
    "import": "traces of other tools and recordings of other machines",
    "annotate": "the law of each function's cost",
    "trend": "which places of the program scale badly with the size of the work",
    "variance": "which calls, in which context, make a function's cost vary",
    "mine": "what durations each function shows on which call paths",
    "explore": "try configurations of a system and learn what they do",
    "agent": "run targets of studies for an explorer on another machine",
    "check": "whether new recordings keep to the laws",
    "diff": "what changed between two sets of laws or recordings",
    "predict": "the cost of inputs that were not recorded",
    "report": "all laws as one page to open in a browser",
    "fit": "laws of your own numbers: CSV, or results of a benchmark tool",
    "laws": "the laws written beside functions, as a .law file",
    "runs": "the recordings of an experiment",
    "feature": "features of the runs: list, add, change, remove",
    "probes": "list, switch and watch the probes of programs that run",
    "collector": "give records of probes to recorders on other machines",
    "dump": "every table of a recording as text",
    "doctor": "what this machine can measure, and why not",
}


class LazyGroup(click.Group):
    """Imports a verb when it is used: ``perflaw --help`` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs in the order a person meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"perflaw.cli.{_module(cmd_name)}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _module(verb: str) -> str:
    """Name of the verb's module; ``import`` is a word of Python."""
    return "import_" if verb == "import" else verb


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="perflaw")
@click.option(
    "--cflags", is_flag=True, is_eager=True, expose_value=False, callback=show,
    help="Print what a C or C++ compiler needs to find perflaw.h, and exit.",
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def cli(debug: bool) -> None:
    """Learns the laws of a program's performance from its runs."""


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Exit status: 0 fine, 1 a violated verdict, 2 wrong use or unreadable input."""
    words, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.exit(_status(cli.main(words, prog_name="perflaw", standalone_mode=False)))
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read us has gone: nothing more can be said, not even at shutdown.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.exit(141)
    except Exception as error:  # an exception must never look like the verdict "violated", which is status 1
        if debug:
            traceback.print_exc()
        expected = isinstance(error, PerflawError | OSError)
        unexpected = f"unexpected {type(error).__name__}: {error} · try: perflaw --debug {' '.join(words)}"
        click.echo(f"perflaw: {error if expected else unexpected}", err=True)
        sys.exit(2)


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """The arguments without our ``--debug``, and whether it was there; what follows ``record`` may be the target's."""
    ours = words.index("record") if "record" in words else len(words)
    kept = [word for index, word in enumerate(words) if word != "--debug" or index > ours]
    return kept, len(kept) < len(words)


def _status(value: Any) -> int:
    return value if isinstance(value, int) else 0
