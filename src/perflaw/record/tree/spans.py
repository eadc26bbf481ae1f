"""The nested spans of each function's longest invocations: which callee ran when and how long, at any depth.

A stack remembers the calls that completed on it recently, callees before callers. What an invocation passes on to its
caller is bounded: of ``MOST_APART`` spans the ``MOST`` longest stay, and shorter ones are ignored from then on, as are
spans below a 1024th of the shortest of the function's longest invocations. The readable twin of
``native/core/tree/spans.c``, equal to it in every span.
"""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.record.tree.call_tree import CallSpan, LongestCall
from perflaw.record.tree.records import CPU_LANE, EVENTS_LANE, TIME_LANE
from perflaw.record.tree.stacks import PLAIN, RESUMED, CallStack, Invocation

WORST = 8
"""Number of invocations kept for each function."""
MOST, MOST_APART, MOST_OPEN = 256, 1024, 1 << 15
"""Spans kept of an invocation; spans at which they are cut down to that number; spans on a stack."""
BRIEF_SHIFT = 10
"""Spans shorter than this power of two's part of the longest invocations are not kept."""
CompletedCall = tuple[int, int, int, int]
"""Node, height on the stack, start, time."""


class LongestCalls:
    """The longest invocations of all functions, with at most ``most`` spans altogether."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self.of: dict[int, list[LongestCall]] = {}
        self.bounds: dict[int, int] = {}
        """Function → a longer invocation is among its longest; 0 while there are fewer than WORST."""
        self.spanless: set[int] = set()
        """Functions that keep no spans any more because there were too many."""
        self.brief: dict[int, int] = {}
        """Node → spans of at most this time are not kept within its invocations."""

    def begin(self, stack: CallStack, invocation: Invocation, resumed: bool = False) -> None:
        """The invocation is about to begin or to continue on top of the stack."""
        invocation.first_span = len(stack.spans)
        if resumed:
            invocation.manner = RESUMED
        else:
            invocation.least_span = self.brief.get(invocation.node, 0)

    def end(self, stack: CallStack, invocation: Invocation, time: int) -> None:
        """The invocation returned or yielded: add it to the spans of its caller, or drop it with its own if too short."""
        caller = stack.open[-1]
        if len(stack.open) == 1 or time <= caller.least_span or len(stack.spans) == MOST_OPEN:
            del stack.spans[invocation.first_span :]
            return
        stack.spans.append((invocation.slot, len(stack.open), invocation.marks[TIME_LANE], time))
        within = stack.spans[caller.first_span :]
        if len(within) > MOST_APART:
            stack.spans[caller.first_span :] = _longest(within)
            bound = sorted((span[3] for span in within), reverse=True)[MOST - 1]
            caller.least_span = max(caller.least_span, bound)

    def completed(self, stack: CallStack, invocation: Invocation, sequence: int, totals: dict[int, list[int]]) -> None:
        """Keep a completed invocation if it is among the longest; its spans are still on the stack."""
        code, time = invocation.code, invocation.costs[TIME_LANE]
        if time <= self.bounds.get(code, 0) or invocation.manner != PLAIN:
            return
        kept = self.of.setdefault(code, [])
        if len(kept) == WORST:
            shortest = _shortest(kept)
            self.count -= len(shortest.spans)
            kept.remove(shortest)
        within = () if code in self.spanless else stack.spans[invocation.first_span :]
        # Spans from the start of the invocation on, callers first, each with the index of its caller.
        start = invocation.marks[TIME_LANE]
        ordered = sorted(_longest(within), key=lambda span: (span[2], span[1]))
        nested: list[CallSpan] = []
        for at, (node, height, started, nested_time) in enumerate(ordered):
            above = at - 1
            while above >= 0 and (ordered[above][1] >= height or sum(ordered[above][2:]) <= started):
                above = nested[above].parent
            nested.append(CallSpan(node, above, started - start, nested_time))
        spans = tuple(nested)
        costs = (time, invocation.costs[CPU_LANE], invocation.costs[EVENTS_LANE])
        kept.append(LongestCall(sequence, invocation.node, invocation.started, *costs, spans))
        self.count += len(spans)
        if self.count > self.most:
            self._drop_half(totals)
        if len(kept) == WORST:
            self.bounds[code] = _shortest(kept).time
            self.brief[invocation.node] = min(self.bounds[code] >> BRIEF_SHIFT, 0xFFFFFFFF)

    def _drop_half(self, totals: dict[int, list[int]]) -> None:
        """Drop the spans of the functions of least total time until half of the allowed number is left."""
        candidates = self.of.keys() - self.spanless
        for code in sorted(candidates, key=lambda code: (totals.get(code, [0])[TIME_LANE], -code)):
            if self.count <= self.most // 2:
                return
            self.spanless.add(code)
            self.count -= sum(len(call.spans) for call in self.of[code])
            for call in self.of[code]:
                call.spans = ()

    def finish(self) -> dict[int, list[LongestCall]]:
        """Function → its longest invocations, in order of completion."""
        return {code: sorted(kept, key=lambda call: call.sequence) for code, kept in self.of.items()}


def _shortest(kept: list[LongestCall]) -> LongestCall:
    """The shortest invocation, the last of equal ones: it is replaced first."""
    return min(kept, key=lambda call: (call.time, -call.sequence))


def _longest(spans: Sequence[CompletedCall]) -> list[CompletedCall]:
    """The ``MOST`` longest in their order; the first of equal ones."""
    places = sorted(range(len(spans)), key=lambda place: -spans[place][3])[:MOST]
    return [spans[place] for place in sorted(places)]
