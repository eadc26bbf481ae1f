"""``perflaw``: finds the verb, runs it, and turns our errors into one line and exit status 2."""

from __future__ import annotations

import os
import shlex
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw import __version__
from perflaw.cli.configuration import defaults
from perflaw.cli.progress import NORMAL, QUIET, VERBOSE, detail, note, seconds_words, set_verbosity, step
from perflaw.errors import PerflawError, UsageError
from perflaw.notices import shown_by

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERBS = {
    "record": "run a program and record what its functions cost",
    "attach": "record a program that runs already",
    "import": "read traces of other tools and recordings of other machines",
    "show": "show where the cost of a run went: call tree, functions, allocations",
    "annotate": "learn the law of each function's cost",
    "trend": "find the places in the code that scale badly with the size of the work",
    "variance": "find the calls that make a function sometimes slow",
    "mine": "learn how long each function takes on each call path",
    "explore": "try configurations of a system and learn how its performance depends on them",
    "agent": "run trials on this machine for `perflaw explore` on another",
    "check": "test whether the laws hold in new recordings",
    "compare": "show what changed between two recordings",
    "diff": "show what changed between two sets of laws or recordings",
    "predict": "predict the cost of inputs that were not recorded",
    "report": "write everything as one page for a browser",
    "serve": "show reports in a browser while experiments are recorded, explored or mined",
    "export": "write recordings as files of other tools",
    "lsp": "show laws in the editor: a language server",
    "fit": "learn laws from your own numbers: CSV, or results of a benchmark tool",
    "laws": "collect the laws written in source code into a .law file",
    "runs": "list the recordings of an experiment",
    "push": "copy recordings to object storage: S3, or a folder that others share",
    "pull": "copy recordings from object storage",
    "feature": "list, add, change or remove features of the runs",
    "probes": "list, switch and watch the probes of running programs",
    "controller": "mine specifications from running processes on many hosts",
    "stub": "measure a process for a controller on another host",
    "collector": "serve the probes of this machine to recorders on other machines",
    "dump": "print every table of a recording as text",
    "completion": "print what a shell needs to complete verbs and options",
    "doctor": "say what this machine can measure, and why not",
}

SMALL_MATRICES = {"annotate", "check", "diff", "predict", "fit", "lsp"}
"""Verbs that start no other program and whose matrices are too small for several threads of BLAS."""
BLAS_THREADS = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}
"""Variables by which a person chooses the number of threads."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy, if it is first imported within, starts no threads of BLAS; a number that the person chose stays.

    While such threads have nothing to do they wait in a loop: on a small recording that is a fifth of the CPU time.
    Programs that are started within inherit the setting.
    """
    if "numpy" in sys.modules or BLAS_THREADS & os.environ.keys():
        yield
        return
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("OPENBLAS_NUM_THREADS", None)


def choose_verbosity(ctx: click.Context, parameter: click.Parameter, requested: bool) -> None:
    """Say less or more from now on, as ``--quiet`` or ``--verbose`` asks."""
    if requested and not ctx.resilient_parsing:
        set_verbosity(QUIET if parameter.name == "quiet" else VERBOSE)


def verbosity_options() -> list[click.Option]:
    """``--quiet`` and ``--verbose``, which stand before or after a verb."""
    texts = {
        "quiet": "Print the answer and errors only.",
        "verbose": "Say what is done and how long each step took.",
    }
    return [
        click.Option([f"--{name}"], is_flag=True, expose_value=False, callback=choose_verbosity, help=text)
        for name, text in texts.items()
    ]


def with_verbosity(command: click.Command) -> click.Command:
    """The command, and those below it, with the options of verbosity."""
    if not any(parameter.name == "quiet" for parameter in command.params):
        command.params += verbosity_options()
        for below in command.commands.values() if isinstance(command, click.Group) else ():
            with_verbosity(below)
    return command


class LazyGroup(click.Group):
    """Imports a verb only when it is used, so that ``perflaw --help`` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs in the order a person meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now."""
        if cmd_name not in VERBS:
            return None
        if cmd_name in SMALL_MATRICES:
            ctx.with_resource(one_blas_thread())
        module = "import_" if cmd_name == "import" else cmd_name  # `import` is a keyword of Python
        command: click.Command = import_module(f"perflaw.cli.{module}").command
        return with_verbosity(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the first word names; one that is mistyped is refused with those that are like it."""
        verb = args[0]
        if verb in VERBS or verb.startswith("-"):
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        near = get_close_matches(verb, VERBS, 3, 0.6)
        hint = f"Did you mean {' or '.join(near)}?" if near else "perflaw --help lists all."
        raise click.UsageError(f"No such command {verb!r}. {hint}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs that begin so, without importing them; else options."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(verb, help=text) for verb, text in VERBS.items() if verb.startswith(incomplete)]
        return verbs or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def print_compiler_flags(ctx: click.Context, parameter: click.Parameter, requested: bool) -> None:
    """Print the flag by which a compiler finds ``perflaw.h``, and exit; UsageError where the header is missing."""
    if not requested or ctx.resilient_parsing:
        return
    from perflaw.record.build import sources_folder

    folder = sources_folder() / "include"
    if not (folder / "perflaw.h").is_file():
        why = "the installation is damaged"
        raise UsageError(f"{folder}: there is no perflaw.h", why, "pip install --force-reinstall perflaw")
    click.echo(f"-I{shlex.quote(str(folder))}")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="perflaw")
@click.option(
    "--cflags", is_flag=True, is_eager=True, expose_value=False, callback=print_compiler_flags,
    help="Print what a C or C++ compiler needs to find perflaw.h, and exit.",
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def cli(debug: bool) -> None:
    """Learn the laws of a program's performance from its runs."""


cli.params += verbosity_options()


def _current_folder() -> Path:
    """The current folder; UsageError if it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current folder is gone", "it was removed, or made anew", 'cd "$PWD"') from None


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Exit status: 0 fine, 1 a violated verdict, 2 wrong use or unreadable input."""
    given = sys.argv[1:] if arguments is None else arguments
    # --debug may stand anywhere, but what follows `record` may belong to the target.
    end = given.index("record") if "record" in given else len(given)
    words = [word for index, word in enumerate(given) if word != "--debug" or index > end]
    debug = len(words) < len(given)
    began = time.monotonic(), time.process_time()
    set_verbosity(NORMAL)
    try:
        settings = defaults(VERBS, _current_folder())
        with shown_by(note, step):
            status = cli.main(words, prog_name="perflaw", standalone_mode=False, default_map=settings)
        took, cpu = time.monotonic() - began[0], time.process_time() - began[1]
        detail(f"done in {seconds_words(took)}, with {seconds_words(cpu)} of CPU time in this process")
        sys.exit(status if isinstance(status, int) else 0)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has gone, so nothing more can be printed, not even at shutdown.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        sys.exit(141)
    except MemoryError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"perflaw: there is not enough memory{f' ({error})' * bool(str(error))} · try: free -h", err=True)
        sys.exit(2)
    except Exception as error:  # an exception must never look like the verdict "violated", which is status 1
        if debug:
            traceback.print_exc()
        expected = isinstance(error, PerflawError | OSError)
        unexpected = f"unexpected {type(error).__name__}: {error} · try: perflaw --debug {' '.join(words)}"
        click.echo(f"perflaw: {error if expected else unexpected}", err=True)
        sys.exit(2)
