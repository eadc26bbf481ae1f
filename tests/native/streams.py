"""Random streams of events for the native core and its Python twin."""

from __future__ import annotations

import struct
from random import Random

from perflaw.record.tree.records import (
    ASIDE,
    CHANGE,
    COUNT,
    DEAD,
    END,
    ENTER,
    EXIT,
    FEATURE,
    LIBRARY,
    OBSERVE,
    RESUME,
    SWITCH,
    THREAD,
    TURN,
    YIELD,
    Event,
)

Piece = tuple[int, list[Event]]
"""Ring, its next events."""


class Program:
    """Interprets random choices as a program of threads whose frames call, return, yield, die and stay open.

    A frame keeps its code. Frames of closed generators are used again, as addresses are. ``more`` adds counters that
    change, greenlets that are switched to, and threads that end.
    """

    def __init__(self, codes: int = 4, sites: int = 3, more: bool = False) -> None:
        self.codes, self.sites = codes, sites
        self.actions = [
            self._call,
            self._call,
            self._leave,
            self._leave,
            self._yield,
            self._resume,
            self._die,
            self._read,
        ]
        if more:
            self.actions += [self._count, self._count, self._switch, self._end, self._aside, self._counted_call]
            self.actions += [self._library, self._observe]
        self.clock, self.frame = 0, 0
        self.serials: dict[int, int] = {}
        """Thread → serial number of its stack that runs."""
        self.stacks: dict[tuple[int, int], list[int]] = {}
        self.code_of: dict[int, int] = {}
        self.suspended: list[int] = []
        self.unknown: set[int] = set()
        """Frames that began before the recording did."""
        self.pieces: list[Piece] = []

    def step(self, thread: int, choice: int, argument: int, passed: int) -> None:
        """Let a thread do one thing."""
        self.clock += passed
        self.thread = thread
        stack = self.stacks.setdefault((thread, self.serials.get(thread, 0)), [])
        event = self.actions[choice % len(self.actions)](stack, argument)
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
        skipped = self.clock % 5 - 1  # calls within that are not recorded and cost time all the same
        return (self.clock, stack[-1], self.code_of[stack.pop()], skipped, -1, EXIT)

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
        del stack[argument % (len(stack) + 1) :]
        return (self.clock, stack[-1] if stack else 0, 0, -1, -1, DEAD)

    def _count(self, stack: list[int], argument: int) -> Event:
        """Time off the CPU, or something else; also of metrics that there are none of."""
        return (argument * 7919 % 1000003 * (-1 if argument % 17 == 0 else 1), 0, argument % 7, -1, -1, CHANGE)

    def _switch(self, stack: list[int], argument: int) -> Event:
        if argument % 7 == 0:
            return (argument, self.clock, 0, -1, -1, TURN)
        self.serials[self.thread] = argument % 3
        return (self.clock, argument % 3, 0, -1, -1, SWITCH)

    def _end(self, stack: list[int], argument: int) -> Event | None:
        if argument % 9:
            return None
        for owner in [owner for owner in self.stacks if owner[0] == self.thread]:
            del self.stacks[owner]
        self.serials.pop(self.thread, None)
        return (argument, 0, 0, -1, -1, END if argument % 2 else THREAD)

    def _aside(self, stack: list[int], argument: int) -> Event:
        return (*self._call(stack, argument)[:5], ASIDE)

    def _counted_call(self, stack: list[int], argument: int) -> Event:
        return (0, 0, argument % self.codes + 1, argument % self.sites, -1, COUNT)

    def _library(self, stack: list[int], argument: int) -> Event:
        return (0, 0, argument % self.codes + 1, -1, -1, LIBRARY)

    def _observe(self, stack: list[int], argument: int) -> Event:
        return (0, 0, argument % self.codes + 1, -1, -1, OBSERVE)

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
