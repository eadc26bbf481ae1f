"""Generated programs of known cost: call trees with planted laws of counts and unit costs, noise, and run speeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from perflaw.types import CPU, Clock, Component, Losses, ProgramCosts, Run

Count = Callable[[np.ndarray], np.ndarray]


def run(number: int, features: dict[str, float]) -> Run:
    """A complete run."""
    return Run(
        f"{number:04d}", ("app.py",), "app.py", features, f"2026-01-01T00:00:{number % 60:02d}", 10**9, 10**9,
        0, True, "ended", "fake", "3.12", Clock("fake", 1, 0, 0), Losses(), "host", {}, {}, 1, 1, 1,
    )  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A context of a generated program."""

    function: str
    caller: int
    """Place of the calling context; -1 for none."""
    calls: Count
    """Calls in a run of size n."""
    unit: Count
    """Own cost of a call in a run of size n, ns."""


@dataclass(frozen=True)
class Program:
    """A generated program."""

    nodes: Sequence[Node]

    def cost(self, n: float) -> float:
        """True cost of a run."""
        x = np.array([float(n)])
        return float(sum(node.calls(x)[0] * node.unit(x)[0] for node in self.nodes))

    def inclusive(self, function: str, n: float) -> float:
        """True cost while a function is active."""
        x = np.array([float(n)])
        inside = [i for i in range(len(self.nodes)) if function in self._active(i)]
        return float(sum(self.nodes[i].calls(x)[0] * self.nodes[i].unit(x)[0] for i in inside))

    def record(
        self, sizes: Sequence[float], rng: np.random.Generator, *, noise=0.0, speeds=0.0, lumps=0.0, feature="n"
    ) -> ProgramCosts:
        """Costs of a run of each size: units with noise, whole runs faster or slower, single disturbed costs."""
        n = np.array(sizes, dtype=float)
        names = list(dict.fromkeys(node.function for node in self.nodes))
        calls = np.array([np.round(node.calls(n)) for node in self.nodes]).T
        own = calls * np.array([node.unit(n) for node in self.nodes]).T
        own = own * np.exp(rng.normal(0, noise, own.shape) + rng.normal(0, speeds, (n.size, 1)))
        own = own + (rng.random(own.shape) < lumps) * (calls > 0) * 2e7
        context = np.array([names.index(node.function) for node in self.nodes])
        sums = np.zeros((2, n.size, len(names)))
        for k, of in enumerate(context):
            sums[0][:, of] += calls[:, k]
            sums[1][:, of] += own[:, k]
        active = tuple(tuple(sorted({names.index(name) for name in self._active(i)})) for i in range(len(self.nodes)))
        runs = tuple(run(i + 1, {feature: float(x)}) for i, x in enumerate(n))
        components = tuple(Component(name, "app.py", i + 1) for i, name in enumerate(names))
        made = np.zeros_like(calls)
        for k, node in enumerate(self.nodes):
            if node.caller >= 0:
                made[:, node.caller] += calls[:, k]
        edges = [
            (int(context[node.caller]) if node.caller >= 0 else -1, int(context[i]))
            for i, node in enumerate(self.nodes)
        ]
        distinct = tuple(dict.fromkeys(edges))
        edge_calls = np.zeros((n.size, len(distinct)))
        for k, edge in enumerate(edges):
            edge_calls[:, distinct.index(edge)] += calls[:, k]
        return ProgramCosts(
            CPU, runs, components, sums[0], sums[1], context, calls, made, own, active, distinct, edge_calls
        )  # fmt: skip

    def _active(self, place: int) -> set[str]:
        names = set()
        while place >= 0:
            names.add(self.nodes[place].function)
            place = self.nodes[place].caller
        return names


COUNTS: dict[str, Count] = {
    "constant": lambda n: np.full_like(n, 40.0),
    "linear": lambda n: 7 + 3 * n,
    "quadratic": lambda n: n * (n - 1) / 2,
    "nlogn": lambda n: np.round(n * np.log(n)),
}


def random_program(rng: np.random.Generator, functions: int = 30) -> Program:
    """A random call tree: counts with planted laws, constant unit costs but for a few functions that grow by themselves."""
    nodes = [Node("main", -1, lambda n: np.ones_like(n), lambda n: np.full_like(n, 1e6))]
    for i in range(functions):
        count = COUNTS[str(rng.choice(list(COUNTS), p=[0.3, 0.4, 0.2, 0.1]))]
        level = float(np.exp(rng.uniform(np.log(80), np.log(5000))))
        grows = rng.random() < 0.1
        unit: Count = partial(np.multiply, level) if grows else partial(np.full_like, fill_value=level)
        if grows:
            count = COUNTS["constant"]
        caller = int(rng.integers(len(nodes)))
        nodes.append(Node(f"f{i}", caller, count, unit))
        if rng.random() < 0.3:
            nodes.append(Node("helper", len(nodes) - 1, count, lambda n: np.full_like(n, 150.0)))
    return Program(nodes)
