"""The web service of ``perflaw serve``: an index of the experiments, and the report of each; it only reads.

Pages ask for a small state again and again, with the ETag of the one they have; what has not changed is not sent.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from perflaw.live.making import MadeReport, ReportMaker
from perflaw.store.watching import ExperimentState
from perflaw.types.documents import Document
from perflaw.wire.web import Access, guarded

LEAST_ZIPPED: Final = 1000
"""Bytes of an answer from which it is compressed."""


@dataclass(frozen=True, slots=True)
class LiveViews:
    """How the pages look; given by whoever starts the service."""

    index: Callable[[], str]
    """The page with the list of all experiments."""
    report: Callable[[ExperimentState, MadeReport], str]
    """The live page of an experiment; an empty report is still to come."""
    states: Callable[[list[tuple[ExperimentState, MadeReport, bool]]], Document]
    """The document of the index: each experiment's state, its report, and whether that is being made."""
    state: Callable[[ExperimentState, MadeReport, bool], Document]
    """The document of one experiment."""
    policy: str
    """Content security policy."""


def live_application(maker: ReportMaker, views: LiveViews, access: Access) -> Starlette:
    """The web application, which follows the experiments while it runs."""

    def index(request: Request) -> Response:
        return answer(request, views.index(), "text/html", views.policy)

    def states(request: Request) -> Response:
        entries = [
            (state, maker.reports.get(name, MadeReport()), maker.making == name) for name, state in maker.states.items()
        ]
        return answer(request, as_text(views.states(entries)), "application/json")

    def report(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in maker.states:
            return RedirectResponse("/", 303)
        made = maker.look(name)
        return answer(request, views.report(maker.states[name], made), "text/html", views.policy)

    def state(request: Request) -> Response:
        name = request.path_params["name"]
        known, made = maker.states.get(name), maker.look(name) if name in maker.states else MadeReport()
        if known is None:
            return Response("there is no such experiment", 404)
        return answer(request, as_text(views.state(known, made, maker.making == name)), "application/json")

    @asynccontextmanager
    async def follow(_: Starlette) -> AsyncIterator[None]:
        following = asyncio.create_task(maker.run())
        yield
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following

    routes = [
        Route("/", index),
        Route("/state", states),
        Route("/experiments/{name}", report),
        Route("/experiments/{name}/state", state),
    ]
    return guarded(routes, access, follow)


def as_text(document: Document) -> str:
    """A document as JSON; the same text for the same content."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def answer(request: Request, text: str, kind: str, policy: str = "") -> Response:
    """A text with its ETag, compressed where that is worth it; 304 for who has it already."""
    content = text.encode("utf-8", "backslashreplace")
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Vary": "Accept-Encoding", **({"Content-Security-Policy": policy} if policy else {})}
    if tag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    if len(content) >= LEAST_ZIPPED and "gzip" in request.headers.get("accept-encoding", ""):
        content, headers = _zipped(content), {**headers, "Content-Encoding": "gzip"}
    return Response(content, headers=headers, media_type=f"{kind}; charset=utf-8")


@lru_cache(8)
def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, 6, mtime=0)
