"""A calling-context tree for the learners of variance: exact moments and sampled invocations.

Sums are exact integers of any size (dtype object); times are in ns. (V,) stands for the nodes of the tree by number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from perflaw.types.recordings import Component, MachineLosses, Metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Sums = NDArray[np.object_]

LOCAL: Final = -1
"""Stands for a callee: the cost of an invocation outside its callees (Y_0)."""
OTHER: Final = -2
"""Stands for all callees that are not kept apart."""
MARK: Final = "off."
"""What begins the names of marks in the table of costs: parts of the time off the CPU, by what the thread was off for."""
QUEUED: Final = "queued"
"""The mark of time in which the thread was ready to run and others had its CPU; all other marks are kinds of waiting."""
AWAIT: Final = "await"
"""The mark of a coroutine's time in suspension, which its wall time excludes."""
RESUMES: Final = "resumes"
"""In the table of costs: how often generators and coroutines went on within an invocation."""
BUCKETS_PER_POWER: Final = 4
"""Buckets of the recorder's log histograms in each power of two."""


def log_bucket(x: int) -> int:
    """Bucket of the recorder's log histograms that holds ``x``.

    >>> [log_bucket(x) for x in (0, 1, 2, 4, 5, 8, 1000)]
    [0, 4, 8, 12, 13, 16, 43]
    """
    bits = x.bit_length()
    return bits * BUCKETS_PER_POWER + ((x >> (bits - 3)) & 3 if bits >= 3 else 0)


@dataclass(frozen=True, slots=True, eq=False)
class NodeMoments:
    """Raw moments of the inclusive cost X of each node's completed invocations, in one metric."""

    n: Ints
    """(V,) invocations."""
    sum_x: Sums
    """(V,) ΣX."""
    sum_xx: Sums
    """(V,) ΣX²."""


@dataclass(frozen=True, slots=True, eq=False)
class PairMoments:
    """Products of the costs of two parts of a node's invocations. A missing pair is 0, unless callees were put together."""

    node: Ints
    """(P,) node of the invocations."""
    i: Ints
    """(P,) a callee's node, LOCAL or OTHER; never more than j."""
    j: Ints
    """(P,) the other part, a callee's node, LOCAL or OTHER."""
    sum_yy: Sums
    """(P,) ΣY_i·Y_j."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkMoments:
    """A descendant's calls K and cost Y within invocations of an ancestor, whose cost is X."""

    ancestor: Ints
    """(L,) node of the ancestor."""
    descendant: Ints
    """(L,) node of the descendant; direct callees included."""
    n: Ints
    """(L,) invocations of the ancestor in which the descendant was called."""
    n_once: Ints
    """(L,) invocations of the ancestor in which it was called exactly once."""
    sum_k: Sums
    """(L,) ΣK."""
    sum_kk: Sums
    """(L,) ΣK²."""
    sum_ky: Sums
    """(L,) ΣKY."""
    sum_y: Sums
    """(L,) ΣY."""
    sum_yy: Sums
    """(L,) ΣY²."""
    sum_yx: Sums
    """(L,) ΣYX."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Sampled invocations (S,) and their direct callees (C,). NaN stands for a cost that was not measured."""

    run: tuple[str, ...]
    """(S,) id of the run."""
    sequence: Ints
    """(S,) order of completion within the run."""
    node: Ints
    """(S,) calling context."""
    started: Ints
    """(S,) start, ns since the run's first event."""
    x: Floats
    """(S,) cost in the tree's metric."""
    time: Floats
    """(S,) wall time."""
    cpu: Floats
    """(S,) CPU time."""
    events: Floats
    """(S,) recorded calls in it, itself included."""
    weight: Floats
    """(S,) number of invocations that each stands for."""
    stratum: Ints
    """(S,) power of two of the time; each stratum of a function has its own sample."""
    uniform: NDArray[np.bool_]
    """(S,) whether each belongs to the uniform part of the sample."""
    of: Ints
    """(C,) place of the calling invocation among the S."""
    callee: Ints
    """(C,) node of the callee, or OTHER."""
    k: Ints
    """(C,) number of calls."""
    y: Floats
    """(C,) cost in the tree's metric; NaN where samples do not have it."""
    y_time: Floats
    """(C,) wall time."""
    y_cpu: Floats
    """(C,) CPU time."""
    costs: Mapping[str, Floats] = field(default_factory=dict)
    """Further metric → (S,) cost in it."""
    features: Mapping[str, Floats] = field(default_factory=dict)
    """Feature → (S,) value read at entry."""
    marks: Mapping[str, Floats] = field(default_factory=dict)
    """Mark (``queued``, ``sleep``, …) → (S,) ns of the time off the CPU; empty if a recording has none."""
    awaits: Floats | None = None
    """(S,) ns for which a coroutine was suspended, beside its time; None without coroutines."""
    resumes: Floats | None = None
    """(S,) how often generators and coroutines went on within it, itself included; None where that is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class CallTree:
    """A calling-context tree, its nodes keyed by (parent, call site, callee). Parents come before children; 0 is the root."""

    metric: Metric
    """Metric of pairs, links and of the samples' ``x``."""
    metrics: Mapping[str, Metric]
    """Every metric with moments, by name."""
    components: tuple[Component, ...]
    """Components by number."""
    parent: Ints
    """(V,) node of the caller; -1 for the root."""
    component: Ints
    """(V,) number of the component; -1 for the root."""
    site: Ints
    """(V,) call site within the parent's code."""
    site_line: Ints
    """(V,) its source line, 0 where unknown."""
    moments: Mapping[str, NodeMoments]
    """Moments by metric."""
    pairs: PairMoments
    """Products of the costs of two parts."""
    links: LinkMoments
    """Costs of descendants within ancestors."""
    samples: Samples | None = None
    """Sampled invocations; None where there are only moments."""
    histogram: tuple[Ints, Ints, Ints] | None = None
    """Node, bucket of the time (four for each power of two) and invocations in it; None where it was not kept."""
    clock_noise: float = 0.0
    """ns by which the cost of an invocation may be off; 0 where the program advanced the clock itself."""
    notes: tuple[str, ...] = ()
    """Notes on what is missing or uncertain in the recordings."""
    event_ns: float = 0.0
    """ns that an event of the tracer costs by calibration, and by which it may be off: in a single invocation its code and
    data may be in the caches or not. 0 where the costs are those of a fake clock or of another tool."""
    losses: MachineLosses | None = None
    """What the machine took from code that was watched beside all these runs; None if that was not measured."""
