"""The state of a fleet as one document, for the table, the page and scripts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from perflaw.mine.fleet.ledger import Ledger, Service
from perflaw.mine.fleet.plan import is_allowed
from perflaw.record.tree.path_tables import LEAST_SHARE
from perflaw.types import PathSpec
from perflaw.types.documents import Document

SPENT_S: Final = 1800
"""How far back the cost of measuring is told."""
MOST_DECISIONS: Final = 30
"""Decisions that are told."""
MOST_NOT_ALLOWED: Final = 8
"""Functions that are told of where the time goes and that may not be measured."""


def fleet_status(
    ledger: Ledger,
    specs: Mapping[str, Sequence[PathSpec]] | None = None,
    shares: Mapping[str, Mapping[str, float]] | None = None,
) -> Document:
    """``perflaw.fleet/1``: services with their stubs, functions, decisions and cost.

    ``specs`` are those of each service, and ``shares`` the parts of its samples by function.
    """
    now = time.time_ns()
    services = sorted(ledger.services().values(), key=lambda one: one.name)
    return {
        "schema": "perflaw.fleet/1",
        "services": [
            _service(ledger, one, (specs or {}).get(one.name, ()), (shares or {}).get(one.name, {}), now)
            for one in services
        ],
    }


def _service(
    ledger: Ledger, service: Service, specs: Sequence[PathSpec], shares: Mapping[str, float], now: int
) -> Document:
    stubs = ledger.stubs(service.name)
    hosts = {stub.id: stub.host for stub in stubs}
    pids = {stub.id: stub.pid for stub in stubs}
    known = {(spec.component, spec.metric): spec for spec in specs}
    functions: dict[tuple[str, str], Document] = {}
    for one in ledger.coverage(service.name):
        spec = known.get((one.component, one.metric))
        row = functions.setdefault(
            (one.component, one.metric),
            {
                "component": one.component,
                "metric": one.metric,
                "calls": 0,
                "hosts": 0,
                "borders": list(spec.borders) if spec else None,
                "groups": len(spec.groups) if spec else None,
                "stable": spec.stable if spec else None,
                "utility": spec.utility if spec else None,
            },
        )
        row["calls"] += one.calls
        row["hosts"] += bool(one.calls)
    windows = ledger.spent(service.name, now - int(SPENT_S * 1e9))
    not_allowed = [
        {"component": name, "share": share}
        for name, share in sorted(shares.items(), key=lambda one: (-one[1], one[0]))
        if share >= LEAST_SHARE and not is_allowed(name, service.allow)
    ]
    latest = {stub: (share, own) for stub, _, share, own in windows}
    return {
        "service": service.name,
        "allow": list(service.allow),
        "not_allowed": not_allowed[:MOST_NOT_ALLOWED],
        "budget": service.budget,
        "stubs": [
            {
                "id": stub.id,
                "host": stub.host,
                "program": stub.program,
                "pid": stub.pid,
                "heard_s": round((now - stub.seen_ns) / 1e9, 1),
                "spooled": stub.spooled,
                "refused": list(stub.refused),
                "version": stub.version,
                "spent": latest.get(stub.id, (None, None))[0],
                "own": latest.get(stub.id, (None, None))[1],
                "measures": [
                    {"kind": request.kind, "functions": list(request.functions), "why": why}
                    for request, why in zip(stub.requests, stub.reasons, strict=True)
                ],
            }
            for stub in stubs
        ],
        "functions": sorted(functions.values(), key=lambda row: (-row["calls"], row["component"])),
        "spent": [
            {"host": hosts.get(stub, stub), "age_s": round((now - end_ns) / 1e9, 1), "share": share, "own": own}
            for stub, end_ns, share, own in windows
        ],
        "decisions": [
            {
                "age_s": round((now - at) / 1e9, 1),
                "host": hosts.get(stub, stub),
                "pid": pids.get(stub),
                "what": what,
                "why": why,
                "utility": use,
            }
            for at, stub, _, what, why, use in ledger.decisions(service.name, MOST_DECISIONS)
        ],
    }
