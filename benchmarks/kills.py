"""SIGKILL at random moments: the recording has every call that had ended: kills.py [KILLS] [SEED] [PYTHON].

The program (programs/counting.py) counts its calls in a page that outlives it, before and after each. What is in the
recording must be the calls that finished; one call a thread may be in flight, ended or not when the signal came.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from shared import PROGRAMS, Bars, pythons, recorded

from perflaw.store.experiment import open_experiment


@dataclass(frozen=True, slots=True)
class Count:
    """Calls of a function, by the program's own page and by the recording."""

    begun: int
    finished: int
    completed: int
    opened: int

    @property
    def agree(self) -> bool:
        """A call begun by the page may not have been entered yet, or have returned before the page says so."""
        whole = self.finished <= self.completed <= self.begun
        return whole and self.completed + self.opened in (self.finished, self.begun)


def kill(python: str, chance: random.Random, folder: Path, threads: int) -> list[Count]:
    """Record the program, kill it at some moment in its first third of a second of work; what both say, by thread."""
    page = folder / "page"
    page.write_bytes(bytes(4096))
    target = ["--", python, str(PROGRAMS / "counting.py"), str(page), str(threads)]
    command = recorded("-e", folder.name, "--tracer", "native", *target)
    recorder = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not all(_words(page)[1 : 1 + 2 * threads : 2]):
        if recorder.poll() is not None:
            sys.exit(f"the recorder ended: {recorder.communicate()[1]}")
        time.sleep(0.001)
    time.sleep(chance.random() ** 2 / 3)  # short runs are likelier: there the rings are new
    os.kill(_words(page)[0], signal.SIGKILL)
    recorder.communicate()
    assert recorder.returncode == 128 + signal.SIGKILL, recorder.returncode
    return _counts(folder, _words(page), threads)


def _words(page: Path) -> tuple[int, ...]:
    return struct.unpack_from("<5Q", page.read_bytes())


def _counts(folder: Path, words: tuple[int, ...], threads: int) -> list[Count]:
    (recording,) = open_experiment(folder.name, folder).recordings()
    functions = {row[1]: row[7:9] for row in recording.tables()["components"]}
    return [Count(*words[1 + 2 * at : 3 + 2 * at], *functions[f"counting.work_{at}"]) for at in range(threads)]


def main(kills: int = 50, seed: int = 1, *chosen: str) -> None:
    bars, chance = Bars(), random.Random(seed)
    interpreters = dict(zip(chosen, chosen, strict=True)) or pythons(("3.11", "3.13"))
    for name, python in interpreters.items():
        wrong, calls = 0, []
        for _ in range(kills):
            threads = chance.choice((1, 2))
            with tempfile.TemporaryDirectory() as folder:
                counts = kill(python, chance, Path(folder), threads)
            calls.append(sum(count.finished for count in counts))
            for count in [count for count in counts if not count.agree]:
                wrong += 1
                print(f"  {count}")
        beside = bars.check(f"{name}, recordings that disagree", wrong, 0)
        print(f"Python {name}: {kills} kills after {min(calls):,} to {max(calls):,} calls; disagree {wrong}  {beside}")
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
