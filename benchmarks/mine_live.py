"""Mining in a running service: mine_live.py [LOSS_SECONDS] [CLEAN_SECONDS]: 300 for each budget, and 120; 0 leaves a part out.

Starlette on uvicorn under load from a second process. It is mined without a restart, and its specifications are then held
against it continuously: first as it is, then with a query planted on one call path at a moment that the check does not know.
Then it is mined within budgets of 2, 5 and 10 % of its CPU time; CPU time for an answer in each time with probes and in those
beside it says what that costs. Of the measures at hand that is the steadiest where other programs share the machine, and
more so if pages are asked for in turns; the benchmark first tells by how much.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mine_web import PACKAGES, free_port
from numpy.typing import NDArray
from shared import PROGRAMS, Bars, environment

from perflaw.mine.journal import read_journal
from perflaw.store.experiment import open_experiment

TARGETS, POINT = (0.02, 0.05, 0.10), 0.01
MINED_S, FOUND_S, FEWEST_ANSWERS, NOISE_S = 120.0, 120.0, 20, 40
CALLEE = "service.Store.rows"
RIGHT_EDGE = r"service\.(basket\S* -> service\.stock_of|stock_of -> service\.Store\.rows)"
"""The planted query is run where a basket asks for the stock; most other calls that ``stock_of`` makes are as before."""
TWO_SIDED = 1.96
"""Standard errors of a 95 % interval."""


class Load:
    """The service with its load, and how many answers it has given."""

    def __init__(self, python: str, *more: str) -> None:
        """``more``: "turns" if pages are not drawn at random."""
        self.port = free_port()
        self.answers: list[tuple[int, int]] = []
        """Moments, ns since 1970, with the number of answers so far."""
        self.service = subprocess.Popen(
            [python, str(PROGRAMS / "service.py"), str(self.port)], stdout=subprocess.DEVNULL
        )
        command = [sys.executable, str(PROGRAMS / "service_rate.py"), str(self.port), "1", *more]
        self.load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        while not self.answers:
            time.sleep(0.1)

    def _read(self) -> None:
        assert self.load.stdout
        for line in self.load.stdout:
            moment, answers = line.split()
            self.answers.append((int(moment), int(answers)))

    def end(self) -> None:
        """End both; the service has to end as always."""
        assert self.load.stdin
        self.load.stdin.close()
        self.load.wait(60)
        assert self.service.wait(60) == 0


def mining(folder: Path, load: Load, budget: float, seconds: float, *more: str) -> str:
    """What ``mine --attach`` prints; tells the memory of the service and of the loop in the second third and in the last."""
    command = [sys.executable, "-m", "perflaw", "mine", "--attach", str(load.service.pid), "--seconds", str(seconds)]
    memory: list[tuple[float, float]] = []
    with (folder / "told").open("w+") as told, (folder / "errors").open("w+") as errors:
        with subprocess.Popen(
            [*command, "--budget", f"{budget:.0%}", *more], cwd=folder, stdout=told, stderr=errors
        ) as loop:
            while loop.poll() is None:
                with contextlib.suppress(OSError, StopIteration):  # it ends
                    memory.append((memory_mb(load.service.pid), memory_mb(loop.pid)))
                time.sleep(0.5)
        if loop.returncode:
            sys.exit(f"perflaw mine: {(folder / 'errors').read_text()[-2000:]}")
    for who, of_one in zip(("the service", "the loop"), zip(*memory, strict=True), strict=True):
        third = len(of_one) // 3
        first, last = (float(np.median(some)) for some in (of_one[third : 2 * third], of_one[2 * third :]))
        print(f"memory of {who}: {first:.0f} MB in the second third, {last:.0f} MB in the last one")
    return (folder / "told").read_text()


def memory_mb(pid: int) -> float:
    """Memory of a process that is resident now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@dataclass(frozen=True)
