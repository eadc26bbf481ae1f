"""What a program's runs cost: exact calls by size, and the own cost of a call of each function in each run.

The own cost of a call is the unit cost of a function. A summary is small enough for the twin of a law file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perflaw.check.unit_costs import MIN_FUNCTIONS
from perflaw.learn.program.exact import exact_laws
from perflaw.types import Metric, ProgramCosts
from perflaw.types.programs import OUTSIDE
from perflaw.types.recordings import COLLECTING

PSEUDO: Final = (COLLECTING, OUTSIDE)
"""Rows of the interpreter: they tell no speed, and no verdict is given on them."""
Array = NDArray[np.float64]
Places = NDArray[np.intp]

MIN_SHARE: Final = 0.001
"""Share of the cost from which a function tells the speed of a run."""
MIN_REPEATS: Final = 2
"""Repetitions with equal counts from which counts are exact."""
RUNS_KEPT: Final = 60
"""Runs whose unit costs the twin of a law file keeps."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramSummary:
    """Calls and unit costs of F functions in G groups of runs with equal features."""

    metric: Metric
    """Metric of the costs."""
    sizes: tuple[Mapping[str, float], ...]
    """(G,) features of the runs of each group."""
    runs: Array
    """(G,) number of runs."""
    names: tuple[str, ...]
    """(F,) functions; those of one name are one."""
    calls: Array
    """(G, F) mean calls of a run."""
    exact: NDArray[np.bool_]
    """(F,) whether runs of one size always have the same calls, or a law gives all counts exactly."""
    call_variance: Array
    """(F,) variance of the logarithm of the calls between runs of one size."""
    unit: Array
    """(G, F) logarithm of the own cost of a call in the median run of the size, NaN where there is none."""
    run_size: Places
    """(R,) size of each run, as a number of its group."""
    run_unit: Array
    """(R, F) logarithm of the own cost of a call in each run, NaN where there is none."""
    edges: Places
    """(E, 2) caller and callee of each pair that calls; caller -1 for the program's entry."""
    edge_calls: Array
    """(G, E) mean calls of a run along them."""
    above: tuple[Places, Places, Array]
    """Ancestor, function, and the share of the function's own cost during which the ancestor is active."""
    speed: Mapping[str, float]
    """Run → logarithm of its speed relative to the runs of its size; empty for a summary that was read from a twin."""

    @property
    def own(self) -> Array:
        """(G, F) own cost of a run at the median speed."""
        return np.nan_to_num(self.calls * np.exp(self.unit))

    @property
    def share(self) -> Array:
        """(F,) share of the cost, the mean over the sizes."""
        own = self.own
        return np.asarray((own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0))


def summarize(costs: ProgramCosts) -> ProgramSummary | None:
    """The summary of a program's executions; None without any, or where calls along edges are not known."""
    if not costs.runs or costs.edge_calls is None:
        return None
    names = tuple(dict.fromkeys(one.name for one in costs.components))
    number = {name: place for place, name in enumerate(names)}
    of = np.array([number[one.name] for one in costs.components], dtype=np.intp)
    calls, own = _by_name(costs.calls, of, len(names)), _by_name(costs.own, of, len(names))
    numbers: dict[tuple[tuple[str, float], ...], int] = {}
    keys = [tuple(sorted(run.features.items())) for run in costs.runs]
    group = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
    sizes = [dict(key) for key in numbers]
    used = (calls > 0) & (own > 0)
    unit = np.where(used, np.log(np.where(used, own, 1.0) / np.maximum(calls, 1.0)), np.nan)
    speed = _speeds(unit, own, group, names) if costs.metric.unit == "ns" else np.zeros(len(unit))
    mean_calls = _means(calls, group, len(sizes))
    log_calls = np.log(np.maximum(calls, 0.5))
    scatter = log_calls - _means(log_calls, group, len(sizes))[group]
    repeats = len(calls) - len(sizes)
    edges, place = np.unique(
        np.array([(of[caller] if caller >= 0 else -1, of[callee]) for caller, callee in costs.edges]).reshape(-1, 2),
        axis=0,
        return_inverse=True,
    )
    return ProgramSummary(
        costs.metric,
        tuple(sizes),
        np.bincount(group, minlength=len(sizes)).astype(np.float64),
        names,
        mean_calls,
        _exact(calls, group, mean_calls, [run.features for run in costs.runs]),
        (scatter**2).sum(axis=0) / max(repeats, 1),
        _medians_by_size(unit - speed[:, None], group, len(sizes)),
        group,
        unit,
        edges.astype(np.intp),
        _means(_by_name(costs.edge_calls, place.reshape(-1), len(edges)), group, len(sizes)),
        _above(costs, of),
        {run.id: float(one) for run, one in zip(costs.runs, speed, strict=True)},
    )


