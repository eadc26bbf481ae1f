"""A finished call tree as objects: tests read it, and compare the C core with its twin."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from perflaw.record.tree.call_tree import (
    CallSpan,
    LaneSums,
    LinkSums,
    LongestCall,
    RecordedTree,
    SampledCall,
    TreeLink,
    TreeNode,
    costs_of_codes,
    strata_of,
)
from perflaw.record.tree.core import Export, TreeTables, rows_of
from perflaw.record.tree.path_builder import FunctionPaths, PathObservation, PathPiece
from perflaw.store.columns import Array


def from_tables(tree: TreeTables) -> RecordedTree:
    """The tree as objects: to read it, and to compare the C core with its twin."""
    tables, lanes = tree.tables, len(tree.metrics)
    nodes = _nodes(tables, lanes)
    return RecordedTree(
        tree.metrics,
        nodes,
        *costs_of_codes(tree),
        strata_of(nodes),
        _samples(tables, lanes),
        tree.calls,
        tree.first,
        tree.head("last"),
        tree.head("folded"),
        tree.head("links_left_out"),
        tree.head("lost"),
        _worst(tables),
        path_objects(tables),
    )


def _nodes(tables: dict[Export, Array], lanes: int) -> list[TreeNode]:
    sums = (LaneSums(*row) for row in rows_of(tables[Export.NODE_LANES]))
    nodes = [TreeNode(*row) for row in rows_of(tables[Export.NODES])]
    for each in nodes:
        each.lanes = list(islice(sums, lanes))
    products = (total for (total,) in rows_of(tables[Export.PAIR_LANES]))
    for node, i, j in rows_of(tables[Export.PAIRS]):
        nodes[node].pairs[i, j] = list(islice(products, lanes))
    parts = (LinkSums(*row) for row in rows_of(tables[Export.LINK_LANES]))
    for ancestor, descendant, *counts in rows_of(tables[Export.LINKS]):
        link = nodes[ancestor].links[descendant] = TreeLink(*counts)
        link.lanes = list(islice(parts, lanes))
    for node, bucket, count in rows_of(tables[Export.HISTOGRAM]):
        nodes[node].histogram[bucket] = count
    for node, *waits in rows_of(tables[Export.WAITS]):
        nodes[node].waits = waits
    return nodes


def _samples(tables: dict[Export, Array], lanes: int) -> dict[int, list[SampledCall]]:
    samples: dict[int, list[SampledCall]] = {}
    costs = iter(tables[Export.COSTS]["cost"].tolist())
    callees, features, parts = (rows_of(tables[each]) for each in (Export.CALLEES, Export.FEATURES, Export.PARTS))
    for code, *sample, callee_count, feature_count, part_count in rows_of(tables[Export.SAMPLES]):
        counts = ((costs, lanes), (callees, callee_count), (features, feature_count), (parts, part_count))
        of_sample = (tuple(islice(rows, count)) for rows, count in counts)
        samples.setdefault(code, []).append(SampledCall(*sample, *of_sample))
    return samples


def _worst(tables: dict[Export, Array]) -> dict[int, list[LongestCall]]:
    worst: dict[int, list[LongestCall]] = {}
    spans = (CallSpan(*row) for row in rows_of(tables[Export.SPANS]))
    for code, *row, count in rows_of(tables[Export.WORST]):
        call = LongestCall(*row)
        call.spans = tuple(islice(spans, count))
        worst.setdefault(code, []).append(call)
    return worst


def path_objects(tables: Mapping[Export, Array]) -> dict[int, FunctionPaths]:
    """Number of a function → its durations, from the tables; pieces in order of node, observation and clock."""
    paths = {code: FunctionPaths(dropped) for code, dropped in rows_of(tables[Export.PATH_CODES])}
    for code, _, *seen in rows_of(tables[Export.PATH_SEEN]):
        paths[code].seen.append(PathObservation(*seen))
    buckets, levels = rows_of(tables[Export.PATH_BUCKETS]), rows_of(tables[Export.PATH_BATCHES])
    for code, node, observation, clock, scale, zeros, bucket_count, level_count in rows_of(tables[Export.PATH_PIECES]):
        counts, sums = dict(islice(buckets, bucket_count)), list(islice(levels, level_count))
        paths[code].pieces.append(PathPiece(node, observation, clock, scale, zeros, counts, sums))
    for function in paths.values():
        function.pieces.sort(key=lambda piece: (piece.node, piece.observation, piece.clock))
    return paths
