"""What the command line costs before it has anything to learn: CPU of whole processes, imports included.

    python benchmarks/start_up.py [--rounds 15]

A small program is recorded at six sizes, twice each, by the fake clock; then `perflaw --help` and `perflaw annotate` of
that recording run in turns with `python -c "import numpy"`. Figures are user and system time of the process and its
children, the least of the rounds, so that other processes disturb little; a busy hyper-thread still makes them up to
twice as large, which the line of NumPy shows.
Bars: 120 ms, 500 ms. Status 1 where one is missed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import ROOT, Bars

SIZES = "n=100,200,400,800,1600,3200"
BARS = {"perflaw --help": 120.0, "perflaw annotate": 500.0}


def spent(command: list[str], folder: str) -> float:
    """Milliseconds of CPU of a command in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def main() -> None:
    """Print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    perflaw = [sys.executable, "-m", "perflaw"]
    commands = {
        "import numpy": [sys.executable, "-c", "import numpy"],
        **{name: [*perflaw, name.split()[-1]] for name in BARS},
    }
    bars = Bars()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(ROOT) / "tests" / "programs" / "known.py"
        record = [*perflaw, "record", "--clock", "fake", "--vary", SIZES, "--repeat", "2", "--", str(program), "{n}"]
        subprocess.run(record, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        figures: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                figures[name].append(spent(command, folder))
    for name, values in figures.items():
        bar = bars.check(name, min(values), BARS[name]) if name in BARS else ""
        print(f"{name:18}{min(values):6.0f} ms {bar}")
    bars.leave()


if __name__ == "__main__":
    main()
