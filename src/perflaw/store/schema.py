"""The tables of a recording, defined once: names, columns, types and meaning.

Sums are exact integers of 128 bits (``DECIMAL(38,0)`` on disk, ``int`` in memory). ``LOCAL`` stands for the cost of an
invocation outside its recorded callees (Y_0), ``OTHER`` for callees beyond those that are kept apart. Rows of different
metrics are independent, counts included: where recordings of different metrics are merged, their populations differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from perflaw.store.columns import NULL, Column, Row, Table, texts, wide
from perflaw.types import Component

RUN_SCHEMA: Final = "perflaw.run/2"
LOCAL: Final = -1
OTHER: Final = -2

INT, SUM, REAL, TEXT, OPTIONAL = "BIGINT", "DECIMAL(38,0)", "DOUBLE", "VARCHAR", "INT64"
"""Types as DuckDB calls them; ``OPTIONAL`` is an ``INT`` that may be null."""
UNIFORM: Final = 512
"""Invocations of a function that the uniform part of the sample keeps."""
PER_STRATUM: Final = 32
"""Invocations that each power of two of the duration keeps."""
MANY_COMPONENTS: Final = 256
"""If more functions than this have samples, all keep a quarter; each time their number doubles, they keep half of that."""
WORST: Final = 8
"""Longest invocations of a function that are kept."""

COLUMNS: Final[dict[str, dict[str, str]]] = {
    # One row for each function.
    "components": {
        "component": INT, "name": TEXT, "file": TEXT, "line": INT, "language": TEXT, "origin": TEXT, "parameters": TEXT,
        "calls": INT, "open": INT,
    },
    # total: cost of a function's outermost invocations; self: without recorded callees.
    "component_costs": {"component": INT, "metric": TEXT, "total": SUM, "self": SUM},
    # One row for each calling context, keyed by (parent, site, component). Node 0 is the root, its component is -1.
    "calltree": {"node": INT, "parent": INT, "component": INT, "site": INT, "site_line": INT, "depth": INT},
    # Raw moments of the inclusive cost X of a node's completed invocations.
    "moments": {
        "node": INT, "metric": TEXT, "n": INT, "sum_x": SUM, "sum_xx": SUM, "min_x": INT, "max_x": INT, "open": INT,
    },
    # Per pair (i <= j) of a node's children touched in one invocation, LOCAL and OTHER included: sum of Y_i * Y_j.
    "pairs": {"node": INT, "metric": TEXT, "i": INT, "j": INT, "sum_yy": SUM},
    # Per (ancestor H, descendant A) that meet in one invocation of H: Y is A's cost and K its calls within it.
    "links": {
        "ancestor": INT, "descendant": INT, "metric": TEXT, "n": INT, "n_once": INT, "sum_k": SUM, "sum_kk": SUM,
        "sum_ky": SUM, "sum_y": SUM, "sum_yy": SUM, "sum_yx": SUM,
    },
    # Calls of a node that were counted and not timed: in the moments of events, and in those of no other metric. What they
    # took is their callers' own cost.
    "counted": {"node": INT, "calls": INT},
    # Nodes within whose invocations threads were ready to run and others had the CPU, and for how long.
    "queued": {"node": INT, "sum_x": SUM},
    # Log histogram of the time X per node: four buckets for each power of two.
    "histograms": {"node": INT, "bucket": INT, "count": INT},
    # Completed invocations per component and power-of-two stratum of the time X, from which the samples' weights follow.
    "strata": {"component": INT, "stratum": INT, "count": INT},
    # The stratified reservoir. sequence: order of completion within the run; uniform_key < 0: only in its stratum.
    # x: time; x_cpu: its part on the CPU where that was measured; x_events: calls.
    "invocations": {
        "run": TEXT, "sequence": INT, "component": INT, "node": INT, "started": INT, "x": INT, "x_cpu": OPTIONAL,
        "x_events": INT, "stratum": INT, "uniform_key": INT, "stratum_key": INT, "weight": REAL,
    },
    # Features read at entry of sampled invocations; text for dynamic types, value for all others.
    "features": {"run": TEXT, "sequence": INT, "feature": TEXT, "value": REAL, "text": TEXT},
    # Costs X of sampled invocations in further metrics; if the run has the metric, a missing row is a cost of 0. Metrics
    # "off.queued", "off.sleep" and so on are parts of the time off the CPU, by what the thread was off for.
    "invocation_costs": {"run": TEXT, "sequence": INT, "metric": TEXT, "x": INT},
    # Children of sampled invocations: calls K_i, time Y_i, and its part on the CPU where that was measured.
    "callees": {"run": TEXT, "sequence": INT, "node": INT, "k": INT, "y": INT, "y_cpu": OPTIONAL},
    # Of the observations among the samples, which are invocations of the function that --per names: calls of every node
    # within them, and own costs. own: time; own_cpu: its part on the CPU where that was measured.
    "parts": {"run": TEXT, "sequence": INT, "node": INT, "k": INT, "own": INT, "own_cpu": OPTIONAL},
    # The longest invocations of each function, whether sampled or not.
    "worst": {
        "run": TEXT, "sequence": INT, "component": INT, "node": INT, "started": INT, "x": INT, "x_cpu": OPTIONAL,
        "x_events": INT,
    },
    # The longest calls within the invocations of "worst", callers first. parent: number of the span that each lies in, -1
    # for the invocation itself; started: ns after its start; y: time. A generator's segments are spans of whoever resumed it.
    "spans": {"run": TEXT, "sequence": INT, "span": INT, "parent": INT, "node": INT, "started": INT, "y": INT},
}  # fmt: skip
COUNTED: Final[dict[str, dict[str, str]]] = {
    # One row for each place of the program: the fields of Location, and how often it was executed.
    "counts": {"kind": TEXT, "name": TEXT, "file": TEXT, "line": INT, "function": TEXT, "language": TEXT, "count": INT},
    # One row for each source file: where its text is kept.
    "sources": {"file": TEXT, "digest": TEXT},
}
"""Tables of runs recorded with ``--collect lines``."""
WHOLE: Final = -1
"""Stands in place of a path for the function's calls on all paths."""
PATHS: Final[dict[str, dict[str, str]]] = {
    # One row. tick: calibrated step of the clock; probe: what recording a call adds to its callers' time; both ns.
    # dropped: functions that there was no room for.
    "path_about": {"build": TEXT, "tick": REAL, "probe": REAL, "dropped": INT},
    # One row for each function that was chosen or is hot. share: its own part of all recorded time.
    "path_functions": {"function": INT, "name": TEXT, "share": REAL},
    # One row for each function on a call path, from the program's start to the function itself.
    "call_paths": {"path": INT, "place": INT, "name": TEXT},
    # begin, end: ns since 1970. nested: calls within the calls that cost the tracer's time.
    "path_observations": {"function": INT, "observation": INT, "begin": INT, "end": INT, "calls": INT, "nested": INT},
    # One row for each function, observation, path and metric. If there is no row of cpu, it is equal to time.
    "path_histograms": {"function": INT, "observation": INT, "path": INT, "metric": TEXT, "scale": INT, "zeros": INT},
    # histogram: number of a row of path_histograms, from 0.
    "path_buckets": {"histogram": INT, "bucket": INT, "count": INT},
    # Sums over complete batches of 2^level calls; path WHOLE: of the function's calls on all paths.
    "path_batches": {
        "function": INT, "observation": INT, "path": INT, "metric": TEXT, "level": INT, "batches": INT, "sum_b": SUM,
        "sum_bb": SUM,
    },
}  # fmt: skip
"""Tables of runs recorded with ``--collect paths``."""
VALUES: Final = 6
"""Values that a record has at most."""
PROBE_TABLES: Final[dict[str, dict[str, str]]] = {
    # One row for each process (pid) and probe. fields: names separated by commas. produced, lost: null where the process
    # was lost.
    "probes": {
        "process": INT, "probe": INT, "name": TEXT, "type": TEXT, "unit": TEXT, "fields": TEXT, "subsample": INT,
        "produced": OPTIONAL, "received": INT, "lost": OPTIONAL,
    },
    # One row for each process: the account of its records. kept: those in probe_records. ns_per_tick: of its clock.
    "probe_processes": {
        "process": INT, "host": TEXT, "language": TEXT, "produced": INT, "received": INT, "lost": INT, "kept": INT,
        "ns_per_tick": REAL,
    },
    # One row for each record. at: ns of this host's CLOCK_MONOTONIC when it was made, whichever host made it.
    # v0 … v5: the probe's fields; cycles are converted to ns.
    "probe_records": {
        "process": INT, "thread": INT, "cpu": INT, "probe": INT, "at": INT,
        **{f"v{place}": OPTIONAL for place in range(VALUES)},
    },
}  # fmt: skip
"""Tables of runs recorded with ``--collect probes``."""
# Readings of a trial of a study, in the order in which they came.
READINGS: Final = {"records": {"metric": TEXT, "at_s": REAL, "value": REAL, "n": INT}}
SCHEMA: Final = {**COLUMNS, **COUNTED, **PATHS, **PROBE_TABLES, **READINGS}
"""All tables with their columns and the types of these; every run has those of ``COLUMNS``."""
ADDED_SINCE: Final = frozenset({"worst", "spans", "counted", "parts", "queued"})
"""Tables that recordings of earlier versions of perflaw do not have."""


def sample_sizes(components: int, many: int = MANY_COMPONENTS) -> tuple[int, int]:
    """Invocations that the uniform part and each stratum of a function keep, if this many functions have samples."""
    part = 4 if components > many else 1
    while part > 1 and part < PER_STRATUM and components > (many := 2 * many):
        part *= 2
    return UNIFORM // part, PER_STRATUM // part


def component_of(row: Row) -> Component:
    """The function of a row of the table ``components``."""
    _, name, file, line, language, origin, parameters, *_ = row
    return Component(name, file, line, language, origin, tuple(parameters.split(",")) if parameters else ())


def table_of(name: str, rows: Iterable[Row]) -> Table:
    """The table of that name with these rows of plain values."""
    kinds = SCHEMA[name]
    by_column: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(kinds)
    columns = {}
    for (column, kind), values in zip(kinds.items(), by_column, strict=True):
        if kind == TEXT:
            columns[column] = texts(values)
        elif kind == SUM:
            columns[column] = Column(wide(values))
        elif kind == REAL:
            columns[column] = Column(np.array(values, dtype=np.float64))
        else:
            whole = [NULL if value is None else value for value in values]
            columns[column] = Column(np.array(whole, dtype=np.int64))
    return Table(columns)
