"""The controller's web service: stubs register, ask for instructions, and deliver measurements.

A question about instructions is kept open until there are new ones. Whatever is answered with status 200 is on the disk.
"""

from __future__ import annotations

import asyncio
import socket
import time
import zlib
from asyncio import sslproto
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perflaw.documents import DocumentNode, DocumentSource, json_document
from perflaw.errors import DataError, PerflawError
from perflaw.mine.fleet.analysis import KEPT_DAYS, PLAN_S, Analyst
from perflaw.mine.fleet.enrolment import ControllerFolder, digest
from perflaw.mine.fleet.ledger import Delivery, Ledger, Service, StubState
from perflaw.mine.fleet.spool import MOST_TEXT, content_id
from perflaw.mine.fleet.viewing import Views, viewing
from perflaw.mine.messages import Measurement
from perflaw.wire.channel import SAME_VERSION
from perflaw.wire.tls import Address, listening
from perflaw.wire.web import BesideServer, web_settings

MOST_BODY: Final = 16 << 20
"""Bytes of one request, as they are sent and as they are unpacked (four times this)."""
MOST_WAIT_S: Final = 60.0
"""Longest time for which a question is kept open."""
BACKLOG: Final = 512
"""Connections that may wait to be accepted: a whole fleet comes back at once after a restart."""
TICK_S: Final = 0.5
"""Time between two looks for new instructions, for all stubs together."""
TOO_LARGE: Final = f"at most {MOST_BODY >> 20} MB are accepted"
"""Why a request is refused."""
REGISTERS: Final = "wait: the stub registers again by itself"
"""What to do where the ledger does not know a stub."""

T = TypeVar("T")


class NotAnswered(PerflawError):
    """A request that is refused, with an HTTP status."""

    def __init__(self, status: int, what: str, why: str, next_command: str) -> None:
        super().__init__(what, why, next_command)
        self.status = status


class FleetService:
    """The state of the web service: everything that matters is in the ledger, the rest is made anew."""

    def __init__(self, ledger: Ledger, analyst: Analyst, say: Callable[[str], None]) -> None:
        self._ledger, self._analyst, self._say = ledger, analyst, say
        self._services: dict[str, Service] = {}
        self._versions: dict[str, int] = {}
        self._asking: dict[str, asyncio.Event] = {}
        self._heard: dict[str, tuple[str, int, int, tuple[str, ...]]] = {}
        # Few threads: a burst of measurements waits in the sockets and not in memory.
        self._threads = ThreadPoolExecutor(2, "ledger")

    def application(self) -> Starlette:
        """The web application."""
        routes = [
            Route(path, partial(self._answer, verb), methods=["POST"])
            for path, verb in (
                ("/v1/register", self._register),
                ("/v1/poll", self._poll),
                ("/v1/measurements", self._measurements),
            )
        ]
        return Starlette(routes=routes, lifespan=self._life)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        self._analyst.start()
        ticking = asyncio.create_task(self._tick())
        yield
        ticking.cancel()
        self._threads.shutdown()
        self._analyst.stop()
        self._ledger.close()

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *arguments))

    async def _answer(
        self, verb: Callable[[Service, HttpRequest], Awaitable[Mapping[str, Any]]], request: HttpRequest
    ) -> Response:
        """The answer of a verb; errors are answers too."""
        try:
            return JSONResponse(await verb(await self._service(request), request))
        except NotAnswered as error:
            return JSONResponse({"why": error.reason, "try": error.next_command}, error.status)
        except DataError as error:
            return JSONResponse({"why": error.reason, "try": error.next_command}, 400)
        except PerflawError as error:  # the database is away: the stub tries again
            self._say(str(error))
            return JSONResponse({"why": error.what}, 503)

    async def _service(self, request: HttpRequest) -> Service:
        """The service that the token is of."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        name = digest(token)
        if name not in self._services:
            self._services = await self._in_thread(self._ledger.services)
        if name not in self._services:
            why = "the service was enrolled again, or at another controller"
            raise NotAnswered(401, "the token is not known", why, "copy the new enrolment to this host")
        return self._services[name]

    # ---- Verbs.

    async def _register(self, service: Service, request: HttpRequest) -> Mapping[str, Any]:
        parts = (await _document(request)).mapping(required=("id", "host", "program", "pid", "build"))
        host, build, program = (_short(parts[name]) for name in ("host", "build", "program"))
        stub = StubState(_id(parts["id"]), service.name, host, build, program, parts["pid"].whole(0, 2**31))
        await self._in_thread(self._ledger.register, stub)
        self._versions = await self._in_thread(self._ledger.versions)
        self._analyst.joined(service.name)
        return {"version": self._versions.get(stub.id, 0)}

    async def _poll(self, service: Service, request: HttpRequest) -> Mapping[str, Any]:
        parts = (await _document(request)).mapping(required=("id", "version", "wait_s", "spooled", "refused", "spent"))
        name, version = _id(parts["id"]), parts["version"].whole()
        if name not in self._versions:
            self._versions = await self._in_thread(self._ledger.versions)
            if name not in self._versions:
                raise NotAnswered(404, "the stub is not registered", "the controller's database is new", REGISTERS)
        refused = tuple(_short(one) for one in parts["refused"].items()[:50])
        self._heard[name] = (name, time.time_ns(), parts["spooled"].whole(), refused)
        if windows := [
            (one.child(0).whole(high=2**63), one.child(1).number(), one.child(2).number())
            for one in parts["spent"].items()[:1000]
        ]:
            await self._in_thread(self._ledger.spend, service.name, name, windows)
        if self._versions[name] == version:
            changed = self._asking[name] = asyncio.Event()
            try:
                with suppress(TimeoutError):  # nothing new to ask for: the stub asks again
                    await asyncio.wait_for(changed.wait(), min(parts["wait_s"].number(0.0), MOST_WAIT_S))
            finally:
                if self._asking.get(name) is changed:
                    del self._asking[name]
        if self._versions.get(name) == version:
            return {"version": version}
        stub = await self._in_thread(self._ledger.stub, name)
        if stub is None or stub.service != service.name:
            why = "its folder was used with another enrolment"
            raise NotAnswered(404, "the stub is not one of this service", why, "--spool OTHER_FOLDER")
        requests = [one.to_json() for one in stub.requests]
        return {"version": stub.version, "budget": service.budget, "requests": requests}

    async def _measurements(self, service: Service, request: HttpRequest) -> Mapping[str, Any]:
        stub = request.query_params.get("stub", "")
        body = await _body(request)
        deliveries, refused = await self._in_thread(_read_batch, body, service)
        stored = await self._in_thread(self._ledger.add, service.name, stub[:32], deliveries)
        self._analyst.arrived(service.name, [one.measurement for one in deliveries])
        return {"stored": stored, "refused": refused}

    async def _tick(self) -> None:
        """Wake those who ask about instructions that have changed; note who was heard of."""
        while True:
            await asyncio.sleep(TICK_S)
            try:
                heard, self._heard = self._heard, {}
                if heard:
                    await self._in_thread(self._ledger.heard, list(heard.values()))
                before, self._versions = self._versions, await self._in_thread(self._ledger.versions)
                self._services = await self._in_thread(self._ledger.services)
            except PerflawError as error:
                self._say(str(error))
                await asyncio.sleep(2.0)
                continue
            for name in list(self._asking):
                if before.get(name) != self._versions.get(name):
                    self._asking[name].set()


def _read_batch(body: bytes, service: Service) -> tuple[list[Delivery], dict[str, str]]:
    """Measurements of a batch, and why others are refused."""
    deliveries, refused = [], {}
    for line in body.decode(errors="replace").split("\n"):
        name, _, text = line.partition(" ")
        try:
            if len(text) > MOST_TEXT:
                raise DataError("it is too large", f"at most {MOST_TEXT >> 20} MB are accepted", SAME_VERSION)
            if content_id(text) != name:
                raise DataError("its id is not that of its content", "it was damaged on its way", SAME_VERSION)
            measurement = Measurement.from_json(text, f"measurement {name[:40]}")
            for one in measurement.observed:
                if not any(fnmatchcase(one.component, pattern) for pattern in service.allow):
                    what = f"{one.component[:80]} is not on the allow-list of {service.name}"
                    remedy = f"perflaw controller enrol {service.name} --allow GLOB"
                    raise DataError(what, "the enrolment was changed since it was measured", remedy)
            deliveries.append(Delivery(name, measurement, text))
        except PerflawError as error:
            refused[name[:40]] = str(error)
    return deliveries, refused


async def _body(request: HttpRequest) -> bytes:
    """The unpacked body; NotAnswered if it is too large or damaged."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BODY:
            raise NotAnswered(413, "the request is too large", TOO_LARGE, SAME_VERSION)
        parts.append(part)
    body = b"".join(parts)
    if request.headers.get("content-encoding") == "deflate":
        unpacking = zlib.decompressobj()
        try:
            body = unpacking.decompress(body, 4 * MOST_BODY)
        except zlib.error as error:
            raise NotAnswered(400, "the body is damaged", str(error), SAME_VERSION) from error
        if unpacking.unconsumed_tail or not unpacking.eof:
            raise NotAnswered(413, "the request is too large or was cut", TOO_LARGE, SAME_VERSION)
    return body


