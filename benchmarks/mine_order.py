"""How soon a running program is known well enough to be watched: mine_order.py [PROGRAMS].

The loop's decisions on made-up programs, against a clock of their own. Each of 12 functions has 3 of 6 callers, by one of which
its calls take 4.5 times as long, and is called 60 to 2,000 times a second. Each measurement takes 2.3 s beyond its length, as
on a busy machine. After 150 s and 300 s it is told how many functions were measured, and of how many it is known from three
measurements how much each of their groups varies, which is what a continuous check needs.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from shared import ROOT, Bars

from perflaw.learn.paths.selection import REPLICATES
from perflaw.mine.knowledge import Knowledge
from perflaw.mine.messages import Measurement, ProbeCost, Request
from perflaw.types import Observed, Platform
from perflaw.types.specifications import CallPath

sys.path.insert(0, str(ROOT))
from tests.learn.observing import observe

SECOND, MARKS_S, BESIDE_S = 10**9, (150, 300), 2.3
FUNCTIONS, CALLERS, OF_EACH, SAMPLES = 12, 6, 3, 60.0
"""Functions, all callers, callers of each function, and samples a second that find the program at work."""
LEAST = FUNCTIONS // 2
"""Functions of which a check has to be able to watch several groups after the first mark."""


class MadeUp:
    """A program with a clock of its own."""

    def __init__(self, seed: int) -> None:
        self.rng, self.now = np.random.default_rng(seed), SECOND
        self.rates = np.exp(self.rng.uniform(math.log(60.0), math.log(2000.0), FUNCTIONS))
        self.callers = [self.rng.choice(CALLERS, OF_EACH, replace=False) for _ in range(FUNCTIONS)]
        self.typical = self.rng.uniform(8.5, 11.0, FUNCTIONS)
        own = np.exp(self.rng.normal(0.0, 0.8, FUNCTIONS))
        self.shares = own / own.sum()

    def measure(self, request: Request) -> Measurement:
        """What a request gives."""
        begun, is_probed = self.now, request.kind != "samples"
        ended = begun + round(request.seconds * SECOND)
        self.now = ended + round(BESIDE_S * SECOND) * is_probed
        observed = tuple(self._observed(name, request, begun) for name in request.functions if name != "app.main")
        stacks = self._stacks((self.now - begun) / SECOND)
        return Measurement(
            request.number, request.kind, begun, ended, 1.0, stacks, observed, ProbeCost(8000, 50.0, SECOND)
        )

    def _stacks(self, seconds: float) -> dict[CallPath, int]:
        stacks = {}
        for place, callers in enumerate(self.callers):
            for caller in callers:
                count = int(self.rng.poisson(SAMPLES * seconds * self.shares[place] / OF_EACH))
                stacks[self._chain(place, caller)] = count
        return {chain: count for chain, count in stacks.items() if count}

    @staticmethod
    def _chain(place: int, caller: int) -> CallPath:
        return "app.main", f"app.page{caller % 2}", f"app.caller{caller}", f"app.work{place}"

    def _observed(self, name: str, request: Request, begun: int) -> Observed:
        is_leaf = name.startswith("app.work")
        place = int(name.removeprefix("app.work")) if is_leaf else 0
        n = max(int(self.rng.poisson((self.rates[place] if is_leaf else 300.0) * request.seconds)), 1)
        caller = self.rng.integers(0, OF_EACH, n) if is_leaf else np.zeros(n, np.int64)
        typical = self.typical[place] + 1.5 * (caller == 1) if is_leaf else np.full(n, 12.0)
        durations = np.exp(typical + self.rng.normal(0.0, 0.25, n))
        chains = [self._chain(place, one) for one in self.callers[place]] if is_leaf else [("app.main", name)]
        kept = {*request.functions, *request.callers}
        paths = [tuple(one for one in chain if one in kept) for chain in chains]
        known = tuple(dict.fromkeys(paths))
        ends = begun + np.sort(self.rng.integers(1, int(request.seconds * SECOND), n))
        path = np.array([known.index(one) for one in paths])[caller]
        pieces = observe(durations, path, ends, 1000, run=str(request.number))
        return Observed(name, "time", "ns", known, tuple(pieces), (Platform("host", "build", 1.0),), 10.0)


def watchable(knowledge: Knowledge) -> int:
    """Functions with several groups, of which it is known how much each varies."""
    return sum(one.explained > 1 and one.replicates >= REPLICATES for one in knowledge.functions.values())


def main(programs: int = 3) -> None:
    bars = Bars()
    for seed in range(1, programs + 1):
        program, knowledge, measurements = MadeUp(seed), Knowledge(), 0
        for mark in MARKS_S:
            while program.now < (1 + mark) * SECOND:
                decision = knowledge.next(program.now)
                if decision is None:
                    program.now += SECOND // 2
                    continue
                knowledge.add(program.measure(decision.request), decision.request)
                measurements += 1
            number = watchable(knowledge)
            told = f"program {seed} after {mark} s: {measurements} measurements, {len(knowledge.functions)} functions;"
            print(f"{told} of {FUNCTIONS} with several groups to be watched:", end=" ", flush=True)
            least = LEAST if mark == MARKS_S[0] else FUNCTIONS - 1
            print(bars.check(f"watched after {mark} s", number, least, least=True), number, flush=True)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
