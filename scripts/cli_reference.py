"""Writes docs/cli.md from the commands' own --help; with --check only says whether it is up to date."""

import os
import subprocess
import sys
from pathlib import Path

from perflaw.cli.main import VERBS

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def reference() -> str:
    """The whole page."""
    parts = ["# Command line\n\nGenerated from `--help` by `scripts/cli_reference.py`.\n"]
    parts.append(f"```text\n{_help()}\n```\n")
    parts += [f"## perflaw {verb}\n\n```text\n{_help(verb)}\n```\n" for verb in VERBS]
    return "\n".join(parts)


def _help(*verb: str) -> str:
    """What a person sees on a terminal of 100 columns."""
    command = [sys.executable, "-m", "perflaw", *verb, "--help"]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != reference())
    PAGE.write_text(reference())
