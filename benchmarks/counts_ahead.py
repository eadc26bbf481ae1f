"""Calls of the functions of real programs at a size that was not run: counts_ahead.py [--others] [PROGRAM...].

The twenty-eight programs of programs_ahead.py, with --others its twenty further ones, are recorded once at
five small sizes and a large one. What is learnt from the small ones is held against the calls that were counted at the large
one. Calls are exact, so no clock and no other process has a part in these figures. Functions with the same calls at all six
sizes are one column.

"exact" are laws that give all small counts: how often they give the large one, within half a percent or one call, or their
interval holds it. "learnt" are the others: how often their 95 % interval holds it, within one call, the median ratio of the
interval's ends, and how far the median law is off.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from programs_ahead import MORE_SIZES, OTHER_SIZES, SIZES, group_of
from shared import Bars, environment, recorded

from perflaw.learn.program.counts import CountLaw, learn_counts
from perflaw.store.experiment import open_experiment
from perflaw.store.program import read_program
from perflaw.types import CPU

Array = NDArray[np.float64]

WITHIN = 0.005
REPEAT = 2
MIN_EXACT, MIN_HELD, MAX_WIDTH = 0.95, 0.9, 3.0


@dataclass(frozen=True, slots=True)
class Answer:
    """How often something is called at the large size, as told and as counted."""

    exact: bool
    told: float
    spread: float
    true: float

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        if self.exact and abs(self.told - self.true) <= max(WITHIN * self.true, 1.0):
            return True
        reach = exp(1.96 * self.spread)
        return self.told / reach - 1.0 <= self.true <= self.told * reach + 1.0

    @property
    def width(self) -> float:
        """Ratio of the interval's ends."""
        return exp(2.0 * 1.96 * self.spread)

    @property
    def error(self) -> float:
        """Logarithm of what is told over the truth, without its sign."""
        return abs(log((max(self.told, 0.0) + 0.5) / (self.true + 0.5)))


def counted(program: str, folder: Path) -> tuple[Array, Array]:
    """The six sizes, and the calls of each function at them, (6, F)."""
    group = group_of(program)
    small, far = group.sizes[program]
    python, file = environment("3.11", group.packages, group.name), group.script()
    vary = "n=" + ",".join(map(str, (*small, far)))
    command = recorded("-e", program, "--select", "*", "--vary", vary, "--", python, file, program, "{n}")
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    costs = read_program(open_experiment(program, folder).recordings(), CPU)
    sizes = np.array([float(run.features["n"]) for run in costs.runs])
    order = np.argsort(sizes)
    return sizes[order], costs.calls[order]


def answers(sizes: Array, calls: Array) -> list[Answer]:
    """What is told of each column of calls that varies over the small sizes."""
    calls = np.unique(calls, axis=1)
    calls = calls[:, np.ptp(calls[:-1], axis=0) > 0]
    laws, places = learn_counts(np.repeat(calls[:-1], REPEAT, axis=0), {"n": np.repeat(sizes[:-1], REPEAT)})
    far = float(sizes[-1])
    return [answer(laws[place], far, float(true)) for place, true in zip(places, calls[-1], strict=True)]


def answer(law: CountLaw, far: float, true: float) -> Answer:
    told = float(law.values({"n": np.array([far])}, 1)[0])
    return Answer(law.learnt is None and law.begun is None, told, law.spreads([{"n": far}])[0], true)


def table_row(name: str, of_program: list[Answer]) -> str:
    exact, learnt = ([one for one in of_program if one.exact is is_exact] for is_exact in (True, False))
    row = f"{name:12} exact {sum(one.held for one in exact):4} of {len(exact):4}"
    if learnt:
        width, error = (np.median([getattr(one, which) for one in learnt]) for which in ("width", "error"))
        held = sum(one.held for one in learnt)
        row += f"  learnt: held {held:3} of {len(learnt):3}, width {width:.2f}, off by {exp(error):.2f}x"
    return row


def main(*arguments: str) -> None:
    """Print the table."""
    bars, all_ = Bars(), list[Answer]()
    chosen = [one for one in arguments if one != "--others"]
    for program in chosen or (OTHER_SIZES if "--others" in arguments else (*SIZES, *MORE_SIZES)):
        with tempfile.TemporaryDirectory() as folder:
            of_program = answers(*counted(program, Path(folder)))
        all_ += of_program
        print(table_row(program, of_program), flush=True)
    print(table_row("all", all_))
    exact, learnt = ([one for one in all_ if one.exact is is_exact] for is_exact in (True, False))
    if exact:
        right = float(np.mean([one.held for one in exact]))
        print(f"exact laws that hold: {right:.1%}  {bars.check('exact laws', right, MIN_EXACT, least=True)}")
    if learnt:
        held, width = float(np.mean([one.held for one in learnt])), float(np.median([one.width for one in learnt]))
        print(f"intervals that hold: {held:.1%}  {bars.check('intervals that hold', held, MIN_HELD, least=True)}")
        print(f"median width: {width:.2f}  {bars.check('median width', width, MAX_WIDTH)}")
    bars.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
