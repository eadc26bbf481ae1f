"""Mining in a running service: mine_live.py [PAIRS] [CLEAN_SECONDS]: 4 pairs for each budget and 120 seconds as a rule.

Starlette on uvicorn under load from a second process. It is mined without a restart, within budgets of 2, 5 and 10 % of its
CPU time; requests for each second of its CPU time, with the loop and without in turns, say what that costs. Its specifications
are then held against it continuously: first as it is, then with a query planted on one call path at a moment that the check
does not know.
"""

from __future__ import annotations

import json
import math
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mine_web import PACKAGES, free_port
from shared import PROGRAMS, Bars, environment

from perflaw.mine.budget import work_counters

TARGETS, POINT = (0.02, 0.05, 0.10), 0.01
ON_S, OFF_S, MINED_S, FOUND_S = 30.0, 15.0, 120.0, 120.0
CALLEE = "service.Store.rows"


class Load:
    """The service with its load, and how many answers it has given."""

    def __init__(self, python: str) -> None:
        self.port, self.answers = free_port(), 0
        self.service = subprocess.Popen(
            [python, str(PROGRAMS / "service.py"), str(self.port)], stdout=subprocess.DEVNULL
        )
        command = [sys.executable, str(PROGRAMS / "service_rate.py"), str(self.port), "1"]
        self.load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        while not self.answers:
            time.sleep(0.1)

    def _read(self) -> None:
        assert self.load.stdout
        for line in self.load.stdout:
            self.answers = int(line)

    def measured(self) -> tuple[int, int]:
        """Answers and CPU time of the service so far."""
        return self.answers, work_counters(self.service.pid).cpu_ns

    def end(self) -> None:
        """End both; the service has to end as always."""
        assert self.load.stdin
        self.load.stdin.close()
        self.load.wait(60)
        assert self.service.wait(60) == 0


def mining(folder: Path, load: Load, budget: float, seconds: float, *more: str) -> str:
    command = [sys.executable, "-m", "perflaw", "mine", "--attach", str(load.service.pid), "--seconds", str(seconds)]
    done = subprocess.run([*command, "--budget", f"{budget:.0%}", *more], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"perflaw mine: {done.stderr[-2000:]}")
    return done.stdout


def cost(load: Load, seconds: float) -> float:
    """CPU time for each answer in these seconds."""
    before = load.measured()
    time.sleep(seconds)
    after = load.measured()
    return (after[1] - before[1]) / max(after[0] - before[0], 1)


def loss(folder: Path, load: Load, target: float, pairs: int) -> list[float]:
    """Loss of throughput for each second of CPU time, of each pair."""
    found = []
    for pair in range(pairs):
        off = cost(load, OFF_S / 2)
        before = load.measured()
        worker = threading.Thread(target=mining, args=(folder, load, target, ON_S, "-e", f"loss{target:g}-{pair}"))
        worker.start()
        time.sleep(ON_S)
        after = load.measured()
        worker.join()
        off = math.sqrt(off * cost(load, OFF_S / 2))
        found.append(1 - off / ((after[1] - before[1]) / max(after[0] - before[0], 1)))
    return found


@contextmanager
def watching(folder: Path, load: Load) -> Iterator[list[str]]:
    """The lines that a continuous check has printed so far."""
    command = [sys.executable, "-m", "perflaw", "check", "live.yaml", "--attach", str(load.service.pid), "--watch"]
    told: list[str] = []
    with subprocess.Popen([*command, "-e", "watch", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True) as check:
        assert check.stdout
        threading.Thread(target=lambda: told.extend(check.stdout), daemon=True).start()
        yield told
        check.send_signal(signal.SIGINT)


def main(pairs: int = 4, clean_s: int = 120) -> None:
    bars, load = Bars(), Load(environment("3.11", PACKAGES, "mine_web"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        specs = json.loads(mining(folder, load, 0.1, MINED_S, "--json"))["specs"]
        exported = [sys.executable, "-m", "perflaw", "mine", "--export", "yaml"]
        text = subprocess.run(exported, cwd=folder, capture_output=True, text=True, check=True).stdout
        (folder / "live.yaml").write_text(text)
        grouped = [one for one in specs if len(one["groups"]) > 1]
        print(f"functions: {len(specs)}, with groups of call paths: {len(grouped)}")
        print("most edges:", bars.check("most edges", max((len(one["edges"]) for one in specs), default=0), 8))
        with watching(folder, load) as told:
            time.sleep(clean_s)
            alarms = "".join(told).count('"violated"')
            print("".join(told)[:2000])
            print(f"alarms in {clean_s} s:", bars.check("alarms", alarms, 0))
            told.clear()
            time.sleep(random.uniform(1, 10))
            urllib.request.urlopen(f"http://127.0.0.1:{load.port}/plant").read()
            planted = time.monotonic()
            while CALLEE not in "".join(told) and time.monotonic() - planted < FOUND_S:
                time.sleep(0.1)
            print(f"planted query told after {time.monotonic() - planted:.0f} s (bar {FOUND_S:g})")
            time.sleep(0.5)
            named = "service.stock_of -> service.Store.rows" in "".join(told)
            print("told by its edge:", bars.check("told by its edge", int(named), 1, least=True))
        for target in TARGETS:
            found = loss(folder, load, target, pairs)
            middle = statistics.median(found)
            print(f"target {target:.0%}: loss {middle:.1%} ({min(found):.1%} to {max(found):.1%})",
                  bars.check(f"loss at {target:.0%}", middle, target + POINT))  # fmt: skip
        load.end()
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
