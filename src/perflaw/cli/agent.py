"""``perflaw agent``: runs targets of studies on this machine for an explorer on another."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("agent", short_help="run targets of studies for an explorer on another machine")
@click.option("--listen", required=True, metavar="HOST:PORT", help="Where to listen; port 0: any that is free.")
@click.option("--token-file", required=True, type=click.Path(path_type=Path), help="Secret that explorers must show.")
@click.option("--cert", required=True, type=click.Path(path_type=Path), help="Certificate to show.")
@click.option("--key", required=True, type=click.Path(path_type=Path), help="Its private key.")
@click.option("--folder", default=".", type=click.Path(path_type=Path), help="Where targets run.  [default: here]")
@click.option("--once", is_flag=True, help="Serve one explorer and end.")
def command(listen: str, token_file: Path, cert: Path, key: Path, folder: Path, once: bool) -> int:
    """Configure, start and measure targets for explorers that show the token, one at a time.

    \b
    perflaw agent --listen 0.0.0.0:7470 --token-file token --cert agent.pem --key agent.key
    perflaw explore study.yaml --token-file token --ca agent.pem     (there: target: {remote: host:7470})

    Who has the token can run any command here: it is for machines of your own.
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.explore.agent.remote import listen as serve

    try:
        serve(listen, token_file, (cert, key), folder, once, lambda text: click.echo(f"perflaw: {text}", err=True))
    except KeyboardInterrupt:
        return 130
    return 0
