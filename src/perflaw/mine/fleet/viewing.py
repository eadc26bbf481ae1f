"""The web service of the controller's page. It answers questions of this machine's browsers and changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from perflaw.mine.fleet.analysis import Analyst
from perflaw.mine.fleet.ledger import Ledger
from perflaw.mine.fleet.status import fleet_status
from perflaw.types import PathSpec
from perflaw.types.documents import Document
from perflaw.wire.tls import Address
from perflaw.wire.web import Access, guarded


@dataclass(frozen=True, slots=True)
class Views:
    """How the page looks; given by whoever starts the controller."""

    address: Address
    """Where browsers find the page."""
    page: Callable[[Document], str]
    """The page of a fleet's document."""
    tables: Callable[[Document], str]
    """Its changing part."""
    specs: Callable[[str, Sequence[PathSpec], str], str]
    """The page of a service's specifications, which are of this version."""
    policy: str
    """Content security policy."""


def viewing(views: Views, ledger: Ledger, analyst: Analyst) -> Starlette:
    """The web application; its handlers run in threads, so that drawing keeps no stub waiting."""

    def document() -> Document:
        services = ledger.services().values()
        specs: dict[str, Sequence[PathSpec]] = {one.name: analyst.specs(one.name) for one in services}
        return fleet_status(ledger, specs, {name: analyst.shares(name) for name in specs})

    def page(_: Request) -> Response:
        return HTMLResponse(views.page(document()), headers={"Content-Security-Policy": views.policy})

    def tables(_: Request) -> Response:
        return HTMLResponse(views.tables(document()))

    def status(_: Request) -> Response:
        return JSONResponse(document())

    def specs(request: Request) -> Response:
        service = request.path_params["service"]
        found = analyst.specs(service)
        if not found:
            return HTMLResponse("nothing is specified yet", 404, {"Refresh": "2"})
        return HTMLResponse(views.specs(service, found, version_of(found)))

    def version(request: Request) -> Response:
        return JSONResponse({"version": version_of(analyst.specs(request.path_params["service"]))})

    routes = [
        Route("/", page),
        Route("/tables", tables),
        Route("/status.json", status),
        Route("/specs/{service}", specs),
        Route("/specs/{service}/state", version),
    ]
    return guarded(routes, Access([views.address.host] if views.address.host else []))


def version_of(specs: Sequence[PathSpec]) -> str:
    """Another text where any specification was mined from other measurements."""
    about = [(one.component, one.metric, one.points, one.borders, len(one.groups)) for one in specs]
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]
