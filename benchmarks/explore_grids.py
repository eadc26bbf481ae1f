"""Trials until one of the two best of 256 configurations was tried, on grids that are measured here: explore_grids.py.

Three grids of real work: zlib over a slow link, LZMA over a slow link, and an index of SQLite. Each configuration is
measured twice, in random order, and the best of them six times more: of 256 means of two trials the best was lucky. A trial of
a policy replays one of the measurements. No policy was tuned on these grids. The row "hindsight" is the place of the better of
the two best in the order of a law that has seen one trial of every configuration.
"""

from __future__ import annotations

import csv
import lzma
import random
import sqlite3
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TextIO

import numpy as np
from explore_policies import study_of
from explore_systems import System, grid_system
from shared import Bars

from perflaw.explore.policy import find_policy
from perflaw.explore.space import Space
from perflaw.learn.exploring.gaussian_process import fit_surrogate, one_thread
from perflaw.learn.exploring.observations import ordered_knobs, units
from perflaw.types.studies import Trial

SEEDS, TRIALS, BEST, MAX_MEDIAN, MAX_HIGH = 20, 80, 2, 19, 40
AGAIN, MORE = 32, 6
"""Number of the best configurations that are measured again, and how often."""
Grid = tuple[Sequence[str], Sequence[Sequence[int]], Callable[..., float]]


def text() -> bytes:
    """Words of a vocabulary, the first of it more often."""
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(3, 9))) for _ in range(3000)]
    return " ".join(words[min(int(abs(draw.gauss(0, 600))), 2999)] for _ in range(40_000)).encode()


TEXT = text()


def deflated(level: int, bits: int, memory: int, strategy: int) -> float:
    """MB/s over a link of 20 MB/s."""
    begun = time.process_time()
    packer = zlib.compressobj(level, zlib.DEFLATED, bits, memory, strategy)
    size = len(packer.compress(TEXT) + packer.flush())
    return len(TEXT) / 1e6 / (time.process_time() - begun + size / 20e6)


FINDERS = (lzma.MF_HC3, lzma.MF_HC4, lzma.MF_BT3, lzma.MF_BT4)


def packed(kib: int, literal: int, nice: int, finder: int, mode: int) -> float:
    """MB/s over a link of 4 MB/s."""
    chosen = {"id": lzma.FILTER_LZMA2, "dict_size": kib * 1024, "lc": literal, "nice_len": nice}
    chosen |= {"mf": FINDERS[finder], "mode": (lzma.MODE_FAST, lzma.MODE_NORMAL)[mode]}
    begun = time.process_time()
    size = len(lzma.compress(TEXT[:120_000], format=lzma.FORMAT_RAW, filters=[chosen]))
    return 0.12 / (time.process_time() - begun + size / 4e6)


def indexed(page: int, cache: int, rows: int, synchronous: int, index: int) -> float:
    """Rounds a second of inserts and queries."""
    with tempfile.TemporaryDirectory() as folder:
        base = sqlite3.connect(Path(folder) / "base", isolation_level=None)
        for setting in (
            f"page_size={page}",
            f"cache_size={cache}",
            f"synchronous={synchronous}",
            "journal_mode=memory",
        ):
            base.execute(f"pragma {setting}")
        base.execute("create table t(a integer primary key, b text, c int)")
        if index:
            base.execute("create index i on t(c)")
        draw = random.Random(1)
        begun = time.process_time()
        for first in range(0, 3000, rows):
            base.execute("begin")
            some = [(place, "x" * 40, draw.randrange(10**6)) for place in range(first, first + rows)]
            base.executemany("insert into t values(?,?,?)", some)
            base.execute("commit")
        for place in range(60):
            base.execute(
                "select count(*) from t where c between ? and ?", (place * 1000, place * 1000 + 5000)
            ).fetchone()
        took = time.process_time() - begun
        base.close()
    return 1 / took


