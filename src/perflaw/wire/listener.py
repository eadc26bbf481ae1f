"""The listening side: a new peer gets a few seconds and a few kilobytes to show the token, and delays no other peer.

Every connection is greeted in its own thread. There are few such threads; further peers are turned away at once.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perflaw.errors import UsageError
from perflaw.wire.channel import UNGREETED, MessageLimits, WireError, expect
from perflaw.wire.streams import FRAME_S, StreamChannel
from perflaw.wire.tls import GREETING_S, PROTOCOL, Address, Tls, is_token, notice_silence, secure

GREETERS: Final = 8
"""New peers that are greeted at the same time."""
WAITING: Final = 8
"""Greeted connections that may wait for ``accept``."""


def serving(certificate: Path, key: Path) -> ssl.SSLContext:
    """The TLS context of a listener; UsageError if certificate or key cannot be read or do not belong together."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "reason", "") or getattr(error, "strerror", "") or str(error)
        make = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=perflaw "
            f"-addext subjectAltName=DNS:HOST -keyout {key} -out {certificate}"
        )
        raise UsageError(f"{certificate} with {key}: no certificate", why.replace("_", " "), make) from error
    return context


class Listener:
    """Listens at an address, and gives channels to peers that showed the token."""

    def __init__(
        self,
        address: Address,
        token: str,
        context: ssl.SSLContext,
        *,
        greeting_s: float = GREETING_S,
        limits: MessageLimits | None = None,
        frame_s: float = FRAME_S,
    ) -> None:
        self._token, self._context, self._greeting_s = token, context, greeting_s
        self._limits, self._frame_s = limits or MessageLimits(), frame_s
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            self._socket = socket.create_server((address.host, address.port), family=family, backlog=16)
        except OSError as error:
            raise UsageError(f"--listen {address}", error.strerror or str(error), "--listen 127.0.0.1:0") from error
        self.address = Address(address.host, self._socket.getsockname()[1])
        """The address, with the port that the system gave."""
        self.refused: deque[str] = deque(maxlen=100)
        """Why the last peers were turned away."""
        self.refusals = 0
        """Number of peers that were turned away."""
        self._ready: queue.Queue[StreamChannel] = queue.Queue(WAITING)
        self._greeters = threading.Semaphore(GREETERS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def accept(self, timeout_s: float) -> StreamChannel | None:
        """The next peer that showed the token; None if none came in time."""
        with suppress(queue.Empty):
            return self._ready.get(timeout=timeout_s) if timeout_s > 0 else self._ready.get_nowait()
        return None

    def close(self) -> None:
        """Stop listening. Channels that ``accept`` gave stay open."""
        self._closing.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(1.0)
        while channel := self.accept(0):
            channel.close()

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                connection, peer = self._socket.accept()
            except OSError:
                self._closing.wait(0.05)  # the peer went before it was accepted, or descriptors ran out for a moment
                continue
            if self._greeters.acquire(blocking=False):
                threading.Thread(target=self._greet, args=(connection, peer), daemon=True).start()
            else:
                connection.close()
                self._note_refusal(peer, "too many peers at once")

    def _greet(self, plain: socket.socket, peer: Any) -> None:
        try:
            notice_silence(plain)
            secured = secure(plain, self._context, self._greeting_s, server_side=True)
            channel = StreamChannel(Tls(secured), f"{peer[0]}:{peer[1]}", UNGREETED, self._greeting_s)
            try:
                hello = expect(channel, "hello", self._greeting_s).document
                if not is_token(hello.get("token"), self._token):
                    raise _refuse(channel, "wrong token", "both sides read --token-file: the files differ")
                if hello.get("protocol") != PROTOCOL:
                    raise _refuse(channel, "another version of perflaw", f"this side speaks {PROTOCOL}")
                channel.send("welcome", {"protocol": PROTOCOL})
                channel.widen(self._limits, self._frame_s)
                self._ready.put_nowait(channel)
            except (OSError, WireError, queue.Full):
                channel.close()
                raise
        except (OSError, ValueError, WireError, queue.Full) as error:
            self._note_refusal(peer, "nobody accepts" if isinstance(error, queue.Full) else str(error))
        finally:
            self._greeters.release()

    def _note_refusal(self, peer: Any, why: str) -> None:
        self.refusals += 1
        self.refused.append(f"{peer[0]}: {why}")


def _refuse(channel: StreamChannel, what: str, why: str) -> WireError:
    with suppress(WireError):
        channel.send("refused", {"what": what, "why": why})
    return WireError(what, why)
