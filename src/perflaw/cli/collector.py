"""``perflaw collector``: lets others see and switch the probes of programs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from threading import Semaphore

    from perflaw.record.probes.service import Service
    from perflaw.wire.listener import Listener


@click.command("collector", short_help="give records of probes to recorders on other machines")
@click.option("--listen", required=True, metavar="HOST:PORT", help="Where to listen; port 0: any that is free.")
@click.option("--token-file", required=True, type=click.Path(path_type=Path), help="Secret that others must show.")
@click.option("--cert", required=True, type=click.Path(path_type=Path), help="Certificate to show.")
@click.option("--key", required=True, type=click.Path(path_type=Path), help="Its private key.")
@click.option("--once", is_flag=True, help="Serve one peer and end.")
def command(listen: str, token_file: Path, cert: Path, key: Path, once: bool) -> int:
    """Serve recorders and watchers that show the token: records of probes, and control over them. Ctrl-C ends it.

    \b
    perflaw collector --listen 0.0.0.0:7471 --token-file token --cert db1.pem --key db1.key
    perflaw probes --remote db1:7471 --token-file token --ca db1.pem list                     (there)
    perflaw record --collect probes --remote db1:7471 --token-file token --ca db1.pem -- ./load

    Who has the token can switch probes and read what they tell, and nothing else.
    """  # noqa: D301 (\b keeps the lines apart)
    from perflaw.wire.listener import Listener, serving
    from perflaw.wire.tls import parse_address, read_token

    listener = Listener(parse_address(listen), read_token(token_file), serving(cert, key))
    click.echo(f"perflaw: collector listens at {listener.address}", err=True)
    try:
        _serve(listener, once)
    except KeyboardInterrupt:
        return 130
    finally:
        listener.close()
    return 0


def _serve(listener: Listener, once: bool) -> None:
    """A thread a peer, at most eight at once; further ones are turned away."""
    import threading

    from perflaw.record.probes.areas import folders
    from perflaw.record.probes.service import Service

    free, told = threading.Semaphore(8), 0
    while True:
        channel = listener.accept(1.0)
        for why in list(listener.refused)[-(listener.refusals - told) :] if listener.refusals > told else ():
            click.echo(f"perflaw: refused {why}", err=True)
        told = listener.refusals
        if channel is None:
            continue
        if once:
            return Service(channel, folders).run()
        if free.acquire(blocking=False):
            threading.Thread(target=_serve_one, args=(Service(channel, folders), free), daemon=True).start()
        else:
            click.echo("perflaw: refused a ninth peer: eight are served", err=True)
            channel.close()


def _serve_one(service: Service, free: Semaphore) -> None:
    try:
        service.run()
    finally:
        free.release()
