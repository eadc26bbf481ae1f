"""Random streams of events for the native core, and the tables that its Python twin makes of them as `replay dump` text."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

from perflaw.collect.layout import DEAD, ENTER, EXIT, FEATURE, RESUME, YIELD
from perflaw.collect.tree_builder import Event, TreeBuilder

Piece = tuple[int, list[Event]]
"""Thread, its next events."""


class Program:
    """Interprets random choices as a program of threads whose frames call, return, yield, die and stay open.

    A frame keeps its code. Frames of closed generators are used again, as addresses are.
    """

    def __init__(self, codes: int = 4, sites: int = 3) -> None:
        self.codes, self.sites = codes, sites
        self.clock, self.frame = 0, 0
        self.stacks: dict[int, list[int]] = {}
        self.code_of: dict[int, int] = {}
        self.suspended: list[int] = []
        self.unknown: set[int] = set()
        """Frames that began before the recording did."""
        self.pieces: list[Piece] = []

    def step(self, thread: int, choice: int, argument: int, passed: int) -> None:
        """Let a thread do one thing."""
        self.clock += passed
        stack = self.stacks.setdefault(thread, [])
        actions = (self._call, self._call, self._leave, self._leave, self._yield, self._resume, self._die, self._read)
        event = actions[choice % len(actions)](stack, argument)
        if event is None:
            return
        if not self.pieces or self.pieces[-1][0] != thread:
            self.pieces.append((thread, []))
        self.pieces[-1][1].append(event)

    def _call(self, stack: list[int], argument: int) -> Event:
        reused = argument % 7 == 0 and self.suspended and self.suspended[-1] not in self.unknown
        if reused:
            frame = self.suspended.pop()
        else:
            self.frame += 1
            frame = self.frame
        self.code_of[frame] = argument % self.codes + 1
        stack.append(frame)
        key = (argument * 2654435761) % (1 << 31) if argument % 3 else -1
        return (self.clock, frame, self.code_of[frame], argument // self.codes % self.sites - 1, key, ENTER)

    def _leave(self, stack: list[int], argument: int) -> Event | None:
        """The top frame as a rule, sometimes one below it (what stood above died) or one that is not open."""
        if argument % 11 == 0:
            return (self.clock, 1 << 50, 1, -1, -1, EXIT)
        if not stack:
            return None
        if argument % 5 == 0:
            del stack[argument % len(stack) + 1 :]
        return (self.clock, stack[-1], self.code_of[stack.pop()], -1, -1, EXIT)

    def _yield(self, stack: list[int], argument: int) -> Event | None:
        if not stack:
            return None
        if argument % 5 == 0:
            del stack[argument % len(stack) + 1 :]
        self.suspended.append(stack.pop())
        return (self.clock, self.suspended[-1], self.code_of[self.suspended[-1]], -1, -1, YIELD)

    def _resume(self, stack: list[int], argument: int) -> Event:
        if self.suspended and argument % 6:
            frame = self.suspended.pop(argument % len(self.suspended))
        else:
            self.frame += 1
            frame = self.frame
            self.code_of[frame] = argument % self.codes + 1
            self.unknown.add(frame)
        stack.append(frame)
        return (self.clock, frame, self.code_of[frame], argument % self.sites, -1, RESUME)

    def _die(self, stack: list[int], argument: int) -> Event | None:
        if not stack or argument % 4:
            return None
        del stack[argument % len(stack) + 1 :]
        return (self.clock, stack[-1], 0, -1, -1, DEAD)

    def _read(self, stack: list[int], argument: int) -> Event | None:
        bits = struct.unpack("<q", struct.pack("<d", argument / 7))[0]
        return (bits, stack[-1] if stack else 0, argument % 5, -1, -1, FEATURE)


def wide_program(seed: int, calls: int) -> list[Piece]:
    """Functions with many more callees than are kept apart, and more calls than the reservoir keeps."""
    random, program = Random(seed), Program(codes=9, sites=100)
    for _ in range(calls // 200):
        program.step(1, 0, random.randrange(1, 3), 10)
        for _ in range(random.choice((3, 63, 64, 65, 150))):
            program.step(1, 0, random.randrange(1, 1 << 40), random.randrange(1, 1 << random.randrange(1, 30)))
            program.step(1, 2, 1, random.randrange(1, 1 << random.randrange(1, 30)))
        program.step(1, 2, 1, 10)
    return program.pieces


def deep_program(depth: int, rounds: int) -> list[Piece]:
    """Chains of calls deeper than links reach, of different functions, which end in a recursion of two."""
    program = Program(codes=1 << 19, sites=1)
    for turn in range(rounds):
        for level in range(depth):
            program.step(1, 0, 1 + 7 * (level if level < depth // 2 else level % 2), turn + level)
        for level in range(depth):
            program.step(1, 2, 1, 3 * level + turn % 5)
    return program.pieces


def text_of_twin(pieces: list[Piece], seed: int) -> list[str]:
    """What `replay dump` should print, its lines sorted, according to the Python twin."""
    builder = TreeBuilder(seed)
    for thread, events in pieces:
        builder.feed(thread, events)
    builder.finish()
    rows = [("head", 1, builder.calls, 0, 0, builder.first or 0, builder.last, -1)]
    return sorted(" ".join(map(str, row)) for row in (*rows, *_nodes(builder), *_codes(builder)))


def _nodes(builder: TreeBuilder) -> Iterator[tuple[object, ...]]:
    for number, at in enumerate(builder.nodes):
        sums = (at.n, at.open, at.sum_x, at.sum_xx, at.min_x, at.max_x)
        yield ("node", number, at.parent, at.code, at.site, at.depth, *sums)
        yield from (("pair", number, i, j, total) for (i, j), total in at.pairs.items())
        for below, k in at.links.items():
            counts = (k.n, k.n_once, k.sum_k, k.sum_kk, k.sum_ky)
            yield ("link", number, below, *counts, k.sum_y, k.sum_yy, k.sum_yx)
        yield from (("histogram", number, bucket, count) for bucket, count in at.histogram.items())
        if at.waits[0]:
            yield ("wait", number, *at.waits)


def _codes(builder: TreeBuilder) -> Iterator[tuple[object, ...]]:
    for code in {*builder.totals, *builder.selves}:
        yield ("code", code, builder.totals.get(code, 0), builder.selves.get(code, 0))
    for code, reservoir in builder.samples.items():
        yield from (("stratum", code, stratum, count) for stratum, count in reservoir.counts.items())
        for sample, uniform in reservoir.samples():
            key = sample.uniform_key if uniform else -1
            what = (sample.sequence, sample.node, sample.started, sample.x, key, sample.stratum_key)
            yield ("sample", code, *what, len(sample.callees), len(sample.features))
            yield from (("callee", sample.sequence, *callee) for callee in sample.callees)
            for number, value in sample.features:
                yield ("feature", sample.sequence, number, struct.unpack("<q", struct.pack("<d", value))[0])
