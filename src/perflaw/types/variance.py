"""Patterns of variance: what the learner of variance returns of a whole program.

Source: Kumar & Pande, "Dominant Variance Characterization"; section numbers are the paper's. Costs are in the metric's unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perflaw.types.explanations import Cause, Explanation, Step
from perflaw.types.measured import Component, Metric

Kind = Literal["Task", "Contributor", "Contrast"]
"""Task: high variance is principally observed here. Contributor: steady, and the source of another's. Contrast: the rest."""


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node of a pattern: one or more calling contexts of a function that behave alike (§5)."""

    id: int
    """Number, unique among all patterns of a result; depth first, most important first."""
    parent: int | None
    """Id of the node it lies under; None for the root of a pattern."""
    component: Component
    """The function."""
    kind: Kind
    """What it is in the pattern."""
    n: int
    """Invocations."""
    mean: float
    """Mean cost of one."""
    cov: float
    """Coefficient of variation, σ over the mean."""
    weight: float
    """Cost of all, N·mean."""
    vim: float
    """Variance impact σ·N, summed over the node and all below it."""
    contexts: tuple[tuple[Step, ...], ...]
    """Paths of calls that lead here from the node's parent, or from the start of the program."""
    cause: Cause = "unknown"
    """Whether its time varies by work or by interference."""
    off_cpu: float | None = None
    """Share of the variance that comes about off the CPU; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """A back-edge: the variance of the node ``to`` comes from ``source`` (§3.1, §6.1)."""

    to: int
    """Id of the node whose variance is explained."""
    source: int
    """Id of the node that underlies it."""
    path: tuple[int, ...]
    """Ids of the linear segment, both ends included."""
    cf_self: float | None
    """Var(Y)/Var(X), Y being the cost of ``source`` in an invocation of ``to``; None where a product was not recorded."""
    cf_net: float
    """Cov(Y, X)/Var(X): the share of the variance; adds up to 1 over callees and own code."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A tree of nodes with back-edges (§5). Nodes stand depth first, the root in front."""

    nodes: tuple[PatternNode, ...]
    """Nodes, those of greater VIM first."""
    contributions: tuple[Contribution, ...]
    """Back-edges, the largest share of each node first."""


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a program: its patterns, most important first, and the explanation of one function."""

    metric: Metric
    """What was measured."""
    patterns: tuple[Pattern, ...]
    """Merged, ordered and trimmed patterns."""
    extracted: tuple[int, int]
    """Nodes and patterns before merging."""
    merged: tuple[int, int]
    """Nodes and patterns before trimming."""
    tree_nodes: int
    """Calling contexts."""
    too_few: int
    """Calling contexts with fewer invocations than a label needs."""
    explanation: Explanation | None = None
    """Of the function asked for, else of the first pattern's root; None where there is no pattern."""
    notes: tuple[str, ...] = ()
    """What is missing or uncertain."""


@dataclass(frozen=True, slots=True)
class ShareChange:
    """A back-edge in two recordings."""

    path: tuple[str, ...]
    """Components of the linear segment, from the one whose variance it is to where it comes from."""
    old: float | None
    """cf_net before; None where there was no such edge."""
    new: float | None
    """cf_net now; None where there is none any more."""


@dataclass(frozen=True, slots=True)
class PatternChange:
    """A pattern in two recordings: patterns are the same where their roots are one function in the same role."""

    component: Component
    """Function of the root."""
    what: Literal["appeared", "went", "changed", "stays"]
    """What became of it."""
    old: PatternNode | None
    """Its root before."""
    new: PatternNode | None
    """Its root now."""
    shares: tuple[ShareChange, ...]
    """Back-edges that appeared, went, or have another share; of a pattern that appeared or went, those of its root."""