def _by_name(values: Array, of: Places, count: int) -> Array:
    """Columns of (R, n) summed by the number that each belongs to, (R, count)."""
    out = np.zeros((len(values), count))
    np.add.at(out.T, of, values.T)
    return out


def _means(values: Array, group: Places, count: int) -> Array:
    """Means by group, (G, n), of (R, n)."""
    out = np.zeros((count, values.shape[1]))
    np.add.at(out, group, values)
    return np.asarray(out / np.bincount(group, minlength=count)[:, None])


def _exact(calls: Array, group: Places, means: Array, features: Sequence[Mapping[str, float]]) -> NDArray[np.bool_]:
    """Whether counts of each function repeat themselves, or a law gives all of them exactly, (F,)."""
    if len(calls) - len(means) >= MIN_REPEATS:
        return np.asarray((calls == means[group]).all(axis=0))
    common = [name for name in features[0] if all(name in one for one in features)]
    columns = {name: np.array([one[name] for one in features], dtype=np.float64) for name in common}
    varied = {name: column for name, column in columns.items() if np.ptp(column) > 0}
    if not varied:
        return np.zeros(calls.shape[1], dtype=np.bool_)
    return np.array([law is not None for law in exact_laws(calls, varied)], dtype=np.bool_)


def _speeds(unit: Array, own: Array, group: Places, names: Sequence[str]) -> Array:
    """Logarithm of each run's speed relative to the runs of its size, (R,): the median over functions that matter."""
    share = own.sum(axis=0) / max(float(own.sum()), 1e-300)
    usable = np.isfinite(unit).all(axis=0) & (share > MIN_SHARE) & np.array([name not in PSEUDO for name in names])
    speed = np.zeros(len(unit))
    if usable.sum() >= MIN_FUNCTIONS:
        for g in np.unique(group):
            runs = np.flatnonzero(group == g)
            of_group = unit[np.ix_(runs, np.flatnonzero(usable))]
            speed[runs] = np.median(of_group - np.median(of_group, axis=0), axis=1)
            speed[runs] -= np.median(speed[runs])
    return speed


def _medians_by_size(unit: Array, group: Places, count: int) -> Array:
    """Medians of the known values of each group, (G, F), NaN without any."""
    out = np.full((count, unit.shape[1]), np.nan)
    for g in range(count):
        here = unit[group == g]
        some = np.isfinite(here).any(axis=0)
        out[g, some] = np.nanmedian(here[:, some], axis=0)
    return out


def _above(costs: ProgramCosts, of: Places) -> tuple[Places, Places, Array]:
    """Ancestor, function and share of the function's own cost, over all runs, that is spent in the ancestor."""
    own = costs.context_own.sum(axis=0)
    total = np.bincount(of[costs.context], own)
    shares: dict[tuple[int, int], float] = {}
    for context, active in enumerate(costs.active):
        function = int(of[costs.context[context]])
        if own[context] > 0:
            for ancestor in {int(of[one]) for one in active} - {function}:
                key = (ancestor, function)
                shares[key] = shares.get(key, 0.0) + float(own[context] / total[function])
    keys = np.array(list(shares), dtype=np.intp).reshape(-1, 2)
    return keys[:, 0], keys[:, 1], np.array(list(shares.values()), dtype=np.float64)


