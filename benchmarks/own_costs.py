"""Own costs add up to what a plain run takes: own_costs.py [ROUNDS] [NEIGHBOURS] [PROGRAM...].

Programs on packages of PyPI with many tiny calls (programs/tiny_calls.py) run plainly and recorded with all functions, in
turn. The CPU time of a plain run is the kernel's. That of a recorded run is the sum of all own CPU costs, and what the
kernel says of the process before the recording began and after it ended. NEIGHBOURS busy processes run beside them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from neighbour import neighbours
from shared import PROGRAMS, Bars, environment, recorded

from perflaw.store.experiment import Recording, open_experiment

PACKAGES = ("pyyaml==6.0.2", "lark==1.2.2", "mistune==3.0.2", "sqlparse==0.5.1", "networkx==3.3")
SIZES = {
    "yaml": (50, 250, 1000),
    "lark": (300, 1200, 5000),
    "mistune": (50, 250, 1000),
    "sqlparse": (40, 160, 500),
    "networkx": (300, 1000, 3000),
    "hanoi": (12, 15, 18),
}
VERSIONS = ("3.11", "3.12", "3.13")
MEDIAN, WORST = 1.10, 1.25
PROGRAM = str(PROGRAMS / "tiny_calls.py")


def plain_ns(command: list[str]) -> int:
    """CPU time of a run without perflaw."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def own_ns(recording: Recording) -> int:
    """CPU time that a recording tells: own costs, and the interpreter's start and end."""
    machine = recording.run.machine
    assert machine is not None
    costs = recording.tables()["component_costs"]
    return machine.before_ns + machine.after_ns + sum(own for _, metric, _, own in costs if metric == "cpu")


def recorded_run(command: list[str], folder: Path) -> Recording:
    arguments = ["--select", "*", "--metric", "cpu", "--", *command]
    done = subprocess.run(recorded(*arguments), cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return open_experiment("default", folder).recordings()[-1]


def ratios(version: str, rounds: int, programs: list[str], bars: Bars) -> Iterator[float]:
    """Recorded over plain CPU time, of each program and size."""
    python = environment(version, PACKAGES, "tiny_calls")
    print(
        f"Python {version:12} {'plain':>9} {'recorded':>9} {'ratio':>6} {'calls':>9} {'beside, ns a call':>18} {'event':>6}"
    )
    for program in programs:
        for size in SIZES[program]:
            command = [python, PROGRAM, program, str(size)]
            plain, own, calls, events = [], [], 1, []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as folder:
                    plain.append(plain_ns(command))
                    recording = recorded_run(command, Path(folder))
                    own.append(own_ns(recording))
                    calls = max(recording.run.calls, 1)
                    events.append(recording.run.clock.event_ns)
            before, after = statistics.median(plain), statistics.median(own)
            figures = f"{before / 1e6:6.0f} ms {after / 1e6:6.0f} ms {after / before:6.2f} {calls:9}"
            beside = f"{(after - before) / calls:18.0f} {statistics.median(events):6.0f}"
            words = bars.check(f"{version} {program} {size}", abs(after / before - 1) + 1, WORST)
            print(f"  {program:9} {size:6} {figures} {beside}  {words}", flush=True)
            yield after / before


def main(rounds: int = 5, beside: int = 0, *programs: str) -> None:
    bars = Bars()
    with neighbours(beside):
        for version in VERSIONS:
            off = [abs(ratio - 1) + 1 for ratio in ratios(version, rounds, list(programs) or list(SIZES), bars)]
            print(f"  median off by {statistics.median(off):.2f} {bars.check(version, statistics.median(off), MEDIAN)}")
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
