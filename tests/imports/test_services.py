"""Several services with OpenTelemetry, each a process: what makes their requests slow is found in the spans that they write."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]

SERVICE = ROOT / "benchmarks" / "programs" / "otel_service.py"
REQUESTS = 120


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def spans(tmp_path_factory):
    """One file with the spans of shop, cart and price."""
    folder = tmp_path_factory.mktemp("services")
    ports = {name: free_port() for name in ("cart", "price", "shop")}
    calls = {"cart": [], "price": [], "shop": [ports["cart"], ports["price"]]}
    started = [
        subprocess.Popen(
            [sys.executable, SERVICE, name, str(ports[name]), folder / f"{name}.pb", *map(str, calls[name])]
        )
        for name in ports
    ]
    try:
        for port in ports.values():
            for _ in range(300):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
        for number in range(REQUESTS):
            address = f"http://127.0.0.1:{ports['shop']}/?number={number}&items={10 + number * 37 % 50}"
            with urlopen(address, timeout=30) as answer:
                answer.read()
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait(10)
    (folder / "all.pb").write_bytes(b"".join((folder / f"{name}.pb").read_bytes() for name in ports))
    return folder / "all.pb"


@pytest.mark.slow
def test_causes_that_were_planted_in_services_are_found(perflaw, tmp_path, spans):
    said = perflaw("import", "-e", "shop", str(spans)).stderr
    assert f"imported {REQUESTS * 5} calls, 5 functions" in said
    assert "left out" not in said
    (pattern,) = json.loads(perflaw("variance", "-e", "shop", "--json").stdout)["patterns"]
    assert pattern["root"] == "shop: GET"

    def shares(function):
        parts = json.loads(perflaw("variance", "-e", "shop", function, "--json").stdout)["function"]["parts"]
        return {part["component"]: part["cf_net"] for part in parts}

    # The own code of shop has the stalls of a busy machine, which no service is the cause of.
    of_shop = {name: share for name, share in shares("shop: GET").items() if name}
    assert of_shop["price: GET"] > 2 * of_shop["cart: GET"]
    assert shares("price: GET")["price: lookup"] > 0.8
    assert shares("cart: GET")["cart: load"] > 0.8
    laws = {
        one["component"]: one for one in json.loads(perflaw("annotate", "-e", "shop", "--json").stdout)["annotations"]
    }
    (growing,) = laws["cart: load"]["scopes"]
    assert growing["law"]["features"] == ["items"]
    assert 0.8 < growing["law"]["slope"]["items"] < 1.2  # waking up late adds to each
    hit, miss = sorted(
        (scope["law"]["predictions"][0]["mean"], scope["probability"]) for scope in laws["price: lookup"]["scopes"]
    )
    assert miss[0] > 5 * hit[0]
    assert 0.05 < miss[1] < 0.25
