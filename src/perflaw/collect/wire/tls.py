"""A connection to a listener on another machine: TCP, TLS, then the token. And TLS as a stream of bytes."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perflaw.collect.wire.address import Address
from perflaw.collect.wire.channel import WireError, expect
from perflaw.collect.wire.frames import Limits
from perflaw.collect.wire.streams import FRAME_S, StreamChannel, WantRead, WantWrite
from perflaw.errors import UsageError

PROTOCOL: Final = 1
"""Version of what is said after the token; another one is refused."""
GREETING_S: Final = 5.0
"""Longest time from the connection to the welcome."""
_SILENT_MS: Final = 20_000
"""A peer that does not confirm what was sent for so long has gone (its machine lost power, a cable was pulled)."""


class Tls:
    """A TLS connection that does not block. OpenSSL takes one call at a time, so a lock keeps sender and receiver apart."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection, self._lock = connection, threading.Lock()
        connection.setblocking(False)

    def read(self, most: int) -> bytes:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        try:
            with self._lock:
                return self._connection.recv(most)
        except ssl.SSLWantReadError:
            raise WantRead from None
        except ssl.SSLWantWriteError:
            raise WantWrite from None
        except ssl.SSLEOFError:
            return b""

    def write(self, data: memoryview) -> int:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        try:
            with self._lock:
                return self._connection.send(data)
        except ssl.SSLWantReadError:
            raise WantRead from None
        except ssl.SSLWantWriteError:
            raise WantWrite from None

    def descriptors(self) -> tuple[int, int]:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        return self._connection.fileno(), self._connection.fileno()

    def close(self) -> None:
        """See :class:`~perflaw.collect.wire.streams.Stream`."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)  # wakes whoever waits for it in another thread
        self._connection.close()


def notice_silence(connection: socket.socket) -> None:
    """Let the kernel end a connection whose peer has vanished without a word; send small messages at once."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 5),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", _SILENT_MS),
    ):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def secure(plain: socket.socket, context: ssl.SSLContext, seconds: float, **options: Any) -> ssl.SSLSocket:
    """TLS over a connection, which is closed where that fails; TimeoutError where the peer takes longer in all."""
    try:
        secured = context.wrap_socket(plain, do_handshake_on_connect=False, **options)
    except (OSError, ValueError):
        plain.close()
        raise
    try:
        _shake_hands(secured, time.monotonic() + seconds)
    except (OSError, ValueError):
        secured.close()
        raise
    return secured


def _shake_hands(connection: ssl.SSLSocket, deadline: float) -> None:
    connection.setblocking(False)
    while True:
        try:
            return connection.do_handshake()
        except ssl.SSLWantReadError:
            wanted = select.POLLIN
        except ssl.SSLWantWriteError:
            wanted = select.POLLOUT
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no TLS within the time for it")
        poll = select.poll()
        poll.register(connection, wanted)
        poll.poll(int(left * 1000) + 1)


def trusting(authority: Path) -> ssl.SSLContext:
    """What a client believes: certificates signed by this authority (or the server's own) that name the host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{authority}: no certificate to trust", _words(error), "--ca FILE.pem") from error
    return context


def connect(
    address: Address,
    token: str,
    authority: Path,
    *,
    timeout_s: float = GREETING_S,
    limits: Limits | None = None,
    frame_s: float = FRAME_S,
) -> StreamChannel:
    """A channel to the listener at ``address``; WireError says which step failed and what to do about it."""
    context, name = trusting(authority), str(address)
    try:
        plain = socket.create_connection((address.host, address.port), timeout_s)
    except OSError as error:
        listening = f"is it running? perflaw collector --listen {address} …"
        raise WireError(f"{name}: cannot be reached", _words(error), listening) from error
    try:
        notice_silence(plain)
        secured = secure(plain, context, timeout_s, server_hostname=address.host)
    except (OSError, ValueError) as error:
        raise _no_tls(name, error) from error
    return _greet(StreamChannel(Tls(secured), name, limits, frame_s), token, timeout_s)


def _greet(channel: StreamChannel, token: str, timeout_s: float) -> StreamChannel:
    try:
        channel.send("hello", {"token": token, "protocol": PROTOCOL})
        expect(channel, "welcome", timeout_s)
    except WireError as error:
        channel.close()
        raise WireError(f"{channel.name}: {error.what}", error.why, error.next_command) from error
    return channel


def _no_tls(name: str, error: Exception) -> WireError:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted ({error.verify_message})"
        return WireError(f"{name}: refused by this side", why, "--ca with the certificate that it was started with")
    if isinstance(error, TimeoutError):
        return WireError(f"{name}: no TLS", "it did not answer in time", "is it a listener of perflaw's?")
    return WireError(f"{name}: no TLS", _words(error), "is it a listener of perflaw's?")


def _words(error: Exception) -> str:
    return (getattr(error, "reason", "") or getattr(error, "strerror", "") or str(error)).replace("_", " ")
