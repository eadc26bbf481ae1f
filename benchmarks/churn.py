"""Memory stays what it is however long a program runs: churn.py [SECONDS] [PYTHON]: ten minutes as a rule.

programs/churn.py makes functions by exec, starts threads, leaves generators suspended, raises and awaits. Resident memory of
the target and of the recorder is sampled; after a warm-up of a third of the time the straight line through the samples
must not rise by more than 2 MB.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import PROGRAMS, Bars, pythons, recorded

from perflaw.record.machine import PARENT, stat_of

WARM, RISE_MB = 1 / 3, 2.0
Samples = list[tuple[float, float]]


def resident(pid: int) -> float:
    """MB of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def children(pid: int) -> list[int]:
    """Processes that a process has started and that have not ended."""
    everyone = (int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit())
    return [one for one in everyone if stat_of(one)[PARENT : PARENT + 1] == [str(pid)]]


def watch(command: list[str], folder: Path) -> tuple[Samples, Samples, int, str]:
    """(second, MB) of the target and of the process started, turns of work, closing line."""
    target, recorder, turns = [], [], 0
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        for line in process.stdout:
            second, kb, turns = map(int, line.split())
            target.append((second, kb / 1024))
            recorder.append((second, resident(process.pid)))
        words = process.stderr.read().strip()
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}\n{words}")
    return target, recorder, turns, words


def rise(samples: Samples, seconds: float) -> float:
    """MB that the straight line through the samples after the warm-up rises."""
    later = [sample for sample in samples if sample[0] >= seconds * WARM]
    slope = statistics.linear_regression(*zip(*later, strict=True)).slope
    return slope * (later[-1][0] - later[0][0])


def told(name: str, samples: Samples, seconds: float) -> str:
    at = [samples[int(len(samples) * part)][1] for part in (0, 0.1, WARM, 0.67)] + [samples[-1][1]]
    return f"  {name:10} {' '.join(f'{mb:7.1f}' for mb in at)}   rises {rise(samples, seconds):+6.2f} MB"


def main(seconds: float = 600, *chosen: str) -> None:
    bars = Bars()
    interpreters = dict(zip(chosen, chosen, strict=True)) or pythons(("3.11", "3.13"))
    program = [str(PROGRAMS / "churn.py"), str(seconds)]
    for version, python in interpreters.items():
        with tempfile.TemporaryDirectory() as name:
            plain, _, _, _ = watch([python, str(PROGRAMS / "churn.py"), str(max(seconds / 5, 10))], Path(name))
            target, recorder, turns, words = watch(recorded("--tracer", "native", "--", python, *program), Path(name))
        print(f"Python {version}, {seconds:.0f} s, {turns:,} turns; MB at 0, 10, 33, 67 and 100 % of the time")
        print(told("plain", plain, max(seconds / 5, 10)))
        for who, samples in (("target", target), ("recorder", recorder)):
            beside = bars.check(f"{version} rise of the {who}, MB", rise(samples, seconds), RISE_MB)
            print(told(who, samples, seconds), beside)
        print(f"  {words}")
    bars.leave()


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]), *sys.argv[2:])
