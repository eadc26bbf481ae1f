"""Mining in a running service: mine_live.py [LOSS_SECONDS] [CLEAN_SECONDS] [PAIRED_SECONDS]; 0 leaves a part out.

300 s for each budget, 120 s and 600 s if they are not given. ``--mined SECONDS`` is how long the service is mined before it
is held against its specifications (300), and ``--keep FOLDER`` keeps the recordings, the journals and what the check told.
``--night SECONDS`` lets the client pause for 50 ms after each request for so long, before the query is planted (0): a service
that waits longer for its clients is no slower.

Starlette on uvicorn under load from a second process. It is mined without a restart, and its specifications are then held
against it continuously: first as it is, then with a query planted on one call path at a moment that the check does not know.
Then it is mined within budgets of 2, 5 and 10 % of its CPU time, beside a second service that nobody measures and that gets the
same requests at the same time. What the mined one takes with probes beyond the other one, and without probes does not, is the
cost. The ratio of both is the steadiest measure at hand where other programs share the machine.

In the last part mining itself goes on and off by turns. What it takes as a whole, samples, stops and what probes leave behind
included, is compared with what its own account says, so that a cost which the account does not know would show.
"""

from __future__ import annotations

import argparse
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
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from mine_web import PACKAGES, free_port
from numpy.typing import NDArray
from shared import PROGRAMS, Bars, Change, environment

from perflaw.mine.journal import read_journal
from perflaw.special import stdtrit
from perflaw.store.experiment import open_experiment

TARGETS, POINT = (0.02, 0.05, 0.10), 0.01
FOUND_S, REST_S = 120.0, 20.0
BLOCKS = 8, 40
"""Least and most blocks of requests that the error of a loss is known from."""
CALLEE = "service.Store.rows"
RIGHT_EDGE = r"service\.(basket\S* -> service\.stock_of|stock_of -> service\.Store\.rows)"
"""The planted query is run where a basket asks for the stock; most other calls that ``stock_of`` makes are as before."""
NIGHT_PAUSE_S = 0.05
PAIR_S = 30.0
"""Length of each time with mining and of each one without, by turns."""
PAIRED_TARGET = 0.05
TWO_SIDED = 1.96
"""Standard errors of a 95 % interval."""