def summary_document(summary: ProgramSummary) -> dict[str, Any]:
    """The summary for the twin of a law file: sizes once, then numbers by function."""
    callers: list[list[list[Any]]] = [[] for _ in summary.names]
    for (caller, callee), calls in zip(summary.edges.tolist(), summary.edge_calls.T, strict=True):
        callers[callee].append([caller, *_short(calls)])
    above: list[list[list[float]]] = [[] for _ in summary.names]
    for ancestor, function, share in zip(*(one.tolist() for one in summary.above), strict=True):
        above[function].append([ancestor, float(f"{share:.3g}")])
    # The runs that are kept are spread over all sizes.
    repetition = np.array([(summary.run_size[:r] == g).sum() for r, g in enumerate(summary.run_size)])
    kept = np.sort(np.argsort(repetition, kind="stable")[:RUNS_KEPT])
    return {
        "metric": summary.metric.name,
        "unit": summary.metric.unit,
        "sizes": [dict(size) for size in summary.sizes],
        "runs": summary.runs.astype(int).tolist(),
        "run_size": summary.run_size[kept].tolist(),
        "functions": [
            {
                "name": name,
                "calls": _short(summary.calls[:, f]),
                "exact": bool(summary.exact[f]),
                "call_variance": float(f"{summary.call_variance[f]:.4g}"),
                "unit": [None if np.isnan(one) else float(f"{one:.6g}") for one in summary.unit[:, f]],
                "run_unit": [None if np.isnan(one) else round(float(one), 4) for one in summary.run_unit[kept, f]],
                "callers": callers[f],
                "above": above[f],
            }
            for f, name in enumerate(summary.names)
        ],
    }


def _short(values: Array) -> list[float]:
    """Counts as whole numbers where they are."""
    return [int(one) if one == int(one) else float(f"{one:.8g}") for one in values.tolist()]


def summary_from(document: Mapping[str, Any] | None) -> ProgramSummary | None:
    """The summary of a twin; None where it has none with the unit costs of single runs.

    ValueError, or what reading a damaged document raises, where it is damaged.
    """
    if not document or "run_size" not in document:
        return None
    functions = document["functions"]
    count = len(functions)

    def matrix(name: str) -> Array:
        values = [[np.nan if one is None else one for one in function[name]] for function in functions]
        return np.array(values, dtype=np.float64).reshape(count, -1).T

    def column(name: str) -> Array:
        return np.array([function[name] for function in functions], dtype=np.float64)

    edges = [(caller, f, calls) for f, one in enumerate(functions) for caller, *calls in one["callers"]]
    above = [(ancestor, f, share) for f, one in enumerate(functions) for ancestor, share in one["above"]]
    summary = ProgramSummary(
        Metric(document["metric"], document["unit"]),
        tuple(document["sizes"]),
        np.array(document["runs"], dtype=np.float64),
        tuple(function["name"] for function in functions),
        matrix("calls"),
        column("exact").astype(np.bool_),
        column("call_variance"),
        matrix("unit"),
        np.array(document["run_size"], dtype=np.intp),
        matrix("run_unit"),
        np.array([one[:2] for one in edges], dtype=np.intp).reshape(-1, 2),
        np.array([one[2] for one in edges], dtype=np.float64).reshape(len(edges), -1).T,
        (
            np.array([one[0] for one in above], dtype=np.intp),
            np.array([one[1] for one in above], dtype=np.intp),
            np.array([one[2] for one in above], dtype=np.float64),
        ),
        {},
    )
    sizes, runs = len(summary.sizes), len(summary.run_size)
    shapes = [(summary.runs, (sizes,)), (summary.calls, (sizes, count)), (summary.unit, (sizes, count))]
    shapes += [(summary.run_unit, (runs, count)), (summary.edge_calls, (sizes, len(edges)))]
    numbers = [(summary.run_size, 0, sizes), (summary.edges, -1, count), (summary.above[0], 0, count)]
    fits = all(values.shape == shape or not values.size for values, shape in shapes)
    if not fits or not all(((low <= one) & (one < high)).all() for one, low, high in numbers):
        raise ValueError("a number of a size or of a function is out of range, or a row has another length")
    return summary
