"""Whether following the advice that ``annotate`` prints settles the question: advice.py [--keep FOLDER].

Ten functions of programs/asked.py are recorded by the real clock as a person may do at first: at too few sizes, over too
narrow a range, once each. The first advice below the table (``add --vary n=… over a wider range``) is followed: recorded
is what it says to add, into the same experiment; then once more if something else is advised. The question is settled
if nothing is advised any more and the cost at twice the largest size is within a factor of 1.5 of plain runs. Functions
without advice are no question, but their laws have to be right as well. Ten minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from shared import PROGRAMS, Bars

PROGRAM = str(PROGRAMS / "asked.py")
ADVICE = re.compile(
    r"add (?:--vary n=…(?P<how> with (?P<sizes>\d+) sizes over a 30-fold range and --repeat (?P<repeat>\d+)"
    r"| over a wider range| in between)?|--repeat)"
)
"""What a line below the table says to type; where it names two things, the first."""
STEPS = 2
"""Advice that is followed, one after the other."""
MAX_RATIO = 1.5
MIN_SETTLED = 0.8
PLAIN_RUNS = 5


@dataclass(frozen=True)
class Situation:
    """A function, and how it is recorded at first."""

    name: str
    sizes: tuple[int, ...]
    repeat: int = 1


SITUATIONS = (
    Situation("linear", (300,)),
    Situation("quadratic", (50, 100, 200)),
    Situation("power_three_halves", (100, 115, 130, 145, 160)),
    Situation("sort", (100, 200, 400)),
    Situation("large_start", (50, 60, 70, 80, 90), repeat=2),
    Situation("late_quadratic", (100, 130, 160, 200, 240)),
    Situation("threshold", (100, 300)),
    Situation("constant", (100, 110, 120, 130), repeat=2),
    Situation("search", (100, 150, 200)),
    Situation("texts", (100, 1000), repeat=3),
)


def perflaw(folder: Path, *arguments: str) -> str:
    """What perflaw prints; fails if it fails."""
    done = subprocess.run([sys.executable, "-m", "perflaw", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"perflaw {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


def record(folder: Path, name: str, sizes: Sequence[int], repeat: int) -> str:
    """Record a function at sizes, into the folder's experiment; the command that did."""
    vary = f"n={','.join(map(str, sizes))}"
    words = ["--vary", vary, *(["--repeat", str(repeat)] if repeat > 1 else [])]
    perflaw(folder, "record", "--metric", "cpu", "--select", f"asked.{name}", *words, "--", PROGRAM, name, "{n}")
    return f"perflaw record {' '.join(words)} -- asked.py {name} {{n}}"


def advice(folder: Path) -> str:
    """The first advice below the table; empty without one."""
    lines = " ".join(perflaw(folder, "annotate", "--metric", "cpu").split())
    found = ADVICE.search(lines)
    return found[0] if found else ""


def followed(sizes: Sequence[int], repeat: int, text: str) -> tuple[tuple[int, ...], int]:
    """Sizes and repetitions that a person records who follows an advice."""
    low, high, count = min(sizes), max(sizes), len(sizes)
    found = ADVICE.fullmatch(text)
    assert found, text
    how = found["how"] or ""
    if text.endswith("add --repeat"):
        return tuple(sizes), 2 * repeat
    if found["sizes"]:
        more, repeat = np.geomspace(low, 30 * low, int(found["sizes"])), int(found["repeat"])
    elif how == " over a wider range":
        more = np.geomspace(high, 5 * high, 5)[1:]
    else:
        more = np.geomspace(low, high, 3 * count)
    return tuple(sorted({*np.round(more).astype(int).tolist()})), repeat


def prediction(folder: Path, name: str, n: int) -> float:
    """Predicted cost of the function at a size, ns."""
    document = json.loads(perflaw(folder, "annotate", "--metric", "cpu", "--at", f"n={n}", "--all", "--json"))
    [row] = [one for one in document["annotations"] if one["component"] == f"asked.{name}"]
    return float(row["predicted"]["mean"])


def truth(name: str, n: int) -> float:
    """CPU time of plain runs at a size, the median, ns."""
    command = [sys.executable, PROGRAM, name, str(n), "--time"]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(PLAIN_RUNS))
    return statistics.median(float(one) for one in runs)


def main() -> None:
    """Print a line for each function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="keep the recordings in this folder")
    options = parser.parse_args()
    bars, asked, settled, wrong = Bars(), 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        for situation in SITUATIONS:
            folder = (options.keep or Path(temporary)) / situation.name
            folder.mkdir(parents=True)
            print(record(folder, situation.name, situation.sizes, situation.repeat), flush=True)
            sizes, repeat = situation.sizes, situation.repeat
            told = left = advice(folder)
            for _ in range(STEPS):
                if left:
                    more, repeat = followed(sizes, repeat, left)
                    print(f"  advised: {left}\n  {record(folder, situation.name, more, repeat)}", flush=True)
                    sizes = tuple(sorted({*sizes, *more}))
                    left = advice(folder)
            there = 2 * max(sizes)
            ratio = prediction(folder, situation.name, there) / truth(situation.name, there)
            right = 1 / MAX_RATIO <= ratio <= MAX_RATIO
            judgement = "nothing was asked" if not told else "settled" if right and not left else "open"
            print(
                f"  {judgement}: {ratio:.2f} of plain runs at n = {there}{f' · still: {left}' if left else ''}",
                flush=True,
            )
            asked += bool(told)
            settled += judgement == "settled"
            wrong += not told and not right
    print(f"settled {settled} of {asked}  {bars.check('settled', settled / max(asked, 1), MIN_SETTLED, least=True)}")
    print(f"wrong without advice {wrong}  {bars.check('wrong without advice', float(wrong), 0.0)}")
    bars.leave()


if __name__ == "__main__":
    main()
