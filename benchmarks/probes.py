"""What a pair of each probe costs, in cycles of the time stamp counter, with 1 and 2 threads; the paper's figures beside it.

    python benchmarks/probes.py [--rounds 3000] [--compiler gcc]

Each figure is the least of many short rounds, so that a busy machine matters little, less the empty loop. The floor of a
LAT pair is two readings of the clock, that of FLT and CTXSW two calls of getrusage. Bars: LAT with its record 60 cycles,
1.1 times that with two threads; a disabled pair 2 ns; no probe more than 1.15 times its floor. The paper (figure 2, a
Xeon of 3.2 GHz): LLC 260 to 360 cycles, FLT 1,000, the others "less or similar". Exit status 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from shared import PROGRAMS, Bars

from perflaw.record.build import sources_folder
from perflaw.record.probes import layout

FLOORS = {"LAT": "two_rdtsc", "TPT": "two_rdtsc", "FLT": "two_getrusage", "CTXSW": "two_getrusage"}
PAPER = {"LLC": 360.0, "FLT": 1000.0}
TIMES_FLOOR, DISABLED_NS, FLAT = 1.15, 2.0, 1.1
PYTHON = """
from time import perf_counter_ns
from perflaw.probes import LAT_PROBE
def pairs(probe):
    began = perf_counter_ns()
    for _ in range(200):
        with LAT_PROBE(probe): pass
    return (perf_counter_ns() - began) / 200
print(*(min(pairs(probe) for _ in range(500)) for probe in (1, 2)))
"""
WORDS = {"CNT_100": "CNT, 1 in 100", "LAT_100": "LAT, 1 in 100", "FLT_100": "FLT, 1 in 100"}


def built(folder: Path, compiler: str) -> Path:
    """The program that measures itself."""
    program = folder / "probes"
    command = [
        compiler,
        "-O2",
        f"-I{sources_folder() / 'include'}",
        str(PROGRAMS / "probes.c"),
        "-pthread",
        "-o",
        program,
    ]
    subprocess.run(command, check=True)
    return program


def measured(program: Path, threads: int, rounds: int, folder: Path) -> tuple[dict[str, float], str]:
    """Cycles a pair by probe, and why counters were refused; empty where they were not."""
    ids = ",".join(map(str, [*range(1, 9), 11, 12, 15]))
    environment = {**os.environ, "PERFLAW_PROBES": str(folder), "PERFLAW_PROBES_ENABLE": ids}
    command = [program, str(threads), str(rounds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    [area] = folder.iterdir()
    with area.open("rb") as file:
        head = np.frombuffer(file.read(layout.HEAD_BYTES), layout.HEAD)[0]
    area.unlink()
    pairs = (line.split() for line in done.stdout.splitlines())
    return {name: float(value) for name, value in pairs}, head["refusal"].decode()


def python(folder: Path) -> tuple[float, float]:
    """ns of a LAT pair of Python's, enabled and disabled."""
    environment = {**os.environ, "PERFLAW_PROBES": str(folder), "PERFLAW_PROBES_ENABLE": "1"}
    done = subprocess.run([sys.executable, "-c", PYTHON], env=environment, capture_output=True, text=True, check=True)
    enabled, disabled = map(float, done.stdout.split())
    return enabled, disabled


def main() -> None:
    """Print a line a probe; exit with 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--compiler", default="gcc")
    asked = parser.parse_args()
    bars = Bars()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        program = built(Path(name), asked.compiler)
        areas = Path(name) / "areas"
        one, refused = measured(program, 1, asked.rounds, areas)
        two, _ = measured(program, 2, asked.rounds, areas)
        enabled, disabled = python(areas)
    tell(one, two, refused, bars)
    print(f"Python: a LAT pair {enabled:.0f} ns with its record, {disabled:.0f} ns disabled")
    bars.leave()


def tell(one: dict[str, float], two: dict[str, float], refused: str, bars: Bars) -> None:
    """The table, and the bars."""
    print(f"cycles a pair (one is {one['ns']:.3f} ns), with 1 and 2 threads")
    for name in (name for name in one if name not in ("ns", "disabled")):
        beside = [
            f"{name.replace('_', ' ') if 'two' in name else WORDS.get(name, name):14} {one[name]:7.1f} {two[name]:7.1f}"
        ]
        if refused and name in ("LLC", "PERFCNTR"):
            beside.append(f"no record: {refused}")
        else:
            if name in FLOORS:
                times = one[name] / one[FLOORS[name]]
                verdict = bars.check(f"{name}, times its floor", times, TIMES_FLOOR)
                beside.append(f"{times:.2f} of its floor, {FLOORS[name].replace('_', ' ')} {verdict}")
            if name in PAPER:
                beside.append(f"{one[name] / PAPER[name]:.2f} of the paper's {PAPER[name]:.0f}")
        if name == "LAT":
            beside.append("cycles " + bars.check("cycles of a LAT pair", one[name], 60))
            beside.append(
                f"{two[name] / one[name]:.2f} with 2 threads "
                + bars.check("LAT with two threads, times one", two[name] / one[name], FLAT)
            )
        print(" · ".join(beside))
    off = one["disabled"] * one["ns"]
    verdict = bars.check("ns of a disabled pair", off, DISABLED_NS)
    print(f"disabled       {one['disabled']:7.1f} {two['disabled']:7.1f} · {off:.2f} ns {verdict}")


if __name__ == "__main__":
    main()
