"""``perflaw stub``: measures a process on this host for a controller on another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.api.reading import read_recordings
from perflaw.cli.options import budget_of_option
from perflaw.cli.progress import note
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.mine.budget import BudgetOf
    from perflaw.mine.fleet.enrolment import Enrolment
    from perflaw.mine.fleet.spool import Spool


@click.command("stub", short_help="measure a process for a controller on another host")
@click.option("--attach", "pid", type=click.IntRange(1), metavar="PID", help="Measure this process until it ends.")
@click.option("-e", "--experiment", metavar="NAME", help="Deliver what recordings of this experiment hold, and exit.")
@click.option(
    "--allow", multiple=True, metavar="GLOB", help="Measure these functions only, if the enrolment allows them."
)
@click.option("--budget", metavar="SHARE", help="What measuring may take of the process, if less is not enrolled.")
@budget_of_option
@click.option("--spool", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder for what is not delivered yet, one for each stub.  [default: ENROLMENT.spool]")  # fmt: skip
@click.option("--spool-mb", default=64, show_default=True, type=click.IntRange(1), help="Disk that the folder may use.")
@click.argument("enrolment", type=click.Path(path_type=Path))
def command(
    enrolment: Path,
    pid: int | None,
    experiment: str | None,
    allow: tuple[str, ...],
    budget: str | None,
    budget_of: BudgetOf,
    spool: Path | None,
    spool_mb: int,
) -> int:
    """Measure what the controller that ENROLMENT names asks for, and deliver it.

    The stub opens no port: it asks the controller over HTTPS. It measures no function that the enrolment does not allow.
    Without the controller it goes on within its last instructions, keeps what it measured, and delivers it later. Ctrl-C
    leaves the process as it was.

    \b
    perflaw stub shop.enrolment --attach 1234 --budget 1%
    perflaw stub shop.enrolment -e nightly
    """
    from perflaw.cli.live_mining import parse_share
    from perflaw.mine.fleet.enrolment import read_enrolment
    from perflaw.mine.fleet.spool import Spool

    read = read_enrolment(enrolment)
    if (pid is None) == (experiment is None):
        why = "give either a process or an experiment"
        raise UsageError("what to measure", why, f"perflaw stub {enrolment} --attach PID")
    share = parse_share(budget) if budget else None
    kept = Spool(spool or enrolment.with_suffix(".spool"), spool_mb << 20)
    try:
        if pid is not None:
            _measure(read, pid, kept, allow, share, budget_of)
        elif experiment is not None:
            from perflaw.mine.fleet.sources import deliver_recorded

            count = deliver_recorded(read, kept, read_recordings(experiment), note)
            note(f"delivered {count} measurements to {read.address}")
    except KeyboardInterrupt:
        return 130
    finally:
        kept.close()
    return 0


def _measure(
    enrolment: Enrolment, pid: int, spool: Spool, allow: tuple[str, ...], budget: float | None, budget_of: BudgetOf
) -> None:
    """Measure a process until it ends or a signal comes."""
    from perflaw.cli.record_messages import print_build
    from perflaw.mine.fleet.sources import AttachedSource
    from perflaw.mine.fleet.stub import Stub
    from perflaw.record.process import SignalRelay

    source = AttachedSource(spool.folder, pid, print_build, budget_of)  # signals end it as usual so far
    with SignalRelay() as relay, source:
        Stub(enrolment, source, spool, note, allow, budget, is_over=lambda: relay.received is not None).run()
    if len(spool):
        note(f"{len(spool)} measurements are not delivered yet; the next stub with {spool.folder} delivers them")
