"""What the controller remembers: services, stubs, what each stub is to measure, and all that was measured.

A measurement is written in one transaction under an id that follows from its content, before it is acknowledged. So one that
arrives twice, or late, counts once.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from perflaw.mine.fleet.database import Database, Execute, tables
from perflaw.mine.messages import Measurement, Request
from perflaw.types import Observed

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS services
    (name TEXT PRIMARY KEY, token TEXT NOT NULL UNIQUE, allow TEXT NOT NULL, budget DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS stubs
    (id TEXT PRIMARY KEY, service TEXT NOT NULL, host TEXT NOT NULL, build TEXT NOT NULL, program TEXT NOT NULL,
    pid BIGINT NOT NULL, seen_ns BIGINT NOT NULL, spooled BIGINT NOT NULL, refused TEXT NOT NULL,
    version BIGINT NOT NULL, requests TEXT NOT NULL, reasons TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS measurements
    (id TEXT PRIMARY KEY, service TEXT NOT NULL, stub TEXT NOT NULL, kind TEXT NOT NULL, start_ns BIGINT NOT NULL,
    end_ns BIGINT NOT NULL, cost DOUBLE PRECISION NOT NULL, body BYTEA NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS measured ON measurements (service, kind, end_ns)",
    """CREATE TABLE IF NOT EXISTS observed
    (measurement TEXT NOT NULL, service TEXT NOT NULL, component TEXT NOT NULL, metric TEXT NOT NULL,
    end_ns BIGINT NOT NULL, calls BIGINT NOT NULL, host TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS observed_of ON observed (service, component, metric, end_ns)",
    """CREATE TABLE IF NOT EXISTS decisions
    (at_ns BIGINT NOT NULL, service TEXT NOT NULL, stub TEXT NOT NULL, version BIGINT NOT NULL, what TEXT NOT NULL,
    why TEXT NOT NULL, utility DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS costs
    (stub TEXT NOT NULL, service TEXT NOT NULL, end_ns BIGINT NOT NULL, share DOUBLE PRECISION NOT NULL,
    own DOUBLE PRECISION NOT NULL, PRIMARY KEY (stub, end_ns))""",
    "CREATE INDEX IF NOT EXISTS decided ON decisions (service, at_ns)",
)

Function = tuple[str, str, str]
"""Service, name of a function, clock."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service: processes that run the same program."""

    name: str
    """Its name."""
    allow: tuple[str, ...]
    """Patterns of the functions that may be measured."""
    budget: float
    """Part of a process's CPU time that measuring may take."""


@dataclass(frozen=True, slots=True)
class StubState:
    """A stub as the controller knows it."""

    id: str
    """Its id, which it keeps in its folder."""
    service: str
    """Service that it belongs to."""
    host: str
    """Name of its machine."""
    build: str
    """Build of the program; empty where unknown."""
    program: str
    """The program beside which it is."""
    pid: int
    """Id of that process."""
    seen_ns: int = 0
    """When the controller last heard of it, ns since 1970."""
    spooled: int = 0
    """Measurements that it has not delivered yet."""
    refused: tuple[str, ...] = ()
    """Functions that it refused to measure."""
    version: int = 0
    """Version of what it is to measure; grows by one with each change."""
    requests: tuple[Request, ...] = ()
    """What it is to measure, again and again until the next version."""
    reasons: tuple[str, ...] = ()
    """Why, one for each request."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A measurement on its way into the ledger."""

    id: str
    """Digest of its content."""
    measurement: Measurement
    """The measurement."""
    text: str
    """Its JSON form."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a function has been measured on which host."""

    component: str
    """The function."""
    metric: str
    """The clock."""
    host: str
    """The host."""
    measurements: int
    """Measurements there."""
    calls: int
    """Calls in them."""


