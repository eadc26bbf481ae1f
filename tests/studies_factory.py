"""Studies with a known truth: a database's throughput over five knobs, as the prototype measured it on SQLite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from perflaw.explore.space import Space
from perflaw.types.studies import Budget, Conditions, Knob, Study, StudyMetric, Target, Trial

MIB = 1 << 20
PAGES = (1024, 4096, 16384, 65536)
CACHES = tuple(float(2 * 8**i * MIB) for i in range(4))
KNOBS = (
    Knob("page_size", "ordinal", PAGES, unit="B", default=4096),
    Knob("cache", "ordinal", tuple(int(one) for one in CACHES), unit="B", default=2 * MIB),
    Knob("threads", "int", low=1, high=4, default=1),
    Knob("shared_cache", "bool", (False, True), default=False),
    Knob("memory_status", "categorical", ("on", "off"), default="on"),
)
"""256 configurations, as the prototype's grid."""
THROUGHPUT = StudyMetric("throughput", {"path": "rows_per_s"}, "rows/s", "max")
MEMORY = StudyMetric("memory", {"path": "peak"}, "bytes", "min")


def study(*metrics: StudyMetric, knobs: Sequence[Knob] = KNOBS, **more: object) -> Study:
    made = Study("sqlite", Target(run="./db {args}"), tuple(knobs), metrics or (THROUGHPUT,), budget=Budget(trials=60))
    return replace(made, **more)


def space(made: Study | None = None) -> Space:
    made = made or study()
    return Space(made.knobs, made.constraints, {"mem": 16 << 30, "cpus": 8})


def log_throughput(one: Mapping[str, object]) -> float:
    """Page and cache together most (a small page needs a cache), threads little but where they collapse on a lock."""
    page, cache = PAGES.index(one["page_size"]) / 3, [int(c) for c in CACHES].index(one["cache"]) / 3
    found = 12.0 + 0.9 * page + 0.5 * cache + 2.2 * (page - 0.5) * (0.5 - cache)
    found += 0.06 * np.log2(float(one["threads"]))
    return float(found)


def trials(
    configurations: Sequence[Mapping[str, object]],
    truth: Callable[[Mapping[str, object]], float] = log_throughput,
    noise: float = 0.03,
    seed: int = 1,
) -> list[Trial]:
    """One valid trial each, with multiplicative noise."""
    rng = np.random.default_rng(seed)
    made = []
    for number, one in enumerate(configurations, 1):
        value = float(np.exp(truth(one) + rng.normal(0, noise)))
        made.append(trial(number, one, throughput=value))
    return made


def trial(number: int, configuration: Mapping[str, object], **metrics: float) -> Trial:
    return Trial(
        number,
        dict(configuration),
        metrics,
        n=100,
        valid=True,
        run=f"{number:04d}",
        why="space-filling start",
        started=f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}",
        seconds=2.5,
        measured_s=2.0,
        conditions=Conditions(cpu_s=2.0),
    )


def sample(made: Space, count: int, seed: int = 0) -> list[dict[str, object]]:
    """Different configurations at random."""
    rng = np.random.default_rng(seed)
    everything = made.all()
    return [dict(everything[i]) for i in rng.choice(len(everything), count, replace=False)]


def collapsing(noise: float = 0.03, locked: Callable[[Mapping[str, object]], bool] = lambda one: True) -> list[Trial]:
    """Sixty trials over threads 1 to 8: a lock costs throughput from the third on and puts threads to sleep."""
    made = space(study(knobs=THREADED))
    rng = np.random.default_rng(3)
    found = []
    for number, one in enumerate(sample(made, 60, 3), 1):
        threads, lock = float(one["threads"]), locked(one)
        gain = np.log(threads) if not lock else np.log(min(threads, 3.0)) - 0.25 * max(0.0, threads - 3.0)
        page = PAGES.index(one["page_size"]) / 3
        switches = 30.0 + (4000.0 * max(0.0, threads - 2.0) if lock else 5.0 * threads)
        value = float(np.exp(11 + gain + 0.3 * page + rng.normal(0, noise)))
        conditions = Conditions(
            voluntary=switches * float(np.exp(rng.normal(0, 0.2))), run_delay=0.01, cpu_s=2 * threads
        )
        found.append(replace(trial(number, one, throughput=value), conditions=conditions))
    return found


THREADED = (
    Knob("page_size", "ordinal", PAGES, unit="B", default=4096),
    Knob("threads", "int", low=1, high=8, default=1),
    Knob("memory_status", "categorical", ("on", "off"), default="on"),
)
