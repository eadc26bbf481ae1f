"""Connections between machines, and the listener for them: TCP, TLS, then the token.

A new peer gets a few seconds and a few kilobytes to show the token, and delays no other peer: every connection is greeted
in its own thread. There are few such threads. If all are taken, a new peer takes the place of the one that has been
silent for longest, of the address with most of them, so that idle strangers keep nobody out.
"""

from __future__ import annotations

import hashlib
import hmac
import queue
import select
import socket
import ssl
import stat
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perflaw.errors import UsageError
from perflaw.wire.channel import (
    FRAME_S,
    SAME_VERSION,
    UNGREETED,
    MessageLimits,
    StreamChannel,
    WantRead,
    WantWrite,
    WireError,
    expect,
)

MIN_TOKEN: Final = 16
"""Characters that a token has at least."""
MAX_TOKEN: Final = 1024
"""Characters that a token has at most."""
PROTOCOL: Final = 1
"""Version of the messages after the token; another version is refused."""
GREETING_S: Final = 5.0
"""Longest time from the connection to the welcome."""
_SILENT_MS: Final = 20_000
"""A peer that confirms nothing for this time has gone (its machine lost power, or a cable was pulled)."""


def read_token(path: Path) -> str:
    """The token in a file; UsageError if it cannot be read, is readable by others, or is too short to be a secret."""
    make = f"(umask 077; openssl rand -hex 32 > {path})"
    try:
        with path.open("rb") as file:
            mode, text = stat.S_IMODE(path.stat().st_mode), file.read(MAX_TOKEN + 2)
    except OSError as error:
        raise UsageError(f"{path}: the token cannot be read", error.strerror or str(error), make) from error
    if mode & 0o077:
        raise UsageError(f"{path}: others may read the token", f"its mode is {mode:03o}", f"chmod 600 {path}")
    token = text.decode(errors="replace").strip()
    if not MIN_TOKEN <= len(token) <= MAX_TOKEN or not token.isprintable():
        why = f"one line of {MIN_TOKEN} to {MAX_TOKEN} characters was expected"
        raise UsageError(f"{path}: not a token", why, make)
    return token


def is_token(shown: object, token: str) -> bool:
    """Whether a peer showed the token; the comparison takes the same time for every text."""
    texts = (shown if isinstance(shown, str) else "", token)
    first, second = (hashlib.sha256(text.encode(errors="replace")).digest() for text in texts)
    return hmac.compare_digest(first, second)


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a listener."""

    host: str
    """Name or number of the machine; empty for all addresses of this machine."""
    port: int
    """Port; 0 for any free port."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """``host:7000``, ``127.0.0.1:7000``, ``[::1]:7000``; UsageError for anything else."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535 or (":" in bare and bare == host):
        raise UsageError(f"address {text!r}", "HOST:PORT was expected", "127.0.0.1:7000")
    return Address(bare, int(port))


class Tls:
    """A TLS connection as a stream. OpenSSL takes one call at a time, so sender and receiver share a lock."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection, self._lock = connection, threading.Lock()
        connection.setblocking(False)

    def read(self, most: int) -> bytes:
        """See :class:`~perflaw.wire.channel.Stream`."""
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
        """See :class:`~perflaw.wire.channel.Stream`."""
        try:
            with self._lock:
                return self._connection.send(data)
        except ssl.SSLWantReadError:
            raise WantRead from None
        except ssl.SSLWantWriteError:
            raise WantWrite from None

    def descriptors(self) -> tuple[int, int]:
        """See :class:`~perflaw.wire.channel.Stream`."""
        return self._connection.fileno(), self._connection.fileno()

    def close(self) -> None:
        """See :class:`~perflaw.wire.channel.Stream`."""
        with suppress(OSError):  # the connection may have ended already
            self._connection.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for the connection
        self._connection.close()


def notice_silence(connection: socket.socket) -> None:
    """Let the kernel end a connection whose peer has vanished; send small messages at once."""
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
    """TLS over a connection, which is closed if that fails; TimeoutError if the peer takes longer in all."""
    try:
        secured = context.wrap_socket(plain, do_handshake_on_connect=False, **options)
    except (OSError, ValueError):
        plain.close()
        raise
    deadline = time.monotonic() + seconds
    try:
        secured.setblocking(False)
        while True:
            try:
                secured.do_handshake()
            except ssl.SSLWantReadError:
                wanted = select.POLLIN
            except ssl.SSLWantWriteError:
                wanted = select.POLLOUT
            else:
                return secured
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no TLS in time")
            poll = select.poll()
            poll.register(secured, wanted)
            poll.poll(int(left * 1000) + 1)
    except (OSError, ValueError):
        secured.close()
        raise


def trusting(authority: Path) -> ssl.SSLContext:
    """The TLS context of a client: it trusts certificates that this authority (or the server itself) signed for the host."""
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
    limits: MessageLimits | None = None,
    frame_s: float = FRAME_S,
) -> StreamChannel:
    """A channel to the listener at ``address``; WireError says which step failed and what to do."""
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
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted ({error.verify_message})"
            raise WireError(
                f"{name}: refused by this side", why, "--ca with the certificate that it was started with"
            ) from error
        if isinstance(error, TimeoutError):
            raise WireError(f"{name}: no TLS", "it did not answer in time", "is it a listener of perflaw's?") from error
        raise WireError(f"{name}: no TLS", _words(error), "is it a listener of perflaw's?") from error
    channel = StreamChannel(Tls(secured), name, limits, frame_s)
    try:
        channel.send("hello", {"token": token, "protocol": PROTOCOL})
        expect(channel, "welcome", timeout_s)
    except WireError as error:
        channel.close()
        raise WireError(f"{channel.name}: {error.what}", error.why, error.next_command) from error
    return channel


def _words(error: Exception) -> str:
    return (getattr(error, "reason", "") or getattr(error, "strerror", "") or str(error)).replace("_", " ")


def listening(address: Address, backlog: int = 16) -> socket.socket:
    """A socket that listens; UsageError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=backlog)
    except OSError as error:
        raise UsageError(f"--listen {address}", error.strerror or str(error), "--listen 127.0.0.1:0") from error


