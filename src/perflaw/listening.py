"""``perflaw.listen()``: lets ``perflaw attach`` record a program without the right to trace it (ptrace).

A thread waits for a recorder of the same user. A recorder that connects says where the extension is and what to record;
the recording ends when it closes the connection or dies. A program imports the standard library alone for that, and nothing
of it runs until a recorder connects.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

ADDRESS = "\0perflaw-attach-{}"
"""Name of a process's socket in Linux's abstract namespace."""
LONGEST = 1 << 20
"""Longest request, in bytes."""

_listener: socket.socket | None = None
_begun = 0
"""How many recordings of this process have begun."""


def listen() -> None:
    """Let ``perflaw attach`` of the same user record this process, and its children after a fork, from now on.

    Costs a thread that waits. Calling it again does nothing. OSError if the system has no such sockets.
    """
    import os

    if _listener is None:
        _start()
        os.register_at_fork(after_in_child=_start)


def listen_if_possible() -> None:
    """Listen, or do nothing where the system has no such sockets: the program did not ask for it, but its environment did.

    Python calls this when it starts with ``PERFLAW_LISTEN=1``, by the file ``perflaw-listen.pth`` beside this package.
    """
    import contextlib

    with contextlib.suppress(OSError):
        listen()


def recordings_begun() -> int:
    """How many recordings of this process have begun since it listens."""
    return _begun


def _start() -> None:
    """Open the socket of this process and wait at it in a new thread."""
    global _listener
    import os
    import socket
    import threading

    if _listener is not None:  # the parent's
        _listener.close()
    _listener = socket.socket(socket.AF_UNIX)
    _listener.bind(ADDRESS.format(os.getpid()))
    _listener.listen(1)
    threading.Thread(target=_serve, args=(_listener,), name="perflaw.listen", daemon=True).start()


def _serve(listener: socket.socket) -> None:
    """Serve one recorder after the other."""
    import os
    import struct
    from socket import SO_PEERCRED, SOL_SOCKET

    while True:
        connection, _ = listener.accept()
        with connection:
            _, user, _ = struct.unpack("3i", connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
            if user == os.geteuid():
                try:
                    _record(connection)
                except Exception as error:  # the program goes on whatever a recorder sends
                    with_reason = f"{type(error).__name__}: {error}"
                    _answer(connection, str(error) if type(error) is OSError else with_reason)


def _answer(connection: socket.socket, text: str) -> None:
    """Send one line, unless the recorder has gone."""
    import contextlib

    with contextlib.suppress(OSError):
        connection.sendall(text.replace("\n", " ").encode() + b"\n")


def begin(connection: socket.socket) -> Any:
    """Begin the recording that a recorder asks for; returns the tracer, whose ``finish`` ends it.

    None if the recorder asks for nothing. OSError if the tracer cannot begin.
    """
    import json

    request = b""
    while not request.endswith(b"\n"):
        more = connection.recv(1 << 16)
        request += more
        if not more or len(request) > LONGEST:
            return None
    wanted = json.loads(request)
    tracer = _load(wanted["extension"])
    tracer.start(wanted["settings"])
    return tracer


def _record(connection: socket.socket) -> None:
    """Record this process from a request until the connection ends."""
    tracer = begin(connection)
    if tracer is None:
        return
    global _begun
    _begun += 1
    try:
        connection.sendall(b"\n")
        connection.recv(1)
    finally:
        tracer.finish()


def _load(path: str) -> Any:
    """The extension; OSError if it was built for another Python. It is in no ``sys.modules``."""
    import sys
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
    from importlib.util import module_from_spec

    version = ".".join(map(str, sys.version_info[:3]))
    if not path.endswith(EXTENSION_SUFFIXES[0]) or not path.rpartition("/")[2].startswith(
        f"_perflaw_native-{version}-"
    ):
        raise OSError("the tracer was built for another Python")
    loader = ExtensionFileLoader("_perflaw_native", path)
    module = module_from_spec(ModuleSpec("_perflaw_native", loader, origin=path))
    loader.exec_module(module)
    return module
