"""``perflaw probes``: list, switch and watch the probes of running programs, here or on other machines."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from perflaw.cli.options import json_option, print_document, remote_options
from perflaw.cli.progress import note
from perflaw.report.quantity import counted
from perflaw.types.documents import dumps

if TYPE_CHECKING:
    from perflaw.record.probes.control import Host
    from perflaw.record.probes.metrics import LiveView, ProbeRow
    from perflaw.record.probes.tracer import Tracer

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CollectorAddresses:
    """The machines whose probes are meant, as the command line names them."""

    remote: tuple[str, ...] = ()
    """Addresses of collectors; this machine if empty."""
    token_file: str | None = None
    """File with the secret."""
    authority: str | None = None
    """Certificate to trust."""

    def merged(self, other: CollectorAddresses) -> CollectorAddresses:
        """The options given before the verb together with those given after it."""
        return CollectorAddresses(
            self.remote + other.remote, self.token_file or other.token_file, self.authority or other.authority
        )


@dataclass(frozen=True, slots=True)
class ProbePlaces:
    """The processes whose probes are meant, and their machines."""

    pids: tuple[int, ...]
    """Process ids; all processes if empty."""
    addresses: CollectorAddresses
    """The machines, as named before and after the verb."""


def place_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say which processes are meant, and on which machines; the function gets ``ProbePlaces``."""

    @wraps(function)
    def with_places(
        pid: tuple[int, ...] = (),
        remote: tuple[str, ...] = (),
        token_file: str | None = None,
        ca: str | None = None,
        **others: Any,
    ) -> int:
        addresses = CollectorAddresses(remote, token_file, ca)
        before_verb = click.get_current_context().obj
        if isinstance(before_verb, CollectorAddresses):
            addresses = before_verb.merged(addresses)
        return function(ProbePlaces(pid, addresses), **others)

    only = click.option("--pid", multiple=True, type=int, metavar="PID", help="Only this process.  [default: all]")
    return only(remote_options(with_places))


@contextmanager
def open_hosts(addresses: CollectorAddresses) -> Iterator[list[Host]]:
    """Connections to the machines that are meant; closed at the end."""
    from perflaw.record.probes.client import remotes
    from perflaw.record.probes.control import hosts

    connected = hosts(remotes(addresses.remote, addresses.token_file, addresses.authority))
    try:
        yield connected
    finally:
        for host in connected:
            host.close()


@click.group("probes", invoke_without_command=True, short_help="list, switch and watch the probes of running programs")
@remote_options
@click.pass_context
def command(context: click.Context, remote: tuple[str, ...], token_file: str | None, ca: str | None) -> int | None:
    """Probes of running programs: those that include perflaw.h or import perflaw.probes.

    \b
    perflaw probes list
    perflaw probes enable 'db.*' --pid 4711
    perflaw probes watch
    perflaw probes --remote db1:7471 --token-file token --ca db1.pem list

    Without a verb: list.
    """
    context.obj = CollectorAddresses(remote, token_file, ca)
    if context.invoked_subcommand is None:
        return int(context.invoke(list_probes) or 0)
    return None


@command.command("list", short_help="list the probes of running programs")
@place_options
@json_option
def list_probes(places: ProbePlaces, as_json: bool = False) -> int:
    """List running programs with their probes: id, name, type, fields, and whether each is enabled."""
    with open_hosts(places.addresses) as hosts:
        found = [(host, host.processes(places.pids)) for host in hosts]
    if as_json:
        documents = [{"host": host.name, **asdict(process)} for host, processes in found for process in processes]
        print_document({"schema": "perflaw.probes/1", "processes": documents})
        return 0
    for host, processes in found:
        for process in processes:
            # Print one process and the table of its probes.
            from perflaw.report.tables import printable, text_table

            records = f"{process.produced:,} records so far"
            click.echo(printable(f"{process.pid}{_on(host)}: {process.command} ({process.language}, {records})"))
            if process.refusal:
                note(f"hardware counters cannot be read: {printable(process.refusal)}")
            rows = []
            for probe in process.probes:
                state = "enabled" if probe.enabled else "off"
                state += f", 1 of {probe.executions:,}" if probe.executions > 1 else ""
                state += ", id used twice" * probe.conflict + ", refused" * bool(probe.refused)
                rows.append([str(probe.id), probe.name, probe.type, " ".join(probe.fields), probe.unit, state])
            headings = ["id", "probe", "type", "fields", "unit", "state"]
            click.echo(text_table(headings, rows, right=(0,), colour=sys.stdout.isatty()), nl=False)
            for probe in process.probes:
                if probe.conflict:
                    note(f"probe id {probe.id} is used twice: by {printable(probe.name)} and another probe")
    return 0


def _on(host: Host) -> str:
    """The machine of a process, for lines that name the process; empty for this machine."""
    return f" on {host.name}" if host.name else ""


_names = click.argument("names", nargs=-1, metavar="[NAME|ID|GLOB]...")


