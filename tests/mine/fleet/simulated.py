"""A process that is not there: measurements of known truth, by requests. As a program it is a stub beside such a process.

python -m tests.mine.fleet.simulated ENROLMENT SPOOL HOST SPEED
"""

from __future__ import annotations

import hashlib
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from perflaw.mine.fleet.enrolment import read_enrolment
from perflaw.mine.fleet.spool import Spool, content, content_id
from perflaw.mine.fleet.stub import Spending, Stub, Target
from perflaw.mine.messages import Measurement, ProbeCost
from perflaw.types import Observed, Platform
from tests.learn.observing import observe
from tests.mine.fleet.fleet import SPOOL_BYTES

SLOW_SHARES = {"shop.item": 0.05, "shop.overview": 0.05, "shop.search": 0.6}
"""Share of slow calls of ``shop.load`` by its caller."""
PATHS = tuple(("shop.serve", caller, "shop.load") for caller in SLOW_SHARES)
CALLS = 3000


class Simulated:
    """Functions of a shop on a host that is ``speed`` times as slow as others. ``pause_s`` is what a measurement takes."""

    def __init__(self, host: str, speed: float = 1.0, pause_s: float = 0.0) -> None:
        self.target = Target(host, "shop.py", 4711, "build")
        self._speed, self._pause_s = speed, pause_s
        seed = int.from_bytes(hashlib.sha256(f"{host} {time.time_ns()}".encode()).digest()[:8])
        self._rng = np.random.default_rng(seed)
        self._last_ns = 0

    def measure(self, request):
        time.sleep(self._pause_s)
        start_ns = max(time.time_ns(), self._last_ns + 1)
        self._last_ns = end_ns = start_ns + 10**7
        cost = ProbeCost(CALLS, 30.0, 10**10)
        if request.kind == "samples":
            stacks = dict.fromkeys(PATHS, 100) | {("shop.serve",): 3, ("os.read",): 500}
            return Measurement(request.number, "samples", start_ns, end_ns, 1.0, stacks, (), cost)
        observed = tuple(self.observed(name, start_ns) for name in request.functions)
        return Measurement(request.number, "paths", start_ns, end_ns, 1.0, {}, observed, cost)

    def pause_s(self, budget, request):
        return 0.0

    def spent(self):
        return [Spending(self._last_ns, 0.01, 0.1)]

    def observed(self, name, start_ns):
        if name == "shop.load":
            paths = PATHS
            which = self._rng.integers(0, len(paths), CALLS)
            slow = self._rng.random(CALLS) < np.array([*SLOW_SHARES.values()])[which]
        else:
            paths, which, slow = ((name,),), np.zeros(CALLS, int), np.zeros(CALLS, bool)
        durations = self._speed * np.where(slow, 1e5, 3e3) * self._rng.lognormal(0.0, 0.15, CALLS)
        ends = start_ns + np.cumsum(durations).astype(np.int64)
        platform = Platform(self.target.host, self.target.build, 1.0)
        one = Observed(name, "time", "ns", paths, observe(durations, which, ends), (platform,), 30.0)
        return replace(one, share=0.5)


class RememberingSpool(Spool):
    """A spool with a list of all measurements that ever were in it."""

    def add(self, measurement):
        super().add(measurement)
        with (self.folder / "made").open("a") as made:
            made.write(f"{content_id(content(measurement))}\n")


def main() -> None:
    enrolment, spool, host, speed = sys.argv[1:]
    stub = Stub(
        read_enrolment(Path(enrolment)), Simulated(host, float(speed), 0.05), RememberingSpool(Path(spool), SPOOL_BYTES),
        lambda text: print(text, flush=True), wait_s=2.0,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: stub.stop())
    stub.run()


if __name__ == "__main__":
    main()
