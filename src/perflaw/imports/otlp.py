"""Spans of OpenTelemetry in the JSON of its protocol (OTLP): one document, or one a line as the collector writes them.

The parent of a span is what it says. Its children may overlap and outlive it, calls may not; so the callees of a span are
chosen from its end: the child that ended last, then the one that ended last before that began, and so on. They are what
it waited for. All other children run aside: calls with callees of their own, outside their parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from perflaw.errors import DataError
from perflaw.imports.tracks import Number, ProcessEvents, Trace, mapping, nanoseconds, number
from perflaw.record.tree.builder import Event
from perflaw.types import Component

# ---- Attributes of OpenTelemetry in JSON.

FILES: Final = ("code.file.path", "code.filepath")
"""Names of the source file, the present one first."""
LINES: Final = ("code.line.number", "code.lineno")
"""Names of the source line."""


def attributes(holder: Mapping[str, object]) -> dict[str, object]:
    """Plain attributes by name: texts, numbers and truths; lists and tables are left out."""
    found = {}
    for pair in objects(holder.get("attributes")):
        value = mapping(pair.get("value"))
        for kind in ("stringValue", "intValue", "doubleValue", "boolValue"):
            if kind in value:
                found[str(pair.get("key", ""))] = _plain(kind, value[kind])
    return found


def _plain(kind: str, value: object) -> object:
    """64-bit integers are texts in this JSON."""
    return number(value) if kind in ("intValue", "doubleValue") else value


def numbers(told: Mapping[str, object]) -> Iterator[tuple[str, Number]]:
    """Those that are numbers, without the source line."""
    for name, value in told.items():
        found = None if isinstance(value, str) else number(value)
        if found is not None and name not in LINES:
            yield name, found


def objects(value: object) -> list[Mapping[str, object]]:
    """The objects of a JSON list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def one_of(told: Mapping[str, object], names: tuple[str, ...]) -> object:
    """What stands under the first of these names; None where there is none."""
    return next((told[name] for name in names if name in told), None)


OVERLAPS: Final = "spans overlap what their parent waited for: they run aside, outside it"
OUTLIVES: Final = (
    "spans do not lie within their parent's time (asynchronous, or another clock): they run aside, outside it"
)
ORPHANS: Final = "spans whose parent is not in the file stand at the root"
TWICE: Final = "spans stand in the file twice: taken once"


@dataclass(slots=True)
class _Span:
    """One span and its children."""

    start: int
    """ns."""
    end: int | None
    """ns; None where it has none."""
    parent: tuple[str, str]
    """Trace and span it says it is a child of; the latter empty at a root."""
    code: int
    """Number of its component."""
    features: tuple[tuple[str, Number], ...]
    """Attributes that are numbers."""
    children: list[_Span] = field(default_factory=list)
    """All of them."""
    callees: list[_Span] = field(default_factory=list)
    """Those that are calls within it, in order."""


