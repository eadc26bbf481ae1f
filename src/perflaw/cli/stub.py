"""``perflaw stub``: measures a process on this host for a controller on another one."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from perflaw.cli.options import note
from perflaw.errors import UsageError


@click.command("stub", short_help="measure a process for a controller on another host")
@click.option("-e", "--experiment", metavar="NAME", help="Deliver what recordings of this experiment hold, and exit.")
@click.option("--spool", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder for what is not delivered yet.  [default: ENROLMENT.spool]")  # fmt: skip
@click.option("--spool-mb", default=64, show_default=True, type=click.IntRange(1), help="Disk that the folder may use.")
@click.argument("enrolment", type=click.Path(path_type=Path))
def command(enrolment: Path, experiment: str | None, spool: Path | None, spool_mb: int) -> int:
    """Register with the controller that ENROLMENT names, measure what it asks for, and deliver it.

    The stub opens no port: it asks the controller over HTTPS. It measures no function that the enrolment does not allow.
    Without the controller it goes on within its last instructions, keeps what it measured, and delivers it later.
    """
    from perflaw.mine.fleet.enrolment import read_enrolment
    from perflaw.mine.fleet.sources import deliver_recorded
    from perflaw.mine.fleet.spool import Spool

    read = read_enrolment(enrolment)
    if not experiment:
        raise UsageError("nothing to measure", "no experiment was named", f"perflaw stub {enrolment} -e default")
    kept = Spool(spool or enrolment.with_suffix(".spool"), spool_mb << 20)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from perflaw.cli.options import read_recordings

        count = deliver_recorded(read, kept, read_recordings(experiment), note)
        note(f"delivered {count} measurements to {read.address}")
    except KeyboardInterrupt:
        return 130
    finally:
        kept.close()
    return 0
