"""What a controller takes, of CPU and memory, against the number of its stubs: hundreds of simulated ones over real TLS.

Each stub asks for instructions all the time and delivers a measurement every ten seconds: 3,000 calls of one of 20 functions
by three call paths, which is what a stub within a budget of a few percent delivers. All runs on this machine. Also: whether
everything that was acknowledged is stored, once.

Usage: fleet.py [--stubs 25,100,400] [--seconds 40] [--database postgresql://…]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from churn import children
from shared import ROOT

from perflaw.mine.fleet.enrolment import ControllerFolder, Enrolment, digest
from perflaw.mine.fleet.ledger import Ledger, Service
from perflaw.mine.messages import Request

sys.path.insert(0, str(ROOT))
from tests.mine.fleet.simulated import Simulated

EVERY_S = 10.0
FUNCTIONS = 20
START = "1700000000000000001"
"""Stands for the start of a measurement."""


class SimulatedStub:
    """One stub: two connections, as a real one has."""

    def __init__(self, number: int, enrolment: Enrolment, context: object, ends: float) -> None:
        self.id, self.host, self.enrolment, self.context, self.ends = (
            f"{number:016x}",
            f"host{number}",
            enrolment,
            context,
            ends,
        )
        self.source = Simulated(self.host, 1.0 + number % 5)
        template = self.source.measure(Request(1, "paths", ("shop.load",)))
        name = f"shop.load{number % FUNCTIONS}"
        paths = tuple((*path[:-1], name) for path in template.observed[0].paths)
        observed = (replace(template.observed[0], component=name, paths=paths),)
        self.text = replace(
            template, request=0, start_ns=int(START), end_ns=int(START) + 10**9, observed=observed
        ).to_json()
        self.delivered: list[str] = []
        self.waits: list[float] = []

    async def run(self) -> None:
        """Ask and deliver until the end."""
        await asyncio.sleep(float(np.random.default_rng(int(self.id, 16)).uniform(0, EVERY_S)))
        await asyncio.gather(self.ask(), self.deliver())

    async def ask(self) -> None:
        reader, writer = await self.open()
        about = {"id": self.id, "host": self.host, "program": "shop", "pid": 1, "build": "b"}
        await self.post(reader, writer, "/v1/register", json.dumps(about).encode())
        version = 0
        while (left := self.ends - time.monotonic()) > 0:
            question = {
                "id": self.id,
                "version": version,
                "wait_s": min(left, 25.0),
                "spooled": 0,
                "refused": [],
                "spent": [],
            }
            version = (await self.post(reader, writer, "/v1/poll", json.dumps(question).encode()))["version"]
        writer.close()

    async def deliver(self) -> None:
        reader, writer = await self.open()
        while time.monotonic() < self.ends:
            text = self.made()
            name = hashlib.sha256(text.encode()).hexdigest()[:32]
            body = zlib.compress(f"{name} {text}".encode(), 1)
            began = time.monotonic()
            answer = await self.post(
                reader, writer, f"/v1/measurements?stub={self.id}", body, "Content-Encoding: deflate\r\n"
            )
            self.waits.append(time.monotonic() - began)
            assert answer == {"stored": 1, "refused": {}}, answer
            self.delivered.append(name)
            await asyncio.sleep(EVERY_S)
        writer.close()

    def made(self) -> str:
        """The JSON form of a measurement of now; making it anew would take this machine's CPU from the controller."""
        return self.text.replace(START, str(time.time_ns()))

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.enrolment.address.rpartition(":")
        return await asyncio.open_connection(host, int(port), ssl=self.context)

    async def post(self, reader, writer, path: str, body: bytes, more: str = "") -> dict:
        head = f"POST {path} HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer {self.enrolment.token}\r\n{more}"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status = await reader.readline()
        length = 0
        while (line := await reader.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        text = await reader.readexactly(length)
        assert b" 200 " in status, (status, text)
        return json.loads(text)


def measured(stubs: int, seconds: float, folder: Path, database: str) -> list[str]:
    """One row of the table."""
    settings = ControllerFolder.make(folder / "controller", "127.0.0.1:0", (), database)
    ledger = Ledger(settings.database)
    enrolment = settings.enrol(f"shop{stubs}", ("shop.*",))
    ledger.enrol(Service(enrolment.service, ("shop.*",), 0.02), digest(enrolment.token))
    command = [sys.executable, "-m", "perflaw", "controller", "serve", "--folder", str(settings.path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as controller:
        assert "listens" in controller.stderr.readline()
        before_s = cpu_s(controller.pid)
        simulated = asyncio.run(fleet(stubs, seconds, enrolment))
        taken = (cpu_s(controller.pid) - before_s) / (seconds + EVERY_S)
        peak = sum(peak_mb(one) for one in (controller.pid, *children(controller.pid)))
        controller.terminate()
    acknowledged = {name for stub in simulated for name in stub.delivered}
    with ledger._database.transaction() as execute:
        rows = execute("SELECT id FROM measurements WHERE service = ?", enrolment.service).fetchall()
    stored = [name for (name,) in rows]
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    ledger.close()
    waits = sorted(wait for stub in simulated for wait in stub.waits)
    elapsed = seconds + EVERY_S
    return [
        str(stubs), f"{len(acknowledged) / elapsed:.1f}", f"{taken:.0%}", f"{peak:.0f} MB",
        f"{statistics.median(waits) * 1e3:.0f} ms", f"{waits[int(0.99 * len(waits))] * 1e3:.0f} ms",
    ]  # fmt: skip


def peak_mb(pid: int) -> float:
    """The most that a process had in memory, MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def cpu_s(pid: int) -> float:
    """CPU time of a process and its children, s, those that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_s, children(pid)))


async def fleet(stubs: int, seconds: float, enrolment: Enrolment) -> list[SimulatedStub]:
    """Run so many stubs for so long."""
    context = enrolment.context()
    ends = time.monotonic() + seconds + EVERY_S
    simulated = [SimulatedStub(number, enrolment, context, ends) for number in range(stubs)]
    await asyncio.gather(*(one.run() for one in simulated))
    return simulated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stubs", default="25,100,400")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--database", default="", help="a PostgreSQL database; SQLite if not given")
    asked = parser.parse_args()
    print("stubs  measurements/s  CPU of the controller  peak memory  acknowledged after, median  99 %")
    for stubs in map(int, asked.stubs.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            row = measured(stubs, asked.seconds, Path(folder), asked.database)
        print("  ".join(row), flush=True)


if __name__ == "__main__":
    main()
