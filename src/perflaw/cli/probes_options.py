"""Options of all verbs under ``perflaw probes``: which processes, and on which machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from perflaw.collect.probes.hosts import Host


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
    from perflaw.collect.probes.hosts import hosts
    from perflaw.collect.probes.remote import remotes

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
