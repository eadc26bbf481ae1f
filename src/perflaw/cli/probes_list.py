"""``perflaw probes list``: the probes of programs that run now."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import json_option
from perflaw.cli.probes_options import Where, on, opened, place_options

if TYPE_CHECKING:
    from perflaw.collect.probes.areas import Probe
    from perflaw.collect.probes.control import Running
    from perflaw.collect.probes.hosts import Host


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
        from perflaw.report.encode import dumps

        processes = [{"host": host.name, **asdict(one)} for host, some in found for one in some]
        click.echo(dumps({"schema": "perflaw.probes/1", "processes": processes}))
        return 0
    for host, some in found:
        for one in some:
            _print(host, one)
    return 0


def _print(host: Host, one: Running) -> None:
    from perflaw.report.table import text_table
    from perflaw.report.terminal import printable

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
