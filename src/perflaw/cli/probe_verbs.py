"""Options of all verbs under ``perflaw probes``: which processes, and on which machines."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from perflaw.cli.options import json_option

if TYPE_CHECKING:
    from perflaw.record.probes.areas import Probe
    from perflaw.record.probes.control import Host, Running
    from perflaw.record.probes.metrics import LiveView, Row
    from perflaw.record.probes.tracer import Tracer

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Where:
    """Machines as the command line names them."""

    remote: tuple[str, ...] = ()
    """Addresses of collectors; empty: this machine."""
    token_file: str | None = None
    """File with the secret."""
    authority: str | None = None
    """Certificate to trust."""

    def beside(self, other: Where) -> Where:
        """What either says."""
        return Where(self.remote + other.remote, self.token_file or other.token_file, self.authority or other.authority)


def remote_options(function: F) -> F:
    """Add the options that name collectors on other hosts."""
    for option in (
        click.option("--ca", metavar="FILE", help="Certificate to trust."),
        click.option("--token-file", metavar="FILE", help="Secret that the collector was started with."),
        click.option("--remote", multiple=True, metavar="HOST:PORT", help="There, where a perflaw collector listens."),
    ):
        function = option(function)
    return function


def place_options(function: F) -> F:
    """Add the options of a verb: which processes, and where."""
    pid = click.option("--pid", multiple=True, type=int, metavar="PID", help="Of this process.  [default: of all]")
    return pid(remote_options(function))


@contextmanager
def opened(context: click.Context, where: Where) -> Iterator[list[Host]]:
    """The machines that are meant, here and before the verb."""
    from perflaw.record.probes.client import remotes
    from perflaw.record.probes.control import hosts

    every = context.obj.beside(where) if isinstance(context.obj, Where) else where
    found = hosts(remotes(every.remote, every.token_file, every.authority))
    try:
        yield found
    finally:
        for host in found:
            host.close()


def on(host: Host) -> str:
    """Where a process is, for lines that name it."""
    return f" on {host.name}" if host.name else ""


# ---- ``perflaw probes list``: the probes of programs that run now.


@click.command("list", short_help="the probes of running programs")
@place_options
@json_option
@click.pass_context
def list_(
    context: click.Context,
    pid: tuple[int, ...] = (),
    remote: tuple[str, ...] = (),
    token_file: str | None = None,
    ca: str | None = None,
    as_json: bool = False,
) -> int:
    """List running programs with probes: id, name, type, fields, whether each is enabled."""
    with opened(context, Where(remote, token_file, ca)) as hosts:
        found = [(host, host.processes(pid)) for host in hosts]
    if as_json:
        from perflaw.types.documents import dumps

        processes = [{"host": host.name, **asdict(one)} for host, some in found for one in some]
        click.echo(dumps({"schema": "perflaw.probes/1", "processes": processes}))
        return 0
    for host, some in found:
        for one in some:
            _print(host, one)
    return 0


def _print(host: Host, one: Running) -> None:
    from perflaw.report.tables import printable, text_table

    click.echo(printable(f"{one.pid}{on(host)}: {one.command} ({one.language}, {one.produced:,} records so far)"))
    if one.refusal:
        click.echo(f"hardware counters cannot be read: {printable(one.refusal)}", err=True)
    headings, colour = ["id", "probe", "type", "fields", "unit", "state"], sys.stdout.isatty()
    click.echo(text_table(headings, [_row(probe) for probe in one.probes], right=(0,), colour=colour), nl=False)
    for probe in one.probes:
        if probe.conflict:
            click.echo(f"perflaw: probe id {probe.id} is used twice: by {printable(probe.name)} and another", err=True)


def _row(probe: Probe) -> list[str]:
    state = "enabled" if probe.enabled else "off"
    if probe.executions > 1:
        state += f", 1 of {probe.executions:,}"
    if probe.conflict:
        state += ", id used twice"
    if probe.refused:
        state += ", refused"
    return [str(probe.id), probe.name, probe.type, " ".join(probe.fields), probe.unit, state]


# ---- ``perflaw probes enable``, ``disable`` and ``subsample``: what running programs write records of, from outside.

_names = click.argument("names", nargs=-1, metavar="[NAME|ID|GLOB]...")


@click.command("enable", short_help="have probes write records")
@place_options
@_names
@click.pass_context
def enable_(
    context: click.Context,
    pid: tuple[int, ...],
    remote: tuple[str, ...],
    token_file: str | None,
    ca: str | None,
    names: tuple[str, ...],
) -> int:
    """Enable probes by name, id or glob, all without any: from their next execution on they write records."""
    return _switch(context, pid, Where(remote, token_file, ca), names, "enabled", True, None)


@click.command("disable", short_help="have them write none")
@place_options
@_names
@click.pass_context
def disable_(
    context: click.Context,
    pid: tuple[int, ...],
    remote: tuple[str, ...],
    token_file: str | None,
    ca: str | None,
    names: tuple[str, ...],
) -> int:
    """Disable probes by name, id or glob, all without any."""
    return _switch(context, pid, Where(remote, token_file, ca), names, "disabled", False, None)


@click.command("subsample", short_help="one record for so many executions")
@place_options
@click.argument("executions", type=click.IntRange(0))
@_names
@click.pass_context
def subsample_(
    context: click.Context,
    pid: tuple[int, ...],
    remote: tuple[str, ...],
    token_file: str | None,
    ca: str | None,
    executions: int,
    names: tuple[str, ...],
) -> int:
    """Have probes write one record for so many EXECUTIONS; 0: as many as their code says."""
    return _switch(context, pid, Where(remote, token_file, ca), names, "set", None, executions)


def _switch(
    context: click.Context,
    pids: tuple[int, ...],
    where: Where,
    names: tuple[str, ...],
    done: str,
    enabled: bool | None,
    subsample: int | None,
) -> int:
    from perflaw.record.probes.control import Chosen

    with opened(context, where) as hosts:
        for host in hosts:
            meant = host.switch(Chosen(names, pids), enabled, subsample)
            for pid, count in sorted(Counter(pid for pid, _ in meant).items()):
                found = ", ".join(name for of, name in meant if of == pid)
                click.echo(f"{done} {count} probe{'s' * (count != 1)} of {pid}{on(host)}: {found}")
    return 0


# ---- ``perflaw probes watch``: rates and values of the enabled probes while programs run.

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
    from perflaw.record.probes.metrics import LiveView
    from perflaw.record.probes.tracer import Tracer

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
        from perflaw.types.documents import dumps

        told = {"schema": "perflaw.watch/1", "probes": [asdict(row) for row in rows], "tally": asdict(tally)}
        click.echo(dumps(told).replace("\n", " "))
        return
    from perflaw.report.quantity import count, quantity, significant
    from perflaw.report.tables import text_table

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
