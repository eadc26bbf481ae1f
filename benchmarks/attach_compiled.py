"""Attaching to a compiled program under load, again and again: attach_compiled.py [CYCLES] [CHANGES]: 100 and 3,000 as a rule.

The program (tests/programs/busy.cc) has three threads that recurse, throw and jump, and checks every result itself. Each cycle
attaches, records for 0.3 s and detaches. Then one recording stays while the jumps of four functions are written
and taken back, CHANGES times each. No result may be wrong, all cycles have to succeed, a round has to take the CPU time
afterwards that it took before within 1 % (in turns with a second program that is left alone), its memory after the last cycle
has to be that after the tenth within 100 kB, and its threads may be stopped for 20 ms at most each time.
"""

from __future__ import annotations

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
PAIRS = 400
WARM, RISE_KB = 10, 100.0


def main(cycles: int = 100, changes: int = 3000) -> None:
    bars = Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["g++", "-O2", "-g", "-pthread", PROGRAM, "-o", folder / "busy"], check=True)
        busy, control = Worker([folder / "busy", "3"]), Worker([folder / "busy", "3"])
        pid = busy.process.pid
        program = native_program(pid)
        assert program
        stops, memory = list[float](), list[int]()

        def attach() -> None:
            busy.run(on=True)
            done = record_native(open_experiment(f"cycle{len(stops)}", folder), program, RecordSettings(), {}, 0.3)
            assert done.alive
            assert done.outcome.run.calls, done.outcome.run
            stops.append(done.stopped_ms)
            memory.append(resident(pid))
            busy.run(on=False)

        for process in (busy, control):
            process.run(on=False)
        slower = change_beside(busy.cost, control.cost, PAIRS, attach, cycles)
        busy.run(on=True)
        control.end()
        print(f"attached and detached: {len(stops)} of {cycles}")
        print(f"stopped for a median of {spread(stops)}  {bars.check('stopped for, ms', max(stops), STOP_MS)}")
        rise = (memory[-1] - memory[min(WARM, len(memory)) - 1]) * 1024
        words = bars.check("memory, kB", rise, RISE_KB)
        print(f"memory: {rise:+.0f} kB from cycle {min(WARM, len(memory))} to cycle {len(memory)}  {words}")
        print(f"slower afterwards by {slower}  {slower.verdict(bars, 'slower afterwards', SLOWER)}")
        if changes:
            toggle(busy, folder, changes, bars)
        said = busy.end()
        print(f"{said}  {bars.check('wrong results', int(said.split()[0]), 0)}")
    bars.leave()


def spread(stops: list[float]) -> str:
    """Median, nine tenths and most of times in ms."""
    centiles = np.percentile(stops, (50, 90, 99, 100))
    return "{:.2f} ms, 90 % below {:.2f} ms, 99 % below {:.1f} ms, at most {:.1f} ms".format(*centiles)


def toggle(busy: Worker, folder: Path, changes: int, bars: Bars) -> None:
    """Write and take back the jumps of four functions while a recording stays."""
    pid, select = busy.process.pid, [word for name in FUNCTIONS for word in ("--select", name)]
    command = [sys.executable, "-m", "perflaw", "attach", str(pid), "-e", "changes", "--seconds", "100000", *select]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as recorder:
        while not (found := list(folder.glob(".perflaw/changes/runs/*/spool/jumps-0"))):
            time.sleep(0.05)
        rows = np.frombuffer(found[0].read_bytes(), JUMP)
        time.sleep(1)
        stops, working = list[float](), list[float]()
        for _ in range(changes):
            for change in ("disable", "enable"):
                patching = Patching(pid, rows[np.argsort(rows["address"])])
                getattr(patching, change)()
                stops.append(patching.stopped_ms)
                working.append(patching.stopped_ms - patching.gathering_ms)
        recorder.terminate()
    [recording] = open_experiment("changes", folder).recordings()
    most = sum(stop > STOP_MS for stop in stops) / len(stops)
    print(f"{changes} changes of {len(rows)} functions, {recording.run.calls:,} calls recorded")
    print(f"stopped for a median of {spread(stops)}; from when the last thread had stopped {spread(working)}")
    print(f"longer than {STOP_MS:g} ms: {most:.2%}  {bars.check('long stops', most, 0.01)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
