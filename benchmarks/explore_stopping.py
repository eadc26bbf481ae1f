"""Early stop: how often the winner is killed, and how much trial time is saved, against the rules in use.

Replays of studies of 24 configurations in random order, each a stream of readings; generated ones (warm-ups by filling caches,
exponential, linear, in a step; autocorrelated noise; bursts; run-to-run scatter), or recorded: ``--streams FILE``, CSV
with columns trial, at_s, value, n, replayed in random orders. Bars: winner killed in at most 1 of 300 replays, 40 % of the
time saved.
Usage: explore_stopping.py [--replays 300] [--streams FILE] [--goal max]
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.racing import Stopper, steady_from, usually_steady
from perflaw.types.studies import Goal

Array = NDArray[np.float64]
READINGS, CONFIGURATIONS = 100, 24


def warm(kind: str, rng: np.random.Generator, shape: float) -> Array:
    t = (np.arange(READINGS) + 0.5) / READINGS
    tau = shape * rng.uniform(0.7, 1.4)
    cold = rng.uniform(0.1, 0.5)
    curves = {
        "none": np.ones(READINGS),
        "cache": cold + (1 - cold) * np.minimum(1, t / tau) ** 0.7,
        "exponential": 1 - (1 - cold) * np.exp(-t / (tau / 2)),
        "linear": np.minimum(1, cold + (1 - cold) * t / tau),
        "step": np.where(t < tau * 0.7, cold, 1.0),
    }
    return curves[kind]


def study(rng: np.random.Generator) -> tuple[list[Array], str]:
    """Streams of one study, all with one kind of warm-up."""
    kind = str(rng.choice(["none", "cache", "exponential", "linear", "step"]))
    shape, noise, rho = rng.uniform(0.05, 0.4), rng.uniform(0.02, 0.2), rng.uniform(0, 0.7)
    spread, run_sd, bursts = rng.uniform(0.2, 0.8), rng.uniform(0.0, 0.04), rng.uniform() < 0.3
    streams = []
    for _ in range(CONFIGURATIONS):
        level = 1000 * np.exp(rng.normal(0, spread) + rng.normal(0, run_sd))
        shocks = rng.normal(0, noise * np.sqrt(1 - rho**2), READINGS)
        error = np.zeros(READINGS)
        for i in range(READINGS):
            error[i] = rho * error[i - 1] + shocks[i]
        stalls = np.where(rng.uniform(size=READINGS) < 0.05, 0.3, 1.0) if bursts else 1.0
        streams.append(level * warm(kind, rng, shape) * np.exp(error) * stalls)
    return streams, kind


class Ours:
    """Stopper as the explorer uses it."""

    name = "perflaw"

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self.known: list[float] = []

    def until(self, times: Array, values: Array, best: list[float], past: list[Array]) -> int:
        stopper = Stopper(self.goal, best, float(times[-1]), steady_s=usually_steady(self.known))
        for i, (at, value) in enumerate(zip(times, values, strict=True)):
            stopper.add(float(at), float(value))
            if stopper.verdict():
                return i + 1
        self.known.append(steady_from(times.tolist(), values.tolist(), self.goal))
        return len(times)


class Unwarned(Ours):
    """Ours, knowing nothing of earlier trials' warm-ups."""

    name = "perflaw, blind"

    def until(self, times: Array, values: Array, best: list[float], past: list[Array]) -> int:
        self.known = []
        return super().until(times, values, best, past)


class Simple:
    """A rule on the running mean from the fifth reading on."""

    def __init__(self, name: str, loses: Callable[[Array, float, float], bool]) -> None:
        self.name, self.loses = name, loses

    def until(self, times: Array, values: Array, best: list[float], past: list[Array]) -> int:
        running = np.cumsum(values) / np.arange(1, len(values) + 1)
        for i in range(4, len(values)):
            middle = float(np.median([each[: i + 1].mean() for each in past])) if past else -np.inf
            if best and self.loses(values[: i + 1], best[0], middle):
                return i + 1
        return len(running)


def below_interval(seen: Array, best: float, _: float) -> bool:
    return bool(seen.mean() + 1.96 * seen.std(ddof=1) / np.sqrt(seen.size) < best)


def replay(rule: object, streams: list[Array], times: Array, order: Array, sign: float) -> tuple[bool, float]:
    """Whether the winner was killed, and the share of the time that was saved."""
    finals = np.array([sign * each.mean() for each in streams])
    winner, spent = int(np.argmax(finals)), 0
    best: list[float] = []
    past: list[Array] = []
    killed = False
    for i in order:
        used = rule.until(times, streams[i], best, past)
        spent += used
        if used < len(times):
            killed = killed or i == winner
            continue
        past.append(streams[i])
        if not best or finals[i] > sign * best[0]:
            best = [sign * float(finals[i])]
    return killed, 1 - spent / (len(times) * len(streams))


def recorded(path: str) -> list[Array]:
    """Streams of a CSV, each brought to 100 readings over its time."""
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with Path(path).open(newline="") as file:
        for row in csv.DictReader(file):
            rows[row["trial"]].append((float(row["at_s"]), float(row["value"])))
    streams = []
    for each in rows.values():
        at, value = np.array(sorted(each)).T
        place = np.minimum((at / at.max() * READINGS - 1e-9).astype(int), READINGS - 1)
        means = np.array([value[place == i].mean() if np.any(place == i) else np.nan for i in range(READINGS)])
        known = np.flatnonzero(np.isfinite(means))
        streams.append(np.interp(np.arange(READINGS), known, means[known]))
    return streams


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replays", type=int, default=300)
    parser.add_argument("--streams")
    parser.add_argument("--goal", default="max", choices=["max", "min"])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    fixed = recorded(asked.streams) if asked.streams else None
    sign = -1.0 if asked.goal == "min" else 1.0
    rules: list[tuple[str, Callable[[], object]]] = [
        ("perflaw", lambda: Ours(asked.goal)),
        ("perflaw, blind", lambda: Unwarned(asked.goal)),
        ("median rule", lambda: Simple("median", lambda seen, best, middle: sign * seen.mean() < sign * middle)),
        ("half of incumbent", lambda: Simple("half", lambda seen, best, _: _half(seen, best, sign))),
        (
            "plain interval",
            lambda: Simple("interval", lambda seen, best, _: below_interval(sign * seen, sign * best, 0.0)),
        ),
    ]
    print(f"{'rule':18} {'winner killed':>16} {'time saved':>11}")
    for name, made in rules:
        killed, saved = [], []
        kinds: dict[str, int] = defaultdict(int)
        for number in range(asked.replays):
            rng = np.random.default_rng([asked.seed, number])
            streams, kind = (fixed, "recorded") if fixed else study(rng)
            times = np.arange(1, READINGS + 1) * 0.05
            lost, share = replay(made(), streams, times, rng.permutation(len(streams)), sign)
            killed.append(lost)
            saved.append(share)
            kinds[kind] += lost
        by_kind = ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()) if number)
        print(f"{name:18} {sum(killed):6} of {len(killed):4} {100 * np.mean(saved):9.0f} %  {by_kind}", flush=True)


def _half(seen: Array, best: float, sign: float) -> bool:
    return bool(seen.mean() < best / 2 if sign > 0 else seen.mean() > 2 * best)


if __name__ == "__main__":
    main()
