"""Attaching to a Python program under load, again and again: attach.py [CYCLES] [VERSION]...: 100 cycles as a rule.

Each cycle attaches, records for a tenth of a second and detaches; then the program's speed, in units of work a second of
CPU time, is compared with what it was before the first cycle. All cycles have to succeed, the program has to be as fast
afterwards as before within 1 %, and its memory has to stay what it is after the first fifth of them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from churn import resident
from shared import PROGRAMS, Bars, pythons

from perflaw.record.attach.process import running_program
from perflaw.record.attach.session import record_running
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import open_experiment

STOP_MS, SLOWER, RISE_MB = 20.0, 0.01, 1.0
BEFORE_S, AFTER_S = 20.0, 0.6


class Service:
    """The program, and its speed in each quarter of a second."""

    def __init__(self, python: str) -> None:
        command = [python, str(PROGRAMS / "attached.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.speeds: list[tuple[float, float]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            units, cpu_ns = map(int, line.split())
            self.speeds.append((time.monotonic(), units / cpu_ns * 1e9))

    def speeds_during(self, seconds: float) -> list[float]:
        """The speeds of whole quarters of a second that begin from now on."""
        begun = time.monotonic()
        time.sleep(seconds)
        return [speed for at, speed in self.speeds if at > begun + 0.27]


def undisturbed(speeds: list[float]) -> float:
    """Speed that a tenth of the samples exceed: other programs only ever slow the service down."""
    return statistics.quantiles(speeds, n=10)[-1]


def measure(version: str, python: str, cycles: int, bars: Bars) -> None:
    service = Service(python)
    pid = service.process.pid
    time.sleep(1)
    before = service.speeds_during(BEFORE_S)
    after, during, stops, memory = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for cycle in range(cycles):
            experiment = open_experiment(str(cycle), Path(folder))
            begun = time.monotonic()
            attached = record_running(experiment, running_program(pid), RecordSettings(), {}, 0.1, lambda text: None)
            assert attached.alive
            assert attached.outcome.run.complete
            assert attached.outcome.run.calls
            stops.append(attached.stopped_ms)
            during += [speed for at, speed in service.speeds if at > begun]
            after += service.speeds_during(AFTER_S)
            memory.append(resident(pid))
    assert service.process.stdin
    service.process.stdin.close()
    status = service.process.wait(timeout=30)
    ratio = undisturbed(before) / undisturbed(after) - 1
    rise = memory[-1] - memory[len(memory) // 5]
    stop, longest = statistics.median(stops), statistics.quantiles(stops, n=20)[-1]
    print(f"Python {version}, {len(stops)} of {cycles} cycles, exit status {status}; stopped {longest:.1f} ms (95 %)")
    print(f"  stopped, ms         {stop:8.1f}", bars.check(f"{version} stopped, ms", stop, STOP_MS))
    print(f"  slower afterwards   {ratio:8.2%}", bars.check(f"{version} slower afterwards", ratio, SLOWER))
    print(f"  memory rises, MB    {rise:8.2f}", bars.check(f"{version} memory rises, MB", rise, RISE_MB))


def main(cycles: int = 100, *versions: str) -> None:
    bars = Bars()
    for version, python in pythons(versions or ("3.11", "3.12", "3.13")).items():
        measure(version, python, cycles, bars)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
