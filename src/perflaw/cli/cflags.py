"""``perflaw --cflags``: what a compiler needs to find ``perflaw.h``."""

from __future__ import annotations

import shlex

import click


def show(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    """Print the flag and end; UsageError where the header is missing."""
    if not asked or ctx.resilient_parsing:
        return
    from perflaw.collect.build import sources_folder
    from perflaw.errors import UsageError

    folder = sources_folder() / "include"
    if not (folder / "perflaw.h").is_file():
        raise UsageError(
            f"{folder}: no perflaw.h", "the installation is damaged", "pip install --force-reinstall perflaw"
        )
    click.echo(f"-I{shlex.quote(str(folder))}")
    ctx.exit()
