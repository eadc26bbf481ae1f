"""Made-up systems for benchmarks of policies, and measured grids from CSV: what a configuration gives, and how well."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from perflaw.explore.space import Space
from perflaw.types.studies import Configuration, Goal, Knob, Trial

Law = Callable[[Configuration], float]


@dataclass
class System:
    """A system whose best is known."""

    name: str
    knobs: tuple[Knob, ...]
    law: Law
    """Configuration → true value; nan where it is no data point."""
    noise: float = 0.05
    goal: Goal = "max"
    constraints: tuple[str, ...] = ()
    measured: dict[str, list[float]] = field(default_factory=dict)
    """Of a grid: the repetitions of each configuration."""
    best: float = field(init=False)

    def __post_init__(self) -> None:
        self.space = Space(self.knobs, self.constraints)
        size = self.space.size
        rng = np.random.default_rng(5)
        known = (
            self.space.all() if size is not None and size <= 20000 else [self.space.sample(rng) for _ in range(20000)]
        )
        self.best = float((np.nanmax if self.goal == "max" else np.nanmin)([self.law(each) for each in known]))

    def regret(self, configuration: Configuration) -> float:
        value = self.law(configuration)
        if np.isnan(value):
            return np.inf
        return 1 - value / self.best if self.goal == "max" else 1 - self.best / value

    def trial(self, number: int, configuration: Configuration, seed: int) -> Trial:
        true = self.law(configuration)
        if np.isnan(true):
            return Trial(number, configuration, valid=False, reason="refused", started="then")
        rng = np.random.default_rng([seed, number, 7])
        seen = self.measured.get(self.space.key(configuration))
        value = float(rng.choice(seen)) if seen else true * float(np.exp(rng.normal(0, self.noise)))
        if not seen and rng.uniform() < 0.03:
            value *= 0.6 if self.goal == "max" else 1.6  # somebody else's backup
        return Trial(number, configuration, {"value": value}, valid=True, n=1, started="then")


def ordinal(name: str, *values: float) -> Knob:
    return Knob(name, "ordinal", tuple(values), default=values[0])


def flag(name: str) -> Knob:
    return Knob(name, "bool", (False, True), default=False)


def database(noise: float = 0.03) -> System:
    """Pages and cache work together, threads collapse on a lock unless statistics are off."""

    def law(c: Configuration) -> float:
        page, cache, threads = float(c["page"]), float(c["cache"]), float(c["threads"])
        fits = 1 / (1 + np.exp(-(np.log2(cache) - 1.2 * np.log2(page) - 1)))
        one = 300 * (0.35 + 0.65 * fits) * (1 + 0.08 * np.log2(page))
        lock = 0.0 if c["status_off"] else 0.55
        speedup = threads / (1 + (0.08 + lock) * (threads - 1) + 0.02 * (lock > 0) * threads * (threads - 1))
        return float(one * speedup * (0.85 if c["shared"] and threads > 2 else 1.0))

    knobs = (ordinal("page", 1, 4, 16, 64), ordinal("cache", 2, 16, 128, 1024), ordinal("threads", 1, 2, 4, 8))
    return System("database", (*knobs, flag("shared"), flag("status_off")), law, noise)


def peaked(noise: float = 0.05) -> System:
    """Latency with a ridge: workers × pool has an optimum along a diagonal; a codec with its own best level."""
    shift = {"none": 0.0, "lz": 1.0, "zip": 2.0}

    def law(c: Configuration) -> float:
        work, pool, batch = np.log2(float(c["workers"])), np.log2(float(c["pool"])), np.log2(float(c["batch"]))
        ridge = 0.25 * (work - pool + 1) ** 2 + 0.08 * (work - 3) ** 2
        codec = 0.12 * (batch - 2 - shift[str(c["codec"])]) ** 2 + 0.1 * (str(c["codec"]) == "zip")
        return float(5 * np.exp(ridge + codec))

    knobs = (
        ordinal("workers", 1, 2, 4, 8, 16, 32),
        ordinal("pool", 1, 2, 4, 8, 16, 32, 64),
        ordinal("batch", 1, 2, 4, 8, 16, 32),
    )
    return System(
        "peaked", (*knobs, Knob("codec", "categorical", ("none", "lz", "zip"), default="none")), law, noise, "min"
    )


def cliffs(noise: float = 0.05) -> System:
    """Steps: memory that no longer fits, alignment that only one size has, a refused corner."""

    def law(c: Configuration) -> float:
        block, buffers, depth = float(c["block"]), float(c["buffers"]), float(c["depth"])
        if block * buffers > 2**13:
            return float("nan")
        value = 100 * (1 + np.log2(depth)) * buffers**0.3
        value *= 0.3 if block * buffers > 2**11 else 1.0
        value *= 1.6 if block == 64 and c["direct"] else 1.0
        return float(value * (0.6 if c["direct"] and block < 16 else 1.0) * (1.25 if c["sync"] == "none" else 1.0))

    knobs = (ordinal("block", 4, 16, 64, 256), ordinal("buffers", 4, 8, 16, 32, 64), ordinal("depth", 1, 2, 4, 8))
    return System(
        "cliffs",
        (*knobs, flag("direct"), Knob("sync", "categorical", ("full", "normal", "none"), default="full")),
        law,
        noise,
    )


def flags(noise: float = 0.01) -> System:
    """Twelve switches: four matter, two pairs, most do nothing."""

    def law(c: Configuration) -> float:
        on = [bool(c[f"f{i}"]) for i in range(12)]
        log = (
            -0.3 * on[0]
            - 0.15 * on[3]
            + 0.25 * on[5]
            - 0.2 * (on[5] and on[7])
            - 0.3 * (on[5] and on[8])
            - 0.1 * (on[1] != on[2])
        )
        return float(2.0 * np.exp(log))

    return System("flags", tuple(flag(f"f{i}") for i in range(12)), law, noise, "min")


def large(noise: float = 0.1) -> System:
    """Ranges under a constraint: no grid; an optimum inside, saturation, a cliff of memory."""

    def law(c: Configuration) -> float:
        cache, heap, workers, wait = (float(c[name]) for name in ("cache", "heap", "workers", "wait"))
        load = min(workers, 12) / (1 + np.exp((workers - 20) / 3))
        value = load * (1 - 0.7 * np.exp(-cache / 800)) * (1 - 0.5 * np.exp(-heap / 500))
        return float(100 * value * np.exp(-0.15 * np.log2(wait / 20) ** 2) * (1.2 if c["policy"] == "lfu" else 1.0))

    knobs = (
        Knob("cache", "int", low=16, high=4096, scale="log2", default=64),
        Knob("heap", "int", low=64, high=4096, scale="log2", default=256),
        Knob("workers", "int", low=1, high=64, default=4),
        Knob("wait", "float", low=1, high=1000, scale="log10", default=100.0),
        Knob("policy", "categorical", ("lru", "lfu", "random"), default="lru"),
    )
    return System("large", knobs, law, noise, constraints=("cache + heap <= 6000",))


def rugged(noise: float = 0.02) -> System:
    """Random laws with main effects, all pairs and a share of pure chance for each configuration."""
    rng = np.random.default_rng(11)
    sizes = (5, 4, 4, 3)
    main = [rng.normal(0, 0.2, size) for size in sizes]
    pairs = {(i, j): rng.normal(0, 0.15, (sizes[i], sizes[j])) for i in range(4) for j in range(i)}
    chance = rng.normal(0, 0.05, sizes)

    def law(c: Configuration) -> float:
        at = tuple(int(c[f"k{i}"]) for i in range(4))
        log = sum(main[i][at[i]] for i in range(4)) + sum(table[at[i], at[j]] for (i, j), table in pairs.items())
        return float(10 * np.exp(log + chance[at]))

    return System("rugged", tuple(ordinal(f"k{i}", *range(size)) for i, size in enumerate(sizes)), law, noise)


def structureless(noise: float = 0.05) -> System:
    """Null: every configuration has a value of its own; nothing beats chance by much."""
    values = np.random.default_rng(13).lognormal(0, 0.3, (4, 4, 4, 4))

    def law(c: Configuration) -> float:
        return float(values[tuple(int(c[f"k{i}"]) for i in range(4))])

    return System("structureless", tuple(ordinal(f"k{i}", *range(4)) for i in range(4)), law, noise)


SYSTEMS: dict[str, Callable[[], System]] = {
    "database": database,
    "noisy": lambda: _named(database(0.2), "noisy"),
    "peaked": peaked, "cliffs": cliffs, "flags": flags, "large": large, "rugged": rugged, "structureless": structureless,
}  # fmt: skip


def _named(system: System, name: str) -> System:
    system.name = name
    return system


def grid_system(path: str, goal: Goal) -> System:
    """A measured grid: columns of knobs, then ``value`` and ``repetition``; rows without a value are invalid."""
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("value", "repetition")]
    knobs = tuple(_knob(name, [row[name] for row in rows]) for name in names)
    space = Space(knobs)
    measured: dict[str, list[float]] = {}
    for row in rows:
        if row["value"]:
            key = space.key({knob.name: _value(knob, row[knob.name]) for knob in knobs})
            measured.setdefault(key, []).append(float(row["value"]))
    means = {key: float(np.mean(values)) for key, values in measured.items()}
    return System(Path(path).stem, knobs, lambda c: means.get(space.key(c), float("nan")), goal=goal, measured=measured)


def _knob(name: str, texts: list[str]) -> Knob:
    try:
        values = sorted({float(text) for text in texts})
        return Knob(name, "ordinal", tuple(int(v) if v.is_integer() else v for v in values))
    except ValueError:
        return Knob(name, "categorical", tuple(sorted(set(texts))))


def _value(knob: Knob, text: str) -> float | str:
    return float(text) if knob.kind == "ordinal" else text
