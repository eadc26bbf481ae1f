"""Attaching to a compiled program under load, again and again: attach_compiled.py [CYCLES] [CHANGES] [SECONDS].

100 cycles and 3,000 changes as a rule, however long they take. With SECONDS, a third of them is for cycles, one for changes,
and one for the comparison of before and after: what was not begun by then is left out, and it is said how much was done.

The program (tests/programs/busy.cc) has threads that recurse, throw and jump, and checks every result itself. With one thread
it is attached to ten times: a round has to take the CPU time afterwards that it took before within 1 %, in turns with a second
program that is left alone. With three threads, each cycle attaches, records for 0.3 s and detaches; then one recording stays
while the jumps of four functions are written and taken back, CHANGES times each. No result may be wrong, all cycles
have to succeed, the memory after the last cycle has to be that after the tenth within 100 kB, and its threads may be stopped
for 20 ms at most each time.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from churn import resident
from shared import Bars, Worker, change_beside

from perflaw.record.attach.native_session import record_native
from perflaw.record.attach.patching import JUMP, Patching
from perflaw.record.attach.process import native_program
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import open_experiment

PROGRAM = Path(__file__).parents[1] / "tests" / "programs" / "busy.cc"
STOP_MS, SLOWER = 20.0, 0.01
FUNCTIONS = ("fibonacci", "catcher", "lander", "floating")
PAIRS, LEAST_PAIRS, SLOWER_CYCLES = 2000, 400, 10
WARM, RISE_KB = 10, 100.0


def main(cycles: int = 100, changes: int = 3000, seconds: float = math.inf) -> None:
    bars, part_s = Bars(), seconds / 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["g++", "-O2", "-g", "-pthread", PROGRAM, "-o", folder / "busy"], check=True)
        print(f"slower afterwards by {slower_afterwards(folder, part_s, bars)}")
        busy = Worker([folder / "busy", "3"])
        attach_again_and_again(busy, folder, cycles, part_s, bars)
        if changes:
            toggle(busy, folder, changes, part_s, bars)
        said = busy.end()
        print(f"{said}  {bars.check('wrong results', int(said.split()[0]), 0)}; load {os.getloadavg()[0]:.1f}")
    bars.leave()


def attach(worker: Worker, folder: Path, name: str) -> float:
    """Attach once; for how long the program was stopped, ms."""
    program = native_program(worker.process.pid)
    assert program
    for recording_s in (0.3, 10):  # on a busy machine, it may have had no processor in the shorter time
        done = record_native(open_experiment(name, folder), program, RecordSettings(), {}, recording_s)
        assert done.alive
        if done.outcome.run.calls:
            break
    assert done.outcome.run.calls, done.outcome.run
    return done.stopped_ms


def slower_afterwards(folder: Path, seconds: float, bars: Bars) -> str:
    """The program with one thread, beside another one: threads that take processors from each other tell less."""
    lone, control = (Worker([folder / "busy", "1"], is_first=True) for _ in range(2))

    def act() -> None:
        lone.run(on=True)
        attach(lone, folder, "slower")
        lone.run(on=False)

    for worker in (lone, control):
        worker.run(on=False)
    begun = time.monotonic()
    lone.cost(), control.cost()
    pairs = PAIRS
    if seconds < math.inf:
        pairs = min(PAIRS, max(LEAST_PAIRS, int(seconds / 2 / (time.monotonic() - begun))))
    slower = change_beside(lone.cost, control.cost, pairs, act, SLOWER_CYCLES)
    for worker in (lone, control):
        worker.end()
    return f"{slower} in {pairs} pairs before and after  {slower.verdict(bars, 'slower afterwards', SLOWER)}"


def attach_again_and_again(busy: Worker, folder: Path, cycles: int, seconds: float, bars: Bars) -> None:
    """So many times, for so many seconds at most."""
    stops, memory, begun = list[float](), list[float](), time.monotonic()
    while len(stops) < cycles and time.monotonic() < begun + seconds:
        stops.append(attach(busy, folder, f"cycle{len(stops)}"))
        memory.append(resident(busy.process.pid))
    print(f"attached and detached: {len(stops)} of {cycles}, in {time.monotonic() - begun:.0f} s")
    print(f"stopped for a median of {spread(stops)}  {bars.check('stopped for, ms', max(stops), STOP_MS)}")
    rise = (memory[-1] - memory[min(WARM, len(memory)) - 1]) * 1024
    words = bars.check("memory, kB", rise, RISE_KB)
    print(f"memory: {rise:+.0f} kB from cycle {min(WARM, len(memory))} to cycle {len(memory)}  {words}")


def spread(stops: list[float]) -> str:
    """Median, nine tenths and most of times in ms."""
    centiles = np.percentile(stops, (50, 90, 99, 100))
    return "{:.2f} ms, 90 % below {:.2f} ms, 99 % below {:.1f} ms, at most {:.1f} ms".format(*centiles)


def toggle(busy: Worker, folder: Path, changes: int, seconds: float, bars: Bars) -> None:
    """Write and take back the jumps of four functions while a recording stays, for so many seconds at most."""
    pid, select = busy.process.pid, [word for name in FUNCTIONS for word in ("--select", name)]
    command = [sys.executable, "-m", "perflaw", "attach", str(pid), "-e", "changes", "--seconds", "100000", *select]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as recorder:
        while not (found := list(folder.glob(".perflaw/changes/runs/*/spool/recorded"))):
            time.sleep(0.05)
        rows = np.frombuffer(found[0].with_name("jumps-0").read_bytes(), JUMP)
        stops, working, begun = list[float](), list[float](), time.monotonic()
        while len(stops) < 2 * changes and time.monotonic() < begun + seconds:
            for change in ("disable", "enable"):
                patching = Patching(pid, rows[np.argsort(rows["address"])])
                getattr(patching, change)()
                stops.append(patching.stopped_ms)
                working.append(patching.stopped_ms - patching.gathering_ms)
        recorder.terminate()
    [recording] = open_experiment("changes", folder).recordings()
    most = sum(stop > STOP_MS for stop in stops) / len(stops)
    print(f"{len(stops) // 2} of {changes} changes of {len(rows)} functions, {recording.run.calls:,} calls recorded")
    print(f"stopped for a median of {spread(stops)}; from when the last thread had stopped {spread(working)}")
    print(f"longer than {STOP_MS:g} ms: {most:.2%}  {bars.check('long stops', most, 0.01)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