class Ledger:
    """The tables. Several processes may have them open."""

    def __init__(self, place: str) -> None:
        self._database = Database(place)
        tables(_TABLES, self._database)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # ---- Services.

    def enrol(self, service: Service, token: str) -> None:
        """Add a service, or give it another token (its digest), allow-list and budget; the old token is refused from now on."""
        with self._database.transaction() as execute:
            execute(
                """INSERT INTO services VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE
                SET token = excluded.token, allow = excluded.allow, budget = excluded.budget""",
                service.name, token, json.dumps(service.allow), service.budget,
            )  # fmt: skip

    def services(self) -> dict[str, Service]:
        """Digest of the token → service."""
        with self._database.transaction() as execute:
            rows = execute("SELECT token, name, allow, budget FROM services ORDER BY name").fetchall()
        return {token: Service(name, tuple(json.loads(allow)), budget) for token, name, allow, budget in rows}

    # ---- Stubs.

    def register(self, stub: StubState) -> None:
        """Add a stub, or say anew what it is beside; what it is to measure stays. A stub of another service stays there."""
        with self._database.transaction() as execute:
            execute(
                """INSERT INTO stubs VALUES (?, ?, ?, ?, ?, ?, ?, 0, '[]', 0, '[]', '[]') ON CONFLICT (id) DO UPDATE
                SET host = excluded.host, build = excluded.build, program = excluded.program, pid = excluded.pid,
                seen_ns = excluded.seen_ns WHERE stubs.service = excluded.service""",
                stub.id, stub.service, stub.host, stub.build, stub.program, stub.pid, time.time_ns(),
            )  # fmt: skip

    def heard(self, news: Iterable[tuple[str, int, int, Sequence[str]]]) -> None:
        """Note when stubs were heard of last, how much they have not delivered and what they refused."""
        with self._database.transaction() as execute:
            for stub, seen_ns, spooled, refused in news:
                execute(
                    "UPDATE stubs SET seen_ns = ?, spooled = ?, refused = ? WHERE id = ?",
                    seen_ns, spooled, json.dumps(list(refused)), stub,
                )  # fmt: skip

    def versions(self) -> dict[str, int]:
        """Stub → version of what it is to measure."""
        with self._database.transaction() as execute:
            return dict(execute("SELECT id, version FROM stubs").fetchall())

    def stub(self, name: str) -> StubState | None:
        """One stub; None if it is unknown."""
        return next(iter(self._stubs("id = ?", name)), None)

    def stubs(self, service: str) -> list[StubState]:
        """All stubs of a service."""
        return self._stubs("service = ?", service)

    def instruct(
        self, stub: str, requests: Sequence[Request], reasons: Sequence[str], utilities: Sequence[float]
    ) -> None:
        """Change what a stub is to measure, and note why it measures what it has not measured until now."""
        with self._database.transaction() as execute:
            row = execute("SELECT version, service, requests FROM stubs WHERE id = ?", stub).fetchone()
            if row is None:
                return
            version, service = row[0] + 1, row[1]
            before = {_what(Request.from_json(text, "the controller's database")) for text in json.loads(row[2])}
            texts = json.dumps([one.to_json() for one in requests])
            execute(
                "UPDATE stubs SET version = ?, requests = ?, reasons = ? WHERE id = ?",
                version, texts, json.dumps(list(reasons)), stub,
            )  # fmt: skip
            now = time.time_ns()
            for request, why, utility in zip(requests, reasons, utilities, strict=True):
                if (what := _what(request)) not in before:
                    values = (now, service, stub, version, what, why, utility)
                    execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)", *values)

    def decisions(self, service: str, most: int) -> list[tuple[int, str, int, str, str, float]]:
        """The last decisions: when, stub, version, what, why, expected utility; the newest first."""
        with self._database.transaction() as execute:
            rows = execute(
                """SELECT at_ns, stub, version, what, why, utility FROM decisions WHERE service = ?
                ORDER BY at_ns DESC LIMIT ?""", service, most,
            ).fetchall()  # fmt: skip
        return [tuple(row) for row in rows]

    def _stubs(self, condition: str, value: str) -> list[StubState]:
        columns = "id, service, host, build, program, pid, seen_ns, spooled, refused, version, requests, reasons"
        with self._database.transaction() as execute:
            rows = execute(f"SELECT {columns} FROM stubs WHERE {condition} ORDER BY host, id", value).fetchall()
        return [
            replace(
                StubState(*about),
                refused=tuple(json.loads(refused)),
                version=version,
                requests=tuple(Request.from_json(text, "the controller's database") for text in json.loads(requests)),
                reasons=tuple(json.loads(reasons)),
            )
            for *about, refused, version, requests, reasons in rows
        ]

    # ---- Measurements.

    def add(self, service: str, stub: str, deliveries: Sequence[Delivery]) -> int:
        """Write measurements; returns how many of them are new. Once it returns they are on the disk."""
        with self._database.transaction() as execute:
            return sum(self._add(execute, service, stub, one) for one in deliveries)

    @staticmethod
    def _add(execute: Execute, service: str, stub: str, delivery: Delivery) -> bool:
        one = delivery.measurement
        new = execute(
            "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            delivery.id, service, stub, one.kind, one.start_ns, one.end_ns, one.cost.share,
            zlib.compress(delivery.text.encode(), 1),
        )  # fmt: skip
        if not new.rowcount:
            return False
        for observed in one.observed:
            host = observed.platforms[0].host if observed.platforms else ""
            execute(
                "INSERT INTO observed VALUES (?, ?, ?, ?, ?, ?, ?)",
                delivery.id, service, observed.component, observed.metric, one.end_ns, calls_of(observed), host,
            )  # fmt: skip
        return True

    def coverage(self, service: str) -> list[Coverage]:
        """What was measured of which function on which host."""
        with self._database.transaction() as execute:
            rows = execute(
                """SELECT component, metric, host, COUNT(*), SUM(calls) FROM observed WHERE service = ?
                GROUP BY component, metric, host ORDER BY component, metric, host""", service,
            ).fetchall()  # fmt: skip
        return [Coverage(name, metric, host, int(ones), int(calls)) for name, metric, host, ones, calls in rows]

    def observed(self, function: Function, most: int) -> Iterator[Observed]:
        """What the last measurements observed of a function, the newest first; one measurement is in memory at a time."""
        service, component, metric = function
        newest = self._measurements(
            """SELECT m.id FROM observed o JOIN measurements m ON m.id = o.measurement
            WHERE o.service = ? AND o.component = ? AND o.metric = ? AND length(m.body) > 0
            ORDER BY o.end_ns DESC LIMIT ?""",
            service, component, metric, most,
        )  # fmt: skip
        for measurement in newest:
            for one in measurement.observed:
                if (one.component, one.metric) == (component, metric):
                    yield one

    def samples(self, service: str, most: int) -> Iterator[Measurement]:
        """The last measurements of where the service's processes spend their time; one is in memory at a time."""
        return self._measurements(
            """SELECT id FROM measurements WHERE service = ? AND kind = 'samples' AND length(body) > 0
            ORDER BY end_ns DESC LIMIT ?""", service, most,
        )  # fmt: skip

    def _measurements(self, statement: str, *parameters: object) -> Iterator[Measurement]:
        """The measurements whose ids a statement gives, without those that were forgotten meanwhile."""
        with self._database.transaction() as execute:
            ids = [name for (name,) in execute(statement, *parameters).fetchall()]
        for name in ids:
            with self._database.transaction() as execute:
                row = execute("SELECT body FROM measurements WHERE id = ?", name).fetchone()
            if row and row[0]:
                yield _measurement(name, row[0])

    def forget(self, before_ns: int, most: int) -> None:
        """Drop what was measured before, except the last measurements of each function; that it was measured stays known.

        The ids stay, so that a measurement which arrives again does not count again.
        """
        with self._database.transaction() as execute:
            execute(
                """UPDATE measurements SET body = ? WHERE end_ns < ? AND length(body) > 0 AND id NOT IN
                (SELECT measurement FROM (SELECT measurement, ROW_NUMBER() OVER
                    (PARTITION BY service, component, metric ORDER BY end_ns DESC) AS place FROM observed) AS ranked
                WHERE place <= ?)""", b"", before_ns, most,
            )  # fmt: skip
            execute("DELETE FROM decisions WHERE at_ns < ?", before_ns)
            execute("DELETE FROM costs WHERE end_ns < ?", before_ns)

    def spend(self, service: str, stub: str, windows: Sequence[tuple[int, float, float]]) -> None:
        """Note what a stub took in windows: their ends, what counted against the budget, and its own CPU time."""
        with self._database.transaction() as execute:
            for end_ns, share, own in windows:
                execute(
                    "INSERT INTO costs VALUES (?, ?, ?, ?, ?) ON CONFLICT (stub, end_ns) DO NOTHING",
                    stub, service, end_ns, share, own,
                )  # fmt: skip

    def spent(self, service: str, since_ns: int) -> list[tuple[str, int, float, float]]:
        """Stub, end of a window, what counted against the budget in it, and the stub's own CPU time; in the order of time.

        Both are parts of the process's CPU time.
        """
        with self._database.transaction() as execute:
            rows = execute(
                "SELECT stub, end_ns, share, own FROM costs WHERE service = ? AND end_ns >= ? ORDER BY end_ns",
                service, since_ns,
            ).fetchall()  # fmt: skip
        return [tuple(row) for row in rows]


def calls_of(observed: Observed) -> int:
    """Calls in all observations."""
    paths = (one for each in observed.observations for one in each.paths.values())
    return sum(int(one.counts.sum()) + one.zeros for one in paths)


def _what(request: Request) -> str:
    """What is measured, in words."""
    return f"{request.kind} {', '.join(request.functions)}".strip()


def _measurement(name: str, body: Any) -> Measurement:
    return Measurement.from_json(zlib.decompress(bytes(body)).decode(), f"measurement {name}")