class Load:
    """Services with their load, and how many answers each has given. The first one is mined, others are left alone."""

    def __init__(self, python: str, services: int = 1) -> None:
        """Several services get the same requests in the same order, and keep an account of their CPU time."""
        self.ports = [free_port() for _ in range(services)]
        self.answers: list[tuple[int, int]] = []
        """Moments, ns since 1970, with the number of answers so far."""
        self.services = [
            subprocess.Popen(
                [python, str(PROGRAMS / "service.py"), str(port), *(("account",) if services > 1 else ())],
                stdout=subprocess.DEVNULL,
            )
            for port in self.ports
        ]
        self.service = self.services[0]
        command = [sys.executable, str(PROGRAMS / "service_rate.py"), ",".join(map(str, self.ports)), "1"]
        self.load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        while not self.answers:
            time.sleep(0.1)

    def _read(self) -> None:
        assert self.load.stdout
        for line in self.load.stdout:
            moment, answers = line.split()
            self.answers.append((int(moment), int(answers)))

    def pause(self, seconds: float) -> None:
        """Have the client pause so long after each request from now on."""
        assert self.load.stdin
        self.load.stdin.write(f"{seconds}\n")
        self.load.stdin.flush()

    def end(self) -> None:
        """End all; the services have to end as always."""
        assert self.load.stdin
        self.load.stdin.close()
        self.load.wait(60)
        assert [service.wait(60) for service in self.services] == [0] * len(self.services)


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
class Account:
    """The requests that a service has answered one after the other, (n,) each, beside a service that nobody measures."""

    moments: NDArray[np.float64]
    """When they were answered, ns since 1970."""
    cpu_ns: NDArray[np.float64]
    """CPU time of the service from the answer before to this one: all of it belongs to some request."""
    control_ns: NDArray[np.float64]
    """CPU time of the other service for the same request, some milliseconds apart."""

    @classmethod
    def of(cls, load: Load) -> Account:
        """What the services tell."""
        tables = []
        for port in load.ports:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/account") as answer:
                tables.append(np.frombuffer(answer.read(), np.int64).reshape(-1, 2))
        own, control = (table[: min(map(len, tables))] for table in tables)
        return cls(own[1:, 0].astype(float), np.diff(own[:, 1]).astype(float), np.diff(control[:, 1]).astype(float))

    def within(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Requests that were answered in times (m, 2), and those that were under way at an end of them."""
        chosen = np.zeros(len(self.moments), bool)
        for start, end in times:
            first, last = np.searchsorted(self.moments, [start, end])
            chosen[first : last + 1] = True
        return chosen


def part_beyond(
    account: Account, inside: NDArray[np.bool_], outside: NDArray[np.bool_], whole: NDArray[np.bool_]
) -> tuple[float, float]:
    """CPU time inside beyond that of the control, as a part of the whole, and its standard error.

    What both services take outside says how much dearer the one is than the other. The error is that of this measurement: as
    blocks of consecutive requests outside differ from that ratio, as long as the times inside. How often probes go in is not
    drawn again, which would make a cost that few requests bear as uncertain as their number.
    """
    ratio = account.cpu_ns[outside].sum() / account.control_ns[outside].sum()
    beyond = account.cpu_ns - ratio * account.control_ns
    times = max(int((np.diff(inside.astype(int)) > 0).sum()), 1)
    count = int(np.clip(outside.sum() * times / inside.sum(), *BLOCKS))
    residuals = np.bincount(np.arange(outside.sum()) * count // outside.sum(), beyond[outside], count)
    control_inside, control_outside = account.control_ns[inside].sum(), account.control_ns[outside].sum()
    variance = residuals.var(ddof=1) * count / control_outside  # for each ns of the control
    error = math.sqrt(variance * control_inside * (1 + control_inside / control_outside))
    whole_ns = account.cpu_ns[whole].sum()
    return float(beyond[inside].sum() / whole_ns), float(error / whole_ns)


def probed(journal: list[dict[str, Any]]) -> NDArray[np.float64]:
    """When probes went in, and when they were out again: (n, 2), ns since 1970."""
    times = []
    for one in journal:
        if one["event"] == "decision" and one["kind"] != "samples":
            begun = one["at_ns"]
        elif one["event"] == "measurement":
            times.append((begun, begun + 1e9 * one["seconds"]))
    return np.array(times)


def loss(folder: Path, load: Load, target: float, seconds: float) -> tuple[float, float]:
    """Part of the service's CPU time that mining takes, and its standard error.

    The loop itself alternates times with probes and times without, many a minute. In both, CPU time is compared with what the
    control takes for the same requests at the same time, so that what other programs do to both drops out. Requests for each
    second of CPU time are fewer by the same part. The same is told of the loop's whole time beside REST_S before it and after
    it, which is less certain, but would show what probes leave behind.
    """
    name = f"loss{target:g}"
    before = time.time_ns()
    time.sleep(REST_S)
    mining(folder, load, target, seconds, "-e", name)
    time.sleep(REST_S)
    journal = read_journal(open_experiment(name, folder).folder)
    account, times = Account.of(load), probed(journal)
    begun, ended = journal[0]["at_ns"], journal[-1]["at_ns"]
    inside, whole = account.within(times), account.within(np.array([[begun, ended]]))
    rest = account.within(np.array([[before, time.time_ns()]])) & ~whole
    print(
        f"target {target:.0%}: probes in {len(times)} times for {(inside & whole).sum() / whole.sum():.0%} of", end=" "
    )
    print(f"{whole.sum()} requests;", end=" ")
    part, error = part_beyond(account, whole, rest, whole)
    print(f"beside {REST_S:g} s before and after {part:.1%} ± {TWO_SIDED * error:.1%};", end=" ")
    return part_beyond(account, inside, whole & ~inside, whole)


def uncounted(folder: Path, load: Load, seconds: float) -> Change:
    """Part of the service's CPU time that mining takes beyond what its account says, by times with mining and without.

    Each time with mining is compared with the ones without before and after it, all relative to the control.
    """
    counted = []
    ends: list[tuple[int, int]] = []
    command = [sys.executable, "-m", "perflaw", "mine", "--attach", str(load.service.pid), "--seconds", str(PAIR_S)]
    begun = time.time_ns()
    time.sleep(PAIR_S)
    for number in range(max(round(seconds / PAIR_S / 2), 2)):
        name, before = f"pair{number}", time.time_ns()
        arguments = ["--budget", f"{PAIRED_TARGET:.0%}", "-e", name]
        done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode and "nothing was learnt" not in done.stderr:  # on a busy machine the time may be too short
            sys.exit(f"perflaw mine: {done.stderr[-2000:]}")
        ends.append((before, time.time_ns()))
        counted.append(read_journal(open_experiment(name, folder).folder)[-1]["share"])
        time.sleep(PAIR_S)
    account, moments = Account.of(load), [begun, *(moment for pair in ends for moment in pair), time.time_ns()]
    ratios = []
    for start, end in pairwise(moments):
        chosen = account.within(np.array([[start, end]]))
        ratios.append(account.cpu_ns[chosen].sum() / account.control_ns[chosen].sum())
    triples = zip(ratios[::2], ratios[1::2], ratios[2::2], strict=False)
    parts = [1 - math.sqrt(without * later) / mined for without, mined, later in triples]
    beyond = np.array(parts) - np.array(counted)
    half = float(stdtrit(len(beyond) - 1, 0.975) * beyond.std(ddof=1) / math.sqrt(len(beyond)))
    print(f"mining takes {np.mean(parts):.1%}, its account says {np.mean(counted):.1%};", end=" ")
    return Change(float(beyond.mean()), float(beyond.mean() - half), float(beyond.mean() + half))


@contextmanager
def watching(folder: Path, load: Load) -> Iterator[list[str]]:
    """The lines that a continuous check has printed so far."""
    command = [sys.executable, "-m", "perflaw", "check", "live.yaml", "--attach", str(load.service.pid), "--watch"]
    told: list[str] = []

    def read(lines: IO[str]) -> None:
        with (folder / "verdicts.jsonl").open("w") as kept:
            for line in lines:
                print(f"{time.time():.0f} {line}", end="", file=kept, flush=True)
                told.append(line)

    with subprocess.Popen([*command, "-e", "watch", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True) as check:
        assert check.stdout
        threading.Thread(target=read, args=(check.stdout,), daemon=True).start()
        yield told
        check.terminate()  # a benchmark in the background, and what it starts, are deaf to Ctrl-C


def plant(folder: Path, load: Load, mined_s: float, clean_s: int, night_s: int, bars: Bars) -> None:
    """Mine, hold the service against what was mined, plant a query, and see whether it is told."""
    specs = json.loads(mining(folder, load, 0.1, mined_s, "--json"))["specs"]
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
        if night_s:
            told.clear()
            load.pause(NIGHT_PAUSE_S)
            time.sleep(night_s)
            load.pause(0.0)
            print("".join(told)[:2000])
            at_night = "".join(told).count('"violated"')
            print(f"alarms in {night_s} s of few requests:", bars.check("alarms at night", at_night, 0))
        told.clear()
        time.sleep(random.uniform(1, 10))
        urllib.request.urlopen(f"http://127.0.0.1:{load.ports[0]}/plant").read()
        planted = time.monotonic()
        while CALLEE not in "".join(told) and time.monotonic() - planted < FOUND_S:
            time.sleep(0.1)
        print(f"planted query told after {time.monotonic() - planted:.0f} s (bar {FOUND_S:g})")
        time.sleep(0.5)
        named = re.search(RIGHT_EDGE, "".join(told)) is not None
        print("" if named else "".join(told)[:2000], end="")
        print("told by its edge:", bars.check("told by its edge", int(named), 1, least=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("loss_s", type=int, nargs="?", default=300)
    parser.add_argument("clean_s", type=int, nargs="?", default=120)
    parser.add_argument("paired_s", type=int, nargs="?", default=600)
    parser.add_argument("--mined", type=float, default=300.0)
    parser.add_argument("--night", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    bars, python = Bars(), environment("3.11", PACKAGES, "mine_web")
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        if options.clean_s:
            load = Load(python)
            plant(folder, load, options.mined, options.clean_s, options.night, bars)
            load.end()
        if options.loss_s:
            load = Load(python, services=2)
            for target in TARGETS:
                part, error = loss(folder, load, target, options.loss_s)
                change = Change(part, part - TWO_SIDED * error, part + TWO_SIDED * error)
                needed = options.loss_s / 60 * (TWO_SIDED * error / POINT) ** 2
                print(f"loss {change}, {POINT:.0%} to each side after {needed:.1f} min", end=" ", flush=True)
                print(change.verdict(bars, f"loss at {target:.0%}", target + POINT), flush=True)
            load.end()
        if options.paired_s:
            load = Load(python, services=2)
            change = uncounted(folder, load, options.paired_s)
            print(f"beyond that {change}", change.verdict(bars, "cost that the account does not know", POINT))
            load.end()
    bars.leave()


if __name__ == "__main__":
    main()