class Watched:
    """What a service took and gave over some time."""

    cpu: list[tuple[int, int]]
    """Moments, ns since 1970, with its CPU time so far, ns."""
    answers: list[tuple[int, int]]
    """Moments with the number of its answers so far."""

    def grown(self, starts: NDArray[np.float64], ends: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """CPU time and answers between these moments (n,)."""
        both = (np.array(rows, float).T for rows in (self.cpu, self.answers))
        return tuple(np.interp(ends, *rows) - np.interp(starts, *rows) for rows in both)


@contextmanager
def watched(load: Load) -> Iterator[Watched]:
    """CPU time of the service, a hundred times a second, and its answers."""
    cpu: list[tuple[int, int]] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            cpu_ns = 0
            for task in Path(f"/proc/{load.service.pid}/task").glob("*"):
                with contextlib.suppress(OSError):  # the thread has ended
                    cpu_ns += int((task / "schedstat").read_text().split()[0])
            cpu.append((time.time_ns(), cpu_ns))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield Watched(cpu, load.answers)
    finally:
        over.set()
        thread.join()


def beside(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of costs in times one after the other (n,), the geometric mean of the two beside each but the first and last."""
    return np.sqrt(costs[:-2] * costs[2:])


def noise(load: Load, seconds: int) -> None:
    """How much seconds differ from those beside them, by each measure, while nothing is measured."""
    with watched(load) as rows:
        began = time.time_ns()
        time.sleep(seconds)
    moments = began + 1e9 * np.arange(seconds)
    cpu_ns, answers = rows.grown(moments[:-1], moments[1:])
    told = [
        f"{name} {np.log(costs[1:-1] / beside(costs)).std():.1%}"
        for name, costs in {"time for an answer": 1e9 / answers, "CPU time for an answer": cpu_ns / answers}.items()
    ]
    print(
        f"standard deviation of a second from those beside it: {', '.join(told)}; {answers.sum() / seconds:.0f} answers/s"
    )


def probed(journal: list[dict[str, Any]]) -> NDArray[np.float64]:
    """When probes went in, and when they were out again: (n, 2), ns since 1970."""
    times = []
    for one in journal:
        if one["event"] == "decision" and one["kind"] != "samples":
            begun = one["at_ns"]
        elif one["event"] == "measurement":
            times.append((begun, begun + 1e9 * one["seconds"]))
    return np.array(times)


def loss(folder: Path, load: Load, target: float, seconds: float) -> tuple[float, float, int]:
    """Part of the service's CPU time that mining takes, its standard error, and the number of pairs.

    The loop itself alternates times with probes and times without, many a minute. CPU time for an answer is compared between
    each time with probes and the two beside it, so that what other programs do to both drops out. Requests for each second of
    CPU time are fewer by the same part.
    """
    name = f"loss{target:g}"
    with watched(load) as rows:
        mining(folder, load, target, seconds, "-e", name)
    journal = read_journal(open_experiment(name, folder).folder)
    starts, ends = probed(journal).T
    cpu_ns, answers = rows.grown(starts, ends)
    rest_ns, rest_answers = rows.grown(ends[:-1], starts[1:])
    rests = rest_ns / np.maximum(rest_answers, 1)
    excess = cpu_ns[1:-1] - answers[1:-1] * np.sqrt(
        rests[:-1] * rests[1:]
    )  # the first and the last have no rest on one side
    inside = cpu_ns[1:-1]
    enough = np.minimum(rest_answers[:-1], rest_answers[1:]) >= FEWEST_ANSWERS
    excess, inside = excess[enough], inside[enough]
    low, high = np.quantile(excess / inside, (0.05, 0.95))  # a neighbour on the machine disturbs some
    excess = np.clip(excess, low * inside, high * inside)
    [whole_ns], _ = rows.grown(np.array([journal[0]["at_ns"]]), np.array([journal[-1]["at_ns"]]))
    whole = whole_ns * len(excess) / len(starts)  # the part of the time that these pairs stand for
    return excess.sum() / whole, excess.std() * math.sqrt(len(excess)) / whole, len(excess)


@contextmanager
def watching(folder: Path, load: Load) -> Iterator[list[str]]:
    """The lines that a continuous check has printed so far."""
    command = [sys.executable, "-m", "perflaw", "check", "live.yaml", "--attach", str(load.service.pid), "--watch"]
    told: list[str] = []
    with subprocess.Popen([*command, "-e", "watch", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True) as check:
        assert check.stdout
        threading.Thread(target=lambda: told.extend(check.stdout), daemon=True).start()
        yield told
        check.terminate()  # a benchmark in the background, and what it starts, are deaf to Ctrl-C


def plant(folder: Path, load: Load, clean_s: int, bars: Bars) -> None:
    """Mine, hold the service against what was mined, plant a query, and see whether it is told."""
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
        named = re.search(RIGHT_EDGE, "".join(told)) is not None
        print("" if named else "".join(told)[:2000], end="")
        print("told by its edge:", bars.check("told by its edge", int(named), 1, least=True))


def main(loss_s: int = 300, clean_s: int = 120) -> None:
    bars, python = Bars(), environment("3.11", PACKAGES, "mine_web")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if clean_s:
            load = Load(python)
            plant(folder, load, clean_s, bars)
            load.end()
        if loss_s:
            for more in ((), ("turns",)):
                load = Load(python, *more)
                print("pages in turns:" if more else "pages at random:", end=" ")
                noise(load, NOISE_S)
                if not more:
                    load.end()
            for target in TARGETS:
                part, error, count = loss(folder, load, target, loss_s)
                low, high = part - TWO_SIDED * error, part + TWO_SIDED * error
                needed = loss_s / 60 * (TWO_SIDED * error / POINT) ** 2
                print(f"target {target:.0%}: loss {part:.1%}, 95 % interval {low:.1%} to {high:.1%}", end=" ")
                print(f"({count} pairs); {POINT:.0%} to each side after {needed:.0f} min", end=" ", flush=True)
                print(bars.check(f"loss at {target:.0%}", part, target + POINT), flush=True)
            load.end()
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
