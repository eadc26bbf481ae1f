"""Call events to a call tree with exact integer moments, in one pass (Kumar & Pande, §2.2).

The readable twin of the C core; tests compare the two bit for bit. An invocation has a cost in every lane (time, CPU time,
events, and whatever else is measured). Sums are exact, so trees of threads and runs add in any order to the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack, unpack

from perflaw.record.tree import records
from perflaw.record.tree.call_tree import LaneSums, RecordedTree, TreeNode, strata_of
from perflaw.record.tree.moments import MomentSums, add_wait
from perflaw.record.tree.path_builder import PathBuilder
from perflaw.record.tree.reservoir import Reservoirs
from perflaw.record.tree.spans import LongestCalls
from perflaw.record.tree.stacks import ASIDE_WORK, CallStack, Invocation, ThreadStacks, add, add_work

LIMITS = records.TreeLimits()


class CallingContexts:
    """The nodes of the call tree, found by (parent, call site, callee).

    From the third repetition of a (site, callee) on a path, recursion is folded into the first. Beyond ``limit`` nodes,
    calls from new contexts are put together by function, whatever the program does. Functions of libraries have a limit of
    their own. From half of it on, a library function is folded into any call of itself in the same stretch of library
    functions; from three quarters on, contexts are put together by the function below the innermost node that is no
    library's; beyond it, by the function alone.
    """

    def __init__(self, lanes: int, limit: int) -> None:
        self.lanes, self.limit = lanes, limit
        self.nodes = [self._node(-1, -1, -1, 0)]
        self.libraries: set[int] = set()
        """Functions of libraries."""
        self.library_nodes = 0
        self._known: dict[tuple[int, int, int], int] = {}

    def child(self, parent: int, site: int, code: int) -> int:
        """Number of the node of a call; the node is made on first sight."""
        number = self._known.get((parent, site, code))
        if number is None:
            above = self._put_together(parent, code)
            if above is not None:  # contexts are not remembered by their own keys: their number is unbounded
                parent, site = above, records.ELSEWHERE
                number = self._known.get((parent, site, code))
            else:
                number = self._folded(parent, site, code)
            if number is None:
                number = len(self.nodes)
                self.nodes.append(self._node(parent, site, code, self.nodes[parent].depth + 1))
                self.library_nodes += code in self.libraries
            self._known[parent, site, code] = number
        return number

    def _put_together(self, parent: int, code: int) -> int | None:
        """The node below which new contexts of a function are put together; None if they are kept apart."""
        if code not in self.libraries:
            return records.ROOT if len(self.nodes) - self.library_nodes >= self.limit else None
        if 4 * self.library_nodes < 3 * self.limit:
            return None
        return self._library_stretch(parent)[1] if self.library_nodes < self.limit else records.ROOT

    def _folded(self, parent: int, site: int, code: int) -> int | None:
        """First node of the recursion that a call belongs to; None if it is none."""
        if code in self.libraries and 2 * self.library_nodes >= self.limit:
            heads = [node for node in self._library_stretch(parent)[0] if self.nodes[node].code == code]
            if heads:
                return heads[-1]
        repeated, node = [], parent
        while node > records.ROOT:
            if self.nodes[node].site == site and self.nodes[node].code == code:
                repeated.append(node)
            node = self.nodes[node].parent
        return repeated[-1] if len(repeated) >= 2 else None

    def _library_stretch(self, node: int) -> tuple[list[int], int]:
        """A node and those above it as long as they are of libraries, and the first above them that is not."""
        stretch = []
        while node > records.ROOT and self.nodes[node].code in self.libraries:
            stretch.append(node)
            node = self.nodes[node].parent
        return stretch, node

    def _node(self, parent: int, site: int, code: int, depth: int) -> TreeNode:
        return TreeNode(parent, site, code, depth, lanes=[LaneSums() for _ in range(self.lanes)])


class TreeBuilder:
    """Reads the events of a process's threads and builds its call tree with moments, samples and spans."""

    def __init__(
        self, seed: int = 0, metrics: Sequence[str] = records.DEFAULT_LANES, limits: records.TreeLimits = LIMITS
    ) -> None:
        self.metrics = tuple(metrics)
        self.lanes = len(self.metrics)
        self.same: dict[int, int] = {}
        """Number of a function → number of its component, where they differ."""
        self.contexts = CallingContexts(self.lanes, limits.nodes)
        self.moments = MomentSums(self.lanes, limits)
        self.longest = LongestCalls(limits.spans)
        self.paths: PathBuilder | None = None
        self.threads: dict[int, ThreadStacks] = {}
        """Number of a ring or of a series of segments → the thread that writes there."""
        self.suspended: dict[int, Invocation] = {}
        """Frame → suspended generator or coroutine."""
        self.observed: set[int] = set()
        """Functions of which the outermost invocations are observations."""
        self.reservoirs = Reservoirs(seed, limits.components, self.observed)
        self.totals: dict[int, list[int]] = {}
        self.selves: dict[int, list[int]] = {}
        self.calls = self.folded = 0
        self.first: int | None = None
        self.last = 0

    def collect_paths(self, with_cpu: bool) -> None:
        """Also keep durations by call path, of CPU time too if ``with_cpu``. Call it before the first event."""
        self.paths = PathBuilder(with_cpu, self.selves)

    def feed(self, ring: int, events: Iterable[records.Event]) -> None:
        """Read the next events of a thread, in order."""
        thread = self.threads.get(ring) or self._new_thread(ring)
        for value, frame, code, site, key, kind in events:
            stack = thread.current
            if kind == records.FEATURE:
                top = stack.open[-1]
                if top.frame == frame:
                    number = float(unpack("<d", pack("<q", value))[0])
                    top.features.append((code, number))
                    self._keep(stack, code, number)
            elif kind == records.CHANGE:
                stack.change(code, value)
            elif kind == records.DEAD:
                self._bury(stack, frame)
            elif kind == records.SWITCH:
                thread.switch(frame, value)
            elif kind in (records.THREAD, records.END):
                self._end_thread(thread)
                thread = self._new_thread(ring)
            elif kind == records.TURN:
                thread.taken = value
            elif 0 < code < records.MAX_CODE:  # function 0 is the tracer's calibration
                code = self.same.get(code, code)
                if kind == records.ENTER:
                    self._enter(stack, value, frame, code, site, key)
                elif kind == records.ASIDE:
                    self._begin(stack, value, frame, code, site, key).manner = ASIDE_WORK
                elif kind == records.COUNT:
                    self._count(stack, code, site)
                elif kind == records.LIBRARY:
                    self.contexts.libraries.add(code)
                elif kind == records.OBSERVE:
                    self.observed.add(code)
                elif kind == records.EXIT:
                    self._exit(stack, value, frame, max(site, 0))
                elif kind == records.YIELD:
                    self._yield(thread, value, frame, site)
                elif kind == records.RESUME:
                    self._resume(thread, value, frame, code, site)

    def finish(self) -> RecordedTree:
        """The call tree. Open invocations are counted and give no sample; nothing can be fed afterwards."""
        for thread in self.threads.values():
            self._end_thread(thread)
        self.threads.clear()
        for invocation in self.suspended.values():
            self.contexts.nodes[invocation.node].open += 1
        self.suspended.clear()
        return RecordedTree(
            self.metrics,
            self.contexts.nodes,
            self.totals,
            self.selves,
            strata=strata_of(self.contexts.nodes),
            samples={code: reservoir.finish() for code, reservoir in self.reservoirs.of.items()},
            calls=self.calls,
            first=self.first,
            last=self.last,
            folded=self.folded,
            unlinked=self.moments.unlinked,
            worst=self.longest.finish(),
            paths=self.paths.finish() if self.paths else {},
        )

    def _new_thread(self, ring: int) -> ThreadStacks:
        before = self.threads.get(ring)
        thread = self.threads[ring] = ThreadStacks(self.lanes, ring, before.taken if before else 0)
        return thread

    def _end_thread(self, thread: ThreadStacks) -> None:
        for invocation in thread.invocations():
            self.contexts.nodes[invocation.node].open += 1

    def _enter(self, stack: CallStack, stamp: int, frame: int, code: int, site: int, key: int) -> None:
        if frame in self.suspended:
            # A generator was closed without an event and its frame's address is used again: its costs are final.
            closed = self.suspended.pop(frame)
            if closed.code > 0:
                self._complete(closed, stack.open[0])
        invocation = self._begin(stack, stamp, frame, code, site, key)
        self.folded += self.contexts.nodes[invocation.node].site == records.ELSEWHERE
        stack.counters[records.EVENTS_LANE] += 1
        self._extend_time(stamp)

    def _begin(self, stack: CallStack, stamp: int, frame: int, code: int, site: int, key: int) -> Invocation:
        """Put a new invocation on top of the stack."""
        node = self.contexts.child(stack.open[-1].node, site, code)
        invocation = Invocation(frame, code, node, stamp, key, stack.reading(stamp))
        invocation.resumes_mark = stack.resumes
        self.longest.begin(stack, invocation)
        stack.open.append(invocation)
        self._observe(stack, invocation, code in self.observed)
        stack.depth_of[code] = stack.depth_of.get(code, 0) + 1
        return invocation

    def _count(self, stack: CallStack, code: int, site: int) -> None:
        """A call that is only counted. Its caller knows of it as of any other callee, which takes no time."""
        caller, cost = stack.open[-1], [int(lane == records.EVENTS_LANE) for lane in range(self.lanes)]
        number = self.contexts.child(caller.node, site, code)
        add_work(caller.callees, number, [1, *cost])
        self._add_part(stack, number, [1, 0, 0])
        self.folded += self.contexts.nodes[number].site == records.ELSEWHERE
        self.moments.count(self.contexts.nodes[number])
        stack.counters[records.EVENTS_LANE] += 1
        self.calls += 1
        add(self.selves.setdefault(code, [0] * self.lanes), cost)
        if not stack.depth_of.get(code):
            add(self.totals.setdefault(code, [0] * self.lanes), cost)

    def _resume(self, thread: ThreadStacks, stamp: int, frame: int, code: int, site: int) -> None:
        stack, invocation = thread.current, self.suspended.pop(frame, None)
        slot = self.contexts.child(stack.open[-1].node, site, code)
        known = invocation is not None
        if invocation is None:  # it began before the recording did
            invocation = Invocation(frame, -code, slot, stamp, -1, ())
        else:
            # The clock of each thread leaves out the time taken out of that thread.
            difference = thread.taken - invocation.taken if invocation.thread != thread.ring else 0
            passed = max(stamp - invocation.suspended + difference, 0)
            invocation.waited += passed
            invocation.consumed += passed if invocation.handed else 0
        invocation.slot, invocation.marks = slot, stack.reading(stamp)
        invocation.resumes_mark = stack.resumes
        stack.resumes += 1
        self.longest.begin(stack, invocation, resumed=known)
        stack.open.append(invocation)
        self._observe(stack, invocation)
        stack.depth_of[code] = stack.depth_of.get(code, 0) + 1

    def _yield(self, thread: ThreadStacks, stamp: int, frame: int, site: int) -> None:
        stack = thread.current
        invocation = self._pop(stack, frame)
        if invocation is not None:
            spent = self._close_segment(stack, invocation, stamp)
            self.longest.end(stack, invocation, spent)
            invocation.suspended, invocation.thread, invocation.taken = stamp, thread.ring, thread.taken
            invocation.handed = site == 0
            self.suspended[frame] = invocation

    def _exit(self, stack: CallStack, stamp: int, frame: int, skipped: int) -> None:
        invocation = self._pop(stack, frame)
        if invocation is None:
            return
        spent = self._close_segment(stack, invocation, stamp)
        if invocation.code > 0:
            self._complete(invocation, stack.open[-1], skipped)
            self.longest.completed(stack, invocation, self.calls, self.totals)
        self.longest.end(stack, invocation, spent)
        self._extend_time(stamp)

    def _pop(self, stack: CallStack, frame: int) -> Invocation | None:
        """The invocation of this frame; those above it ended without an event. None if the frame is not on the stack."""
        if stack.open[-1].frame != frame or len(stack.open) == 1:
            if not stack.find(frame):
                return None
            self._bury(stack, frame)
        return stack.open.pop()

    def _bury(self, stack: CallStack, frame: int) -> None:
        """Close the invocations above this frame's, without a sample."""
        for dead in stack.bury(frame):
            self.contexts.nodes[dead.node].open += 1

    def _close_segment(self, stack: CallStack, invocation: Invocation, stamp: int) -> int:
        """Add the costs since the invocation was last entered or resumed to it and to its caller; returns the time."""
        code = abs(invocation.code)
        spent = [now - then for now, then in zip(stack.reading(stamp), invocation.marks, strict=True)]
        add_work(stack.open[-1].callees, invocation.slot, [int(invocation.fresh), *spent])
        self._spend(stack, invocation, spent[: records.EVENTS_LANE])
        invocation.fresh = False
        invocation.resumes += stack.resumes - invocation.resumes_mark
        if invocation.costs:
            add(invocation.costs, spent)
        else:
            invocation.costs = spent
        stack.depth_of[code] -= 1
        if stack.depth_of[code] == 0:
            add(self.totals.setdefault(code, [0] * self.lanes), spent)
        return spent[records.TIME_LANE]

    def _observe(self, stack: CallStack, top: Invocation, begins: bool = False) -> None:
        """Collect parts for the new top of a stack if it is an observation, and none is open.

        ``begins``: it is a new invocation of a function that is observed.
        """
        place = len(stack.open) - 1
        if stack.observed >= place:  # the invocation that was there has ended
            stack.observed = 0
        if begins:
            top.observed = not stack.observed
        if top.observed and not stack.observed:
            stack.observed = place

    def _spend(self, stack: CallStack, invocation: Invocation, spent: list[int]) -> None:
        """Add what an invocation spent to the observation that is open; it was the top of the stack until now.

        It is its own but for what its callees have spent, which was taken from it when they ended.
        """
        place = len(stack.open)
        if not 0 < stack.observed <= place:
            return
        observed = invocation if stack.observed == place else stack.open[stack.observed]
        add_work(observed.parts, invocation.node, [int(invocation.fresh), *spent])
        if invocation is not observed:
            add_work(observed.parts, stack.open[-1].node, [0, *(-cost for cost in spent)])

    def _keep(self, stack: CallStack, feature: int, value: float) -> None:
        """Keep the first value of a feature of a call within the observation that is open."""
        if 0 < stack.observed < len(stack.open) - 1:
            features = stack.open[stack.observed].features
            if len(features) < records.MAX_OBSERVED_FEATURES and all(number != feature for number, _ in features):
                features.append((feature, value))

    def _add_part(self, stack: CallStack, node: int, work: list[int]) -> None:
        """Add work that takes no time to the observation that is open."""
        if 0 < stack.observed < len(stack.open):
            add_work(stack.open[stack.observed].parts, node, work)

    def _complete(self, invocation: Invocation, caller: Invocation, skipped: int = 0) -> None:
        """Add a completed invocation to the moments of its node, and its descendants' work to its caller.

        ``skipped``: calls within it that are not recorded and cost the tracer's time.
        """
        nodes, code = self.contexts.nodes, invocation.code
        node = nodes[invocation.node]
        own = self.moments.add(node, invocation.costs, invocation.callees, invocation.deeper)
        if invocation.waited > invocation.consumed:
            add_wait(node, invocation.waited - invocation.consumed)
        add(self.selves.setdefault(code, [0] * self.lanes), own)
        if invocation.callees:
            depth = nodes[caller.node].depth
            for below in (invocation.callees, invocation.deeper):
                for descendant, work in below.items():
                    if 1 < nodes[descendant].depth - depth <= records.MAX_DISTANCE:
                        add_work(caller.deeper, descendant, work)
        if invocation.manner == ASIDE_WORK:
            return
        self.calls += 1
        self.reservoirs.offer(code, self.calls, invocation)
        if self.paths:
            time, cpu, events = invocation.costs[: len(records.DEFAULT_LANES)]
            end = invocation.started + time + invocation.waited
            nested = max(events - 1, 0) + skipped
            self.paths.add(code, invocation.node, invocation.started, end, nested, time, time - cpu)

    def _extend_time(self, stamp: int) -> None:
        if self.first is None:
            self.first = stamp
        if stamp > self.last:
            self.last = stamp
