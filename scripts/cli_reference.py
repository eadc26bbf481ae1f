"""Writes docs/cli.md from the commands' own --help; with --check only says whether it is up to date."""

import sys
from pathlib import Path

import click

from perflaw.cli.main import VERBS, cli

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def reference() -> str:
    """The whole page."""
    parts = ["# Command line\n\nGenerated from `--help` by `scripts/cli_reference.py`.\n"]
    context = click.Context(cli, info_name="perflaw", max_content_width=100, terminal_width=100)
    parts.append(f"```text\n{cli.get_help(context)}\n```\n")
    for verb in VERBS:
        command = cli.get_command(context, verb)
        assert command is not None
        inner = click.Context(command, info_name=verb, parent=context, max_content_width=100, terminal_width=100)
        parts.append(f"## perflaw {verb}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != reference())
    PAGE.write_text(reference())
