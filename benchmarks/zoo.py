"""Functions of known growth in one program, predicted at ten times the data: zoo.py [--keep FOLDER].

The functions of programs/zoo.py are recorded at small sizes by the real clock, each size twice, and ``annotate --at``
says what each will cost at a larger size. The truth is the CPU time of the function in plain runs of that size, the
median of runs before and after the recording. A prediction is right if it is within a factor of 1.5, or if its interval
holds the truth and is not wider than a factor of 3. It is confident and wrong if it is neither right nor does its
interval hold the truth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared import PROGRAMS, Bars

PROGRAM = str(PROGRAMS / "zoo.py")
MAX_RATIO, MAX_WIDTH = 1.5, 3.0
PLAIN_RUNS = 2
MIN_RIGHT, MAX_WRONG = 26 / 30, 1 / 30


@dataclass(frozen=True)
class Group:
    """Functions of the same parameters, and the sizes at which they are recorded and predicted."""

    name: str
    vary: dict[str, Sequence[int]]
    at: dict[str, int]


GROUPS = (
    Group("sizes", {"n": (100, 200, 400, 800, 1500, 3000)}, {"n": 30000}),
    Group("pairs", {"a": (100, 300, 1000, 2000, 3000), "b": (100, 200, 500, 1500, 3000)}, {"a": 30000, "b": 10000}),
    Group("small", {"k": (3, 4, 5, 6, 7, 8)}, {"k": 10}),
)


@dataclass(frozen=True)
class Answer:
    """What was predicted of a function, and what it costs in truth, in ns."""

    name: str
    mean: float
    low: float
    high: float
    truth: float
    law: str

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.truth <= self.high

    @property
    def right(self) -> bool:
        """Whether the prediction can be relied on."""
        near = self.mean > 0 and 1 / MAX_RATIO <= self.mean / self.truth <= MAX_RATIO
        return near or (self.holds and self.high <= MAX_WIDTH * self.low)

    @property
    def words(self) -> str:
        """The judgement in a word."""
        return "right" if self.right else "unsure" if self.holds else "WRONG"


def recorded(group: Group, folder: Path) -> None:
    """Record the group at all combinations of its sizes."""
    vary = [word for name, values in group.vary.items() for word in ("--vary", f"{name}={','.join(map(str, values))}")]
    places = ["{" + name + "}" for name in group.vary]
    command = [*perflaw("record"), "--metric", "cpu", "--repeat", "2", *vary, "--", PROGRAM, group.name, *places]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def perflaw(command: str) -> list[str]:
    """The beginning of a command line."""
    return [sys.executable, "-m", "perflaw", command]


def truths(group: Group) -> dict[str, list[float]]:
    """CPU times of each function at the size predicted, in ns, of plain runs."""
    taken: dict[str, list[float]] = {}
    command = [sys.executable, PROGRAM, group.name, *map(str, group.at.values()), "--time"]
    for _ in range(PLAIN_RUNS):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            name, ns = line.split()
            taken.setdefault(name, []).append(float(ns))
    return taken


def answers(group: Group, folder: Path, truth: dict[str, float]) -> list[Answer]:
    """The predictions beside the truth."""
    at = ",".join(f"{name}={value}" for name, value in group.at.items())
    command = [*perflaw("annotate"), "--metric", "cpu", "--at", at, "--all", "--json"]
    document = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)
    rows = {row["component"].removeprefix("zoo."): row for row in document["annotations"]}
    out = []
    for name, ns in truth.items():
        predicted, law = rows[name]["predicted"], rows[name]["run_law"]["mean"]
        out.append(Answer(name, predicted["mean"], predicted["new_low"], predicted["new_high"], ns, law))
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="keep recordings and truths in this folder, and use those it has")
    options = parser.parse_args()
    bars, all_answers = Bars(), []
    print(f"{'function':20} {'told ms':>9} {'interval':>21} {'true ms':>9} {'ratio':>6}  judgement  law, ns")
    with tempfile.TemporaryDirectory() as name:
        for group in GROUPS:
            folder = (options.keep or Path(name)) / group.name
            truth_file = folder / "truth.json"
            if not truth_file.exists():
                folder.mkdir(parents=True)
                before = truths(group)
                recorded(group, folder)
                after = truths(group)
                truth = {name: statistics.median([*before[name], *after[name]]) for name in before}
                truth_file.write_text(json.dumps(truth))
            for one in answers(group, folder, json.loads(truth_file.read_text())):
                all_answers.append(one)
                limits = f"{one.low / 1e6:10.3g}–{one.high / 1e6:<10.3g}"
                ratio = f"{one.mean / one.truth:6.2f}"
                told = f"{one.name:20} {one.mean / 1e6:9.3g} {limits} {one.truth / 1e6:9.3g} {ratio}"
                print(f"{told}  {one.words:9}  {one.law}")
    count = len(all_answers)
    right = sum(one.right for one in all_answers)
    wrong = sum(one.words == "WRONG" for one in all_answers)
    of = f"of {count} functions"
    print(f"right {right} {of}  {bars.check('right', right / count, MIN_RIGHT, least=True)}")
    print(f"confident and wrong {wrong} {of}  {bars.check('confident and wrong', wrong / count, MAX_WRONG)}")
    bars.leave()


if __name__ == "__main__":
    main()
