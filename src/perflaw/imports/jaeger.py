"""Traces of Jaeger: the JSON that its page downloads and that its API answers.

A reference ``CHILD_OF`` names the parent; the first one counts. ``FOLLOWS_FROM`` names a cause that did not wait, so it
is a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from perflaw.imports.formats import ForeignFile, Format, mapping, objects
from perflaw.imports.json_pieces import JsonPieces
from perflaw.imports.spans import ForeignSpan, SpanReader
from perflaw.imports.tracks import Trace

_US: Final = 1000


class _JaegerReader(SpanReader):
    """Reads the spans of a file."""

    def spans(self) -> Iterator[ForeignSpan]:
        """All spans of all traces, in the order of the file."""
        count = 0
        for trace in objects(self.file.keys.get("data")):
            processes = mapping(trace.get("processes"))
            for given in objects(trace.get("spans")):
                count += 1
                yield self.span(count, given, processes)

    def pieces(self, text: JsonPieces) -> Iterator[ForeignSpan]:
        """The same from a text in pieces, a trace at a time: its processes stand after its spans."""
        count = 0
        for key in text.members():
            for _ in text.items() if key == "data" else text.pass_over():
                trace = mapping(text.value())
                for given in objects(trace.get("spans")):
                    count += 1
                    yield self.span(count, given, mapping(trace.get("processes")))

    def span(self, count: int, given: Mapping[str, object], processes: Mapping[str, object]) -> ForeignSpan:
        """A span of the file."""
        trace = str(given.get("traceID") or "")
        references = objects(given.get("references"))
        parents = [one for one in references if one.get("refType", "CHILD_OF") == "CHILD_OF"]
        above = (str(parents[0].get("traceID") or trace), str(parents[0].get("spanID") or "")) if parents else None
        if above is None and given.get("parentSpanID"):
            above = (trace, str(given["parentSpanID"]))
        start = self.stamp(count, "startTime", given.get("startTime"), _US)
        process = mapping(processes.get(str(given.get("processID")))) or mapping(given.get("process"))
        attributes = {str(tag.get("key", "")): tag.get("value") for tag in objects(given.get("tags"))}
        failed = attributes.pop("error", False) in (True, "true")
        name, links = given.get("operationName"), max(len(references) - 1, 0) if parents else len(references)
        return ForeignSpan(
            (trace, str(given.get("spanID") or "")),
            above,
            str(process.get("serviceName") or ""),
            name if isinstance(name, str) else "",
            start,
            start + self.stamp(count, "duration", given.get("duration"), _US),
            attributes,
            failed or attributes.get("otel.status_code") == "ERROR",
            links,
        )


def recognises(file: ForeignFile) -> bool:
    """Whether a file has traces with spans of Jaeger."""
    return any("spans" in trace and "traceID" in trace for trace in objects(file.keys.get("data"))[:1])


def read(file: ForeignFile) -> Trace:
    """The calls of a file."""
    reader = _JaegerReader(file)
    return reader.trace("Jaeger", reader.spans())


def _read_pieces(file: ForeignFile, text: JsonPieces) -> Trace | None:
    reader = _JaegerReader(file)
    return reader.trace_in_pieces("Jaeger", reader.pieces(text))


_BEGIN: Final = re.compile(rb'\s*\{\s*"data"\s*:\s*\[\s*\{\s*"(traceID|spans)"')
FORMAT: Final = Format("Jaeger traces", recognises, read, _BEGIN, _read_pieces)
