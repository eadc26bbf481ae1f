"""Components that did not change, through check and diff: how many hold, and what it costs: nulls.py [COMPONENTS [CALLS]].

Every component has its own runs on both sides, 3 of CALLS calls each; runs differ by 3, 5 and 10 %. CPU time.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from shared import Bars

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.check.made import evidence, keyed, learnt

from perflaw.check.diffing import DiffSide, compare
from perflaw.check.judge import judge
from perflaw.check.law_records import law_records
from perflaw.check.run_effects import baseline_of

MOST_MS = 20.0
"""CPU time that a component of 3,000 records may take."""
SAME = 0.05
"""Where runs differ by no more, of 100 components that did not change 99 hold."""


def linear(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Nanoseconds of a call."""
    return 5_000 + 300 * x * np.exp(rng.normal(0, 0.1, x.size))


def sides(components: int, calls: int, tau: float) -> list[DiffSide]:
    """Laws and runs, old and new: one law, with each component's own runs behind it."""
    rng = np.random.default_rng([1, round(1000 * tau)])
    [law] = learnt(evidence("f", linear, rng, calls=1000, tau=0.01))
    out = []
    for _ in range(2):
        found = [evidence(f"f{i}", linear, rng, calls=calls, tau=tau) for i in range(components)]
        out.append(DiffSide([replace(law, component=one.component.name, baseline=baseline_of(law, law_records(law, one)))
                         for one in found], keyed(*found)))  # fmt: skip
    return out


def row(verb: str, tau: float, found: Counter[str], cpu_s: float, bars: Bars) -> str:
    """One line of the table, held against its bars."""
    components = found.total()
    shares = {name: found[name] / components for name in ("holds", "inconclusive", "violated")}
    each = 1000 * cpu_s / components
    bars.check(f"{verb} at {tau:.0%}: violated", shares["violated"], 0.01)
    bars.check(f"{verb} at {tau:.0%}: ms CPU a component", each, MOST_MS)
    if tau <= SAME:
        bars.check(f"{verb} at {tau:.0%}: holds", shares["holds"], 0.99, least=True)
    told = " ".join(f"{share:>12.1%}" for share in shares.values())
    return f"{tau:>14.0%} {verb:>6} {told} {cpu_s:>7.1f} s {each:>6.1f} ms"


def main(components: int, calls: int) -> None:
    """The table; status 1 where a bar is missed."""
    bars = Bars()
    print(f"{components} unchanged components, 3 runs of {calls} calls on each side")
    print("runs differ by   verb        holds inconclusive     violated       CPU      each")
    for tau in (0.03, 0.05, 0.1):
        old, new = sides(components, calls, tau)
        for verb in ("check", "diff"):
            start = time.process_time()
            verdicts = judge(old.claims, new.behind(new.claims)) if verb == "check" else compare(old, new)
            print(row(verb, tau, Counter(one.verdict for one in verdicts), time.process_time() - start, bars))
    bars.leave()


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(*(numbers + [1000, 1000][len(numbers) :]))
