"""CPU time and its variance while other processes want the same cores: neighbour.py [ROUNDS] [SEEDS] [PYTHON].

programs/planted.py runs beside three spinning processes. Its main() has, by the kernel's clock of the thread, a CPU time
that the recording's must agree with. One of twenty functions, by the seed, varies; which one, only the program says. Of
the variance of their caller X each callee's Y has the share Cov(Y, X) / Var(X); the greatest share must be the planted
function's and 95 % at least. The shares of wall-clock time show what a neighbour makes of it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from shared import PROGRAMS, Bars, pythons, recorded

from perflaw.store.columns import Tables
from perflaw.store.experiment import Recording, open_experiment
from perflaw.store.schema import LOCAL

NEIGHBOURS, AGREEMENT, SHARE = 3, 0.01, 0.95


@dataclass(frozen=True, slots=True)
class Found:
    """What a recording says, and what is so."""

    cpu: int
    """ns of CPU of main(), recorded."""
    kernel: int
    """The same by the kernel."""
    planted: str
    shares: dict[str, dict[str, float]]
    """Metric → callee of body() → its share of the variance."""

    @property
    def error(self) -> float:
        return self.cpu / self.kernel - 1

    def greatest(self, metric: str) -> tuple[str, float]:
        """The callee with the greatest share."""
        return max(self.shares[metric].items(), key=lambda item: item[1])


@contextmanager
def neighbours(count: int = NEIGHBOURS) -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def find(python: str, seed: int, rounds: int, folder: Path) -> Found:
    """Record the program under busy neighbours."""
    target = ["--", python, str(PROGRAMS / "planted.py"), str(seed), str(rounds)]
    with neighbours():
        command = recorded("-e", f"seed{seed}", "--tracer", "native", *target)
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    planted, kernel = done.stdout.split()
    (recording,) = open_experiment(f"seed{seed}", folder).recordings()
    return Found(_cost(recording, "planted.main"), int(kernel), planted, _shares(recording, "planted.body"))


def _cost(recording: Recording, name: str) -> int:
    tables = recording.tables()
    number = next(row[0] for row in tables["components"] if row[1] == name)
    return next(row[2] for row in tables["component_costs"] if row[:2] == (number, "cpu"))


def _shares(recording: Recording, name: str) -> dict[str, dict[str, float]]:
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    component = {row[0]: names.get(row[2], "") for row in tables["calltree"]}
    node = next(node for node, shown in component.items() if shown == name)
    named = {LOCAL: "itself", **{key: shown.removeprefix("planted.") for key, shown in component.items()}}
    return {
        metric: {named[child]: share for child, share in variance_shares(tables, node, metric).items()}
        for metric in ("cpu", "time")
    }


def variance_shares(tables: Tables, node: int, metric: str) -> dict[int, float]:
    """Cov(Y_i, X) / Var(X) of a node's callees, exactly from its raw moments: X is the sum of all Y_j.

    The sum of X Y_i is that of all products Y_j Y_i; the sum of Y_i is that of the callee's own cost, all of whose
    invocations ended within the node's.
    """
    sums = {row[0]: row[3] for row in tables["moments"] if row[1] == metric}
    n, sum_x, sum_xx = next(row[2:5] for row in tables["moments"] if row[:2] == (node, metric))
    with_x: dict[int, int] = {}
    for i, j, total in [row[2:] for row in tables["pairs"] if row[:2] == (node, metric)]:
        for one in {i, j}:
            with_x[one] = with_x.get(one, 0) + total
    sums[LOCAL] = sum_x - sum(sums[child] for child in with_x if child != LOCAL)
    variance = sum_xx - Fraction(sum_x**2, n)
    return {child: float((total - Fraction(sums[child] * sum_x, n)) / variance) for child, total in with_x.items()}


def show(version: str, seed: int, found: Found, bars: Bars) -> None:
    name, share = found.greatest("cpu")
    agrees = bars.check(f"{version} seed {seed}, CPU against the kernel's", abs(found.error), AGREEMENT)
    planted = found.shares["cpu"][found.planted]
    shown = bars.check(f"{version} seed {seed}, share of the planted", planted, SHARE, least=True)
    bars.check(f"{version} seed {seed}, another than the planted was found", float(name != found.planted), 0)
    print(f"Python {version}, seed {seed}: CPU {found.cpu / 1e6:.1f} ms, {found.error:+.3%} of the kernel's  {agrees}")
    print(f"  CPU says {name} {share:.1%}, planted was {found.planted}  {shown}")
    wall, wall_share = found.greatest("time")
    print(f"  wall clock says {wall} {wall_share:.1%}, of the planted {found.shares['time'][found.planted]:.1%}")


def main(rounds: int = 1000, seeds: int = 3, *chosen: str) -> None:
    bars = Bars()
    interpreters = dict(zip(chosen, chosen, strict=True)) or pythons(("3.11", "3.13"))
    for version, python in interpreters.items():
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                show(version, seed, find(python, seed, rounds, Path(folder)), bars)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
