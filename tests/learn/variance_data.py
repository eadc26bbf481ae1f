"""Call trees of invocations written down, their moments summed up one invocation after the other."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from perflaw.types import CPU, EVENTS, TIME, Component
from perflaw.types.call_trees import LOCAL, CallTree, LinkMoments, NodeMoments, PairMoments, Samples

ORACLE = json.loads((Path(__file__).parent / "variance_oracle.json").read_text())
"""Exact covariances, shares and minimal sets of Listing 1, by an independent program with fractions."""


@dataclass
class Call:
    """One invocation: what it spends itself, and what it calls from where; complete before its sums are read."""

    name: str
    own: int
    calls: list[tuple[int, Call]] = field(default_factory=list)
    off: int = 0
    """Part of ``own`` off the CPU."""
    why: str = "queued"
    """What it was off the CPU for."""

    @cached_property
    def x(self):
        return self.own + sum(call.x for _, call in self.calls)

    @cached_property
    def off_cpu(self):
        return self.off + sum(call.off_cpu for _, call in self.calls)

    def off_for(self, why):
        return self.off * (self.why == why) + sum(call.off_for(why) for _, call in self.calls)

    @cached_property
    def events(self):
        return 1 + sum(call.events for _, call in self.calls)


class Recorder:
    """Adds invocations up the way the recorder does, in one metric at a time."""

    def __init__(self, waits=()):
        self.waits = waits
        """Kinds of waiting that are marked."""
        self.nodes = {(-1, -1, ""): 0}
        self.names = []
        self.done = defaultdict(list)
        """Node → its invocations, each as (call, {descendant: [K, calls]}, {child})."""
        self.clock = 0

    def add(self, call, parent=0, site=0):
        """One more invocation, with all below; returns what it did at which node."""
        if call.name not in self.names:
            self.names.append(call.name)
        node = self.nodes.setdefault((parent, site, call.name), len(self.nodes))
        below, direct = defaultdict(list), set()
        started = self.clock
        for at, inner in call.calls:
            child, deeper = self.add(inner, node, at)
            below[child].append(inner)
            direct.add(child)
            for other, some in deeper.items():
                below[other] += some
        self.clock += call.own
        self.done[node].append((call, dict(below), direct, started))
        return node, below

    def tree(self, metric=TIME, cost=None, noise=0.0):
        """The call tree in a metric."""
        costs = {"time": lambda c: c.x, "cpu": lambda c: c.x - c.off_cpu, "events": lambda c: c.events}
        cost = cost or costs[metric.name]
        keys = sorted(self.nodes, key=self.nodes.get)
        moments = {name: self._moments(of) for name, of in costs.items()}
        return CallTree(
            metric,
            {one.name: one for one in (TIME, CPU, EVENTS)},
            tuple(Component(name) for name in self.names),
            np.array([key[0] for key in keys]),
            np.array([self.names.index(key[2]) if key[2] else -1 for key in keys]),
            np.array([key[1] for key in keys]),
            np.array([key[1] for key in keys]),
            moments,
            self._pairs(cost),
            self._links(cost),
            self._samples(cost),
            clock_noise=noise,
        )

    def _moments(self, cost):
        rows = [[cost(call) for call, *_ in self.done[node]] for node in range(len(self.nodes))]
        sums = objects([sum(row) for row in rows]), objects([sum(x * x for x in row) for row in rows])
        return NodeMoments(np.array([len(row) for row in rows]), *sums)

    def _pairs(self, cost):
        total = defaultdict(int)
        for node, rows in self.done.items():
            for call, below, direct, _ in rows:
                parts = {child: sum(map(cost, below[child])) for child in direct}
                parts[LOCAL] = cost(call) - sum(parts.values())
                for i, j in product(parts, parts):
                    if i <= j:
                        total[node, i, j] += parts[i] * parts[j]
        ends = np.array(list(total)).reshape(-1, 3)
        return PairMoments(*ends.T, objects(list(total.values())))

    def _links(self, cost):
        total = defaultdict(lambda: [0] * 8)
        for node, rows in self.done.items():
            for call, below, _, _ in rows:
                for other, some in below.items():
                    k, y, x = len(some), sum(map(cost, some)), cost(call)
                    more = (1, k == 1, k, k * k, k * y, y, y * y, y * x)
                    total[node, other] = [a + b for a, b in zip(total[node, other], more, strict=True)]
        ends = np.array(list(total)).reshape(-1, 2)
        columns = list(zip(*total.values(), strict=True)) or [[]] * 8
        counts = (np.array(column, dtype=np.int64) for column in columns[:2])
        return LinkMoments(*ends.T, *counts, *map(objects, columns[2:]))

    def _samples(self, cost):
        rows = [(node, *row) for node, done in self.done.items() for row in done]
        callees = [
            (
                place,
                child,
                len(below[child]),
                sum(map(cost, below[child])),
                sum(c.x for c in below[child]),
                sum(c.x - c.off_cpu for c in below[child]),
            )
            for place, (_, _, below, direct, _) in enumerate(rows)
            for child in sorted(direct)
        ]
        of, callee, k, y, y_time, y_cpu = (
            (np.array(column) for column in zip(*callees, strict=True)) if callees else [np.empty(0, int)] * 6
        )
        time = np.array([call.x for _, call, *_ in rows], dtype=float)
        return Samples(
            ("r",) * len(rows), np.arange(len(rows)), np.array([row[0] for row in rows]),
            np.array([row[4] for row in rows]), np.array([cost(row[1]) for row in rows], dtype=float), time,
            np.array([row[1].x - row[1].off_cpu for row in rows], dtype=float),
            np.array([row[1].events for row in rows], dtype=float), np.ones(len(rows)),
            np.array([int(x).bit_length() for x in time]), np.ones(len(rows), bool),
            of, callee, k, y.astype(float), y_time.astype(float), y_cpu.astype(float),
            marks={why: np.array([row[1].off_for(why) for row in rows], float) for why in ("queued", *self.waits)},
        )  # fmt: skip


def deep_tree(depth, costs):
    """A chain of functions of which each calls the next once and the last alone costs anything; links of the first alone."""
    n, x, xx = len(costs), sum(costs), sum(cost * cost for cost in costs)
    nodes, below = np.arange(depth + 1), np.arange(2, depth + 1)
    calls, square = np.full(len(below), n), objects([xx] * len(below))
    often, sums = objects([n] * len(below)), objects([x] * len(below))
    moments = NodeMoments(np.array([0] + [n] * depth), objects([0] + [x] * depth), objects([0] + [xx] * depth))
    links = LinkMoments(np.ones_like(below), below, calls, calls, often, often, sums, sums, square, square)
    none = np.zeros(0, dtype=np.int64)
    return CallTree(
        EVENTS,
        {"events": EVENTS},
        tuple(Component(f"f{number}") for number in range(depth)),
        nodes - 1,
        nodes - 1,
        np.zeros_like(nodes),
        np.zeros_like(nodes),
        {"events": moments},
        PairMoments(none, none, none, objects([])),
        links,
    )


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def listing1(variant, recorder=None, site=0):
    """Listing 1 as a full factorial of 16 invocations of f, called from ``site``."""
    recorder = recorder or Recorder()
    for slow, called, r, t in product((0, 1), (0, 1), (3, 3) if variant == "A" else (2, 4), (1, -1)):
        g1 = Call("g1", 1, [(1, Call("a1", 27 if slow else 7)), (2, Call("a2", 2))])
        calls = [(1, g1)] + [(2, Call("g2", 24))] * called
        four, five = Call("g4", 12 if variant == "C" else 6), Call("g5", 6)
        calls += [(3, Call("g3", 5)), (4, four) if t > 0 else (5, five)] * r
        recorder.add(Call("f", 4 + r, calls), site=site)
    return recorder
