"""``perflaw probes enable``, ``disable`` and ``subsample``: what running programs write records of, from outside."""

from __future__ import annotations

from collections import Counter

import click

from perflaw.cli.probes_options import Where, on, opened, place_options

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
    from perflaw.collect.probes.control import Chosen

    with opened(context, where) as hosts:
        for host in hosts:
            meant = host.switch(Chosen(names, pids), enabled, subsample)
            for pid, count in sorted(Counter(pid for pid, _ in meant).items()):
                found = ", ".join(name for of, name in meant if of == pid)
                click.echo(f"{done} {count} probe{'s' * (count != 1)} of {pid}{on(host)}: {found}")
    return 0
