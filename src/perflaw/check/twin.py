"""What a law's JSON twin says beside its laws: how the runs behind them lie about it, and coefficients' intervals.

It also keeps a sample of their invocations, which another law can be compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from perflaw.check.changes import coefficients
from perflaw.check.claims import Claim, baseline_document
from perflaw.check.law_records import columns_of, law_records, missing_features
from perflaw.check.run_effects import baseline_of, sample_of_runs
from perflaw.learn.series.series import numbered
from perflaw.types import Annotation, Component, Evidence

OF_A_RUN, OF_ALL = 40, 240
"""Invocations kept of a run, and of all runs."""


def support(annotation: Annotation, found: Mapping[tuple[str, str], Evidence]) -> dict[str, Any]:
    """The field ``check`` of an annotation's document; null where there is no evidence to draw it from."""
    claim = Claim(annotation.component.name, annotation.metric, annotation.clauses)
    evidence = found.get((claim.component, claim.metric.name))
    if evidence is None or not evidence.cost.size:
        return {"check": None}
    columns = columns_of(evidence)
    if missing_features(claim, evidence, columns):
        return {"check": None}
    ranges = {}
    for name in sorted(claim.names):
        column = columns.get(name)
        if column is not None and column.dtype.kind != "U" and np.isfinite(column).any():
            ranges[name] = float(np.nanmin(column)), float(np.nanmax(column))
    claim = replace(claim, ranges=ranges)
    records = law_records(claim, evidence, columns)
    several = [[asdict(one) for one in clause] for clause in coefficients(claim, records)]
    # Invocations of every run, each as likely as another, with everything a law may ask of them.
    runs, run = numbered(evidence.run)
    count = max(1, min(OF_A_RUN, OF_ALL // max(runs.size, 1)))
    rows = sample_of_runs(evidence.weight, run, count)
    kept = set(claim.names) | {name for name in columns if not name.startswith(("calls.", "branch."))}
    weight = np.bincount(run, evidence.weight) / np.bincount(run[rows])
    by_run = dict(zip(runs.tolist(), weight.tolist(), strict=True))
    return {
        "check": {
            **baseline_document(baseline_of(claim, records)),
            "ranges": {name: list(ends) for name, ends in ranges.items()},
            "coefficients": several,
            "sample": {
                "cost": evidence.cost[rows].tolist(),
                "run": evidence.run[rows].tolist(),
                "weight": {run: float(f"{one:.6g}") for run, one in by_run.items()},
                "features": {name: columns[name][rows].tolist() for name in sorted(kept & columns.keys())},
            },
        }
    }


def sampled(claim: Claim) -> Evidence | None:
    """The invocations that a claim's twin keeps, as evidence; None where there are none."""
    document = claim.document or {}
    kept = (document.get("check") or {}).get("sample")
    if not kept or not kept["cost"]:
        return None
    features = kept["features"].items()
    columns = {name: np.array([np.nan if one is None else one for one in values]) for name, values in features}
    texts = {name: column for name, column in columns.items() if column.dtype.kind == "U"}
    numbers = {name: column.astype(np.float64) for name, column in columns.items() if column.dtype.kind != "U"}
    count = len(kept["cost"])
    weight = np.array([kept["weight"][run] for run in kept["run"]], dtype=np.float64)
    component = Component(claim.component, document.get("file", ""), document.get("line", 0))
    return Evidence(
        component, np.array(kept["cost"], dtype=np.float64), weight, np.ones(count, dtype=bool),
        np.array(kept["run"], dtype=np.str_), numbers, (), texts,
    )  # fmt: skip
