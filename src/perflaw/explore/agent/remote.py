"""An agent on another machine, which listens for explorers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from perflaw.explore.agent.agent import serve
from perflaw.wire.listener import Listener, serving
from perflaw.wire.tls import parse_address, read_token

_LOOK_S: Final = 1.0


def listen(
    address: str, token: Path, certificate: tuple[Path, Path], folder: Path, once: bool, say: Callable[[str], None]
) -> None:
    """Serve explorers one after the other, each in a process of its own. UsageError where it cannot listen."""
    listener = Listener(parse_address(address), read_token(token), serving(*certificate))
    say(f"agent listens at {listener.address}, targets run in {folder.resolve()}")
    try:
        while True:
            channel = listener.accept(_LOOK_S)
            if channel is None:
                continue
            # A child process serves, whose death does not end the listener.
            child = os.fork()
            if child == 0:
                try:
                    os.setsid()
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                    serve(channel, folder.resolve())
                finally:
                    os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            channel.close()
            if once:
                return
            if status:
                say(f"an agent ended with status {status}; the next one restores what it left")
    finally:
        listener.close()
