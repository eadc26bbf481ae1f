"""Labels of nodes (§5): independent flags first, then Task, Contributor and Contrast derived from them."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.learn.variance.high import is_high
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.underliers import underliers
from perflaw.types.variance import Kind


@dataclass(frozen=True, slots=True)
class Labels:
    """What was found of every node of a tree."""

    high: frozenset[int]
    """Nodes of high variance with enough invocations."""
    segments: dict[int, tuple[tuple[int, ...], ...]]
    """Head → the paths of its linear segments, the head itself left out."""
    underlies: frozenset[int]
    """Ends of linear segments."""
    transmits: frozenset[int]
    """Nodes within linear segments."""
    kinds: dict[int, Kind]
    """Node → its type; nodes without a label are missing."""


def label(tree: Tree, options: Options) -> Labels:
    """Flags and types of all nodes. High variance needs ``options.least`` invocations; so do heads of segments."""
    high = frozenset(
        node for node in range(1, tree.size)
        if is_high(tree, (node,), tree.stats[node], options)
    )  # fmt: skip
    segments = {node: tuple(one.nodes for one in underliers(tree, (node,), options)) for node in sorted(high)}
    segments = {node: found for node, found in segments.items() if found}
    paths = [path for found in segments.values() for path in found]
    underlies = frozenset(path[-1] for path in paths)
    transmits = frozenset(node for path in paths for node in path[:-1])
    labels = Labels(high, segments, underlies, transmits, {})
    used = {tree.component[node] for node in high | underlies}
    for node in range(1, tree.size):
        kind = _kind(labels, node, tree.component[node] in used, options)
        if kind and (kind != "Contrast" or node in transmits or tree.stats[node].n >= options.least):
            labels.kinds[node] = kind
    return labels


def _kind(labels: Labels, node: int, used: bool, options: Options) -> Kind | None:
    if node in labels.high and _observed(labels, node, options):
        return "Task"
    if node in labels.underlies and node not in labels.high:
        return "Contributor"
    return "Contrast" if used or node in labels.transmits else None


def _observed(labels: Labels, node: int, options: Options) -> bool:
    """Whether high variance is principally observed at a node, and not just passed on.

    The paper's list of types (§5) calls every transmitter a Contrast.
    """
    if node not in labels.transmits:
        return True
    return not options.paper and (node in labels.segments or node in labels.underlies)
