"""``perflaw pull``: recordings from object storage into an experiment here."""

from __future__ import annotations

import click

from perflaw.cli.progress import step, tell
from perflaw.errors import UsageError


@click.command("pull", short_help="copy recordings from object storage")
@click.argument("url", metavar="URL")
@click.argument("name", required=False, metavar="[NAME]")
def command(url: str, name: str | None) -> int:
    """Copy the recordings of experiment NAME, which were pushed to URL, into .perflaw/NAME.

    NAME may be left out where one experiment is there. Every file is compared with its checksum. Runs that are here
    already are not copied again, and an interrupted pull goes on where it was; new runs get the next free numbers.

    \b
    perflaw push default file://$PWD/shared && perflaw pull file://$PWD/shared default
    """
    from perflaw.cli.import_ import imported_message
    from perflaw.imports.experiments import import_experiment
    from perflaw.record.cache import mirrors_folder
    from perflaw.store.experiment import locked, open_experiment
    from perflaw.store.remote import experiments_in, mirror, open_store

    store = open_store(url)
    if name is None:
        there = experiments_in(store)
        if len(there) != 1:
            why = f"the experiments there are: {', '.join(there) or 'none'}"
            raise UsageError(f"perflaw pull {url}: no name is given", why, f"perflaw pull {url} NAME")
        name = there[0]
    target = open_experiment(name)
    with step(f"pulling {name}") as show:
        copy = mirror(store, name, mirrors_folder(), show)
    with locked(copy.runs_folder):
        imported = import_experiment(target, copy.folder)
    tell(f"{imported_message('pulled', imported)} → {target.folder}")
    return 0
