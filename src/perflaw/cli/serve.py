"""``perflaw serve``: reports that follow experiments while they are recorded, explored, mined and checked."""

from __future__ import annotations

import secrets
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from perflaw.cli.progress import note
from perflaw.errors import StoreError, UsageError

if TYPE_CHECKING:
    from perflaw.live.making import MadeReport
    from perflaw.live.service import LiveViews
    from perflaw.store.watching import ExperimentState
    from perflaw.types.documents import Document

PORT: Final = 7482


@click.command("serve", short_help="show reports in a browser while experiments are recorded, explored or mined")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST",
              help="Address to listen on; one that other machines reach asks for a token.")  # fmt: skip
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), metavar="PORT",
              help="Port to listen on; 0: any free port.")  # fmt: skip
@click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE",
              help="File with the token that readers must show; else one is made where it is needed.")  # fmt: skip
@click.option("--name", "names", multiple=True, metavar="NAME", help="Host name by which readers reach the pages.")
@click.option("--cert", type=click.Path(path_type=Path), metavar="FILE", help="Certificate, to serve by TLS.")
@click.option("--key", type=click.Path(path_type=Path), metavar="FILE", help="Private key of the certificate.")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
def command(
    host: str,
    port: int,
    token_file: Path | None,
    names: tuple[str, ...],
    cert: Path | None,
    key: Path | None,
    experiments: tuple[str, ...],
) -> int:
    """Show the reports of all experiments in this folder, or of those named, in a browser. Ctrl-C ends it.

    \b
    perflaw serve
    perflaw serve --host 0.0.0.0 --cert agent.pem --key agent.key

    A page follows what is recorded, explored, mined or checked meanwhile. Nothing is written, and no recorder waits.
    """
    try:
        from perflaw.wire.web import Access, is_loopback, serve_until_signal, web_settings
    except ImportError as error:
        raise UsageError("the web server", f"{error.name} is missing", "pip install 'perflaw[serve]'") from error
    from perflaw.live.making import ReportMaker
    from perflaw.live.service import live_application
    from perflaw.store.experiment import open_experiment
    from perflaw.wire.tls import Address, listening, read_token, serving

    for name in experiments:
        if not open_experiment(name).folder.is_dir():
            raise StoreError(f"there is no experiment {name}", "nothing was recorded under this name", "perflaw serve")
    if (cert is None) != (key is None):
        raise UsageError("--cert and --key", "one of them is given without the other", "--cert FILE --key FILE")
    context = serving(cert, key) if cert and key else None
    token = read_token(token_file) if token_file else None
    made = token is None and not is_loopback(host)
    token = secrets.token_urlsafe(24) if made else token
    listener = listening(Address(host, port), 128)
    own = [*names, *([host] if host else []), *([] if is_loopback(host) else [socket.gethostname(), socket.getfqdn()])]
    port = listener.getsockname()[1]
    access = Access(own, token, f"perflaw-{port}", is_secure=context is not None)
    shown = names[0] if names else socket.gethostname() if host in ("", "0.0.0.0", "::") else host
    address = f"http{'s' * (context is not None)}://{Address(shown, port)}/{f'?token={token}' * made}"

    def ready() -> None:
        note(f"reports: {address}")
        if token and context is None:
            note("the pages and the token go over the network as plain text: --cert and --key, or ssh -L")

    with tempfile.TemporaryDirectory(prefix="perflaw-serve-") as folder:
        application = live_application(ReportMaker(_report_command, Path(folder), experiments), _views(), access)
        settings = web_settings(application)
        settings.load()
        settings.ssl = context
        serve_until_signal(settings, listener, ready)
    return 0


def _report_command(name: str, path: Path) -> Sequence[str]:
    return [sys.executable, "-m", "perflaw", "report", "-e", name, "-o", str(path)]


def _views() -> LiveViews:
    from perflaw.live.service import LiveViews
    from perflaw.report.served import POLICY, checks_by_time, experiment_row, index_page, live_page, waiting_page

    index, folder = index_page(), str(Path.cwd())

    def states(entries: list[tuple[ExperimentState, MadeReport, bool]]) -> Document:
        known = [asdict(state) for state, _, _ in entries]
        rows = [experiment_row(one, _error(entry), _stage(entry)) for one, entry in zip(known, entries, strict=True)]
        rows.sort(key=lambda row: -row["changed"])
        return {"folder": folder, "experiments": rows, "checks": checks_by_time(known)}

    def state(known: ExperimentState, made: MadeReport, making: bool) -> Document:
        row, entry = asdict(known), (known, made, making)
        words = experiment_row(row, _error(entry), _stage(entry))
        parts = [words["holds"], words["now"], words["report"], *made.notes]
        return {"version": version_of(known, made), "text": " · ".join(filter(None, parts)), "error": words["error"]}

    def report(known: ExperimentState, made: MadeReport) -> str:
        decisions = () if made.text or not known.mined else _decisions(known.name)
        return live_page(made.text or waiting_page(known.name, decisions), version_of(known, made), "/")

    def version_of(known: ExperimentState, made: MadeReport) -> str:
        # Without a report, decisions of mining are shown, which change with the state.
        return made.version or (known.mark if known.mined else "")

    return LiveViews(lambda: index, report, states, state, POLICY)


def _decisions(name: str) -> Sequence[Sequence[str]]:
    """What mining decided in an experiment."""
    from perflaw.mine.journal import read_journal
    from perflaw.report.mine.journal import journal_data
    from perflaw.store.experiment import open_experiment

    data = journal_data(read_journal(open_experiment(name).folder))
    return data["decisions"] if data else ()


def _error(entry: tuple[ExperimentState, MadeReport, bool]) -> str:
    state, made, _ = entry
    return state.error or (made.error if made.mark == state.mark else "")


def _stage(entry: tuple[ExperimentState, MadeReport, bool]) -> str:
    """How the report is, in words."""
    state, made, making = entry
    if making:
        return "learning from what is new" if made.text else "learning"
    if not made.text:
        if state.runs:
            return ""
        return "decisions alone, no recording yet" if state.mined else "nothing is finished yet"
    return "up to date" if made.mark == state.mark else "there is news"
