"""What the benchmarks of compiled programs share: recording over files, and clusters printed as the trend-prof paper does."""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflaw.store.counts import read_counts
from perflaw.store.experiment import open_experiment


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of ``perflaw trend`` in one feature."""

    name: str
    """Its representative."""
    is_feature: bool
    members: tuple[str, ...]
    share: float
    """Of all counts of all runs."""
    max_cost: float
    coefficient: float
    exponent: float
    low: float
    high: float
    """95 % interval of the exponent."""
    r2: float
    predicted: tuple[float, float]
    """Interval of its cost at the point asked for."""

    def of(self, file: str) -> bool:
        """Whether its representative is in a file."""
        return self.name.startswith(f"{file}:")


def perflaw(folder: Path, *arguments: object) -> str:
    """Run perflaw in a folder; what it prints."""
    command = [sys.executable, "-m", "perflaw", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise SystemExit(f"exit status {done.returncode}: perflaw {' '.join(map(str, arguments))}")
    return done.stdout


def record(folder: Path, command: Sequence[object], vary: str, values: Sequence[object]) -> None:
    """Record a program over these values of ``{vary}``; what it prints goes nowhere."""
    listed = f"{vary}={','.join(map(str, values))}"
    line = [sys.executable, "-m", "perflaw", "record", "--collect", "lines", "--vary", listed, "--", *map(str, command)]
    done = subprocess.run(line, cwd=folder, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"exit status {done.returncode} of {command[0]}")


def counted(folder: Path) -> tuple[int, list[int]]:
    """Lines that gcov knows, and how often all of them were executed in each run."""
    runs = [read_counts(one.folder) for one in open_experiment("default", folder).recordings()]
    sums = [int(run.counts[[place.kind == "line" for place in run.locations]].sum()) for run in runs]
    return sum(place.kind == "line" for place in runs[0].locations), sums


def clusters(folder: Path, feature: str, at: float, *options: str) -> list[Cluster]:
    """All clusters by cost, their power laws in a feature and its prediction there."""
    document = json.loads(
        perflaw(folder, "trend", "--json", "--feature", feature, "--at", f"{feature}={at:g}", *options)
    )
    return [_cluster(one, feature) for one in document["clusters"]]


def _cluster(one: dict, feature: str) -> Cluster:
    power = one["powers"].get(feature, {})  # none where a cluster is executed in too few runs
    names = ("coefficient", "exponent", "exponent_low", "exponent_high", "r2")
    numbers = [math.nan if power.get(name) is None else power[name] for name in names]
    at = (power.get("predictions") or [{}])[-1]
    predicted = at.get("mean_low", math.nan), at.get("mean_high", math.nan)
    members = tuple(one["locations"])
    return Cluster(
        one["representative"], one["is_feature"], members, one["share"], one["max_cost"], *numbers, predicted
    )


def table(found: Sequence[Cluster], feature: str, where: str, least: float = 0.002) -> str:
    """The clusters of some cost as the paper's Figure 5 shows them."""
    lines = [f"{'cluster':26} {'lines':>5} {'share':>6} {'max':>9}  {'fit of ' + feature:38} {'R²':>6}  {where}"]
    for one in found:
        if one.share >= least:
            fit = f"{one.coefficient:.3g} · {feature}^{one.exponent:.3f} ({one.low:.3f}–{one.high:.3f})"
            low, high = one.predicted
            lines.append(
                f"{one.name:26} {len(one.members):5} {one.share:6.1%} {one.max_cost:9.3g}  {fit:38} {one.r2:6.3f}"
                f"  ({low:.3g}, {high:.3g})"
            )
    rest = [one for one in found if one.share < least]
    return "\n".join([*lines, f"and {len(rest)} clusters below {least:.1%} of the cost"])


def in_folder(main: Callable[..., None], parts: tuple[str, ...] = ()) -> None:
    """Run a benchmark in a temporary folder, or in one that is kept; with all of its parts or those that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer and smaller inputs, for trying")
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it there")
    if parts:
        parser.add_argument("part", nargs="*", help=f"those alone, of {' '.join(parts)}")
    asked = parser.parse_args()
    if unknown := set(asked.part if parts else ()) - set(parts):
        parser.error(f"no such part: {' '.join(unknown)}")
    chosen = [asked.part or parts] if parts else []
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        main(asked.quick, asked.keep.resolve(), *chosen)
        return
    with tempfile.TemporaryDirectory(prefix="perflaw-bench-") as folder:
        main(asked.quick, Path(folder), *chosen)
