"""Is a planted cause found first on a busy machine, and is nothing found where there is none? variance_planted.py [RUNS].

programs/one_in_hundred.py runs beside two spinning processes. One request in a hundred is slow in a step drawn at random;
the first pattern's first back-edge by CPU time and by event count must run through it, and the first row of the budget.
By wall time the first pattern's root must be told as interference. Without a planted cause nothing may be a Task by CPU
time or by events, and every Task by wall time must be interference.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from neighbour import neighbours
from shared import PROGRAMS, recorded

from perflaw.learn.variance.analyse import variance
from perflaw.store.call_trees import read_call_tree
from perflaw.store.experiment import open_experiment
from perflaw.types import CPU, EVENTS, TIME
from perflaw.types.variance import Variance

RUNS, REQUESTS = 20, 3000


def record(kind: str, folder: Path) -> tuple[str, dict[str, Variance]]:
    """The step that is slow, and what is found by each metric."""
    import subprocess

    program = str(PROGRAMS / "one_in_hundred.py")
    command = recorded("--", program, str(REQUESTS), kind, "slow.txt")
    with neighbours(2):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    recordings = open_experiment("default", folder).recordings()
    found = {metric.name: variance(read_call_tree(recordings, metric)) for metric in (TIME, CPU, EVENTS)}
    return (folder / "slow.txt").read_text(), found


def first_names(found: Variance) -> Iterator[str]:
    """Functions on the way of the first back-edge and of the budget's first row."""
    if found.patterns and found.patterns[0].contributions:
        pattern = found.patterns[0]
        names = {node.id: node.component.name for node in pattern.nodes}
        yield " ".join(names[one] for one in pattern.contributions[0].path)
    if found.explanation and found.explanation.budget:
        row = found.explanation.budget.rows[0]
        yield " ".join([found.explanation.component.name, *(step.callee for step in row.path)])


def planted(runs: int) -> Counter[str]:
    """How often what was told first runs through the planted step."""
    hits: Counter[str] = Counter()
    for number in range(runs):
        with tempfile.TemporaryDirectory() as name:
            slow, found = record("planted", Path(name))
        for metric in ("cpu", "events"):
            told = list(first_names(found[metric]))
            hit = bool(told) and all(slow in one.replace(".", " ").split() for one in told)
            hits[metric] += hit
            if not hit:
                print(f"missed by {metric}: {slow}, told {told}")
        wall = found["time"]
        hits["wall is interference"] += bool(wall.patterns) and wall.patterns[0].nodes[0].cause == "interference"
        print(f"run {number + 1}: {slow}", dict(hits), flush=True)
    return hits


def null(runs: int) -> Counter[str]:
    """How often nothing was found where nothing is."""
    quiet: Counter[str] = Counter()
    for number in range(runs):
        with tempfile.TemporaryDirectory() as name:
            _, found = record("null", Path(name))
        for metric in ("cpu", "events"):
            tasks = [node for one in found[metric].patterns for node in one.nodes if node.kind == "Task"]
            quiet[metric] += not tasks
        causes = {node.cause for one in found["time"].patterns for node in one.nodes if node.kind == "Task"}
        quiet["wall is interference"] += causes <= {"interference"}
        print(f"null {number + 1}:", dict(quiet), flush=True)
    return quiet


def main(runs: int) -> int:
    hits, quiet = planted(runs), null(runs)
    print(f"found first in {runs} runs: {dict(hits)}; quiet on null data in {runs}: {dict(quiet)}")
    return 0 if min(hits["cpu"], hits["events"], quiet["cpu"], quiet["events"]) == runs else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
