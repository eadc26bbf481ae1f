"""The longest invocations of a function over all recordings, with the nested spans within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflaw.store.columns import Row
from perflaw.store.experiment import Recording
from perflaw.store.schema import WORST
from perflaw.store.tables import read_table
from perflaw.types import Component
from perflaw.types.spans import NestedSpan, WorstCall

_IDENTITY = ("name", "file", "line", "language", "origin")


def worst_calls(recordings: Sequence[Recording], component: Component) -> tuple[WorstCall, ...]:
    """The longest, the longest first; none where the recordings are of a version of perflaw that kept none.

    StoreError where a table is damaged.
    """
    found = [call for recording in recordings for call in _of(recording, component)]
    return tuple(sorted(found, key=lambda one: (-one.time_ns, one.run, one.sequence))[:WORST])


def _of(recording: Recording, component: Component) -> Iterator[WorstCall]:
    if not (recording.folder / "worst.parquet").is_file():
        return
    components = read_table(recording.folder, "components")
    wanted = tuple(getattr(component, name) for name in _IDENTITY)
    numbers = {row[0] for row in components if row[1:6] == wanted}
    rows = [row for row in read_table(recording.folder, "worst") if row[2] in numbers]
    if not rows:
        return
    contexts = _Contexts(recording, {row[0]: str(row[1]) for row in components})
    keys = {row[:2] for row in rows}
    spans, features = contexts.spans(keys), _features(recording, keys)
    for run, sequence, _, node, started, time, cpu, calls in rows:
        key, path = (run, sequence), contexts.path(node)
        measured = float("nan") if cpu is None else float(cpu)
        nested = tuple(spans.get(key, ()))
        yield WorstCall(run, sequence, started, time, measured, calls, path, nested, features.get(key, {}))


class _Contexts:
    """Calling contexts of a recording by node."""

    def __init__(self, recording: Recording, names: dict[int, str]) -> None:
        self.folder = recording.folder
        columns = ("node", "parent", "component", "site_line")
        self.nodes = {row[0]: row[1:] for row in read_table(recording.folder, "calltree", columns)}
        self.names = names

    def name(self, node: int) -> str:
        return self.names.get(self.nodes[node][1], "(unknown)")

    def path(self, node: int) -> tuple[str, ...]:
        names = []
        while node > 0:
            names.append(self.name(node))
            node = self.nodes[node][0]
        return tuple(reversed(names))

    def spans(self, keys: set[Row]) -> dict[Row, list[NestedSpan]]:
        """Spans of these invocations, in order."""
        found: dict[Row, list[NestedSpan]] = {}
        for run, sequence, _, parent, node, started, time in read_table(self.folder, "spans"):
            if (run, sequence) in keys:
                span = NestedSpan(self.name(node), self.nodes[node][2], parent, started, time)
                found.setdefault((run, sequence), []).append(span)
        return found


def _features(recording: Recording, keys: set[Row]) -> dict[Row, dict[str, float | str]]:
    """What was read at the entry of those among them that were sampled."""
    found: dict[Row, dict[str, float | str]] = {}
    for run, sequence, feature, value, text in read_table(recording.folder, "features"):
        if (run, sequence) in keys and (value is not None or text is not None):
            found.setdefault((run, sequence), {})[feature] = text if value is None else value
    return found
