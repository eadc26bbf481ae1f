"""``perflaw probes watch``: rates and values of the enabled probes while programs run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import click

from perflaw.cli.probes_options import Where, opened, place_options

if TYPE_CHECKING:
    from perflaw.collect.probes.hosts import Host
    from perflaw.collect.probes.tracer import Tracer
    from perflaw.collect.probes.view import LiveView, Row

_PAUSE_S: Final = 0.005
_CLEAR: Final = "\x1b[H\x1b[J"


@click.command("watch", short_help="rates and values while programs run")
@place_options
@click.option(
    "--interval", default=1.0, type=click.FloatRange(0.05, 3600), show_default=True, help="Seconds of a view."
)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="End after so many.  [default: never]")
@click.option("--json", "as_json", is_flag=True, help="A JSON document a line.")
@click.argument("names", nargs=-1, metavar="[NAME|GLOB]...")
@click.pass_context
def watch_(
    context: click.Context,
    pid: tuple[int, ...],
    remote: tuple[str, ...],
    token_file: str | None,
    ca: str | None,
    interval: float,
    seconds: float | None,
    as_json: bool,
    names: tuple[str, ...],
) -> int:
    """Show executions a second, mean and quantiles of each enabled probe, and what was lost. Ctrl-C ends it.

    It enables nothing: perflaw probes enable does. Other collectors are not disturbed.
    """
    from perflaw.collect.probes.tracer import Tracer
    from perflaw.collect.probes.view import LiveView

    view = LiveView(lambda name: not names or any(fnmatchcase(name, glob) for glob in names))
    tracer = Tracer([view.take])
    with opened(context, Where(remote, token_file, ca)) as hosts:
        for host in hosts:
            _warn_where_all_are_off(host, pid)
            host.watch(pid)
        try:
            for rows in _views(hosts, tracer, view, interval, seconds):
                _show(rows, tracer, as_json)
        except KeyboardInterrupt:
            return 130
    return 0


def _warn_where_all_are_off(host: Host, pids: Sequence[int]) -> None:
    """Also finds out that there is nothing to watch, before anything else."""
    if not any(probe.enabled for one in host.processes(pids) for probe in one.probes):
        click.echo("perflaw: no probe is enabled · try: perflaw probes enable", err=True)


def _views(
    hosts: Sequence[Host], tracer: Tracer, view: LiveView, interval: float, seconds: float | None
) -> Iterator[list[Row]]:
    """The view of each interval; ends after ``seconds``, or when all processes have gone."""
    begin = last = time.monotonic()
    while True:
        batches = [batch for host in hosts for batch in host.poll()]
        for batch in batches:
            tracer.take(batch)
        now = time.monotonic()
        over = seconds is not None and now - begin >= seconds
        gone = bool(tracer.sources) and all(source.gone for source in tracer.sources.values())
        if over or gone or now - last >= interval:
            yield view.rows(now - last)
            last = now
        if over or gone:
            return
        if not any(batch.count for batch in batches):
            time.sleep(_PAUSE_S)


def _show(rows: Sequence[Row], tracer: Tracer, as_json: bool) -> None:
    tally = tracer.tally
    if as_json:
        from perflaw.report.encode import dumps

        told = {"schema": "perflaw.watch/1", "probes": [asdict(row) for row in rows], "tally": asdict(tally)}
        click.echo(dumps(told).replace("\n", " "))
        return
    from perflaw.report.quantity import count, quantity, significant
    from perflaw.report.table import text_table

    def value(number: float | None, row: Row) -> str:
        return quantity(number, "ns") if row.value == "ns" else "—" if number is None else significant(number)

    colour = sys.stdout.isatty()
    headings = ["probe", "type", "per s", "value", "mean", "median", "99 %", "most"]
    cells = [
        [
            row.name,
            row.type,
            count(row.rate),
            row.value,
            *(value(one, row) for one in (row.mean, row.p50, row.p99, row.most)),
        ]
        for row in rows
    ]
    click.echo(_CLEAR * colour + text_table(headings, cells, right=(2, 4, 5, 6, 7), colour=colour), nl=False)
    lost = f"{count(tally.lost)} lost" if tally.lost else "nothing lost"
    click.echo(f"{count(tally.received)} records received · {lost}")
