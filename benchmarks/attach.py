"""Attaching to a Python program under load, again and again: attach.py [CYCLES] [VERSION]...: 100 cycles as a rule.

Each cycle attaches, records for 0.3 s and detaches. Before the first and behind each of them, the CPU time of a
unit of work is measured in turns with a second program that is left alone. All cycles have to succeed, a unit has to cost
afterwards what it cost before within 1 %, and the memory has to stay what it is after the first fifth of them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from churn import resident
from shared import PROGRAMS, Bars, Worker, change_beside, pythons

from perflaw.record.attach.process import running_program
from perflaw.record.attach.session import prepare, record_prepared
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import open_experiment

STOP_MS, SLOWER, RISE_MB = 20.0, 0.01, 1.0
PAIRS = 2000


def measure(version: str, python: str, cycles: int, bars: Bars) -> None:
    command = [python, str(PROGRAMS / "attached.py")]
    service, control = Worker(command, is_first=True), Worker(command, is_first=True)
    pid = service.process.pid
    prepared = prepare(running_program(pid), RecordSettings(), lambda text: None)
    stops, memory = list[float](), list[float]()
    for worker in (service, control):
        worker.run(on=False)
    with tempfile.TemporaryDirectory() as folder:

        def attach() -> None:
            service.run(on=True)
            experiment = open_experiment(str(len(stops)), Path(folder))
            attached = record_prepared(experiment, prepared, RecordSettings(), {}, 0.3)
            assert attached.alive
            assert attached.outcome.run.complete
            assert attached.outcome.run.calls
            stops.append(attached.stopped_ms)
            memory.append(resident(pid))
            service.run(on=False)

        slower = change_beside(service.cost, control.cost, PAIRS, attach, cycles)
    for worker in (service, control):
        worker.end()
    rise = memory[-1] - memory[len(memory) // 5]
    stop, longest = statistics.median(stops), statistics.quantiles(stops, n=20)[-1]
    print(f"Python {version}, {len(stops)} of {cycles} cycles, exit status {service.process.returncode}", flush=True)
    print(f"  stopped, ms: median {stop:.1f}, 95 % below {longest:.1f}, at most {max(stops):.1f}", end="  ")
    print(bars.check(f"{version} stopped, ms", longest, STOP_MS))
    print(f"  slower afterwards by {slower}", slower.verdict(bars, f"{version} slower afterwards", SLOWER))
    print(f"  memory rises, MB    {rise:8.2f}", bars.check(f"{version} memory rises, MB", rise, RISE_MB), flush=True)


def main(cycles: int = 100, *versions: str) -> None:
    bars = Bars()
    for version, python in pythons(versions or ("3.11", "3.12", "3.13")).items():
        measure(version, python, cycles, bars)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
