"""The finished call tree of a recording: what every builder gives, and what the tables are made of.

Sums are exact integers. A lane is a metric: time, cpu, events, then what the recording measured besides; costs are
inclusive (descendants and own), in the lane's unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from perflaw.collect.path_pieces import FunctionPaths


@dataclass(frozen=True)
class Limits:
    """What bounds a builder's memory whatever the program does. The C core has the same in native/layout.h."""

    nodes: int = 1 << 15
    """Beyond it, a call in a new context goes to the node (root, site -2, function)."""
    links: int = 1 << 17
    """Beyond it no new link is made; those that exist go on."""
    pairs: int = 1 << 18
    """Beyond it, what a new pair would get goes to its node's pair (OTHER, OTHER), twice where i != j."""
    components: int = 256
    """Beyond it, every function keeps a quarter of the samples, and half of that each time they are twice as many."""
    spans: int = 1 << 19
    """Beyond it, functions of least total time keep no spans of their worst invocations, so that half of it is left."""


@dataclass
class Sums:
    """One lane of a node: the inclusive costs X of its completed invocations."""

    sum_x: int = 0
    """ΣX."""
    sum_xx: int = 0
    """ΣX²."""
    min_x: int = 0
    """The least X; 0 where none is complete."""
    max_x: int = 0
    """The greatest X; 0 where none is complete or none is positive."""


@dataclass
class LinkSums:
    """One lane of a link: a descendant's cost Y within invocations of its ancestor, whose cost is X."""

    sum_ky: int = 0
    """ΣKY, K being the descendant's calls within the invocation."""
    sum_y: int = 0
    """ΣY."""
    sum_yy: int = 0
    """ΣY²."""
    sum_yx: int = 0
    """ΣYX."""


@dataclass
class Link:
    """Sums over the invocations of an ancestor in which a descendant took part."""

    n: int = 0
    """How many they are."""
    n_once: int = 0
    """How many of them called the descendant exactly once."""
    sum_k: int = 0
    """ΣK."""
    sum_kk: int = 0
    """ΣK²."""
    lanes: list[LinkSums] = field(default_factory=list)
    """One a lane."""


@dataclass
class Node:
    """A calling context and the sums over its completed invocations."""

    parent: int
    """Number of the node that called it; -1 for the root."""
    site: int
    """Call site within the parent's code; -2 where contexts were put together because a bound was reached."""
    code: int
    """Number of the function; -1 for the root."""
    depth: int
    """Edges to the root."""
    n: int = 0
    """Completed invocations."""
    open: int = 0
    """Invocations that never completed."""
    lanes: list[Sums] = field(default_factory=list)
    """One a lane."""
    pairs: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Parts i <= j of the cost (LOCAL, OTHER or a callee's node) → ΣY_i·Y_j, one a lane."""
    links: dict[int, Link] = field(default_factory=dict)
    """Node of a descendant → its sums."""
    histogram: dict[int, int] = field(default_factory=dict)
    """Log bucket of the time → invocations in it."""
    waits: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])
    """n, ΣW, ΣW², least and most of the time that generators and coroutines were suspended: outside X."""


@dataclass
class Sample:
    """One kept invocation."""

    sequence: int
    """Its place in the order of completion, from 1."""
    node: int
    """Its node."""
    started: int
    """Stamp of its start."""
    uniform_key: int
    """Its priority in the function's uniform sample; -1: it is only in its stratum's."""
    stratum_key: int
    """Its priority in its stratum's sample."""
    costs: tuple[int, ...] = ()
    """One a lane."""
    callees: tuple[tuple[int, int, int, int], ...] = ()
    """node, calls, time, cpu of each direct callee."""
    features: tuple[tuple[int, float], ...] = ()
    """Number and value of each feature read at its entry."""


@dataclass(frozen=True)
class Span:
    """A call within a kept invocation; a segment, where it is of a generator or coroutine."""

    node: int
    """Its node."""
    parent: int
    """Place of the span that it lies in; -1: the invocation itself."""
    started: int
    """ns since the invocation's start."""
    time: int
    """How long it took."""


@dataclass
class Worst:
    """One of the longest invocations of a function."""

    sequence: int
    """Its place in the order of completion, from 1."""
    node: int
    """Its node."""
    started: int
    """Stamp of its start."""
    time: int
    """How long it took."""
    cpu: int
    """Its part on the CPU."""
    events: int
    """Calls in it, itself included."""
    spans: tuple[Span, ...] = ()
    """The longest of them, callers first."""


@dataclass
class CallTree:
    """Everything that was learnt from a recording's events."""

    metrics: tuple[str, ...]
    """Name of each lane."""
    nodes: list[Node]
    """By number; 0 is the root, which stands for what is outside any recorded call."""
    totals: dict[int, list[int]]
    """Function → inclusive cost, one a lane; recursion counted once."""
    selves: dict[int, list[int]]
    """Function → cost outside its callees, one a lane."""
    strata: dict[int, dict[int, int]]
    """Function → stratum (bits of the time) → completed invocations in it."""
    samples: dict[int, list[Sample]]
    """Function → its samples, in order of completion."""
    calls: int = 0
    """Completed invocations."""
    first: int | None = None
    """Stamp of the first entry or exit."""
    last: int = 0
    """Stamp of the last entry or exit."""
    folded: int = 0
    """Calls that were put into coarser nodes because a bound was reached: 0 as a rule."""
    unlinked: int = 0
    """How often a descendant's part in an invocation was not kept, because there were too many links."""
    dropped: int = 0
    """Records that the recorder had no memory for."""
    worst: dict[int, list[Worst]] = field(default_factory=dict)
    """Function → its longest invocations, in order of completion."""
    paths: dict[int, FunctionPaths] = field(default_factory=dict)
    """Function → its durations by call path; empty where they were not asked for."""
