"""``perflaw probes``: list, switch and watch the probes of programs that run."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from perflaw.cli.probe_verbs import Where, remote_options

VERBS: Final = {
    "list": ("perflaw.cli.probe_verbs", "the probes of running programs"),
    "enable": ("perflaw.cli.probe_verbs", "have probes write records"),
    "disable": ("perflaw.cli.probe_verbs", "have them write none"),
    "subsample": ("perflaw.cli.probe_verbs", "one record for so many executions"),
    "watch": ("perflaw.cli.probe_verbs", "rates and values while programs run"),
}
"""Verb → module, and what it does."""


class _Verbs(click.Group):
    """Imports a verb when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order a person meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in VERBS:
            return None
        found: click.Command = getattr(import_module(VERBS[cmd_name][0]), f"{cmd_name}_")
        return found


@click.group(
    "probes",
    cls=_Verbs,
    invoke_without_command=True,
    short_help="list, switch and watch the probes of programs that run",
)
@remote_options
@click.pass_context
def command(context: click.Context, remote: tuple[str, ...], token_file: str | None, ca: str | None) -> int | None:
    """Probes of programs that run now: those that include perflaw.h or import perflaw.probes.

    \b
    perflaw probes list
    perflaw probes enable 'db.*' --pid 4711
    perflaw probes watch
    perflaw probes --remote db1:7471 --token-file token --ca db1.pem list

    Without a verb: list.
    """  # noqa: D301 (\b keeps the lines apart)
    context.obj = Where(remote, token_file, ca)
    if context.invoked_subcommand is None:
        from perflaw.cli.probe_verbs import list_

        return int(context.invoke(list_) or 0)
    return None
