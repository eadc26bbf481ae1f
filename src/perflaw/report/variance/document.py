"""``perflaw.variance/1``: patterns of variance and the explanation of one function as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from perflaw.types import Run
from perflaw.types.variance import (
    Block,
    Budget,
    BudgetRow,
    Exemplar,
    Explanation,
    Part,
    Pattern,
    PatternNode,
    Split,
    Step,
    Variance,
)

Document = dict[str, Any]


def variance_document(found: Variance, runs: Sequence[Run]) -> Document:
    """The document; ``budget`` is that of the function explained, an empty list where there is none."""
    explained = found.explanation
    return {
        "schema": "perflaw.variance/1",
        "metric": found.metric.name,
        "unit": found.metric.unit,
        "runs": [{"id": run.id, "features": dict(run.features), "complete": run.complete} for run in runs],
        "counts": {
            "tree": found.tree_nodes,
            "too_few": found.too_few,
            "extracted": _size(found.extracted),
            "merged": _size(found.merged),
            "shown": _size((sum(len(one.nodes) for one in found.patterns), len(found.patterns))),
        },
        "patterns": [_pattern(one) for one in found.patterns],
        "budget": _rows(explained.budget) if explained and explained.budget else [],
        "function": _explanation(explained) if explained else None,
        "notes": list(found.notes),
    }


def _size(counts: tuple[int, int]) -> Document:
    return {"nodes": counts[0], "patterns": counts[1]}


def _pattern(pattern: Pattern) -> Document:
    return {
        "root": pattern.nodes[0].component.name,
        "nodes": [_node(one) for one in pattern.nodes],
        "contributions": [
            {"to": one.to, "from": one.source, "cf_self": one.cf_self, "cf_net": one.cf_net, "segment": list(one.path)}
            for one in pattern.contributions
        ],
    }


def _node(node: PatternNode) -> Document:
    return {
        "id": node.id,
        "parent": node.parent,
        "component": node.component.name,
        "file": node.component.file,
        "line": node.component.line,
        "type": node.kind,
        "n": node.n,
        "mean": node.mean,
        "cov": node.cov,
        "weight": node.weight,
        "vim": node.vim,
        "cause": node.cause,
        "off_cpu": node.off_cpu,
        "contexts": [_steps(path) for path in node.contexts],
    }


def _steps(path: Iterable[Step]) -> list[Document]:
    return [{"caller": one.caller, "line": one.line, "site": one.site, "component": one.callee} for one in path]


def _rows(budget: Budget) -> list[Document]:
    return [_row(row) for row in budget.rows]


def _row(row: BudgetRow) -> Document:
    return {
        "component": row.component.name,
        "path": _steps(row.path),
        "share": row.share,
        "share_low": row.share_low,
        "share_high": row.share_high,
        "tail": row.tail,
        "median": row.median,
        "off_cpu": row.off_cpu,
        "cf_net": row.cf_net,
        "mechanism": row.mechanism,
        "estimated": row.estimated,
        "rest": row.rest,
    }


def _explanation(one: Explanation) -> Document:
    return {
        "component": one.component.name,
        "file": one.component.file,
        "line": one.component.line,
        "n": one.n,
        "mean": one.mean,
        "cov": one.cov,
        "high": one.high,
        "covs": dict(one.covs),
        "cause": one.cause,
        "off_cpu": one.off_cpu,
        "off_cpu_low": one.off_cpu_low,
        "off_cpu_high": one.off_cpu_high,
        "parts": [_part(part) for part in one.parts],
        "covariance": [list(row) for row in one.covariance],
        "blocks": [_block(block) for block in one.blocks],
        "sources": [
            {
                "component": source.component.name,
                "path": _steps(source.path),
                "cf_self": source.cf_self,
                "cf_net": source.cf_net,
                "split": _split(source.split),
            }
            for source in one.sources
        ],
        "tail": _tail(one.budget) if one.budget else None,
        **_rest(one),
    }


def _rest(one: Explanation) -> Document:
    """Contexts, invocations to look at, deadlines and drivers."""
    return {
        "contexts": [
            {
                "path": _steps(context.path),
                "n": context.n,
                "mean": context.mean,
                "cov": context.cov,
                "high": context.high,
            }
            for context in one.contexts
        ],
        "exemplars": [_exemplar(exemplar) for exemplar in one.exemplars],
        "deadlines": [
            {"deadline": d.deadline, "chebyshev": d.chebyshev, "observed": d.observed, "low": d.low, "high": d.high}
            for d in one.deadlines
        ],
        "bounds": [
            {
                "probability": b.probability,
                "chebyshev": b.chebyshev,
                "observed": b.observed,
                "low": b.low,
                "high": b.high,
            }
            for b in one.bounds
        ],
        "drivers": [{"feature": d.feature, "of": d.of, "r2": d.r2, "expression": d.expression} for d in one.drivers],
    }


def _tail(budget: Budget) -> Document:
    """The two groups that the budget compares."""
    return {
        "p99": budget.p99,
        "p50": budget.p50,
        "tail": budget.tail,
        "median": budget.median,
        "samples": budget.samples,
        "further": dict(budget.further),
    }


def _part(part: Part) -> Document:
    return {
        "component": part.component.name if part.component else None,
        "line": part.line,
        "site": part.site,
        "mean": part.mean,
        "variance": part.variance,
        "cf_self": part.cf_self,
        "cf_net": part.cf_net,
        "split": _split(part.split) if part.split else None,
    }


def _split(split: Split) -> Document:
    return {"called": split.called, "trips": split.trips, "cost": split.cost, "mechanism": split.mechanism}


def _block(block: Block) -> Document:
    return {
        "parts": list(block.parts),
        "variance": block.variance,
        "cf_net": block.cf_net,
        "minimal": list(block.minimal) if block.minimal is not None else None,
        "relation": block.relation,
    }


def _exemplar(one: Exemplar) -> Document:
    return {
        "reason": one.reason,
        "run": one.run,
        "sequence": one.sequence,
        "started": one.started,
        "x": one.x,
        "time": one.time,
        "cpu": one.cpu,
        "path": _steps(one.path),
        "callees": [
            {"component": c.component.name if c.component else None, "line": c.line, "k": c.k, "y": c.y}
            for c in one.callees
        ],
        "features": dict(one.features),
    }
