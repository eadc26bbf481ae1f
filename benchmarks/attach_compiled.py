"""Attaching to a compiled program under load, again and again: attach_compiled.py [CYCLES] [CHANGES]: 100 and 3,000 as a rule.

The program (tests/programs/busy.cc) has three threads that recurse, throw and jump, and checks every result itself. Each cycle
attaches, records for a tenth of a second and detaches. Then one recording stays while the jumps of four functions are written
and taken back, CHANGES times each. No result may be wrong, all cycles have to succeed, a round has to take the CPU time
afterwards that it took before within 1 % (in turns with a second program that is left alone), its memory after the last cycle
has to be that after the tenth within 100 kB, and its threads may be stopped for 20 ms at most each time.
"""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from churn import resident
from shared import Bars, change_beside, cpu_ns_of

from perflaw.record.attach.native_session import record_native
from perflaw.record.attach.patching import JUMP, Patching
from perflaw.record.attach.process import native_program
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import open_experiment

PROGRAM = Path(__file__).parents[1] / "tests" / "programs" / "busy.cc"
STOP_MS, SLOWER = 20.0, 0.01
FUNCTIONS = ("fibonacci", "catcher", "lander", "floating")
SAMPLE_S, SAMPLES = 0.1, 100
WARM, RISE_KB = 10, 100.0


class Busy:
    """The program."""

    def __init__(self, file: Path) -> None:
        self.process = subprocess.Popen([file, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line()

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def done(self) -> tuple[int, int]:
        """Rounds done so far, and the CPU time of the process, ns."""
        assert self.process.stdin
        self.process.stdin.write("?")
        self.process.stdin.flush()
        rounds = int(self._line())
        return rounds, cpu_ns_of(self.process.pid)

    def cost(self) -> float:
        """CPU time of a round, ns, while the other program is stopped."""
        self.process.send_signal(signal.SIGCONT)
        rounds, cpu = self.done()
        time.sleep(SAMPLE_S)
        more, later = self.done()
        self.process.send_signal(signal.SIGSTOP)
        return (later - cpu) / max(more - rounds, 1)

    def end(self) -> str:
        self.process.send_signal(signal.SIGCONT)
        return self.process.communicate("")[0].strip()


def main(cycles: int = 100, changes: int = 3000) -> None:
    bars = Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["g++", "-O2", "-g", "-pthread", PROGRAM, "-o", folder / "busy"], check=True)
        busy = Busy(folder / "busy")
        pid = busy.process.pid
        program = native_program(pid)
        assert program
        control, stops, memory = Busy(folder / "busy"), list[float](), list[int]()

        def attach() -> None:
            control.process.send_signal(signal.SIGSTOP)
            busy.process.send_signal(signal.SIGCONT)
            for cycle in range(cycles):
                done = record_native(open_experiment(f"cycle{cycle}", folder), program, RecordSettings(), {}, 0.1)
                assert done.alive
                assert done.outcome.run.calls, done.outcome.run
                stops.append(done.stopped_ms)
                memory.append(resident(pid))

        for process in (busy, control):
            process.process.send_signal(signal.SIGSTOP)
        slower = change_beside(busy.cost, control.cost, SAMPLES, attach)
        busy.process.send_signal(signal.SIGCONT)
        control.end()
        print(f"attached and detached: {len(stops)} of {cycles}")
        words = bars.check("stopped for, median", statistics.median(stops), STOP_MS)
        print(f"stopped for: median {statistics.median(stops):.1f} ms, at most {max(stops):.1f} ms  {words}")
        rise = (memory[-1] - memory[min(WARM, len(memory)) - 1]) * 1024
        words = bars.check("memory, kB", rise, RISE_KB)
        print(f"memory: {rise:+.0f} kB from cycle {min(WARM, len(memory))} to cycle {len(memory)}  {words}")
        print(f"slower afterwards by {slower}  {slower.verdict(bars, 'slower afterwards', SLOWER)}")
        if changes:
            toggle(busy, folder, changes, bars)
        said = busy.end()
        print(f"{said}  {bars.check('wrong results', int(said.split()[0]), 0)}")
    bars.leave()


def toggle(busy: Busy, folder: Path, changes: int, bars: Bars) -> None:
    """Write and take back the jumps of four functions while a recording stays."""
    pid, select = busy.process.pid, [word for name in FUNCTIONS for word in ("--select", name)]
    command = [sys.executable, "-m", "perflaw", "attach", str(pid), "-e", "changes", "--seconds", "100000", *select]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as recorder:
        while not (found := list(folder.glob(".perflaw/changes/runs/*/spool/jumps-0"))):
            time.sleep(0.05)
        rows = np.frombuffer(found[0].read_bytes(), JUMP)
        time.sleep(1)
        stops = []
        for _ in range(changes):
            for change in ("disable", "enable"):
                patching = Patching(pid, rows[np.argsort(rows["address"])])
                getattr(patching, change)()
                stops.append(patching.stopped_ms)
        recorder.terminate()
    [recording] = open_experiment("changes", folder).recordings()
    most = sum(stop > STOP_MS for stop in stops) / len(stops)
    print(
        f"{changes} changes of {len(rows)} functions, {recording.run.calls:,} calls recorded: stopped for a median of"
        f" {statistics.median(stops):.2f} ms, 99 % below {statistics.quantiles(stops, n=100)[-1]:.1f} ms,"
        f" at most {max(stops):.1f} ms; longer than {STOP_MS:g} ms: {most:.2%}  {bars.check('long stops', most, 0.01)}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
