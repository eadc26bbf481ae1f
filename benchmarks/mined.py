"""What mining several runs of a program gives, merged one after the other: Figure 5 of Brünink & Rosenblum as a table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

LEAST_POINTS, MOST_ATOMS = 0.9, 8


def merged(folder: Path, experiment: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "perflaw", "mine", "-e", experiment, "--merge", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return dict(json.loads(done.stdout))


def summary(shares: list[float]) -> str:
    return " ".join(f"{100 * share:5.0f}" for share in np.quantile(shares, [0, 0.25, 0.5, 0.75, 1]))


def is_comparable(each: Mapping[str, Any], several: Collection[str]) -> bool:
    """Whether two models could disagree about the call paths that both have, of a function that has several groups at last.

    Where each path is a group of its own in both models, a random grouping of the same sizes is the same.
    """
    return each["chance_points"] < 1 or each["points"] < 1 or (each["common"] > 1 and each["component"] in several)


def show(told: Mapping[str, Any]) -> bool:
    """Whether the bars are met, of functions whose calls differ by path in one model or the other."""
    specs, atoms = told["specs"], [len(spec["edges"]) for spec in told["specs"] if len(spec["groups"]) > 1]
    most = max(atoms, default=0)
    print(f"{len(specs)} hot functions, {sum(bool(spec['borders']) for spec in specs)} with borders,", end=" ")
    print(f"{len(atoms)} whose calls differ by path; edges of these: median {np.median(atoms or [0]):.0f}, most {most}")
    print("consistent, %; least, quartiles and most over functions that have several groups; by chance the median")
    some, several = [], {spec["component"] for spec in specs if len(spec["groups"]) > 1}
    for step, functions in enumerate(told["merges"], 2):
        some = [each for each in functions if is_comparable(each, several)] or some
        if not some:
            print(f"+ run {step}, nothing comparable")
            continue
        line = [f"+ run {step}, {len(some):3} functions"]
        for what in ("paths", "points"):
            chance = np.median([each[f"chance_{what}"] for each in some])
            line.append(f"{what} {summary([each[what] for each in some])}  chance {100 * chance:3.0f}")
        print("   ".join(line))
        for each in some:
            if each["points"] < LEAST_POINTS:
                print(f"    {each['component']}: {each['points']:.0%} of the calls, {each['paths']:.0%} of", end=" ")
                print(f"{each['common']} call paths; by chance {each['chance_points']:.0%}")
    if not some:
        print("nothing was comparable: no function has several groups of call paths in both of two models")
        return False
    median = float(np.median([each["points"] for each in some]))
    print(f"median share of calls after all merges: {100 * median:.0f} % (bar {100 * LEAST_POINTS:.0f});", end=" ")
    print(f"most edges {most} (bar {MOST_ATOMS})")
    return median >= LEAST_POINTS and most <= MOST_ATOMS
