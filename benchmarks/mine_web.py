"""Specifications of a web service under load from a second process, and a query planted on one call path: mine_web.py [RUNS].

Starlette on uvicorn with SQLite behind it. Five runs are mined, and merged one after the other with one at half the
processors; as many clean runs as asked for are checked against the specifications of the five, one by one and all together,
and at last runs in which one call path has an extra query.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mined import merged, show
from quota import quota
from shared import PROGRAMS, Bars, environment, recorded

PACKAGES = ("starlette==0.46.2", "uvicorn==0.34.2")
REQUESTS, MINED, HALF, PLANTED = 3_000, 5, 1.0, 3
CALLER, CALLEE = "service.basket", "service.stock_of"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def record(python: str, folder: Path, experiment: str, seed: int, *more: str, share: float | None = None) -> None:
    """One run under load; ``share`` of one processor for the service and its recorder, None for all there are."""
    port = str(free_port())
    target = [python, str(PROGRAMS / "service.py"), port, *more]
    command = recorded("-e", experiment, "--collect", "paths", "--", *target)
    load = [sys.executable, str(PROGRAMS / "service_load.py"), port, str(REQUESTS), str(seed)]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as service:
        with quota(service.pid, share) if share else contextlib.nullcontext():
            loaded = subprocess.run(load, capture_output=True, text=True, timeout=300)
            if share:
                service.wait(120)
        if loaded.returncode:
            service.terminate()
        _, words = service.communicate(timeout=120)
    if loaded.returncode or service.returncode:
        sys.exit(f"{' '.join(command)}: {words}\n{loaded.stderr}")
    print(f"    {words.strip()}", file=sys.stderr)


def perflaw(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "perflaw", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"perflaw {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def violated(folder: Path, experiment: str, *runs: str) -> list[dict[str, Any]]:
    text = perflaw(folder, "check", "service.yaml", "-e", experiment, "--json", *runs)
    return [one for one in json.loads(text)["verdicts"] if one["verdict"] == "violated"]


def named(path: str) -> bool:
    """Whether it is the edge from the basket (on Python 3.11 from its comprehension) to the query."""
    caller, _, callee = path.strip('"').partition(" -> ")
    return caller.startswith(CALLER) and callee == CALLEE


def main(clean: int = 20) -> None:
    bars, python = Bars(), environment("3.11", PACKAGES, "mine_web")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(MINED):
            record(python, folder, "default", seed)
        (folder / "service.yaml").write_text(perflaw(folder, "mine", "--export", "yaml"))
        specs = json.loads(perflaw(folder, "mine", "--json"))["specs"]
        told = [one for one in specs if len(one["groups"]) > 1]
        print(f"functions with groups: {len(told)}")
        print("most edges:", bars.check("most edges of one specification", max(len(one["edges"]) for one in told), 8))
        record(python, folder, "default", MINED, share=HALF)
        bars.check("consistent after all merges", float(show(merged(folder, "default"))), 1, least=True)
        for seed in range(clean):
            record(python, folder, "clean", 100 + seed)
        alarms = [one for run in range(clean) for one in violated(folder, "clean", f"{run + 1:04d}")]
        alarms += violated(folder, "clean")
        print(
            f"alarms in {clean} clean runs: {len(alarms)}",
            bars.check(f"alarms in {clean} clean runs", len(alarms), 0),
            alarms or "",
        )
        for seed in range(PLANTED):
            record(python, folder, "planted", 200 + seed, "extra")
        print(perflaw(folder, "check", "service.yaml", "-e", "planted"))
        found = violated(folder, "planted")
        told_by_edge = [one for one in found if named(one["path"])]
        print(
            "planted query told by its edge:",
            bars.check("planted query told by its edge", len(told_by_edge), 1, least=True),
        )
        print("others told:", bars.check("others told", len(found) - len(told_by_edge), 0))
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
