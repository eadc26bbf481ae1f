"""Spans of Zipkin: a JSON list of spans (version 2 of its API), as its exporters and its server write them.

A call between two services may be two spans of one identity. The one of the server is marked as shared: it lies within
the one of the client.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from perflaw.bounds import read_pieces
from perflaw.imports.formats import ForeignFile, Format, mapping, objects
from perflaw.imports.json_pieces import JsonPieces
from perflaw.imports.spans import ForeignSpan, SpanReader
from perflaw.imports.tracks import Trace, number

_US: Final = 1000
_SERVER: Final = " (shared)"
"""What the identity of a shared span has at its end."""


class _ZipkinReader(SpanReader):
    """Reads the spans of a file."""

    def spans(self) -> Iterator[ForeignSpan]:
        """All spans, in the order of the file. A list of lists holds a trace in each, as the server answers."""
        document = self.file.documents[0]
        lists = document if isinstance(document, list) else []
        given = [span for one in lists for span in (objects(one) if isinstance(one, list) else objects([one]))]
        shared = {(str(one.get("traceId")), str(one.get("id"))) for one in given if one.get("shared") is True}
        yield from self._spans(given, shared)

    def pieces(self, text: JsonPieces, shared: Collection[tuple[str, str]]) -> Iterator[ForeignSpan]:
        """The same from a text in pieces, where the identities of shared spans are known."""

        def given() -> Iterator[Mapping[str, object]]:
            for _ in text.items():
                if text.next() == "[":
                    for _ in text.items():
                        yield mapping(text.value())
                else:
                    yield mapping(text.value())

        return self._spans(given(), shared)

    def _spans(
        self, given: Iterable[Mapping[str, object]], shared: Collection[tuple[str, str]]
    ) -> Iterator[ForeignSpan]:
        for count, one in enumerate(given, 1):
            trace, own, parent = (str(one.get(key) or "") for key in ("traceId", "id", "parentId"))
            start = self.stamp(count, "timestamp", one.get("timestamp"), _US)
            end = None
            if one.get("duration") is not None:
                end = start + self.stamp(count, "duration", one["duration"], _US)
            tags = mapping(one.get("tags"))  # all tags are texts
            attributes = {key: value if (found := number(value)) is None else found for key, value in tags.items()}
            above: tuple[str, str] | None = (trace, parent) if parent else None
            if one.get("shared") is True:
                above, own = (trace, own), own + _SERVER
            elif above in shared:
                above = (trace, parent + _SERVER)  # what a server calls names the shared identity as its parent
            service = str(mapping(one.get("localEndpoint")).get("serviceName") or "")
            name = str(one.get("name") or "") or str(one.get("kind") or "").lower() or "unknown"
            yield ForeignSpan((trace, own), above, service, name, start, end, attributes, "error" in tags)


def recognises(file: ForeignFile) -> bool:
    """Whether a file is a list of spans, or of lists of spans."""
    document = file.documents[0] if file.documents else None
    first = document[0] if isinstance(document, list) and document else None
    span = mapping(first[0] if isinstance(first, list) and first else first)
    return {"traceId", "id"} <= span.keys()


def _read_pieces(file: ForeignFile, text: JsonPieces) -> Trace | None:
    """The calls of a file. It is passed twice where spans are shared, for a parent may come after its children."""
    reader = _ZipkinReader(file)
    shared: set[tuple[str, str]] = set()
    if any(b'"shared"' in piece for piece in _overlapping(read_pieces(file.path))):
        first = JsonPieces.of(file.path)
        for span in reader.pieces(first, ()):
            if span.identity[1].endswith(_SERVER) and span.parent:
                shared.add(span.parent)
    return reader.trace_in_pieces("Zipkin", reader.pieces(text, shared))


def _overlapping(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of a file, each with the end of the one before."""
    end = b""
    for piece in pieces:
        yield end + piece
        end = piece[-16:]


def read(file: ForeignFile) -> Trace:
    """The calls of a file."""
    reader = _ZipkinReader(file)
    return reader.trace("Zipkin", reader.spans())


_BEGIN: Final = re.compile(rb'\s*\[\s*(\[\s*)?\{(?=[^{}]*"traceId")(?=[^{}]*"id"\s*:)')
FORMAT: Final = Format("Zipkin spans", recognises, read, _BEGIN, _read_pieces)
