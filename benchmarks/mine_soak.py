"""A fleet at load for an hour: mine_soak.py [SECONDS] [BUDGET]. Probes go in and out of a service all the time.

A service on Starlette answers as fast as it can. A stub beside it measures what a controller asks for, who keeps all
measurements in PostgreSQL and shows its page. Resident memory of the service, the stub and the controller is sampled; after
a warm-up of a third of the time the straight line through the samples must not rise by more than 2 MB. Each page that is asked
for again has to have the same text as before, and the service has to end as always. All measurements have to arrive.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from churn import RISE_MB, Samples, children, resident, rise, told
from mine_live import Load
from mine_web import PACKAGES, free_port
from shared import ROOT, Bars, environment

from perflaw.mine.fleet.enrolment import ControllerFolder
from perflaw.mine.fleet.ledger import Ledger

sys.path.insert(0, str(ROOT))
from tests.mine.fleet.postgres import PostgresServer

EVERY_S, ENDED_S = 1.0, 120.0


def perflaw(*words: str) -> list[str]:
    return [sys.executable, "-m", "perflaw", *words]


def started(folder: Path, name: str, command: list[str]) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def soak(folder: Path, database: str, load: Load, seconds: float, budget: str) -> tuple[dict[str, Samples], int]:
    """Memory of each process by second, and the number of measurements."""
    init = perflaw("controller", "init", "--listen", "127.0.0.1:0", "--database", database)
    subprocess.run(init, cwd=folder, check=True)
    enrolment = folder / "shop.enrolment"
    enrolment.touch(0o600)
    with enrolment.open("wb") as text:
        enrol = perflaw("controller", "enrol", "shop", "--allow", "service.*", "--budget", budget)
        subprocess.run(enrol, cwd=folder, check=True, stdout=text)
    page = f"127.0.0.1:{free_port()}"
    controller = started(folder, "controller", perflaw("controller", "serve", "--page", page))
    stub = started(folder, "stub", perflaw("stub", enrolment.name, "--attach", str(load.service.pid)))
    print(f"page at http://{page}/", file=sys.stderr)
    samples: dict[str, Samples] = {"target": [], "stub": [], "controller": []}
    processes = dict(zip(samples, (load.service, stub, controller), strict=True))
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        for name, process in processes.items():
            if process.poll() is not None:
                log = folder / f"{name}.log"
                sys.exit(f"the {name} has ended: {log.read_text() if log.exists() else ''}")
            kept = children(process.pid) if process is controller else ()
            samples[name].append((passed, sum(map(resident, (process.pid, *kept)))))
        assert load.load.poll() is None, "a wrong answer"
        time.sleep(EVERY_S)
    stub.terminate()
    assert stub.wait(ENDED_S) == 0, (folder / "stub.log").read_text()
    left = len(list((folder / "shop.spool" / "pending").iterdir()))
    ledger = Ledger(ControllerFolder.open(folder / "controller").database)
    count = sum(one.measurements for one in ledger.coverage("shop"))
    ledger.close()
    controller.terminate()
    controller.wait(ENDED_S)
    assert not left, f"{left} measurements are not delivered"
    return samples, count


def main(seconds: str = "3600", budget: str = "10%") -> None:
    bars, length = Bars(), float(seconds)
    server = PostgresServer()
    load = Load(environment("3.11", PACKAGES, "mine_web"))
    try:
        with tempfile.TemporaryDirectory() as name:
            samples, count = soak(Path(name), server.url, load, length, budget)
    finally:
        server.close()
    answers = load.answers[-1][1]
    load.end()
    print(f"{length:.0f} s, {answers:,} answers, none of them wrong; probes went in and out {count:,} times", end=" ")
    print(bars.check("measurements a minute", 60 * count / length, 1, least=True))
    print("MB at 0, 10, 33, 67 and 100 % of the time")
    for who, some in samples.items():
        beside = bars.check(f"rise of the {who}, MB", rise(some, length), RISE_MB)
        print(told(who, some, length), beside)
    bars.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
