"""Ground truth on the real clock: functions that spin, and laws that doubled instrumentation must not change (Freud §5).

Usage: python benchmarks/truth.py [--compiled] [CALLS]. The functions are those of a Python program or, compiled, of one in C++
that is built with -O2 -g and recorded by injected code. Prints, per function, R² on fresh recordings of laws learnt from normal
ones, and R² across normal and doubled instrumentation, both ways. The paper: at least 0.9866, and at least 0.9838. CPU time, so
that a busy machine changes little.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.learn.annotation_data import r2
from tests.learn.test_annotations_truth import SCOPES

from perflaw.store.evidence import gather
from perflaw.store.experiment import open_experiment
from perflaw.types import CPU

PROGRAMS = Path(__file__).parents[1] / "tests" / "programs"
UNIT_NS = "100"
SEEDS = {"learnt": "1,2,3,4", "fresh": "5,6", "doubled": "7,8,9,10"}


def run(folder, *arguments, **variables):
    command = [sys.executable, "-m", "perflaw", *map(str, arguments)]
    environment = {**os.environ, "TRUTH": "spin", **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


def built(folder):
    """The program in C++."""
    program = folder / "truth"
    subprocess.run(["g++", "-O2", "-g", str(PROGRAMS / "truth.cc"), "-o", str(program)], check=True)
    return program


def recorded(folder, program, name, calls):
    """Laws and evidence of an experiment by function; everything is logged twice where it is the doubled one."""
    doubled = {"TRUTH_DOUBLED": "1"} if name == "doubled" else {}
    run(
        folder,
        "record",
        "-e",
        name,
        "--vary",
        f"seed={SEEDS[name]}",
        "--",
        program,
        "{seed}",
        calls,
        UNIT_NS,
        **doubled,
    )
    document = json.loads(run(folder, "annotate", "-e", name, "--metric", "cpu", "--json"))
    laws = {python_name(one["component"]): one["scopes"] for one in document["annotations"]}
    evidence = gather(open_experiment(name, folder).recordings(), CPU)
    return laws, {python_name(one.component.name): one for one in evidence}


def python_name(function):
    """A function's name in the Python program."""
    return function.removeprefix("truth.").replace("::", ".")


def main(calls, is_compiled):
    with tempfile.TemporaryDirectory() as place:
        program = built(Path(place)) if is_compiled else PROGRAMS / "truth.py"
        found = {name: recorded(Path(place), program, name, calls) for name in SEEDS}
    laws, here = found["learnt"]
    other_laws, other = found["doubled"]
    fresh, least = found["fresh"][1], [1.0] * 3
    print(f"{'function':24} {'fresh':>8} {'doubled':>8} {'reverse':>8}  scopes")
    for name in SCOPES:
        figures = [r2(laws[name], fresh[name])[0], r2(laws[name], other[name])[0], r2(other_laws[name], here[name])[0]]
        least = [min(pair) for pair in zip(least, figures, strict=True)]
        told = "; ".join(f"[{one['condition']}] {one['law']['family']}" for one in laws[name])
        print(f"{name:24} {figures[0]:8.4f} {figures[1]:8.4f} {figures[2]:8.4f}  {told}")
    print(f"{'least':24} {least[0]:8.4f} {least[1]:8.4f} {least[2]:8.4f}  (paper: 0.9866, 0.9838)")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--compiled"]
    main(words[0] if words else "100", "--compiled" in sys.argv)
