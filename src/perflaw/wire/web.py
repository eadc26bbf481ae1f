"""What stands before every page that perflaw serves: by which names it is reached, who may read it, and how it ends.

Pages are read with GET alone and change nothing. A page of a machine that others reach is shown to those who have its
token: in the address of the first visit, from then on in a cookie, or in a header ``Authorization: Bearer``.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import URL, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perflaw.wire.tls import is_token

COOKIE_S: Final = 30 * 86_400
"""Age at which a browser forgets the token."""
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer. No page of another site may embed or read one of ours, or learn its address."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read the pages."""

    names: Collection[str] = ()
    """Host names by which they are reached, besides localhost and addresses in numbers."""
    token: str | None = None
    """What a reader must show; None: nothing."""
    cookie: str = "perflaw"
    """Name of the cookie that keeps the token; servers at several ports of a machine share cookies."""
    is_secure: bool = False
    """Whether the cookie is for TLS alone."""


def is_own_name(host: str, names: Collection[str]) -> bool:
    """Whether a ``Host`` header names this machine: an address in numbers, localhost, or one of these names.

    Whoever owns another name can have it lead here, and a page of theirs would then read ours (DNS rebinding). An address
    in numbers cannot be made to lead elsewhere.

    >>> is_own_name("127.0.0.1:7482", ()), is_own_name("[::1]", ()), is_own_name("evil.example:7482", ())
    (True, True, False)
    """
    bare = host[1 : host.find("]")] if host.startswith("[") else host.rpartition(":")[0] or host
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return bare.lower().rstrip(".") in {"localhost", *(name.lower() for name in names)}
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a listener at the host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Gate:
    """Middleware that answers nobody else, and gives every answer the common headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        await (self._refusal(Request(scope)) or self._app)(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        access = self._access
        if not is_own_name(request.headers.get("host", ""), access.names):
            return PlainTextResponse("This is not a name of this server: perflaw serve --name NAME", 400)
        if access.token is None:
            return None
        if "token" in request.query_params and is_token(request.query_params["token"], access.token):
            there = URL(scope={**request.scope, "query_string": b""}).path
            answer = RedirectResponse(f"/{there.lstrip('/')}", 303)  # one slash: two would name another host
            answer.set_cookie(access.cookie, access.token, COOKIE_S, httponly=True, samesite="lax",
                              secure=access.is_secure)  # fmt: skip
            return answer
        by_header = is_token(request.headers.get("authorization", "").removeprefix("Bearer "), access.token)
        by_cookie = is_token(request.cookies.get(access.cookie), access.token)
        if by_header or by_cookie:
            return None
        return PlainTextResponse("The token is missing or wrong. perflaw serve prints the address that has it.", 401)


def guarded(routes: Sequence[BaseRoute], access: Access, lifespan: Any = None) -> Starlette:
    """The web application of these routes for those who may read it."""
    return Starlette(routes=routes, middleware=[Middleware(_Gate, access=access)], lifespan=lifespan)


def web_settings(application: Starlette, **more: Any) -> uvicorn.Config:
    """How an application is served. Questions that are still open at the end are asked again, so nobody waits for them."""
    common: dict[str, Any] = {"loop": "asyncio", "http": "h11", "ws": "none", "log_level": "error", "access_log": False}
    settings = uvicorn.Config(
        application, **common, server_header=False, timeout_keep_alive=75, timeout_graceful_shutdown=1, **more
    )
    logging.getLogger("uvicorn.error").addFilter(_is_unexpected)
    return settings


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Whether a message says more than that open questions end with the server."""
    return "graceful shutdown exceeded" not in str(record.msg)


class BesideServer(uvicorn.Server):
    """A server beside another one, which handles the signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def serve_until_signal(settings: uvicorn.Config, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, which end it without an error; ``ready`` is called when it answers."""

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

        def handle_exit(self, sig: int, frame: Any) -> None:
            """End in order; a second signal changes nothing, for that takes a second at most."""
            self.should_exit = True

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """As uvicorn does, which afterwards raises the signal again: it has done its work."""
            import signal

            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    Server(settings).run([listener])
