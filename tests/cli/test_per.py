"""``--per FUNCTION``: each call of a function is an observation, as a request of a running service is one."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perflaw.store.experiment import open_experiment
from perflaw.store.observations import read_observations
from perflaw.types import EVENTS, ProgramCosts
from tests.conftest import Run
from tests.report.test_html import data_of

SERVICE = """
import asyncio, socket
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

def price(item):
    return len(item) * 3

def total(items):
    return sum([price(item) for item in items])

async def order(request):
    items = await request.json()
    return JSONResponse({"total": total(items)})

app = Starlette(routes=[Route("/order", order, methods=["POST"])])
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
asyncio.run(server.serve(sockets=[listening]))
"""
SIZES = (1, 2, 5, 10, 20, 50, 100)
APP = """
import sys

def leaf(n):
    return n

def pieces(n):
    for i in range(n):
        yield leaf(i)

def handle(n):
    if n == 3:
        handle(2)
    return sum(pieces(n)) + leaf(n)

for n in (1, 2, 3, 5, 8, 13):
    handle(n)
    leaf(n)
"""


def costs(folder: Path) -> ProgramCosts:
    found = read_observations(open_experiment("default", folder).recordings(), EVENTS)
    assert found
    return found


def calls_by_size(found: ProgramCosts, function: str, feature: str) -> dict[float, set[float]]:
    """Value of a feature → the numbers of calls of a function in the observations that have it."""
    [place] = [place for place, one in enumerate(found.components) if one.name.endswith(f".{function}")]
    calls: dict[float, set[float]] = {}
    for run, of_run in zip(found.runs, found.calls, strict=True):
        calls.setdefault(run.features[feature], set()).add(float(of_run[place]))
    return calls


@contextmanager
def service(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A running web service and its port."""
    (folder / "service.py").write_text(SERVICE)
    command = [sys.executable, "service.py"]
    with subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout
            yield program, int(program.stdout.readline())
        finally:
            program.terminate()


@contextmanager
def load(port: int) -> Iterator[None]:
    """Orders of all sizes, one after the other, as long as it is entered."""
    over, answers = threading.Event(), list[bool]()

    def send() -> None:
        while not over.is_set():
            for size in SIZES:
                body = json.dumps(["thing"] * size).encode()
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", "/order", body)
                answers.append(json.load(connection.getresponse()) == {"total": 15 * size})
                connection.close()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join()
    assert answers
    assert all(answers)


ITEMS = "service.total.items.len"


@pytest.mark.slow
def test_requests_of_a_running_service_are_observations(perflaw: Run, tmp_path: Path) -> None:
    with service(tmp_path) as (program, port), load(port):
        said = perflaw("attach", program.pid, "--per", "order", "--seconds", "3").stderr
    assert " observations" in said
    found = costs(tmp_path)
    assert found.per
    assert found.per.name == "service.order"
    assert calls_by_size(found, "price", ITEMS) == {size: {size} for size in SIZES}
    assert calls_by_size(found, "total", ITEMS) == {size: {1} for size in SIZES}
    assert calls_by_size(found, "order", ITEMS) == {size: {1} for size in SIZES}


@pytest.mark.slow
def test_laws_of_requests_are_those_of_their_sizes(perflaw: Run, tmp_path: Path) -> None:
    with service(tmp_path) as (program, port), load(port):
        perflaw("attach", program.pid, "--per", "order", "--seconds", "3")
    text = perflaw("annotate", "--metric", "events").stdout
    assert "events in a call of order" in text
    at = perflaw("annotate", "--metric", "events", "--at", f"{ITEMS}=1000", "--json", "-o", "order.law").stdout
    document = json.loads(at)
    assert document["program"]["per"] == "service.order"
    by_name = {one["component"]: one for one in document["annotations"]}
    assert by_name["service.price"]["predicted"]["mean"] == pytest.approx(1000)
    assert by_name["service.order"]["run_law"]["family"] == "linear"
    assert by_name["service.order"]["share"] == 1.0
    assert "uvicorn.server.Server.serve" not in by_name
    # Other features follow from the number of items, as the length of the body does: the point says which is asked for.
    predicted = perflaw("predict", "order.law", f"{ITEMS}=1000").stdout
    assert "service.order" in predicted
    assert "one new call of order" in predicted
    perflaw("report", "--metric", "events")
    assert data_of((tmp_path / "report.html").read_text())["per"] == "call of order"


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_calls_of_a_function_are_observations_of_a_run(perflaw: Run, tmp_path: Path, tracer: str) -> None:
    (tmp_path / "app.py").write_text(APP)
    perflaw("record", "--tracer", tracer, "--per", "app.handle", "--", "app.py")
    found = costs(tmp_path)
    sizes = (1, 2, 3, 5, 8, 13)
    # The call with 3 makes another one, which is a part of it and no observation.
    assert calls_by_size(found, "handle", "n") == {n: {2.0 if n == 3 else 1.0} for n in sizes}
    assert calls_by_size(found, "leaf", "n") == {n: {n + 1 + 3.0 * (n == 3)} for n in sizes}
    assert calls_by_size(found, "pieces", "n") == {n: {2.0 if n == 3 else 1.0} for n in sizes}
    [handle] = [place for place, one in enumerate(found.components) if one.name == "app.handle"]
    assert all(
        handle in active for active, calls in zip(found.active, found.context_calls.T, strict=True) if calls.any()
    )


def test_what_is_no_observation_is_said(perflaw: Run, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    assert (
        "--per handel: no call of a function of that name"
        in perflaw("record", "--per", "handel", "--", "app.py").stderr
    )
    assert "time per call" in perflaw("annotate").stdout
    perflaw("record", "--per", "handle", "--", "app.py")
    refused = perflaw("annotate", status=2)
    assert "recordings per handel and handle" in refused.stderr


def test_functions_of_the_same_name_are_told_apart(perflaw: Run, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("class A:\n def f(self): pass\nclass B:\n def f(self): pass\nA().f()\nB().f()\n")
    perflaw("record", "--per", "f", "--", "app.py")
    refused = perflaw("annotate", status=2)
    assert "app.A.f and of app.B.f" in refused.stderr
    perflaw("record", "-e", "one", "--per", "B.f", "--", "app.py")
    assert "time in a call of f" in perflaw("annotate", "-e", "one").stdout


@pytest.mark.slow
def test_laws_of_observations_are_checked_and_compared(perflaw: Run, tmp_path: Path) -> None:
    """More calls within an observation are told; the same calls are not."""
    app = APP.replace("n == 3", "n < 0").replace("8, 13", "8, 13, 20, 30, 50, 80, 120, 200, 300")
    (tmp_path / "app.py").write_text(app)
    record = ("record", "--clock", "fake", "--repeat", "3", "--per", "app.handle")
    perflaw(*record, "--", "app.py")
    perflaw("annotate", "--metric", "events", "-o", "handle.law")
    perflaw(*record, "-e", "same", "--", "app.py")
    assert "violated" not in perflaw("check", "handle.law", "-e", "same").stdout
    assert "violated" not in perflaw("diff", "default", "same", "--metric", "events").stdout
    (tmp_path / "app.py").write_text(app.replace("sum(pieces(n))", "sum(pieces(n)) + sum(pieces(n))"))
    perflaw(*record, "-e", "more", "--", "app.py")
    for told in (
        perflaw("check", "handle.law", "-e", "more", status=1).stdout,
        perflaw("diff", "default", "more", "--metric", "events", status=1).stdout,
    ):
        assert "violated app.handle" in " ".join(told.split())
