"""Record programs without a command line between, and bring recordings into a form in which tracers can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perflaw.record.metrics import metric_settings
from perflaw.record.plan import make_plan
from perflaw.record.session import record_all
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import TracerChoice
from perflaw.store.columns import Tables
from perflaw.store.experiment import Recording, open_experiment
from tests.conftest import assert_identities

Key = tuple[Any, ...]
"""What a function or a calling context is called wherever numbers are given out in another order."""


def record_fake(
    folder: Path,
    tracer: str,
    command: Sequence[object],
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    metrics: Sequence[str] = (),
    vary: dict[str, list[str]] | None = None,
    repeat: int = 1,
) -> list[Recording]:
    """Recordings of a program that moves the clock itself; the identities of their moments hold."""
    experiment = open_experiment(tracer, folder)
    settings = RecordSettings(tuple(select), tuple(exclude), metric_settings(tuple(metrics), tracer), "fake")
    plan = make_plan(tuple(map(str, command)), vary or {}, repeat, {})
    for attempt in record_all(experiment, plan, TracerChoice(tracer, lambda text: None), settings):
        assert attempt.error is None, attempt.error
    recordings = experiment.recordings()
    for recording in recordings:
        assert_identities(recording.tables())
    return recordings


def comparable(recording: Recording, *, concurrent: bool = False) -> dict[str, Counter[Key]]:
    """All of a recording that must not depend on who recorded it.

    Contexts are named by their path of functions and lines: the offsets of call sites are the tracer's own. So are the
    priorities of the sample; every invocation is in it while there are fewer than it has room for. ``concurrent``: in
    which order invocations of different threads end is up to the scheduler.
    """
    tables = without_collections(recording.tables())
    names, contexts = _names(tables)
    ended = _ends(tables, names, contexts, concurrent)
    return {
        "components": Counter(row[1:] for row in tables["components"]),
        "component_costs": Counter((*names[row[0]], *row[1:]) for row in tables["component_costs"]),
        "calltree": Counter(contexts[row[0]] for row in tables["calltree"]),
        "moments": Counter((contexts[row[0]], *row[1:]) for row in tables["moments"]),
        "pairs": Counter(_pair(row, contexts) for row in tables["pairs"]),
        "links": Counter((contexts[row[0]], contexts[row[1]], *row[2:]) for row in tables["links"]),
        "histograms": Counter((contexts[row[0]], *row[1:]) for row in tables["histograms"]),
        "strata": Counter((*names[row[0]], *row[1:]) for row in tables["strata"]),
        "weights": _weights(tables, names),
        "invocations": Counter(ended.values()),
        "callees": _callees(tables, contexts, ended),
        "worst": _worst(tables, names, contexts, concurrent),
    }


def without_collections(tables: Tables) -> Tables:
    """The tables without collections of garbage: when they come is up to what the tracer allocates."""
    gone = {row[0] for row in tables["components"] if row[1] == "(garbage collection)"}
    nodes: set[int] = set()
    for row in tables["calltree"]:  # parents stand before children
        if row[2] in gone or row[1] in nodes:
            nodes.add(row[0])
    places = {
        "calltree": (0,), "moments": (0,), "histograms": (0,), "pairs": (0, 2, 3), "links": (0, 1), "callees": (2,),
        "invocations": (3,), "worst": (3,), "spans": (4,),
    }  # fmt: skip
    left = dict(tables)
    for name, columns in places.items():
        stay = [at for at, row in enumerate(tables[name]) if not any(row[column] in nodes for column in columns)]
        left[name] = tables[name].take(np.array(stay, np.int64))
    for name in ("components", "component_costs", "strata"):
        stay = [at for at, row in enumerate(tables[name]) if row[0] not in gone]
        left[name] = tables[name].take(np.array(stay, np.int64))
    return left


def features(recording: Recording) -> Counter[Key]:
    """What was read at the entry of invocations, of functions with room for all: function, start, name, value, type."""
    tables = recording.tables()
    where = {number: end[1:] for number, end in _ends(tables, *_names(tables), concurrent=True).items()}
    return Counter((where[row[1]], *row[2:]) for row in tables["features"] if row[1] in where)


def _names(tables: Tables) -> tuple[dict[int, Key], dict[int, Key]]:
    """Functions and contexts by their numbers."""
    names: dict[int, Key] = {row[0]: row[1:4] for row in tables["components"]} | {-1: ()}
    return names, _contexts(tables, names)


def _contexts(tables: Tables, names: dict[int, Key]) -> dict[int, Key]:
    contexts: dict[int, Key] = {-1: ("local",), -2: ("others",)}
    for node, parent, component, _, line, depth in tables["calltree"]:  # parents stand before children
        contexts[node] = (*contexts[parent], (*names[component], line, depth)) if node else ()
    return contexts


def _pair(row: Key, contexts: dict[int, Key]) -> Key:
    node, metric, i, j, total = row
    return (contexts[node], metric, *sorted((contexts[i], contexts[j]), key=repr), total)


def _ends(tables: Tables, names: dict[int, Key], contexts: dict[int, Key], concurrent: bool) -> dict[int, Key]:
    """Sequence of a sampled invocation of a function with room for all → what is known of it."""
    kept = Counter(row[2] for row in tables["invocations"])
    calls = {row[0]: row[7] for row in tables["components"]}
    return {
        row[1]: (0 if concurrent else row[1], *names[row[2]], contexts[row[3]], *row[4:9], row[11])
        for row in tables["invocations"]
        if kept[row[2]] == calls[row[2]]
    }


def _callees(tables: Tables, contexts: dict[int, Key], ended: dict[int, Key]) -> Counter[Key]:
    return Counter((ended[row[1]], contexts[row[2]], *row[3:]) for row in tables["callees"] if row[1] in ended)


def _worst(tables: Tables, names: dict[int, Key], contexts: dict[int, Key], concurrent: bool) -> Counter[Key]:
    """The longest invocations, each with the spans in it; the order in which those of different threads end is left out."""
    spans: dict[int, list[Key]] = {}
    for _, sequence, number, parent, node, *times in tables["spans"]:
        spans.setdefault(sequence, []).append((number, parent, contexts[node], *times))
    return Counter(
        (0 if concurrent else row[1], *names[row[2]], contexts[row[3]], *row[4:], *spans.get(row[1], ()))
        for row in tables["worst"]
    )


def _weights(tables: Tables, names: dict[int, Key]) -> Counter[Key]:
    """Whom a sample stands for: the weights of each function add up to its calls, stratum by stratum."""
    sums: Counter[Key] = Counter()
    for row in tables["invocations"]:
        sums[names[row[2]], row[8]] += row[11]
    return Counter({key: round(total) for key, total in sums.items()})