GREETERS: Final = 32
"""New peers that are greeted at the same time."""
GREETERS_OF_ADDRESS: Final = 8
"""New peers of one address that are greeted at the same time."""
WAITING: Final = 8
"""Greeted connections that may wait for ``accept``."""


def serving(certificate: Path, key: Path) -> ssl.SSLContext:
    """The TLS context of a listener; UsageError if certificate or key cannot be read or do not belong together."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        make = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=perflaw "
            f"-addext subjectAltName=DNS:HOST -keyout {key} -out {certificate}"
        )
        raise UsageError(f"{certificate} with {key}: no certificate", _words(error), make) from error
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
        self._socket = listening(address)
        self.address = Address(address.host, self._socket.getsockname()[1])
        """The address, with the port that the system gave."""
        self.refused: deque[str] = deque(maxlen=100)
        """Why the last peers were turned away."""
        self.refusals = 0
        """Number of peers that were turned away."""
        self._ready: queue.Queue[StreamChannel] = queue.Queue(WAITING)
        self._strangers: dict[socket.socket, str] = {}
        """Handles of the connections that are being greeted and the addresses of their peers, the oldest first."""
        self._threads = threading.Semaphore(2 * GREETERS)
        """Threads that greet: those of strangers that had to give way take a moment to end."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def accept(self, timeout_s: float) -> StreamChannel | None:
        """The next peer that showed the token; None if none came in time."""
        try:
            return self._ready.get(timeout=timeout_s) if timeout_s > 0 else self._ready.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stop listening. Channels that ``accept`` gave stay open."""
        self._closing.set()
        with suppress(OSError):  # no peer is connected to a listening socket, which some systems call an error
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        self._thread.join(1.0)
        while channel := self.accept(0):
            channel.close()

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                connection, peer = self._socket.accept()
                handle = connection.dup()
            except OSError:
                self._closing.wait(0.05)  # the peer went before it was accepted, or descriptors ran out for a moment
                continue
            if self._threads.acquire(blocking=False):
                self._admit(handle, peer[0])
                threading.Thread(target=self._greet, args=(connection, handle, peer), daemon=True).start()
            else:
                connection.close()
                handle.close()
                self._note_refusal(peer, "too many peers at once")

    def _admit(self, handle: socket.socket, address: str) -> None:
        """Note a stranger; where there are too many, the oldest of the address with most of them gives way."""
        with self._lock:
            addresses = Counter(self._strangers.values())
            crowded = address if addresses[address] >= GREETERS_OF_ADDRESS else ""
            if not crowded and addresses.total() >= GREETERS:
                crowded = addresses.most_common(1)[0][0]
            oldest = next((one for one, other in self._strangers.items() if other == crowded), None)
            if oldest:
                del self._strangers[oldest]
                with suppress(OSError):  # it has gone
                    oldest.shutdown(socket.SHUT_RDWR)  # wakes the thread that greets it
            self._strangers[handle] = address

    def _greet(self, plain: socket.socket, handle: socket.socket, peer: Any) -> None:
        begun = time.monotonic()
        try:
            notice_silence(plain)
            secured = secure(plain, self._context, self._greeting_s, server_side=True)
            channel = StreamChannel(Tls(secured), f"{peer[0]}:{peer[1]}", UNGREETED, self._greeting_s)
            try:
                left_s = max(0.0, begun + self._greeting_s - time.monotonic())
                hello = expect(channel, "hello", left_s).document
                if not is_token(hello.get("token"), self._token):
                    why = "both sides read --token-file: the files differ"
                    raise _refuse(channel, WireError("wrong token", why, "copy the token to both hosts"))
                if hello.get("protocol") != PROTOCOL:
                    why = f"this side speaks {PROTOCOL}"
                    raise _refuse(channel, WireError("another version of perflaw", why, SAME_VERSION))
                channel.send("welcome", {"protocol": PROTOCOL})
                channel.widen(self._limits, self._frame_s)
                self._ready.put_nowait(channel)
            except (OSError, WireError, queue.Full):
                channel.close()
                raise
        except (OSError, ValueError, WireError, queue.Full) as error:
            with self._lock:
                gave_way = handle not in self._strangers
            why = "nobody accepts" if isinstance(error, queue.Full) else str(error)
            self._note_refusal(peer, "too many peers at once, and this one was silent" if gave_way else why)
        finally:
            with self._lock:
                self._strangers.pop(handle, None)
                handle.close()
            self._threads.release()

    def _note_refusal(self, peer: Any, why: str) -> None:
        with self._lock:
            self.refusals += 1
            self.refused.append(f"{peer[0]}: {why}")


def _refuse(channel: StreamChannel, error: WireError) -> WireError:
    with suppress(WireError):  # the peer may have gone
        channel.send("refused", {"what": error.what, "why": error.why, "try": error.next_command})
    return error