GRIDS: dict[str, Grid] = {
    "zlib": (("level", "bits", "memory", "strategy"), (range(1, 9), (10, 12, 14, 15), (2, 5, 8, 9), (0, 1)), deflated),
    "lzma": (
        ("kib", "literal", "nice", "finder", "mode"),
        ((4, 16, 64, 256), (0, 3), (8, 32, 64, 200), range(4), (0, 1)),
        packed,
    ),
    "sqlite": (
        ("page", "cache", "rows", "synchronous", "index"),
        ((512, 4096, 16384, 65536), (5, 20, 200, 2000), (10, 50, 250, 1000), (0, 1), (0, 1)),
        indexed,
    ),
}


def measured(name: str, folder: Path) -> System:
    """The grid, each configuration measured twice in random order, then the best again."""
    names, levels, run = GRIDS[name]
    path = folder / f"{name}.csv"

    def measure(rows: list[tuple[int, ...]], file: TextIO) -> None:
        random.Random(len(rows)).shuffle(rows)
        csv.writer(file).writerows([*row, run(*row), number] for number, row in enumerate(rows))

    with path.open("w", newline="") as file:
        csv.writer(file).writerow([*names, "value", "repetition"])
        measure(list(product(*levels)) * 2, file)
    system = grid_system(str(path), "max")
    best = sorted(system.space.all(), key=system.regret)[:AGAIN]
    with path.open("a", newline="") as file:
        measure([tuple(int(each[one]) for one in names) for each in best] * MORE, file)
    return grid_system(str(path), "max")


@one_thread
def hindsight(system: System, seed: int) -> int:
    """The place of the better of the two best in the order of a law of one trial of each configuration."""
    configurations = system.space.all()
    trials = [system.trial(number, each, seed) for number, each in enumerate(configurations)]
    at, ordered = units(configurations, system.space), ordered_knobs(system.space)
    values = np.array([trial.metrics["value"] for trial in trials])
    means, _ = fit_surrogate(at, ordered, values, 1.0, seed).predict(at)
    places = np.argsort(np.argsort(-means.mean(axis=0)))
    best = sorted(range(len(configurations)), key=lambda one: system.regret(configurations[one]))[:BEST]
    return 1 + int(min(places[one] for one in best))


def needed(system: System, policy: str, seed: int) -> int:
    """Trials until one of the best configurations was tried; one more than allowed if none was."""
    order = sorted(system.space.all(), key=system.regret)
    best = {system.space.key(configuration) for configuration in order[:BEST]}
    proposer = find_policy(policy, Path(__file__).parent)(
        Space(system.knobs, system.constraints), study_of(system, TRIALS, {}), seed
    )
    history: list[Trial] = []
    while len(history) < TRIALS:
        proposal = proposer.propose(history)
        if proposal is None:
            break
        history.append(system.trial(len(history) + 1, proposal.configuration, seed))
        if system.space.key(proposal.configuration) in best:
            return len(history)
    return TRIALS + 1


def tell(bars: Bars, name: str, policy: str, trials: list[int]) -> None:
    """Print a row: how many trials half of the seeds needed, and nine tenths, with the bars of perflaw's own policy."""
    middle, high = (int(each) for each in np.quantile(trials, [0.5, 0.9], method="higher"))
    words = ""
    if policy == "law":
        words = f"{bars.check(f'{name} median', middle, MAX_MEDIAN)} {bars.check(f'{name} p90', high, MAX_HIGH)}"
    print(f"{name:10} {policy[-10:]:10} {middle:6} {high:4} {words}", flush=True)


def main() -> None:
    bars = Bars()
    print(f"{'grid':10} {'policy':10} {'median':>6} {'p90':>4}")
    with tempfile.TemporaryDirectory() as folder:
        for name in GRIDS:
            system = measured(name, Path(folder))
            for policy in sys.argv[1:] or ("law", "random", "hindsight"):
                tried = hindsight if policy == "hindsight" else partial(needed, policy=policy)
                trials = [tried(system, seed=seed) for seed in range(SEEDS)]
                tell(bars, name, policy, trials)
    bars.leave()


if __name__ == "__main__":
    main()
