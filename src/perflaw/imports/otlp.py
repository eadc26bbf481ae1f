"""Spans of OpenTelemetry in the JSON of its protocol (OTLP): one document, or one a line as the collector writes them.

A span names its parent. Its children may overlap and outlive it, but calls may not. So the callees of a span are chosen
from its end: the child that ended last, then the child that ended last before that one began, and so on. These are the
spans that it waited for. All other children run aside: they are calls with callees of their own, outside their parent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from perflaw.errors import DataError
from perflaw.imports.formats import ForeignFile, Format, mapping
from perflaw.imports.tracks import Number, ProcessEvents, Trace, nanoseconds, number
from perflaw.types import Component

OVERLAPS: Final = "spans overlap another one that their parent waited for: they run aside, outside it"
OUTLIVES: Final = "spans do not lie in their parent's time (asynchronous, or another clock): they run aside, outside it"
ORPHANS: Final = "spans have a parent that is not in the file: they stand at the root"
DUPLICATES: Final = "spans occur twice in the file: taken once"
FILES: Final = ("code.file.path", "code.filepath")
"""Attributes that name the source file, the current one first."""
MAX_LINE: Final = 1 << 31
"""No source file has as many lines; a larger number is none."""
LINES: Final = ("code.line.number", "code.lineno")
"""Attributes that give the source line, the current one first."""


@dataclass(slots=True)
class _Span:
    """A span and its children."""

    start: int
    """ns."""
    end: int | None
    """ns; None where it has none."""
    parent: tuple[str, str]
    """Trace and span of its parent; the latter is empty for a root."""
    code: int
    """Code of its component."""
    features: tuple[tuple[str, Number], ...]
    """Attributes that are numbers."""
    children: list[_Span] = field(default_factory=list)
    """All its children."""
    callees: list[_Span] = field(default_factory=list)
    """The children that are calls within it, in order."""

    def choose_callees(self, notes: Counter[str]) -> list[_Span]:
        """Set the callees; gives the children that run aside.

        Children are taken from the one that ended last. A child without an end comes first; of children that end
        together, the one that began last is a callee.
        """
        aside, free_until = [], self.end
        order = sorted(self.children, key=lambda child: (child.end is None, child.end or 0, child.start), reverse=True)
        for child in order:
            outside = child.start < self.start or _ends_after(child, self.end)
            if outside or _ends_after(child, free_until):
                notes[OUTLIVES if outside else OVERLAPS] += 1
                aside.append(child)
            else:
                self.callees.append(child)
                free_until = child.start
        self.callees.reverse()
        return aside


def _ends_after(span: _Span, end: int | None) -> bool:
    return end is not None and (span.end is None or span.end > end)


class _OtlpReader:
    """Reads the documents of a file: all spans of all services as one process."""

    def __init__(self, file: ForeignFile) -> None:
        self.file = file
        self.process = ProcessEvents("")
        self.spans: dict[tuple[str, str], _Span] = {}

    def read(self) -> Trace:
        """The calls of all spans; DataError names the span that is wrong."""
        pairs = []  # every span with the name of its service
        resources = (
            one for document in self.file.documents for one in _objects(mapping(document).get("resourceSpans"))
        )
        for resource in resources:
            service = str(_attributes(mapping(resource.get("resource"))).get("service.name", ""))
            for scope in _objects(resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))):
                pairs += [(service, span) for span in _objects(scope.get("spans"))]
        several = len({service for service, _ in pairs}) > 1
        for count, (service, fields) in enumerate(pairs, 1):
            name, identity = fields.get("name"), (str(fields.get("traceId", "")), str(fields.get("spanId", "")))
            if not isinstance(name, str) or not name or not identity[1]:
                raise self._wrong(count, "it has no name" if identity[1] else "it has no spanId")
            if identity in self.spans:
                self.process.notes[DUPLICATES] += 1
            else:
                start, end = self._stamp(count, fields, "startTimeUnixNano"), None
                if fields.get("endTimeUnixNano") not in (None, "", "0", 0):
                    end = self._stamp(count, fields, "endTimeUnixNano")
                    if end < start:
                        raise self._wrong(count, "it ends before it begins")
                attributes = _attributes(fields)
                line = number(next((attributes[key] for key in LINES if key in attributes), None))
                file = str(next((attributes[key] for key in FILES if key in attributes), "") or "")
                shown = f"{service}: {name}" if several and service else name
                code = self.process.component(
                    Component(shown, file, int(line) if line is not None and 0 <= line < MAX_LINE else 0)
                )
                above = (identity[0], str(fields.get("parentSpanId") or ""))
                features = [
                    (key, found)
                    for key, value in attributes.items()
                    if key not in LINES and not isinstance(value, str) and (found := number(value)) is not None
                ]
                self.spans[identity] = _Span(start, end, above, code, tuple(features))
        self.process.name = pairs[0][0] if pairs and not several else ""
        roots = []
        for span in self.spans.values():
            parent = self.spans.get(span.parent) if span.parent[1] else None
            if parent is None:
                self.process.notes[ORPHANS] += bool(span.parent[1])
                roots.append(span)
            else:
                parent.children.append(span)
        for span in self.spans.values():
            roots += span.choose_callees(self.process.notes)
        self._write_all(roots)
        return Trace("OTLP", (self.process,) if self.spans else (), 1, epoch=True)

    def _stamp(self, count: int, span: Mapping[str, object], name: str) -> int:
        value = number(span.get(name))
        stamp = None if value is None else nanoseconds(value, 1)
        if stamp is None:
            raise self._wrong(count, f"{name} is not a time in ns: {str(span.get(name))[:40]!r}")
        return stamp

    def _wrong(self, count: int, why: str) -> DataError:
        return DataError(f"{self.file.path}: span {count}", why, "export the trace anew and import it")

    def _write_all(self, roots: list[_Span]) -> None:
        """Put the roots, with their callees, on as few tracks as hold them without overlaps."""
        busy: list[tuple[int, int]] = []  # end of the last call of a track, and the track's place
        written = 0
        for root in sorted(roots, key=lambda root: root.start):
            place = len(self.process.tracks)
            if root.end is not None and busy and busy[0][0] <= root.start:
                place = heappop(busy)[1]
            else:
                self.process.track()
            # Put a span with its callees on a track.
            track = self.process.tracks[place]
            stack = [(root, 0, 0)]  # span, code of its caller, and its frame once it is open
            while stack:
                span, caller, frame = stack.pop()
                if frame:
                    self.process.exit(track, span.end or 0, frame)
                    continue
                written += 1
                frame = self.process.enter(track, span.start, span.code, caller, span.features)
                if span.end is not None:
                    stack.append((span, caller, frame))
                stack += [(callee, span.code, 0) for callee in reversed(span.callees)]
            if root.end is not None:
                heappush(busy, (root.end, place))
        if written < len(self.spans):
            why = "parentSpanId leads in a circle"
            remedy = "export the trace anew and import it"
            raise DataError(f"{self.file.path}: spans that are their own ancestors", why, remedy)


def _attributes(holder: Mapping[str, object]) -> dict[str, object]:
    """Attributes by name: texts, numbers and truth values; lists and mappings are left out."""
    attributes = {}
    for pair in _objects(holder.get("attributes")):
        value = mapping(pair.get("value"))
        for kind in ("stringValue", "intValue", "doubleValue", "boolValue"):
            if kind in value:  # 64-bit integers are texts in this JSON
                plain = number(value[kind]) if kind in ("intValue", "doubleValue") else value[kind]
                attributes[str(pair.get("key", ""))] = plain
    return attributes


def _objects(value: object) -> list[Mapping[str, object]]:
    """The objects of a JSON list; none where the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


FORMAT: Final = Format(
    "OTLP spans in JSON", lambda file: "resourceSpans" in file.keys, lambda file: _OtlpReader(file).read()
)
