"""``perflaw controller``: mines specifications from many processes on many hosts."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import json_option, print_document
from perflaw.cli.progress import note
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.mine.fleet.viewing import Views
    from perflaw.types import PathSpec

folder_option = click.option("--folder", default=Path("controller"), show_default=True, type=click.Path(path_type=Path),
                             help="The controller's folder.")  # fmt: skip


@click.group("controller", short_help="mine specifications from running processes on many hosts")
def command() -> None:
    """Tell the stubs beside processes what to measure, keep what they measured, and mine specifications from it.

    \b
    perflaw controller init --listen 0.0.0.0:7480 --name fleet.example
    (umask 077; perflaw controller enrol shop --allow 'shop.*' > shop.enrolment)
    perflaw controller serve
    perflaw stub shop.enrolment --attach PID                    (on each host)
    perflaw controller specs shop > shop.yaml

    Stubs connect to the controller, never the other way. Both sides show certificates, which init and enrol make.
    """


@command.command("init", short_help="make a controller: its folder, certificates and settings")
@folder_option
@click.option(
    "--listen", required=True, metavar="HOST:PORT", help="Address to listen on; port 0: one that is free now."
)
@click.option("--name", multiple=True, metavar="HOST", help="Name by which stubs reach it, the first before others.")
@click.option("--database", default="", metavar="URL", help="postgresql://…; a file in the folder if not given.")
def init(folder: Path, listen: str, name: tuple[str, ...], database: str) -> int:
    """Make the controller's folder with an authority and certificates of its own (openssl makes them)."""
    from perflaw.mine.fleet.enrolment import ControllerFolder
    from perflaw.mine.fleet.ledger import Ledger

    made = ControllerFolder.make(folder, listen, name, database)
    Ledger(made.database).close()
    note(f"stubs will reach the controller at {made.public}")
    return 0


@command.command("enrol", short_help="let the processes of a service be measured")
@folder_option
@click.option(
    "--allow", multiple=True, required=True, metavar="GLOB", help="Functions that may be measured; may be repeated."
)
@click.option(
    "--budget", default="2%", show_default=True, metavar="SHARE", help="What measuring may take of each process."
)
@click.argument("service")
def enrol(folder: Path, allow: tuple[str, ...], budget: str, service: str) -> int:
    """Print the enrolment of SERVICE, a file that each of its hosts gets: address, certificates, token, allow-list.

    Enrolling it again gives it another token, and stubs with the old one are refused.
    """
    from perflaw.cli.live_mining import parse_share
    from perflaw.mine.fleet.enrolment import ControllerFolder, digest
    from perflaw.mine.fleet.ledger import Ledger, Service

    opened, share = ControllerFolder.open(folder), parse_share(budget)
    enrolment = opened.enrol(service, allow)
    ledger = Ledger(opened.database)
    ledger.enrol(Service(service, allow, share), digest(enrolment.token))
    ledger.close()
    click.echo(enrolment.text(), nl=False)
    return 0


@command.command("serve", short_help="serve stubs until Ctrl-C")
@folder_option
@click.option(
    "--page", metavar="HOST:PORT", help="Show the fleet to browsers there, without a password: 127.0.0.1:7481."
)
@click.option("--keep", "keep_days", default=30.0, show_default=True, metavar="DAYS",
              type=click.FloatRange(0, 36_500, min_open=True), help="Age of measurements that are dropped.")  # fmt: skip
def serve(folder: Path, page: str | None, keep_days: float) -> int:
    """Serve stubs, keep what they measured, mine, and decide what they measure next. Ctrl-C ends it, kill -9 loses nothing."""
    from perflaw.mine.fleet.enrolment import ControllerFolder

    try:
        from perflaw.mine.fleet.service import serve as run
    except ImportError as error:
        raise UsageError("the web server", f"{error.name} is missing", "pip install 'perflaw[fleet]'") from error
    try:
        run(ControllerFolder.open(folder), note, views=views_at(page) if page else None, keep_days=keep_days)
    except KeyboardInterrupt:
        return 130
    return 0


def views_at(address: str) -> Views:
    """The page at an address."""
    from perflaw.mine.fleet.viewing import Views
    from perflaw.report.fleet import POLICY, fleet_page, fleet_tables
    from perflaw.report.mine.text import MineView
    from perflaw.report.page.page import Page, render
    from perflaw.report.served import live_page
    from perflaw.types.specifications import MinedSpec, SpecFile
    from perflaw.wire.tls import parse_address

    def specs_page(service: str, found: Sequence[PathSpec], version: str) -> str:
        file = SpecFile(tuple(MinedSpec(one) for one in found))
        return live_page(render(Page(service, "", "", "", [], [], mine=MineView(file))), version)

    return Views(parse_address(address), fleet_page, fleet_tables, specs_page, POLICY)


@command.command("status", short_help="list stubs and what was measured")
@folder_option
@json_option
def status(folder: Path, as_json: bool) -> int:
    """List services and their stubs: what each measures and why, and how much was measured of which function."""
    from perflaw.mine.fleet.analysis import MOST_SAMPLES, shares_of
    from perflaw.mine.fleet.enrolment import ControllerFolder
    from perflaw.mine.fleet.ledger import Ledger
    from perflaw.mine.fleet.status import fleet_status
    from perflaw.report.fleet import fleet_text

    ledger = Ledger(ControllerFolder.open(folder).database)
    names = [one.name for one in ledger.services().values()]
    shares = {name: shares_of(ledger.samples(name, MOST_SAMPLES)) for name in names}
    document = fleet_status(ledger, shares=shares)
    ledger.close()
    if as_json:
        print_document(document)
    else:
        click.echo(fleet_text(document, sys.stdout.isatty()), nl=False)
    return 0


@command.command("specs", short_help="print a service's specifications")
@folder_option
@json_option
@click.option("--export", "export", type=click.Choice(("yaml", "evidence", "prometheus", "otlp")),
              help="Print them for review (yaml), with call paths (evidence), or for another tool.")  # fmt: skip
@click.argument("service")
def specs(folder: Path, as_json: bool, export: str | None, service: str) -> int:
    """Mine the specifications of SERVICE from all that its stubs measured, on whatever hosts."""
    from perflaw.api.mining import specs_of_observed
    from perflaw.cli.mining import specs_text
    from perflaw.errors import DataError
    from perflaw.learn.paths import MiningOptions
    from perflaw.mine.fleet.analysis import observed_of_service
    from perflaw.mine.fleet.enrolment import ControllerFolder

    observed = observed_of_service(ControllerFolder.open(folder).database, service)
    if not observed:
        raise DataError(
            f"{service}: nothing was measured", "no stub has delivered calls of a function", "perflaw controller status"
        )
    mined = specs_of_observed(observed, MiningOptions(), time.time_ns())
    click.echo(specs_text(mined, export, as_json, every=False), nl=False)
    return 0
