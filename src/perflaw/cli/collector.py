"""``perflaw collector``: lets other machines see and switch the probes of programs on this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import server_options
from perflaw.cli.progress import note

if TYPE_CHECKING:
    from perflaw.wire.tls import Listener


@click.command("collector", short_help="serve the probes of this machine to recorders on other machines")
@server_options
@click.option("--once", is_flag=True, help="Exit after serving one client.")
def command(listen: str, token_file: Path, cert: Path, key: Path, once: bool) -> int:
    """Serve clients that know the token: they read the records of probes and switch probes. Ctrl-C ends it.

    \b
    perflaw collector --listen 0.0.0.0:7471 --token-file token --cert db1.pem --key db1.key
    perflaw probes --remote db1:7471 --token-file token --ca db1.pem list   (on the other machine)
    perflaw record --collect probes --remote db1:7471 --token-file token --ca db1.pem -- ./load

    Whoever has the token can switch probes and read their records, and nothing else.
    """
    from perflaw.wire.tls import Listener, parse_address, read_token, serving

    listener = Listener(parse_address(listen), read_token(token_file), serving(cert, key))
    note(f"collector listens at {listener.address}")
    try:
        _serve(listener, once)
    except KeyboardInterrupt:
        return 130
    finally:
        listener.close()
    return 0


def _serve(listener: Listener, once: bool) -> None:
    """Serve each client in a thread of its own, at most eight at once; further clients are refused."""
    import threading

    from perflaw.record.probes.areas import folders
    from perflaw.record.probes.service import Service

    free, reported = threading.Semaphore(8), 0

    def serve_one(service: Service) -> None:
        try:
            service.run()
        finally:
            free.release()

    while True:
        channel = listener.accept(1.0)
        for why in list(listener.refused)[-(listener.refusals - reported) :] if listener.refusals > reported else ():
            note(f"refused {why}")
        reported = listener.refusals
        if channel is None:
            continue
        if once:
            return Service(channel, folders).run()
        if free.acquire(blocking=False):
            threading.Thread(target=serve_one, args=(Service(channel, folders),), daemon=True).start()
        else:
            note("refused a client: eight clients are being served already")
            channel.close()
