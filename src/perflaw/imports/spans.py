"""Spans of distributed traces: which children of a span are calls within it, and how they become calls of a process.

A span names its parent. Its children may overlap and outlive it, but calls may not. So the callees of a span are chosen
from its end: the child that ended last, then the child that ended last before that one began, and so on. These are the
spans that it waited for. All other children run aside: they are calls with callees of their own, outside their parent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from perflaw.errors import DataError
from perflaw.imports.formats import ForeignFile
from perflaw.imports.tracks import CATEGORY, Number, ProcessEvents, Trace, nanoseconds, number
from perflaw.types import Component

OVERLAPS: Final = "spans overlap another one that their parent waited for: they run aside, outside it"
OUTLIVES: Final = "spans do not lie in their parent's time (asynchronous, or another clock): they run aside, outside it"
ORPHANS: Final = "spans have a parent that is not in the file: they stand at the root"
DUPLICATES: Final = "spans occur twice in the file: taken once"
FILES: Final = ("code.file.path", "code.filepath")
"""Attributes that name the source file, the current one first."""
LINES: Final = ("code.line.number", "code.lineno")
"""Attributes that give the source line, the current one first."""
MAX_LINE: Final = 1 << 31
"""No source file has as many lines; a larger number is none."""
FAILED: Final = "error"
"""Feature of spans whose name has spans that failed: 1 for those, 0 for the others."""
MAX_CATEGORY: Final = 32
"""Different texts of an attribute that is taken as a category; one with more is an identity, an address or a message."""
LINKS: Final = "links"
"""Feature of spans with links: how many other spans one names as its causes, such as the messages of a batch."""

Identity = tuple[str, str]
"""Trace and span."""


@dataclass(frozen=True, slots=True)
class ForeignSpan:
    """A span as a format gives it."""

    identity: Identity
    parent: Identity | None
    """None for a root."""
    service: str
    name: str
    start: int
    """ns."""
    end: int | None
    """ns; None where it has none."""
    attributes: Mapping[str, object]
    """Numbers, truth values and texts, by name."""
    failed: bool = False
    """Whether its status is an error."""
    links: int = 0
    """Number of spans that it names as causes without being their child."""


@dataclass(slots=True)
class _Span:
    """A span and its children."""

    start: int
    """ns."""
    end: int | None
    """ns; None where it has none."""
    parent: Identity | None
    code: int
    """Code of its component."""
    features: list[tuple[str, Number | str]]
    """Attributes that are numbers, or texts of a category."""
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


def shown_name(service: str, name: str, several: bool) -> str:
    """The name of a component: with its service, if the file has several."""
    return f"{service}: {name}" if several and service else name


def _ends_after(span: _Span, end: int | None) -> bool:
    return end is not None and (span.end is None or span.end > end)


def _plain_number(key: str, value: object) -> Number | None:
    """The value of an attribute that is a feature: a number or a truth value that is no line."""
    return None if key in LINES else number(int(value) if isinstance(value, bool) else value)


class SpanReader:
    """What readers of spans have in common: the file that errors name, and checked values."""

    def __init__(self, file: ForeignFile) -> None:
        self.file = file

    def stamp(self, count: int, name: str, value: object, unit_ns: int) -> int:
        """A time in ns from a number of units; DataError where it is none."""
        exact = number(value)
        stamp = None if exact is None else nanoseconds(exact, unit_ns)
        if stamp is None:
            unit = "ns" if unit_ns == 1 else "µs"
            raise self.wrong(count, f"{name} is not a time in {unit}: {str(value)[:40]!r}")
        return stamp

    def wrong(self, count: int, why: str) -> DataError:
        """The error about a span of the file, by its place."""
        return DataError(f"{self.file.path}: span {count}", why, "export the trace anew and import it")

    def trace(self, tool: str, spans: Iterable[ForeignSpan]) -> Trace:
        """The calls of all spans of all services as one process; DataError names the span that is wrong."""
        return _SpanForest(self, list(spans)).trace(tool)

    def trace_in_pieces(self, tool: str, spans: Iterable[ForeignSpan]) -> Trace | None:
        """The same by the C core, which keeps some 200 bytes of a span; None where it refuses one."""
        from perflaw.imports import otlp_core  # it reads as this module does

        return otlp_core.read(otlp_core.messages_of(spans), self.file.library, tool) if self.file.library else None


class _SpanForest:
    """The spans of a file by their identities, and the process that they become."""

    def __init__(self, reader: SpanReader, given: list[ForeignSpan]) -> None:
        self.reader = reader
        self.process = ProcessEvents("")
        self.spans: dict[Identity, _Span] = {}
        services = {span.service for span in given}
        self.several = len(services) > 1
        self.process.name = given[0].service if given and not self.several else ""
        self.failing = {(span.service, span.name) for span in given if span.failed}
        """Names of spans of which some failed."""
        texts: dict[str, set[str]] = {}
        """Attribute → its different texts, one more than a category may have at most."""
        attributes: dict[str, bool] = {}
        """Attribute → whether it has numbers, in the order of the file."""
        for span in given:
            for key, value in span.attributes.items():
                if isinstance(value, str):
                    attributes.setdefault(key, False)
                    if len(texts.setdefault(key, set())) <= MAX_CATEGORY:
                        texts[key].add(value)
                elif _plain_number(key, value) is not None:
                    attributes[key] = True
        self.categories = {key for key, found in texts.items() if 1 < len(found) <= MAX_CATEGORY and key not in FILES}
        """Attributes whose texts are categories: such as a method or a status, and not an identity or an address."""
        self._name_features(attributes, given)
        for count, span in enumerate(given, 1):
            if not span.name or not span.identity[1]:
                raise reader.wrong(count, "it has no name" if span.identity[1] else "it has no spanId")
            if span.end is not None and span.end < span.start:
                raise reader.wrong(count, "it ends before it begins")
            if span.identity in self.spans:
                self.process.notes[DUPLICATES] += 1
            else:
                self.spans[span.identity] = self._take(span)

    def _name_features(self, attributes: Mapping[str, bool], given: list[ForeignSpan]) -> None:
        """Give features their codes in an order that does not depend on that of calls: of too many, the last are left out."""
        first = {span.identity: span for span in reversed(given)}
        for name, is_there in [(FAILED, self.failing), (LINKS, any(span.links for span in first.values()))]:
            if is_there:
                self.process.feature(name)
        for key in attributes:
            if key in self.categories:
                self.process.feature(key, CATEGORY)
        for key, has_numbers in attributes.items():
            if has_numbers:
                self.process.feature(key)

    def _take(self, span: ForeignSpan) -> _Span:
        attributes = span.attributes
        line = number(next((attributes[key] for key in LINES if key in attributes), None))
        file = str(next((attributes[key] for key in FILES if key in attributes), "") or "")
        shown = shown_name(span.service, span.name, self.several)
        code = self.process.component(
            Component(shown, file, int(line) if line is not None and 0 <= line < MAX_LINE else 0)
        )
        features: list[tuple[str, Number | str]] = []
        for key, value in attributes.items():
            if isinstance(value, str):
                if key in self.categories:
                    features.append((key, value))
            elif (found := _plain_number(key, value)) is not None:
                features.append((key, found))
        if (span.service, span.name) in self.failing:
            features.append((FAILED, int(span.failed)))
        if span.links:
            features.append((LINKS, span.links))
        return _Span(span.start, span.end, span.parent, code, features)

    def trace(self, tool: str) -> Trace:
        """The trace: callees within their spans, all other spans at the root."""
        roots = []
        for span in self.spans.values():
            parent = self.spans.get(span.parent) if span.parent else None
            if parent is None:
                self.process.notes[ORPHANS] += span.parent is not None
                roots.append(span)
            else:
                parent.children.append(span)
        for span in self.spans.values():
            roots += span.choose_callees(self.process.notes)
        self._write_all(roots)
        return Trace(tool, (self.process,) if self.spans else (), 1, epoch=True)

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
            raise DataError(f"{self.reader.file.path}: spans that are their own ancestors", why, remedy)
