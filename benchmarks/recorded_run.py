"""What it costs to record a run, beside the program's own time: recorded_run.py [ROUNDS] [PROGRAM...].

Programs on packages of PyPI run plainly and recorded as by default, in turn. A near-empty script shows what a recorded
run costs whatever the program does. Of real programs of about a second three things are told: how much longer the process
takes than a plain one (``--budget 2x`` keeps that), what comes on top before and after it, and what the recorded own CPU
costs and the process's start and end add up to beside the CPU time of a plain run. Last, five million calls in thirty
thousand contexts are recorded and saved.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import PROGRAMS, Bars, environment, recorded

from perflaw.store.experiment import Recording, open_experiment

PACKAGES = ("lark==1.3.1", "mistune==3.4.0", "networkx==3.6.1", "sqlglot==30.30.0", "sqlparse==0.6.1", "sympy==1.14.0")
SCRIPT = str(PROGRAMS / "recorded_run.py")
SIZES = {"sqlglot": 40, "sympy": 14, "mistune": 900, "sqlparse": 30, "networkx": 150, "lark": 90}
FIXED_S, SAVING_S, RATIO, OWN = 0.4, 1.0, 2.0, 1.15


def plain(command: list[str]) -> tuple[float, float]:
    """Wall time and CPU time of a run without perflaw, in s."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime


def recorded_run(command: list[str]) -> tuple[float, Recording, float]:
    """Wall time of a recorded run in s, its recording, and what its own CPU costs add up to in s."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        arguments = recorded("--metric", "time,cpu", "--", *command)
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        wall = time.perf_counter() - begun
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
        recording = open_experiment("default", Path(folder)).recordings()[-1]
        costs = recording.tables()["component_costs"]
    machine = recording.run.machine
    assert machine is not None
    own = sum(one for _, metric, _, one in costs if metric == "cpu")
    return wall, recording, (own + machine.before_ns + machine.after_ns) / 1e9


def near_empty(python: str, rounds: int, bars: Bars) -> float:
    """What a recorded run of a script costs that does next to nothing, in s."""
    command = [python, SCRIPT, "nothing", "1"]
    extra = [recorded_run(command)[0] - plain(command)[0] for _ in range(rounds)]
    fixed = statistics.median(extra)
    print(
        f"near-empty script: {fixed:.2f} s longer, least {min(extra):.2f} s {bars.check('near-empty', fixed, FIXED_S)}"
    )
    return fixed


def program(python: str, name: str, rounds: int, bars: Bars) -> float:
    """Tell of a real program; gives recorded over plain CPU time."""
    command = [python, SCRIPT, name, str(SIZES[name])]
    before, spent, ratio, beside, own = [], [], [], [], []
    for _ in range(rounds):
        wall, cpu = plain(command)
        whole, recording, added_up = recorded_run(command)
        before.append(wall)
        spent.append(cpu)
        ratio.append(recording.run.wall_ns / 1e9 / wall)
        beside.append(whole - recording.run.wall_ns / 1e9)
        own.append(added_up / cpu)
    times, fixed, off = (statistics.median(values) for values in (ratio, beside, own))
    run = recording.run
    print(
        f"  {name:9} {statistics.median(before):5.2f} s {run.calls / 1e6:5.1f} M {run.nodes:7} {run.lost.counted_functions:5}"
        f" {times:6.2f} {bars.check(f'{name}: ratio', times, RATIO):14} {fixed:5.2f} s"
        f" {bars.check(f'{name}: beside', fixed, FIXED_S):14} {off:5.2f} {bars.check(f'{name}: own', abs(off - 1) + 1, OWN)}",
        flush=True,
    )
    return off


def saving(python: str, fixed: float, rounds: int, bars: Bars) -> None:
    """Tell what saving many calls and contexts takes, beside what every run does."""
    found = []
    for _ in range(rounds):
        whole, recording, _ = recorded_run([python, SCRIPT, "contexts", "5000000"])
        found.append(whole - recording.run.wall_ns / 1e9 - fixed)
    run, seconds = recording.run, statistics.median(found)
    what = f"saving {run.calls / 1e6:.1f} M calls in {run.nodes} contexts"
    print(f"{what}: {seconds:.2f} s {bars.check('saving', seconds, SAVING_S)}")


def main(rounds: int = 5, *programs: str) -> None:
    bars = Bars()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # perflaw's modules would be compiled anew each time
    python = environment("3.11", PACKAGES, "recorded_run")
    fixed = near_empty(python, rounds, bars)
    print("  program    plain   calls contexts counted, ratio of the process, beside it, own CPU over plain")
    off = [program(python, name, rounds, bars) for name in programs or SIZES]
    print(f"  own CPU over plain, median {statistics.median(off):.2f}")
    saving(python, fixed, rounds, bars)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