class OtlpReader:
    """Reads the documents of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.process = ProcessEvents("")
        self.spans: dict[tuple[str, str], _Span] = {}
        self.count = 0

    def read(self, documents: list[object]) -> Trace:
        """All spans of all services as one process; DataError names the span that is wrong."""
        found = [(service, span) for document in documents for service, span in self._raw(document)]
        several = len({service for service, _ in found}) > 1
        for service, span in found:
            self._take(span, f"{service}: " if several and service else "")
        self.process.name = found[0][0] if found and not several else ""
        self._place(self._roots())
        return Trace("OTLP", (self.process,) if self.spans else (), 1, epoch=True)

    def _raw(self, document: object) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Name of the service and each of its spans."""
        for resource in objects(mapping(document).get("resourceSpans")):
            service = attributes(mapping(resource.get("resource"))).get("service.name", "")
            for scope in objects(resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))):
                for span in objects(scope.get("spans")):
                    yield str(service), span

    def _take(self, span: Mapping[str, object], prefix: str) -> None:
        self.count += 1
        name, identity = span.get("name"), (str(span.get("traceId", "")), str(span.get("spanId", "")))
        if not isinstance(name, str) or not name or not identity[1]:
            raise self._wrong("it has no name" if identity[1] else "it has no spanId")
        if identity in self.spans:
            self.process.said[TWICE] += 1
            return
        told = attributes(span)
        start, end = self._stamp(span, "startTimeUnixNano"), None
        if span.get("endTimeUnixNano") not in (None, "", "0", 0):
            end = self._stamp(span, "endTimeUnixNano")
            if end < start:
                raise self._wrong("it ends before it begins")
        line = number(one_of(told, LINES))
        file = str(one_of(told, FILES) or "")
        code = self.process.component(Component(prefix + name, file, int(line) if line is not None else 0))
        parent = (identity[0], str(span.get("parentSpanId") or ""))
        self.spans[identity] = _Span(start, end, parent, code, tuple(numbers(told)))

    def _stamp(self, span: Mapping[str, object], name: str) -> int:
        value = number(span.get(name))
        stamp = None if value is None else nanoseconds(value, 1)
        if stamp is None:
            raise self._wrong(f"{name} is no time in ns: {str(span.get(name))[:40]!r}")
        return stamp

    def _wrong(self, why: str) -> DataError:
        return DataError(f"{self.file}: span {self.count}", why, "export the trace anew and import it")

    def _roots(self) -> list[_Span]:
        """Spans outside any other, after the callees of each were chosen."""
        roots = []
        for span in self.spans.values():
            parent = self.spans.get(span.parent) if span.parent[1] else None
            if parent is None:
                self.process.said[ORPHANS] += bool(span.parent[1])
                roots.append(span)
            else:
                parent.children.append(span)
        for span in self.spans.values():
            roots += self._choose(span)
        return roots

    def _choose(self, span: _Span) -> list[_Span]:
        """Set the callees of a span; gives its other children."""
        aside, free = [], span.end
        for child in sorted(span.children, key=_latest, reverse=True):
            outside = child.start < span.start or (span.end is not None and (child.end is None or child.end > span.end))
            if outside or (free is not None and (child.end is None or child.end > free)):
                self.process.said[OUTLIVES if outside else OVERLAPS] += 1
                aside.append(child)
            else:
                span.callees.append(child)
                free = child.start
        span.callees.reverse()
        return aside

    def _place(self, roots: list[_Span]) -> None:
        """Put roots on as few tracks as hold them without an overlap."""
        busy: list[tuple[int, int]] = []
        """End of the last call on a track, and its number."""
        placed = 0
        for root in sorted(roots, key=lambda one: one.start):
            place = len(self.process.tracks)
            if root.end is not None and busy and busy[0][0] <= root.start:
                place = heappop(busy)[1]
            else:
                self.process.track()
            placed += self._write(self.process.tracks[place], root)
            if root.end is not None:
                heappush(busy, (root.end, place))
        if placed < len(self.spans):
            raise DataError(f"{self.file}: spans that are their own ancestors", "parentSpanId leads in a circle", "")

    def _write(self, track: list[Event], root: _Span) -> int:
        """Put a span with its callees on a track; gives how many they are."""
        written = 0
        todo: list[tuple[_Span, int, int]] = [(root, 0, 0)]
        while todo:
            span, caller, frame = todo.pop()
            if frame:
                self.process.exit(track, span.end or 0, frame)
                continue
            written += 1
            frame = self.process.enter(track, span.start, span.code, caller, span.features)
            if span.end is not None:
                todo.append((span, caller, frame))
            todo += [(callee, span.code, 0) for callee in reversed(span.callees)]
        return written


def _latest(span: _Span) -> tuple[bool, int, int]:
    """By end, those without one last; of those that end together the one that began last is the nearer one."""
    return (span.end is None, span.end or 0, span.start)