async def _document(request: HttpRequest) -> DocumentNode:
    text = (await _body(request)).decode(errors="replace")
    return json_document(text, DocumentSource(request.url.path, DataError))


def _short(node: DocumentNode) -> str:
    return node.text()[:500]


def _id(node: DocumentNode) -> str:
    text = node.text()
    if not 8 <= len(text) <= 32 or not text.isalnum():
        node.expect("an id of 8 to 32 letters and digits")
    return text


def serve(
    folder: ControllerFolder, say: Callable[[str], None], plan_s: float = PLAN_S, views: Views | None = None,
    keep_days: float = KEPT_DAYS,
) -> None:  # fmt: skip
    """Serve stubs, and browsers if there are views, until a signal ends the process; UsageError if it cannot listen."""
    ledger, analyst = Ledger(folder.database), Analyst(folder.database, say, plan_s, keep_days)
    settings = web_settings(
        FleetService(ledger, analyst, say).application(),
        ssl_certfile=folder.path / "server.pem",
        ssl_keyfile=folder.path / "server.key",
    )
    settings.load()
    settings.ssl = folder.context()
    # asyncio gives each connection a buffer of 256 kB; a record of TLS has 16 kB, and most connections wait.
    sslproto.SSLProtocol.max_size = 32 << 10
    asyncio.run(_serve(uvicorn.Server(settings), listening(folder.address, BACKLOG), folder, analyst, say, views))


async def _serve(
    server: uvicorn.Server,
    own: socket.socket,
    folder: ControllerFolder,
    analyst: Analyst,
    say: Callable[[str], None],
    views: Views | None,
) -> None:
    viewers, page = None, None
    try:
        if views:
            listener = listening(views.address)
            say(f"page: http://{Address(views.address.host, listener.getsockname()[1])}/")
            viewers = BesideServer(web_settings(viewing(views, Ledger(folder.database), analyst), lifespan="off"))
            page = asyncio.create_task(viewers.serve([listener]))
        say(f"controller listens at {folder.address}")
        await server.serve([own])
    finally:
        if viewers and page:
            viewers.should_exit = True
            await page
