"""``perflaw agent``: runs the trials of a study on this machine for an explorer on another one."""

from __future__ import annotations

from pathlib import Path

import click

from perflaw.cli.options import server_options
from perflaw.cli.progress import note


@click.command("agent", short_help="run trials on this machine for `perflaw explore` on another")
@server_options
@click.option("--folder", default=".", type=click.Path(path_type=Path),
              help="Folder in which targets run.  [default: this folder]")  # fmt: skip
@click.option("--once", is_flag=True, help="Exit after serving one explorer.")
def command(listen: str, token_file: Path, cert: Path, key: Path, folder: Path, once: bool) -> int:
    """Configure, start and measure targets for explorers that know the token, one explorer at a time.

    \b
    perflaw agent --listen 0.0.0.0:7470 --token-file token --cert agent.pem --key agent.key
    perflaw explore study.yaml --token-file token --ca agent.pem     (its target: {remote: host:7470})

    Whoever has the token can run any command on this machine, so use it only between machines of your own.
    """
    from perflaw.explore.agent.agent import listen as serve

    try:
        serve(listen, token_file, (cert, key), folder, once, note)
    except KeyboardInterrupt:
        return 130
    return 0
