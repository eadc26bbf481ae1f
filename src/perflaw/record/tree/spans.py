"""The nested spans of each function's worst invocations: which callee, when, how long, arbitrarily deep.

A stack remembers what completed on it lately, callees before callers. What an invocation hands on to its caller is bounded:
of ``MOST_APART`` spans the ``MOST`` longest stay, and shorter ones are not taken any more; nor are those below a 1024th of
what would be among the function's worst. The readable twin of ``native/spans.c``, to the last span.
"""

from __future__ import annotations

from perflaw.record.records import CPU_LANE, EVENTS_LANE, TIME_LANE
from perflaw.record.tree.call_tree import Span, Worst
from perflaw.record.tree.stacks import PLAIN, RESUMED, Invocation, Stack

WORST = 8
MOST, MOST_APART, MOST_OPEN = 256, 1024, 1 << 15
BRIEF_SHIFT = 10
"""What is shorter than the 1024th part is no span."""
Spent = tuple[int, int, int, int]
"""Node, height on the stack, start, time."""


class WorstCalls:
    """The longest invocations of all functions; ``most`` spans of them altogether."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self.of: dict[int, list[Worst]] = {}
        self.bounds: dict[int, int] = {}
        """Function → a longer time is among the worst; 0 where there are not enough of them."""
        self.spanless: set[int] = set()
        """Functions whose worst have no spans any more, for there were too many."""
        self.brief: dict[int, int] = {}
        """Node → spans of this time and below are not worth keeping in an invocation of it."""

    def begin(self, stack: Stack, invocation: Invocation, resumed: bool = False) -> None:
        """It begins on top of the stack, or goes on."""
        invocation.first_span = len(stack.spans)
        if resumed:
            invocation.manner = RESUMED
        else:
            invocation.least_span = self.brief.get(invocation.node, 0)

    def end(self, stack: Stack, invocation: Invocation, time: int) -> None:
        """It returned or yielded: a span of its caller's, now on top; if it is too short, so is all within it."""
        caller = stack.open[-1]
        if len(stack.open) == 1 or time <= caller.least_span or len(stack.spans) == MOST_OPEN:
            del stack.spans[invocation.first_span :]
            return
        stack.spans.append((invocation.slot, len(stack.open), invocation.marks[TIME_LANE], time))
        within = stack.spans[caller.first_span :]
        if len(within) > MOST_APART:
            stack.spans[caller.first_span :] = longest(within)
            caller.least_span = max(caller.least_span, bound_of(within))

    def done(self, stack: Stack, invocation: Invocation, sequence: int, totals: dict[int, list[int]]) -> None:
        """It has completed, and what is within it is still on the stack."""
        code, time = invocation.code, invocation.costs[TIME_LANE]
        if time <= self.bounds.get(code, 0) or invocation.manner != PLAIN:
            return
        kept = self.of.setdefault(code, [])
        if len(kept) == WORST:
            self.count -= len(_shortest(kept).spans)
            kept.remove(_shortest(kept))
        within = () if code in self.spanless else stack.spans[invocation.first_span :]
        spans = nested(longest(within), invocation.marks[TIME_LANE])
        costs = (time, invocation.costs[CPU_LANE], invocation.costs[EVENTS_LANE])
        kept.append(Worst(sequence, invocation.node, invocation.started, *costs, spans))
        self.count += len(spans)
        if self.count > self.most:
            self._halve(totals)
        if len(kept) == WORST:
            self.bounds[code] = _shortest(kept).time
            self.brief[invocation.node] = min(self.bounds[code] >> BRIEF_SHIFT, 0xFFFFFFFF)

    def _halve(self, totals: dict[int, list[int]]) -> None:
        """Functions of least total time keep no spans any more."""
        some = self.of.keys() - self.spanless
        for code in sorted(some, key=lambda one: (totals.get(one, [0])[TIME_LANE], -one)):
            if self.count <= self.most // 2:
                return
            self.spanless.add(code)
            self.count -= sum(len(one.spans) for one in self.of[code])
            for one in self.of[code]:
                one.spans = ()

    def finish(self) -> dict[int, list[Worst]]:
        """The worst of every function, in order of completion."""
        return {code: sorted(kept, key=lambda one: one.sequence) for code, kept in self.of.items()}


def _shortest(kept: list[Worst]) -> Worst:
    """The one that goes first: of the shortest the last."""
    return min(kept, key=lambda one: (one.time, -one.sequence))


def bound_of(spans: list[Spent]) -> int:
    """The time of the ``MOST``-th longest, 0 if there are fewer."""
    return sorted((span[3] for span in spans), reverse=True)[MOST - 1] if len(spans) > MOST else 0


def longest(spans: list[Spent] | tuple[()]) -> list[Spent]:
    """The ``MOST`` longest in their order, of equal ones the first."""
    places = sorted(range(len(spans)), key=lambda place: -spans[place][3])[:MOST]
    return [spans[place] for place in sorted(places)]


def nested(spans: list[Spent], start: int) -> tuple[Span, ...]:
    """Callers first, from the start of the invocation on, each with the place of its caller; -1 is the invocation itself.

    Whoever died without an event is no span: what it called is its caller's.
    """
    ordered = sorted(spans, key=lambda span: (span[2], span[1]))
    found: list[Span] = []
    for at, (node, height, started, time) in enumerate(ordered):
        above = at - 1
        while above >= 0 and (ordered[above][1] >= height or sum(ordered[above][2:]) <= started):
            above = found[above].parent
        found.append(Span(node, above, started - start, time))
    return tuple(found)