@command.command("enable", short_help="let probes write records")
@place_options
@_names
def enable(places: ProbePlaces, names: tuple[str, ...]) -> int:
    """Enable probes by name, id or glob, or all: they write records from their next execution on."""
    return _switch(places, names, "enabled", True, None)


@command.command("disable", short_help="stop probes from writing records")
@place_options
@_names
def disable(places: ProbePlaces, names: tuple[str, ...]) -> int:
    """Disable probes by name, id or glob, or all."""
    return _switch(places, names, "disabled", False, None)


@command.command("subsample", short_help="write one record for every so many executions")
@place_options
@click.argument("executions", type=click.IntRange(0))
@_names
def subsample(places: ProbePlaces, executions: int, names: tuple[str, ...]) -> int:
    """Let probes write one record for every EXECUTIONS executions; 0 restores what their code says."""
    return _switch(places, names, "set", None, executions)


def _switch(
    places: ProbePlaces, names: tuple[str, ...], done: str, enabled: bool | None, executions: int | None
) -> int:
    """Switch the chosen probes on every machine, and say which these were."""
    from perflaw.record.probes.control import ProbeSelection

    with open_hosts(places.addresses) as hosts:
        for host in hosts:
            switched = host.switch(ProbeSelection(names, places.pids), enabled, executions)
            for pid, number in sorted(Counter(pid for pid, _ in switched).items()):
                probes = ", ".join(name for process, name in switched if process == pid)
                click.echo(f"{done} {counted(number, 'probe')} of {pid}{_on(host)}: {probes}")
    return 0


_PAUSE_S: Final = 0.005
_CLEAR: Final = "\x1b[H\x1b[J"


@command.command("watch", short_help="show rates and values while programs run")
@place_options
@click.option(
    "--interval", default=1.0, type=click.FloatRange(0.05, 3600), show_default=True, help="Seconds between two views."
)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Seconds to watch.  [default: until Ctrl-C]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line.")
@click.argument("names", nargs=-1, metavar="[NAME|GLOB]...")
def watch(places: ProbePlaces, interval: float, seconds: float | None, as_json: bool, names: tuple[str, ...]) -> int:
    """Show the executions per second, mean and quantiles of each enabled probe, and what was lost. Ctrl-C ends it.

    This enables no probes (see perflaw probes enable) and does not disturb other collectors.
    """
    from perflaw.record.probes.metrics import LiveView
    from perflaw.record.probes.tracer import Tracer

    view = LiveView(lambda name: not names or any(fnmatchcase(name, glob) for glob in names))
    tracer = Tracer([view.take])
    with open_hosts(places.addresses) as hosts:
        for host in hosts:
            if not any(probe.enabled for process in host.processes(places.pids) for probe in process.probes):
                note("no probe is enabled · try: perflaw probes enable")
            host.watch(places.pids)
        try:
            for rows in _views(hosts, tracer, view, interval, seconds):
                _show(rows, tracer, as_json)
        except KeyboardInterrupt:
            return 130
    return 0


def _views(
    hosts: Sequence[Host], tracer: Tracer, view: LiveView, interval: float, seconds: float | None
) -> Iterator[list[ProbeRow]]:
    """One view for each interval; ends after ``seconds``, or when all processes have ended."""
    begin = last = time.monotonic()
    while True:
        batches = [batch for host in hosts for batch in host.poll()]
        for batch in batches:
            tracer.take(batch)
        now = time.monotonic()
        ended = seconds is not None and now - begin >= seconds
        ended |= bool(tracer.sources) and all(source.gone for source in tracer.sources.values())
        if ended or now - last >= interval:
            yield view.rows(now - last)
            last = now
        if ended:
            return
        if not any(batch.count for batch in batches):
            time.sleep(_PAUSE_S)


def _show(rows: Sequence[ProbeRow], tracer: Tracer, as_json: bool) -> None:
    """Print one view, as a table or as a JSON document of one line."""
    tally = tracer.tally
    if as_json:
        document = {"schema": "perflaw.watch/1", "probes": [asdict(row) for row in rows], "tally": asdict(tally)}
        click.echo(dumps(document).replace("\n", " "))
        return
    from perflaw.report.quantity import count, quantity, significant
    from perflaw.report.tables import text_table

    def value(number: float | None, row: ProbeRow) -> str:
        return quantity(number, "ns") if row.value == "ns" else "—" if number is None else significant(number)

    colour = sys.stdout.isatty()
    headings = ["probe", "type", "per s", "value", "mean", "median", "99 %", "maximum"]
    cells = [
        [
            row.name,
            row.type,
            count(row.rate),
            row.value,
            *(value(number, row) for number in (row.mean, row.p50, row.p99, row.most)),
        ]
        for row in rows
    ]
    click.echo(_CLEAR * colour + text_table(headings, cells, right=(2, 4, 5, 6, 7), colour=colour), nl=False)
    lost = f"{count(tally.lost)} lost" if tally.lost else "nothing lost"
    click.echo(f"{count(tally.received)} records received · {lost}")
