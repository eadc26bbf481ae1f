"""SQLite's 256 configurations (examples/sqlite): the grid measured on this machine, policies against it, replayed and live.

The grid, repetitions interleaved, its best measured again before regret is computed; over 20 seeds the trials until a
configuration within 5 % of the best was tried (law: median ≤ 30, p90 ≤ 60), beside Optuna's TPE and random on the same ones;
early stop over the grid's own readings (≥ 40 % of the time saved, the winner ended in ≤ 1 of 300 replays); what matters, and
why threads make it slower; then studies live with ``perflaw explore``, and the page sizes that SQLite ignores.
Usage: explore_sqlite.py [--seconds 0.6] [--repetitions 2] [--seeds 20] [--live 3] [--trials 40]
[--rows 1000000] [--grid FOLDER] [-o FOLDER]
(a folder of an earlier run's CSV files as ``--grid``: nothing is measured again but what is live). About 15 minutes.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from explore_live import copied, live, traps
from explore_policies import explore
from explore_stopping import Ours, recorded, replay
from explore_systems import System, grid_system
from explore_trips import EXAMPLE, ROWS, Trips, measure, remeasured, trips_study, write
from optuna_here import optuna_here
from shared import CACHE, Bars

from perflaw.explore.space import Space
from perflaw.learn.exploring.result import study_result
from perflaw.types.studies import Conditions, Study, Trial, Value

POLICIES = ("law", "optuna", "random")
MOST = 120
"""Trials after which a replay gives up."""
BEST = 16
"""Configurations that are measured again."""
REPLAYS = 300


def measured(asked: argparse.Namespace, space: Space) -> Path:
    """The folder of the grid's CSV files, measured now."""
    start = time.monotonic()
    trips = Trips(rows=asked.rows)
    found = measure(trips, space.all(), asked.repetitions, asked.seconds)
    found = remeasured(trips, found, space, BEST, 2 + asked.repetitions, asked.seconds)
    write(found, asked.o)
    print(
        f"{len(found)} runs of {space.size} configurations in {time.monotonic() - start:.0f} s, in {asked.o}",
        flush=True,
    )
    return Path(asked.o)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def settings(space: Space, row: Mapping[str, str]) -> dict[str, Value]:
    return space.normal({name: int(row[name]) for name in space.names})


def trials_of(folder: Path, space: Space, metric: str) -> list[Trial]:
    """The grid as trials of a study."""
    trials = []
    for number, (row, seen) in enumerate(
        zip(rows_of(folder / "grid.csv"), rows_of(folder / "conditions.csv"), strict=True), 1
    ):
        told = {name: float(seen[name]) for name in ("voluntary", "involuntary", "other_cpu")}
        trials.append(Trial(
            number, settings(space, row), {metric: float(row["value"])}, valid=True, n=1, repetition=int(row["repetition"]),
            started="then", conditions=Conditions(**told),
        ))  # fmt: skip
    return trials


def policies(system: System, seeds: int, bars: Bars) -> None:
    """Trials until within 5 % of the best, by policy."""
    print(f"\ntrials until within 5 % of the best ({system.best:.4g}), {seeds} seeds")
    for name in POLICIES:
        runs = [explore(system, name, seed, MOST) for seed in range(seeds)]
        median, high = np.quantile([run[0] for run in runs], [0.5, 0.9], method="higher")
        cpu = 1000 * float(np.mean([run[1] for run in runs]))
        words = ""
        if name == "law":
            words = f"  median {bars.check('law: median trials', median, 30)}, p90 {bars.check('law: p90 trials', high, 60)}"
        print(
            f"  {name:8} median {_trials(median):>5}, p90 {_trials(high):>5}, {cpu:4.0f} ms a proposal{words}",
            flush=True,
        )


def _trials(number: float) -> str:
    return f"{number:.0f}" if number <= MOST else f"> {MOST}"


def early_stop(folder: Path, bars: Bars) -> None:
    """Early stop over the readings of the grid, studies in random order."""
    streams = recorded(str(folder / "readings.csv"))
    at = max(float(row["at_s"]) for row in rows_of(folder / "readings.csv"))
    times = np.arange(1, len(streams[0]) + 1) * at / len(streams[0])
    killed, saved = 0, []
    for number in range(REPLAYS):
        rng = np.random.default_rng([8, number])
        some = [streams[i] for i in rng.choice(len(streams), size=min(60, len(streams)), replace=False)]
        lost, share = replay(Ours("max"), some, times, rng.permutation(len(some)), 1.0)
        killed, saved = killed + lost, [*saved, share]
    print(
        f"\nearly stop: the winner ended in {killed} of {REPLAYS} studies of 60 trials",
        bars.check("winners ended", killed, 1),
    )
    share = 100 * float(np.mean(saved))
    print(
        f"            {share:.0f} % of the trials' time saved",
        bars.check("time saved by early stop, %", share, 40, least=True),
    )


def result(study: Study, space: Space, trials: Sequence[Trial], bars: Bars) -> None:
    """Importance, interactions and warnings of the whole grid."""
    found = study_result(study, trials, space)
    first = found.importance[0]
    print(f"\nwhat {first.metric} depends on (share of the variance{' of its logarithm' * first.logarithm})")
    for one in first.shares[:8]:
        print(f"  {100 * one.share:5.1f} % ({100 * one.low:.1f}–{100 * one.high:.1f})  {' × '.join(one.knobs)}")
    together = sum(100 * one.low for one in first.shares if set(one.knobs) == {"page_size", "cache"})
    print("  page size × cache:", bars.check("share of page size × cache, lower end, %", together, 0.3, least=True))
    for notice in found.notices:
        print(f"  {notice.kind}: {notice.words}")
    locks = sum(notice.kind == "hidden lock" and "threads" in notice.words for notice in found.notices)
    print("  collapse with threads, told:", bars.check("collapse with threads, told", locks, 1, least=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.6, help="of a run")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--live", type=int, default=3, help="studies")
    parser.add_argument("--trials", type=int, default=40, help="of a live study")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--grid", type=Path)
    parser.add_argument("-o", type=Path, default=CACHE / "trips-grid")
    asked = parser.parse_args()
    study, space = trips_study()
    folder = asked.grid or measured(asked, space)
    optuna_here()
    bars = Bars()
    system = grid_system(str(folder / "grid.csv"), "max")
    policies(system, asked.seeds, bars)
    early_stop(folder, bars)
    result(study, space, trials_of(folder, space, study.metrics[0].name), bars)
    live(EXAMPLE, "sqlite.yaml", asked, bars, lambda one: system.regret({n: int(v) for n, v in one.items()}))
    traps(copied(EXAMPLE), "page-sizes.yaml", bars, {"TRIPS_ROWS": str(asked.rows)})
    bars.leave()


if __name__ == "__main__":
    sys.exit(main())
